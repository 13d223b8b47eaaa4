"""Commands about who may do what: approve, deny and lift for actions, pair, link and unlink for people."""

import asyncio

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.flow.commands import CommandRequest, CommandTable, Refusal, views
from frontdesk.flow.confirmations.notifying import card_of
from frontdesk.flow.parts import Parts
from frontdesk.flow.service import aliases_of
from frontdesk.model import people
from frontdesk.model.access import AccessVerdict, Role
from frontdesk.model.codes import Pairing
from frontdesk.model.confirmations import Caller, CallerKind, Confirmation, Status
from frontdesk.model.turns import TurnKind

MOST_SHOWN = 10

NOBODY_WAITS = 'Nobody waits to be let in. Strangers are shown a code where the setting strangers is "pair".'
LINK = (
    "Write this to me from your other account within an hour: /link {code}\n"
    "From then on both see each other's conversations."
)
WHICH = "Which one? The question names its id: {usage}"
LOOK = "Look at it and decide there: {where}"
NOT_YOURS = "Only approvers decide. Ask whoever runs this gateway."
STILL_WAITS = "{id} needs {more} more: {so_far} said yes so far."
PAUSED = "{pause} To have people asked again: /lift {who}"
LIFTED = "People are asked for {who} again."
NOT_PAUSED = "{who} is not paused."
DECIDED = {Status.APPROVED: "{id} is approved.", Status.DENIED: "{id} is denied."}

COMMANDS = CommandTable()


@COMMANDS.add(
    "/approve id [target] [reason]", "Allow an action that an agent asked for.", kind=TurnKind.CONTROL
)
async def approve(parts: Parts, request: CommandRequest) -> str:
    wanted, rest = views.words_of(request)
    if not wanted:
        return Refusal(WHICH.format(usage="/approve ID [target] [reason]"))
    caller = await _caller(parts, request, "approve", wanted)
    asked = await parts.confirmations.find(wanted)
    reason = await _after_target(parts, request, asked, rest)
    return _told(
        await parts.confirmations.approve(wanted, caller, reason=reason or None, digest=asked.digest)
    )


@COMMANDS.add("/deny id [reason]", "Refuse an action that an agent asked for.", kind=TurnKind.CONTROL)
async def deny(parts: Parts, request: CommandRequest) -> str:
    wanted, reason = views.words_of(request)
    if not wanted:
        return Refusal(WHICH.format(usage="/deny ID [reason]"))
    caller = await _caller(parts, request, "deny", wanted)
    decided = await parts.confirmations.deny(wanted, caller, reason=reason or None)
    return "\n".join((_told(decided), *(await _paused(parts, decided))))


async def _after_target(parts: Parts, request: CommandRequest, asked: Confirmation, said: str) -> str:
    """What follows the target, where one is typed. NotLookedAt when this chat hides something of the action;
    TargetMissing."""
    if asked.status is not Status.PENDING:
        return said
    card = await asyncio.to_thread(card_of, asked, wide=parts.notifier.is_wide(request.turn.source))
    if card is None:
        return said
    card.check_looked(asked.id, False, LOOK.format(where=" or ".join(parts.notifier.places_of(asked))))
    if card.typed is None:
        return said
    rest = card.typed.rest_of(said)
    if rest is None:
        how = f" after the id: /approve {asked.id} TARGET"
        raise errors.TargetMissing(confirmation_id=asked.id, what=card.typed.what, how=how)
    return rest


async def _paused(parts: Parts, decided: Confirmation) -> list[str]:
    """That it was one denial too many, and what to do about it."""
    pause = await parts.confirmations.pause_after(decided)
    return [PAUSED.format(pause=pause, who=pause.requester)] if pause else []


@COMMANDS.add("/lift [who]", "Have people asked for an agent again that was paused.", kind=TurnKind.CONTROL)
async def lift(parts: Parts, request: CommandRequest) -> str:
    who = views.argument_of(request) or request.key
    caller = await _caller(parts, request, "lift_pause")
    lifted = await parts.confirmations.lift_pause(who, caller)
    return (LIFTED if lifted else NOT_PAUSED).format(who=views.quoted(who))


async def _caller(
    parts: Parts, request: CommandRequest, what: str, confirmation_id: str | None = None
) -> Caller:
    """Who decides here, whatever they call themselves: the platform knows them, and they were let in. Of
    anybody else it is noted what they wanted."""
    role = Role(request.turn.role) if request.turn.role else Role.USER
    source = request.turn.source
    named = people.name_of(source, await aliases_of(parts.store, source))
    if not role.covers(Role.APPROVER):
        refusal = errors.NotAllowed(who=named, rule=NOT_YOURS)
        await parts.confirmations.note_refusal(refusal, what, confirmation_id)
        raise refusal
    return Caller(id=named, kind=CallerKind.APPROVER, people=people.names_of(source))


def _told(decided: Confirmation) -> str:
    if decided.status is Status.PENDING:
        more = decided.terms.quorum - len(decided.approvals)
        return STILL_WAITS.format(id=decided.id, more=more, so_far=len(decided.approvals))
    return DECIDED[decided.status].format(id=decided.id)


async def verdict_of(parts: Parts, request: CommandRequest) -> AccessVerdict:
    """Who gives the command, with the role that they had when it came in; a block counts at once."""
    verdict = await parts.authorization.check(request.turn.source, authenticates=True)
    return replace(verdict, role=Role(request.turn.role) if request.turn.role else None)


@COMMANDS.add("/pair [code]", "Let in somebody who was shown a code (administrators).")
async def pair(parts: Parts, request: CommandRequest) -> str:
    verdict = await verdict_of(parts, request)
    code = views.argument_of(request)
    if not code:
        views.require_privacy(request, "those who wait are")
        return _pending(await parts.authorization.pending(verdict))
    grant = await parts.authorization.approve(code, verdict)
    name = f" ({views.quoted(grant.name)})" if grant.name else ""
    return f"{views.quoted(grant.principal)}{name} is let in and can write to me now."


def _pending(waiting: list[Pairing]) -> str:
    if not waiting:
        return NOBODY_WAITS
    lines = []
    for each in waiting[:MOST_SHOWN]:
        name = f", who goes by {views.quoted(each.name)}" if each.name else ""
        lines.append(f"{views.quoted(each.principal)}{name}, until {each.expires_at:%H:%M} UTC")
    return "\n".join(("These wait to be let in:", *lines, "With the code that one was shown: /pair CODE"))


@COMMANDS.add("/link [code]", "Link your accounts on several platforms.")
async def link(parts: Parts, request: CommandRequest) -> str:
    verdict = await verdict_of(parts, request)
    code = views.argument_of(request)
    if not code:
        shown = await parts.authorization.begin_link(request.turn.source, verdict)
        return LINK.format(code=shown)
    linked = await parts.authorization.link(code, verdict)
    accounts = views.plural(len(linked), "account")
    return f"Linked: {accounts} of yours see each other's conversations now. To undo this: /unlink"


@COMMANDS.add("/unlink", "Take this account out of a link.")
async def unlink(parts: Parts, request: CommandRequest) -> str:
    unlinked = await parts.authorization.unlink(await verdict_of(parts, request))
    return "This account stands alone again." if unlinked else "This account is not linked. See /link"
