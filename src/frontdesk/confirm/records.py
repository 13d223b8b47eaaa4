"""What a client holds: the ticket of a request, the decision about it, the action it may carry out.

They are the service's answers, read as they come; what it calls otherwise has its name beside it.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.formats import canonical
from frontdesk.model.confirmations import DEFAULT_TIMEOUT_SECONDS, Status


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """A request that was taken in. It can be kept: whoever has it can wait and redeem after a restart."""

    id: str
    action: str
    digest: str
    """SHA-256 of the exact action, worked out here: the approval of anything else is of no use."""
    timeout_seconds: int = DEFAULT_TIMEOUT_SECONDS
    message: str = ""
    approve_url: str = ""
    deny_url: str = ""
    automatic: bool = msgspec.field(default=False, name="auto_approved")
    """A rule allowed it; nobody was asked."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a request."""

    id: str
    action: str
    status: Status
    resolved_by: str | None = None
    resolved_at: datetime | None = msgspec.field(default=None, name="resolved_at_iso")
    reason: str | None = None

    @property
    def approved(self) -> bool:
        return self.status is Status.APPROVED

    def check(self) -> None:
        """Denied or Expired unless it was approved."""
        match self.status:
            case Status.DENIED:
                because = f" ({self.reason})" if self.reason else ""
                raise errors.Denied(
                    confirmation_id=self.id, action=self.action, by=self.resolved_by, because=because
                )
            case Status.EXPIRED:
                raise errors.Expired(confirmation_id=self.id, action=self.action)
            case Status.PENDING:
                raise errors.NotConfirmed(confirmation_id=self.id, action=self.action)


class Redeemed(msgspec.Struct, frozen=True, kw_only=True):
    """An approved action, to be carried out now and once, from these bytes."""

    id: str
    payload: bytes = msgspec.field(name="payload_base64")
    """Canonical JSON of ``{"action", "details"}``: what people saw."""

    @property
    def details(self) -> Mapping[str, Any]:
        details: Mapping[str, Any] = canonical.read_strict(self.payload)["details"]
        return details
