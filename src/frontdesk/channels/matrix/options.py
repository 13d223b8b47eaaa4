"""How a Matrix account is set up."""

from typing import ClassVar

import msgspec

from frontdesk.channels.called import check_address, check_positive
from frontdesk.contracts.secrets import Checks, Secret


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
        check_address("matrix.homeserver", self.homeserver, allow_insecure=self.allow_insecure)
