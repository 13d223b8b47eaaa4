"""Asking what the owner can ask: the running gateway, or the store itself where none runs."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from frontdesk import SessionStore, config, errors
from frontdesk.app import sockets
from frontdesk.app.office import Office
from frontdesk.app.opening import without_creating
from frontdesk.app.reception import Reception
from frontdesk.app.sockets import SocketClient
from frontdesk.app.terminal import Terminal
from frontdesk.cli import one_line, output
from frontdesk.cli.output import Report
from frontdesk.config import Config
from frontdesk.config.effective import SettingsInEffect
from frontdesk.contracts.channels import Channel
from frontdesk.contracts.clock import SystemClock
from frontdesk.contracts.snapshots import Snapshots
from frontdesk.flow.passes import PassBook
from frontdesk.web import owner

T = TypeVar("T")


def ask(
    loaded: Config,
    question: Callable[[Office], Awaitable[T]],
    store_url: str | None = None,
    *,
    creates: bool = False,
) -> T:
    """The answer to a question; errors are as the office raises them."""

    async def answer() -> T:
        async with reach_office(loaded, store_url, creates=creates) as office:
            return await question(office)

    return asyncio.run(answer())


def answering(question: Callable[..., Awaitable[Report]], *, creates: bool = False) -> Callable[..., None]:
    """A command that asks the office, and whose report is JSON where that is wanted."""

    @output.answering
    @wraps(question)
    def command(config_file: Path | None, /, **given: Any) -> Report:
        return ask(config.load(config_file), lambda office: question(office, **given), creates=creates)

    return command


keeping = partial(answering, creates=True)
"""The same for a command that hands something in, which stays when there was no store before."""


@asynccontextmanager
async def reach_office(
    loaded: Config, store_url: str | None = None, *, creates: bool = False
) -> AsyncIterator[Office]:
    """The running gateway's office; without a gateway, or for another store than its own, one of our own.
    Where there is no store yet, one is made only for what is to stay (``creates``)."""
    try:
        gateway = None if store_url else await reach_gateway(loaded.home)
    except errors.NoGateway:
        gateway = None
    if gateway:
        yield owner.far(Office, owner.OFFICE, gateway)
        return
    url = store_url or loaded.store_url
    url = url if creates else without_creating(url)
    async with await SessionStore.open(url, loaded.gateway, upgrade=False) as sessions:
        channels, workplace = partial(_channels, loaded), partial(_workplace, loaded)
        settings = partial(_settings, loaded)
        yield Office(sessions.store, sessions, channels=channels, workplace=workplace, settings=settings)


def receiving(
    question: Callable[..., Awaitable[Report]], *, needs_pages: bool = False
) -> Callable[..., None]:
    """A command that asks the reception; where a link is wanted, of somebody who serves pages."""

    @output.answering
    @wraps(question)
    def command(config_file: Path | None, /, **given: Any) -> Report:
        async def answer() -> Report:
            async with _reach_reception(config.load(config_file), needs_pages=needs_pages) as reception:
                return await question(reception, **given)

        return asyncio.run(answer())

    return command


@asynccontextmanager
async def _reach_reception(loaded: Config, *, needs_pages: bool) -> AsyncIterator[Reception]:
    """That of the running gateway, or of the confirmation service alone; else one of our own."""
    own = await sockets.find_own(loaded.home)
    if own:
        yield owner.far(Reception, owner.RECEPTION, own[0])
        return
    if needs_pages:
        raise errors.NoPages()
    async with await SessionStore.open(loaded.store_url, loaded.gateway, upgrade=False) as sessions:
        yield Reception(PassBook(sessions.store, SystemClock(), loaded.confirm.persons))


async def reach_terminal(home: Path) -> Terminal:
    """The running gateway's terminal; NoGateway when none runs."""
    return owner.far(Terminal, owner.TERMINAL, await reach_gateway(home))


async def reach_gateway(home: Path) -> SocketClient:
    """The running gateway, which has answered. NoGateway when none runs."""
    client = SocketClient(sockets.socket_of(home))
    await client.call("GET", "/")
    return client


async def _channels(loaded: Config) -> list[Channel]:
    """None where they cannot be made."""
    from frontdesk.app import build  # noqa: PLC0415 - takes long to load, and few questions need it

    try:
        return await build.try_channels(loaded)
    except errors.FrontdeskError as error:
        output.note(one_line(error))
        return []


def _workplace(loaded: Config) -> tuple[Snapshots | None, str | None]:
    from frontdesk.app import build  # noqa: PLC0415 - the same

    return build.workplace(loaded)


def _settings(loaded: Config) -> SettingsInEffect:
    from frontdesk.app import build  # noqa: PLC0415 - the same

    return build.settings_in_effect(loaded)


async def all_items(page: Callable[..., Awaitable[Any]]) -> list[Any]:
    """The whole of a list that is told a page at a time."""
    told = await page()
    found = list(told["items"])
    while told["next"]:
        told = await page(after=told["next"])
        found += told["items"]
    return found


def limit_option(default: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        "--limit",
        default=default,
        show_default=True,
        type=click.IntRange(1, 100_000),
        help="How many at most.",
    )
