"""Commands about who may do what: approve, deny and lift for actions, pair, link and unlink for people."""

from typing import Any

from msgspec.structs import replace

from frontdesk.flow.commands import CommandRequest, CommandTable, Refusal, views
from frontdesk.flow.confirmations import deciding
from frontdesk.flow.parts import Parts
from frontdesk.model import routing
from frontdesk.model.access import AccessVerdict, Role
from frontdesk.model.codes import Pairing
from frontdesk.model.confirmations import Caller
from frontdesk.model.turns import TurnKind

MOST_SHOWN = 10
DECIDES: dict[str, Any] = {"kind": TurnKind.CONTROL, "is_personal": True}

NOBODY_WAITS = 'Nobody waits to be let in. Strangers are shown a code where the setting strangers is "pair".'
LINK = (
    "Write this to me from your other account within an hour: /link {code}\n"
    "From then on both see each other's conversations."
)
ALONE = "This account stands alone again."
ENDED_HERE = (
    "The conversation that went on here belongs to the other account, and ended here."
    " Your next message starts a new one."
)
WHICH = "Which one? The question names its id: {usage}"
LIFTED = "People are asked for {who} again."
NOT_PAUSED = "{who} is not paused."

COMMANDS = CommandTable()


@COMMANDS.add("/approve id [target] [reason]", "Allow an action that an agent asked for.", **DECIDES)
async def approve(parts: Parts, request: CommandRequest) -> str:
    wanted, rest = views.words_of(request)
    if not wanted:
        return Refusal(WHICH.format(usage="/approve ID [target] [reason]"))
    caller = await _caller(parts, request, "approve", wanted)
    asked = await parts.confirmations.find(wanted)
    reason = await deciding.after_target(parts, request.turn.source, asked, rest)
    decided = await parts.confirmations.approve(wanted, caller, reason=reason or None, digest=asked.digest)
    return await deciding.told(parts, decided)


@COMMANDS.add("/deny id [reason]", "Refuse an action that an agent asked for.", **DECIDES)
async def deny(parts: Parts, request: CommandRequest) -> str:
    wanted, reason = views.words_of(request)
    if not wanted:
        return Refusal(WHICH.format(usage="/deny ID [reason]"))
    caller = await _caller(parts, request, "deny", wanted)
    decided = await parts.confirmations.deny(wanted, caller, reason=reason or None)
    return await deciding.told(parts, decided)


@COMMANDS.add("/lift [who]", "Have people asked for an agent again that was paused.", **DECIDES)
async def lift(parts: Parts, request: CommandRequest) -> str:
    who = views.argument_of(request) or request.key
    caller = await _caller(parts, request, "lift_pause")
    lifted = await parts.confirmations.lift_pause(who, caller)
    return (LIFTED if lifted else NOT_PAUSED).format(who=views.quoted(who))


async def _caller(
    parts: Parts, request: CommandRequest, what: str, confirmation_id: str | None = None
) -> Caller:
    """Who gives the command, where they may decide."""
    role = Role(request.turn.role) if request.turn.role else None
    return await deciding.caller_of(parts, request.turn.source, role, what, confirmation_id)


async def verdict_of(parts: Parts, request: CommandRequest) -> AccessVerdict:
    """Who gives the command, with the role that they had when it came in; a block counts at once."""
    verdict = await parts.authorization.check(request.turn.source, authenticates=True)
    return replace(verdict, role=Role(request.turn.role) if request.turn.role else None)


@COMMANDS.add("/pair [code]", "Let in somebody who was shown a code (administrators).", is_personal=True)
async def pair(parts: Parts, request: CommandRequest) -> str:
    verdict = await verdict_of(parts, request)
    code = views.argument_of(request)
    # Where a profile answers, its account is all that is seen of the gateway.
    within = verdict.place if routing.named(request.turn.source.profile) else None
    if not code:
        views.require_privacy(request, "those who wait are")
        return _pending(await parts.authorization.pending(verdict, within=within))
    grant = await parts.authorization.approve(code, verdict, within=within)
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


@COMMANDS.add("/link [code]", "Link your accounts on several platforms.", is_personal=True)
async def link(parts: Parts, request: CommandRequest) -> str:
    verdict = await verdict_of(parts, request)
    code = views.argument_of(request)
    if not code:
        shown = await parts.authorization.begin_link(request.turn.source, verdict)
        return LINK.format(code=shown)
    linked = await parts.authorization.link(code, verdict)
    accounts = views.plural(len(linked), "account")
    return f"Linked: {accounts} of yours see each other's conversations now. To undo this: /unlink"


@COMMANDS.add("/unlink", "Take this account out of a link.", is_personal=True)
async def unlink(parts: Parts, request: CommandRequest) -> str:
    before = await parts.conversations.peek_session_id(request.key)
    if not await parts.authorization.unlink(await verdict_of(parts, request)):
        return "This account is not linked. See /link"
    here = await parts.conversations.peek_session_id(request.key)
    return ALONE if here == before else f"{ALONE} {ENDED_HERE}"
