"""The gateway in this process, until it is told to stop."""

import asyncio
import gc
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import uvloop

from frontdesk import config
from frontdesk.app import build, loglines, sockets
from frontdesk.app.confirmations import Keys, prepare_keys
from frontdesk.app.gateway import Gateway
from frontdesk.app.reception import Reception
from frontdesk.cli import output
from frontdesk.config import Config
from frontdesk.contracts.store import Upgrade
from frontdesk.model import passes
from frontdesk.web import bounds, server
from frontdesk.web.bounds import Listeners, PortLimits
from frontdesk.web.confirmations.serving import RETRY_SECONDS, make_served, serving_beside

LOG = "frontdesk.log"
YOUNG_OBJECTS_AND_ROUNDS = (50_000, 20, 50)
"""So many more must be there before they are looked at: else a burst of messages is, at every step."""


def run(config_file: Path | None, given: dict[str, Any], *, chat: bool, log_level: str) -> None:
    """``given`` are settings of the server that win over those of the file."""
    loaded = config.with_options(config.load(config_file), given)
    prepare(loaded.home, log_level, log_to_file=chat)
    listeners = Listeners(limits=PortLimits(connections=loaded.connections, proxies=loaded.proxies))
    bounds.raise_files(listeners.limits)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(loaded, chat, listeners))


def prepare(home: Path, log_level: str, *, log_to_file: bool) -> None:
    """Make the home folder, and begin the log."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        why = error.strerror or error
        raise click.ClickException(
            f"The home folder {home} cannot be made: {why}. Set another one."
        ) from error
    loglines.listen(log_level, home / LOG if log_to_file else None)


async def _run(loaded: Config, chat: bool, listeners: Listeners) -> None:
    orders = None if chat else Orders()
    async with build.open_gateway(loaded) as gateway:
        keys, service = prepare_keys(loaded.home), gateway.parts.confirmations
        page_url, reached_at = service.settings.page_url, loaded.url or loaded.confirm.page_url
        confirmations = make_served(service, keys, loaded.confirm.people, page_url, reached_at)
        serving = server.serving(
            gateway,
            host=loaded.host,
            port=loaded.port,
            names=loaded.names,
            listeners=listeners,
            confirmations=confirmations,
            socket=sockets.socket_of(loaded.home),
        )
        beside = serving_beside(gateway, confirmations, loaded, listeners)
        async with serving as address, beside as confirming:
            if orders and orders.are_heard:
                return  # before any turn is begun
            await gateway.start()
            freeze_loaded()
            _tell_of_upgrade(gateway.parts.store.upgraded)
            _greet(loaded, keys, confirmations.pages_url or address.url, confirming)
            await _offer_link(confirmations.reception)
            if chat:  # the log, which has them, goes to a file
                for warning in gateway.warnings():
                    output.note(warning)
            await (orders.wait(gateway) if orders else _chat(gateway, loaded.home))
            await gateway.close()


def _tell_of_upgrade(upgraded: Upgrade | None) -> None:
    if upgraded is None:
        return
    output.show(f"The database was of schema {upgraded.found}; it was brought up to {upgraded.known}.")
    if upgraded.copy:
        output.show(f"It is kept as it was in {upgraded.copy}; delete that when you do not go back.")


def _greet(loaded: Config, keys: Keys, url: str, confirming: str | None) -> None:
    output.show(f"frontdesk is running at {url}; the agent is {loaded.driver!r}.")
    if loaded.confirm.enabled and not confirming:
        output.show(
            f"Port {loaded.confirm.port} is taken: other agents cannot ask for confirmation yet. It is tried"
            f" again every {RETRY_SECONDS:.0f} seconds."
        )
        output.show(f"People decide at {url}/approvals.")
    if confirming:
        output.show(f"Other agents ask for confirmation at {confirming}; people decide at {url}/approvals.")
    if keys.is_first_look():
        what = "The approver's token, which decides about dangerous actions."
        output.show_secret(what, keys.token, keys.token_file)


async def _offer_link(reception: Reception) -> None:
    """To a person at a terminal alone: what is written elsewhere may be kept as a log."""
    if not sys.stdout.isatty():
        output.show("`frontdesk login` shows a link with which you sign in to the pages.")
        return
    link = await reception.make_link()
    output.show(f"To sign in, open this once, within {passes.LINK_MINUTES} minutes:\n\n    {link['url']}\n")


def freeze_loaded() -> None:
    """What is loaded stays, so the collector need not look at it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*YOUNG_OBJECTS_AND_ROUNDS)


async def _chat(gateway: Gateway, home: Path) -> None:
    from frontdesk.cli.chat import chat_with  # noqa: PLC0415 - the terminal is loaded only where there is one

    await chat_with(gateway, home)


class Orders:
    """The order to stop, heard from the first moment on; a second one ends the draining."""

    def __init__(self) -> None:
        self._told = asyncio.Event()
        self._hurry: Callable[[], None] | None = None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._tell)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # which nohup wants
            loop.add_signal_handler(signal.SIGHUP, self._tell)

    @property
    def are_heard(self) -> bool:
        return self._told.is_set()

    def _tell(self) -> None:
        if self._told.is_set() and self._hurry:
            self._hurry()
        self._told.set()
        with suppress(OSError):  # whoever started us may not listen any more
            output.show("Stopping: running turns may finish. Once more ends them at once.")

    async def wait(self, gateway: Gateway) -> None:
        """Wait for the order; an error when the gateway breaks, so that whoever watches starts it again."""
        self._hurry = gateway.hurry
        ends = [asyncio.create_task(self._told.wait()), asyncio.create_task(gateway.broken())]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for each in ends:
            each.cancel()
        if not self._told.is_set():
            raise click.ClickException("The worker has stopped, and the log says why. Start frontdesk again.")
