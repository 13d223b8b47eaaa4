"""Commands that decide about dangerous actions: approve, deny."""

from typing import Literal

from frontdesk import errors
from frontdesk.flow.commands import Command, CommandReply, CommandRequest, views
from frontdesk.flow.parts import Parts
from frontdesk.flow.service import aliases_of
from frontdesk.model import access, people
from frontdesk.model.confirmations import Caller, CallerKind, Confirmation, Status
from frontdesk.model.turns import TurnKind

WHICH = "Which one? The question names its id: {usage}"
NOT_YOURS = "Only approvers decide. Ask whoever runs this gateway."
STILL_WAITS = "{id} needs {more} more: {so_far} said yes so far."
DECIDED = {Status.APPROVED: "{id} is approved.", Status.DENIED: "{id} is denied."}


async def approve(parts: Parts, request: CommandRequest) -> CommandReply:
    return await _decide(parts, request, "approve")


async def deny(parts: Parts, request: CommandRequest) -> CommandReply:
    return await _decide(parts, request, "deny")


async def _decide(parts: Parts, request: CommandRequest, verb: Literal["approve", "deny"]) -> CommandReply:
    wanted, reason = views.words_of(request)
    if not wanted:
        return CommandReply(WHICH.format(usage=f"/{verb} ID [reason]"), refused=True)
    decide = parts.confirmations.approve if verb == "approve" else parts.confirmations.deny
    return _told(await decide(wanted, await _caller(parts, request), reason=reason or None))


async def _caller(parts: Parts, request: CommandRequest) -> Caller:
    """Who decides here, whatever they call themselves: the platform knows them, and they were let in."""
    role = access.Role(request.turn.role) if request.turn.role else access.Role.USER
    source = request.turn.source
    named = people.name_of(source, await aliases_of(parts.store, source))
    if not role.covers(access.Role.APPROVER):
        raise errors.NotAllowed(who=named, rule=NOT_YOURS)
    return Caller(id=named, kind=CallerKind.APPROVER)


def _told(decided: Confirmation) -> CommandReply:
    if decided.status is Status.PENDING:
        more = decided.terms.quorum - len(decided.approvals)
        return CommandReply(STILL_WAITS.format(id=decided.id, more=more, so_far=len(decided.approvals)))
    return CommandReply(DECIDED[decided.status].format(id=decided.id))


COMMANDS = (
    Command(
        name="approve",
        usage="id [reason]",
        handle=approve,
        kind=TurnKind.CONTROL,
        help="Allow an action that an agent asked for.",
    ),
    Command(
        name="deny",
        usage="id [reason]",
        handle=deny,
        kind=TurnKind.CONTROL,
        help="Refuse an action that an agent asked for.",
    ),
)
