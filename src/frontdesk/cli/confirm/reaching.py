"""Reaching the service: where it is, and with which token."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import click
import msgspec

from frontdesk import config, errors
from frontdesk.app import sockets
from frontdesk.app.confirmations import read_token, socket_of
from frontdesk.config import Config
from frontdesk.confirm.client import SyncClient
from frontdesk.confirm.steps import Steps

T = TypeVar("T")

URL = click.option("--url", metavar="URL", help="Ask the service at this address instead of the usual one.")
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""A service that listens on every address is reached at these."""
OWN = "http://localhost"
"""What the service is called on the owner's socket."""
START = "Start it with: frontdesk run, or frontdesk confirm serve"


class Access(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    token: str
    socket: str | None = None


def address(loaded: Config, url: str | None) -> str:
    if url:
        return url
    host = EVERYWHERE.get(loaded.confirm.host, loaded.confirm.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{loaded.confirm.port}"


def given_token(loaded: Config) -> str | None:
    """The token in the environment, an agent's or an approver's."""
    return config.environment().get(loaded.confirm.token_env, "").strip() or None


@contextmanager
def as_approver(loaded: Config, url: str | None) -> Iterator[Access]:
    """How an approver reaches the service: with the token of the environment, else with the owner's.

    The owner's is shown to nobody who merely has the port: it goes to the owner's own socket, or where the
    owner says.
    """
    token, where = given_token(loaded), address(loaded, url)
    if token or url:
        yield Access(url=where, token=token or read_token(loaded.home))
        return
    path = socket_of(loaded.home)
    if not path.is_socket():
        raise errors.ServiceUnreachable(url=where, why="no service of yours runs")
    with sockets.address_of(path) as socket:
        yield Access(url=OWN, token=read_token(loaded.home), socket=socket)


@contextmanager
def advising() -> Iterator[None]:
    """Where nobody answers, it is said how to start the service."""
    try:
        yield
    except errors.ServiceUnreachable as error:
        if not error.answered:
            error.add_note(START)
        raise


def ask(config_file: Path | None, url: str | None, conversation: Steps[T]) -> T:
    """What the service answers to an approver."""
    with advising(), as_approver(config.load(config_file), url) as access:
        return SyncClient(access.url, access.token, socket=access.socket).talk(conversation)
