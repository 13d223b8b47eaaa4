"""Reaching the confirmation service: where it is, and with which token."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
import httpx

from frontdesk import config, errors
from frontdesk.app import sockets
from frontdesk.app.confirmations import read_token
from frontdesk.cli import output
from frontdesk.cli.output import Report
from frontdesk.config import Config
from frontdesk.confirm import steps
from frontdesk.confirm.client import Client, SyncClient
from frontdesk.confirm.steps import Steps
from frontdesk.formats.http import url_of

T = TypeVar("T")

URL = click.option("--url", metavar="URL", help="Ask the service at this address instead of the usual one.")


EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""A service that listens on every address is reached at these."""
START = "Start it with: frontdesk run, or frontdesk confirm serve"


def address(loaded: Config, url: str | None) -> str:
    host = EVERYWHERE.get(loaded.confirm.host, loaded.confirm.host)
    return url or url_of(host, loaded.confirm.port)


def given_token(loaded: Config) -> str | None:
    """The token in the environment, an agent's or an approver's."""
    return config.environment().get(loaded.confirm.token_env, "").strip() or None


class OwnService(Client):
    """The service of this home, asked through the owner's socket instead of at an address."""

    def __init__(self, path: Path, token: str) -> None:
        super().__init__(sockets.OWN_URL, token, patience_seconds=0)
        self.url, self._path = str(path), path

    def _open(self) -> AbstractAsyncContextManager[httpx.AsyncClient]:
        return sockets.connected(self._path, **self._opening)


def _told_address(loaded: Config, url: str | None) -> tuple[str, str] | None:
    """The address and the token for it, when the owner says one, or has a token in the environment. The
    owner's own is shown to nobody who merely has the port."""
    token = given_token(loaded)
    return (address(loaded, url), token or read_token(loaded.home)) if token or url else None


async def reach_service(loaded: Config, url: str | None) -> Client:
    """How an approver reaches the service: at an address that is told, else through the owner's socket."""
    told = _told_address(loaded, url)
    if told:
        return Client(*told)
    own = await sockets.find_own(loaded.home)
    if own is None:
        raise errors.ServiceUnreachable(url=address(loaded, url), why="no service of yours runs")
    client, _ = own
    return OwnService(client.path, read_token(loaded.home))


@contextmanager
def advising() -> Iterator[None]:
    """Where nobody answers, it is said how to start the service."""
    try:
        yield
    except errors.ServiceUnreachable as error:
        if not error.answered:
            error.add_note(START)
        raise


class ServiceDesk:
    """What an approver asks the service."""

    def __init__(self, loaded: Config, url: str | None) -> None:
        self.loaded = loaded
        self.url = url

    def say(self, method: str, path: str, data: Any = None, *, about: str = "") -> Any:
        """What the service answers."""
        conversation = steps.say(method, path, data, about=about)
        with advising():
            told = _told_address(self.loaded, self.url)
            # Whoever waits is told by the system itself why nobody answers there.
            return SyncClient(*told).talk(conversation) if told else asyncio.run(self._talk(conversation))

    async def _talk(self, conversation: Steps[T]) -> T:
        return await (await reach_service(self.loaded, self.url)).talk(conversation)


def answering(command: Callable[..., Report]) -> Callable[..., None]:
    """A command that asks a service, and whose report is JSON where that is wanted."""

    @URL
    @output.answering
    @wraps(command)
    def answer(config_file: Path | None, /, url: str | None, **given: Any) -> Report:
        return command(ServiceDesk(config.load(config_file), url), **given)

    return answer
