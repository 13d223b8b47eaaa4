"""How a bot is set up."""

import re
from typing import ClassVar

import msgspec

from frontdesk import errors
from frontdesk.channels.called import check_address, check_positive
from frontdesk.contracts.secrets import Checks, Secret

TOKEN = re.compile(r"[A-Za-z0-9_-]{18,40}\.[A-Za-z0-9_-]{4,12}\.[A-Za-z0-9_-]{20,100}")


def check_token(text: str) -> None:
    if not TOKEN.fullmatch(text):
        why = "it has not the form of a bot token: three parts, with dots between them"
        raise errors.InvalidInput(what="The token", why=why)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    token: Secret
    """Of the bot, from the Developer Portal."""
    slash_commands: bool = True
    """Whether the gateway's commands are offered when somebody types a slash."""
    api_url: str = "https://discord.com/api/v10"
    """Where calls go."""
    gateway_url: str = "wss://gateway.discord.gg/"
    """Where messages come from."""
    timeout_seconds: float = 20.0
    """How long a call may take in all."""

    secret_checks: ClassVar[Checks] = {"token": check_token}

    def __post_init__(self) -> None:
        check_positive("discord", self, "timeout_seconds")
        check_address("discord.api_url", self.api_url)
        check_address("discord.gateway_url", self.gateway_url, "wss")
