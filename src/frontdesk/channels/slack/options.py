"""How an app of Slack's is set up."""

import re
from typing import ClassVar

import msgspec

from frontdesk import errors
from frontdesk.channels.called import check_address, check_positive, check_proxy
from frontdesk.contracts.secrets import Checks, Secret

BOT_TOKEN = re.compile(r"xox[be][-.][A-Za-z0-9.-]{8,400}")
APP_TOKEN = re.compile(r"xapp-[A-Za-z0-9-]{8,400}")
SIGNING_SECRET = re.compile(r"[A-Za-z0-9]{16,128}")


def check_bot_token(text: str) -> None:
    if not BOT_TOKEN.fullmatch(text):
        raise errors.InvalidInput(what="The bot token", why="it does not begin with xoxb-")


def check_app_token(text: str) -> None:
    if not APP_TOKEN.fullmatch(text):
        raise errors.InvalidInput(what="The app-level token", why="it does not begin with xapp-")


def check_signing_secret(text: str) -> None:
    if not SIGNING_SECRET.fullmatch(text):
        raise errors.InvalidInput(
            what="The signing secret", why="use the 32 letters and digits that Slack shows"
        )


class Options(msgspec.Struct, frozen=True, kw_only=True):
    bot_token: Secret
    """Of the app in your workspace: xoxb-…"""
    app_token: Secret | None = None
    """For Socket Mode, where we call Slack: xapp-…"""
    signing_secret: Secret | None = None
    """For the Events API, where Slack calls us: what its calls are signed with."""
    threads: bool = True
    """Whether a message that mentions the app in a channel is answered in a thread of its own."""
    api_url: str = "https://slack.com/api/"
    proxy: Secret | None = None
    """The address of a proxy, which may hold a password."""
    timeout_seconds: float = 20.0
    """How long a call may take in all."""

    secret_checks: ClassVar[Checks] = {
        "bot_token": check_bot_token,
        "app_token": check_app_token,
        "signing_secret": check_signing_secret,
        "proxy": check_proxy,
    }

    def __post_init__(self) -> None:
        check_positive("slack", self, "timeout_seconds")
        if self.app_token is None and self.signing_secret is None:
            why = "it is how messages reach us; signing_secret_env instead, where Slack is to call us"
            raise errors.MissingSetting(key="slack.app_token_env", why=why)
        if self.app_token is not None and self.signing_secret is not None:
            allowed = "either app_token (we call Slack) or signing_secret (Slack calls us)"
            raise errors.InvalidSetting(key="slack.signing_secret", value="both", allowed=allowed)
        check_address("slack.api_url", self.api_url)
