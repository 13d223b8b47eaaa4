"""How a webhook endpoint is set up."""

from typing import ClassVar

import msgspec

from frontdesk import errors
from frontdesk.channels.called import check_address, check_positive
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
        check_address(
            "webhook.callback_url", self.callback_url, allow_insecure=self.allow_insecure, may_ask=True
        )
