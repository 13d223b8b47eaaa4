"""How a Matrix account is set up."""

from typing import ClassVar
from urllib.parse import urlsplit

import msgspec

from frontdesk import errors
from frontdesk.channels.called import check_positive
from frontdesk.contracts.secrets import Checks, Secret

LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    homeserver: str
    """The address of the homeserver's client API, https://…"""
    access_token: Secret
    """Of the account that frontdesk speaks as, and of one device of it that nothing else uses."""
    recovery_key: Secret | None = None
    """Signs the device, so that other people's clients let it read encrypted rooms."""
    encryption: bool = True
    """Whether encrypted rooms are read. Nothing is ever written in the clear into one of them."""
    join_invites: bool = True
    """Whether an invitation by somebody who may talk is followed."""
    allow_insecure: bool = False
    """Whether homeserver may be plain http to another machine."""
    edit_pause_seconds: float = 5.0
    """Homeservers let an account send little: by default one event in five seconds, after a burst of ten."""
    timeout_seconds: float = 30.0
    home: str = "~/.frontdesk"
    """Where the keys of the device are kept, in a folder ``matrix``."""

    secret_checks: ClassVar[Checks] = {}

    def __post_init__(self) -> None:
        check_positive("matrix", self, "edit_pause_seconds", "timeout_seconds")
        try:
            parts = urlsplit(self.homeserver)
            _ = parts.port
        except ValueError:
            raise _refused("an unreadable address", "an https address") from None
        shown = f"{parts.scheme}://{parts.hostname}" if parts.hostname else "no address"
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise _refused(shown, "an https address")
        if parts.scheme == "http" and not self.allow_insecure and parts.hostname not in LOOPBACK:
            raise _refused(shown, "https, or http to this machine; allow_insecure = true permits plain http")


def _refused(shown: str, allowed: str) -> errors.InvalidSetting:
    return errors.InvalidSetting(key="matrix.homeserver", value=shown, allowed=allowed)
