"""Reaching the service: where it is, and with which token."""

from pathlib import Path
from typing import TypeVar

import click

from frontdesk import config, errors
from frontdesk.app.confirmations import read_token
from frontdesk.config import Config
from frontdesk.confirm.client import SyncClient
from frontdesk.confirm.steps import Steps

T = TypeVar("T")

URL = click.option(
    "--url", metavar="URL", help="Where the service is, instead of what confirm.host and confirm.port say."
)
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""A service that listens on every address is reached at these."""


def address(loaded: Config, url: str | None) -> str:
    if url:
        return url
    host = EVERYWHERE.get(loaded.confirm.host, loaded.confirm.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{loaded.confirm.port}"


def given_token(loaded: Config) -> str | None:
    """The token in the environment, an agent's or an approver's."""
    return config.environment().get(loaded.confirm.token_env, "").strip() or None


def approver(loaded: Config, url: str | None) -> SyncClient:
    """A client for an approver: with the token of the environment, else with the owner's."""
    return SyncClient(address(loaded, url), given_token(loaded) or read_token(loaded.home))


def ask(config_file: Path | None, url: str | None, conversation: Steps[T]) -> T:
    """What the service answers to an approver."""
    try:
        return approver(config.load(config_file), url).talk(conversation)
    except errors.ServiceUnreachable as error:
        error.add_note("Start it with: frontdesk run, or frontdesk confirm serve")
        raise
