"""Commands that decide about dangerous actions: approve, deny."""

from frontdesk.flow.commands import Command, Reply, Request, views
from frontdesk.flow.parts import Parts
from frontdesk.model.turns import Kind

NOTHING_WAITS = (
    "Nothing with the id {name} waits for a decision: every action that an agent asks for is refused now."
)


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
        help="Allow an action. Nothing can wait for you yet: what agents ask for is refused.",
    ),
    Command(
        name="deny",
        usage="id [reason]",
        handle=deny,
        kind=Kind.CONTROL,
        help="Refuse an action. Nothing can wait for you yet: what agents ask for is refused.",
    ),
)
