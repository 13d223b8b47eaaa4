"""How a bot is set up."""

import re
from typing import ClassVar

import msgspec

from frontdesk import errors
from frontdesk.channels.called import check_address, check_positive, check_proxy
from frontdesk.contracts.secrets import Checks, Secret

TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{20,200}")
SHOWN_SECRET = re.compile(r"[A-Za-z0-9_-]{16,256}")
MOST_POLL_SECONDS = 50.0


def check_token(text: str) -> None:
    if not TOKEN.fullmatch(text):
        why = "it has not the form of a bot token (digits, a colon, and letters) that @BotFather gives"
        raise errors.InvalidInput(what="The token", why=why)


def check_shown_secret(text: str) -> None:
    if not SHOWN_SECRET.fullmatch(text):
        why = "use 16 to 256 of A-Z, a-z, 0-9, '_' and '-'"
        raise errors.InvalidInput(what="The secret", why=why)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    token: Secret
    """What @BotFather gave for the bot."""
    public_url: str | None = None
    """Where Telegram calls us; without it, we ask Telegram for what is new."""
    public_secret: Secret | None = None
    """What Telegram shows with each call to `public_url`."""
    api_url: str = "https://api.telegram.org"
    """Another Bot API server, such as one of your own."""
    proxy: Secret | None = None
    """The address of a proxy, which may hold a password."""
    poll_seconds: float = 30.0
    """How long Telegram keeps a question for what is new open; at most 50."""
    timeout_seconds: float = 20.0
    """How long any other call may take in all."""

    secret_checks: ClassVar[Checks] = {
        "token": check_token,
        "public_secret": check_shown_secret,
        "proxy": check_proxy,
    }

    def __post_init__(self) -> None:
        check_positive("telegram", self, "poll_seconds", "timeout_seconds")
        if self.poll_seconds > MOST_POLL_SECONDS:
            allowed = f"at most {MOST_POLL_SECONDS:g}"
            raise errors.InvalidSetting(key="telegram.poll_seconds", value=self.poll_seconds, allowed=allowed)
        check_address("telegram.api_url", self.api_url)
        if self.public_url is not None:
            check_address("telegram.public_url", self.public_url)
            if self.public_secret is None:
                why = "without it, anybody could write as anybody"
                raise errors.MissingSetting(key="telegram.public_secret_env", why=why)
