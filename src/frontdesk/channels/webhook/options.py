"""How a webhook endpoint is set up."""

import ipaddress
from typing import ClassVar
from urllib.parse import urlsplit

import msgspec

from frontdesk import errors
from frontdesk.channels.called import check_positive
from frontdesk.contracts.secrets import Checks, Secret
from frontdesk.formats import webhooks


class Options(msgspec.Struct, frozen=True, kw_only=True):
    callback_url: str
    """Where answers go. From the configuration alone: no message can name another address."""
    secrets: tuple[Secret, ...]
    """The first one signs what is sent; each of them proves what comes in, so that they can be changed."""
    idempotent: bool = True
    """The receiver knows an answer again by its webhook-id."""
    allow_insecure: bool = False
    """Whether callback_url may be plain http to another machine."""
    stream: bool = False
    """Whether an answer is sent while it is written, too, as drafts that it replaces."""
    max_text_characters: int = 100_000
    max_body_bytes: int = 1024 * 1024
    timeout_seconds: float = 20.0
    """How long a callback may take in all."""

    secret_checks: ClassVar[Checks] = {"secrets": webhooks.secret_bytes}

    def __post_init__(self) -> None:
        if not self.secrets:
            raise errors.InvalidSetting(key="webhook.secrets", value="", allowed="at least one secret")
        check_positive("webhook", self, "max_text_characters", "max_body_bytes", "timeout_seconds")
        _check_url(self.callback_url, self.allow_insecure)


def _check_url(url: str, allow_insecure: bool) -> None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise _refused("an unreadable address", "an http or https address") from None
    shown = f"{parts.scheme}://{parts.hostname or ''}"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _refused(shown, "an http or https address")
    if parts.username is not None or parts.password is not None:
        raise _refused(shown, "an address without a user name in it")
    if parts.scheme == "http" and not allow_insecure and not _is_loopback(parts.hostname):
        raise _refused(shown, "https, or http to this machine; allow_insecure = true permits plain http")


def _refused(shown: str, allowed: str) -> errors.InvalidSetting:
    return errors.InvalidSetting(key="webhook.callback_url", value=shown, allowed=allowed)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
