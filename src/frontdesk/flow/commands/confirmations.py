"""Commands that decide about dangerous actions: approve, deny."""

from frontdesk.flow.commands import Command, Reply, Request, views
from frontdesk.flow.parts import Parts
from frontdesk.model.turns import Kind

NOTHING_WAITS = "Nothing with the id {name} waits for a decision. It may have been decided or expired."


async def approve(_: Parts, request: Request) -> Reply:
    return _answer(request, "/approve ID")


async def deny(_: Parts, request: Request) -> Reply:
    return _answer(request, "/deny ID [reason]")


def _answer(request: Request, usage: str) -> Reply:
    wanted, _reason = views.words_of(request)
    if not wanted:
        return Reply(f"Which one? The question names its id: {usage}")
    return Reply(NOTHING_WAITS.format(name=views.quoted(wanted)))


COMMANDS = (
    Command(
        name="approve",
        usage="id",
        handle=approve,
        kind=Kind.CONTROL,
        help="Allow an action that waits for you.",
    ),
    Command(
        name="deny",
        usage="id [reason]",
        handle=deny,
        kind=Kind.CONTROL,
        help="Refuse an action that waits for you.",
    ),
)
