"""How the chat-completions endpoint is set up."""

import re
from collections.abc import Mapping
from typing import ClassVar

import msgspec

from frontdesk import errors
from frontdesk.channels.called import check_positive
from frontdesk.contracts.secrets import Checks, Secret
from frontdesk.formats import http

USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@+-]{0,63}")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    tokens: Mapping[str, Secret]
    """The bearer token of each user. Without any there is no endpoint: being near is not being known."""
    model: str = "frontdesk"
    """The name under which the agent is listed. A request may name any model; this one answers."""
    wait_seconds: float = 600.0
    """How long a request waits for its turn; the turn itself goes on."""
    max_body_bytes: int = 8 * 1024 * 1024

    secret_checks: ClassVar[Checks] = {"tokens": http.check_credential}

    def __post_init__(self) -> None:
        if not self.tokens:
            raise errors.InvalidSetting(key="api_server.tokens", value="", allowed="a token for a user")
        for user in self.tokens:
            if not USER.fullmatch(user):
                allowed = "a-z, A-Z, 0-9 and '_.@+-', at most 64 characters"
                raise errors.InvalidSetting(key="api_server.tokens", value=user, allowed=allowed)
        check_positive("api_server", self, "wait_seconds", "max_body_bytes")
