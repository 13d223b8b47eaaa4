"""Commands about people: pair, link, unlink."""

from msgspec.structs import replace

from frontdesk.flow.commands import Command, CommandReply, CommandRequest, views
from frontdesk.flow.parts import Parts
from frontdesk.model.access import AccessVerdict, Role
from frontdesk.model.codes import Pairing

MOST_SHOWN = 10

NOBODY_WAITS = 'Nobody waits to be let in. Strangers are shown a code where the setting strangers is "pair".'
LINK = (
    "Write this to me from your other account within an hour: /link {code}\n"
    "From then on both see each other's conversations."
)


async def verdict_of(parts: Parts, request: CommandRequest) -> AccessVerdict:
    """Who gives the command, with the role that they had when it came in; a block counts at once."""
    verdict = await parts.authorization.check(request.turn.source, authenticates=True)
    return replace(verdict, role=Role(request.turn.role) if request.turn.role else None)


async def pair(parts: Parts, request: CommandRequest) -> CommandReply:
    verdict = await verdict_of(parts, request)
    code = views.argument_of(request)
    if not code:
        views.require_privacy(request, "those who wait are")
        return CommandReply(_pending(await parts.authorization.pending(verdict)))
    grant = await parts.authorization.approve(code, verdict)
    name = f" ({views.quoted(grant.name)})" if grant.name else ""
    return CommandReply(f"{views.quoted(grant.principal)}{name} is let in and can write to me now.")


def _pending(waiting: list[Pairing]) -> str:
    if not waiting:
        return NOBODY_WAITS
    lines = [_who(each) for each in waiting[:MOST_SHOWN]]
    return "\n".join(("These wait to be let in:", *lines, "With the code that one was shown: /pair CODE"))


def _who(pairing: Pairing) -> str:
    name = f", who goes by {views.quoted(pairing.name)}" if pairing.name else ""
    return f"{views.quoted(pairing.principal)}{name}, until {pairing.expires_at:%H:%M} UTC"


async def link(parts: Parts, request: CommandRequest) -> CommandReply:
    verdict = await verdict_of(parts, request)
    code = views.argument_of(request)
    if not code:
        shown = await parts.authorization.begin_link(request.turn.source, verdict)
        return CommandReply(LINK.format(code=shown))
    linked = await parts.authorization.link(code, verdict)
    accounts = views.plural(len(linked), "account")
    return CommandReply(
        f"Linked: {accounts} of yours see each other's conversations now. To undo this: /unlink"
    )


async def unlink(parts: Parts, request: CommandRequest) -> CommandReply:
    unlinked = await parts.authorization.unlink(await verdict_of(parts, request))
    return CommandReply(
        "This account stands alone again." if unlinked else "This account is not linked. See /link"
    )


COMMANDS = (
    Command(
        name="pair",
        usage="[code]",
        handle=pair,
        help="Let in somebody who was shown a code (administrators).",
    ),
    Command(name="link", usage="[code]", handle=link, help="Link your accounts on several platforms."),
    Command(name="unlink", handle=unlink, help="Take this account out of a link."),
)
