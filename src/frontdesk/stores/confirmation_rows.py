"""What stands in the rows about confirmations and in the log of them, each column once."""

from typing import Any

import msgspec

from frontdesk.contracts.store import Row
from frontdesk.model.confirmations import Confirmation, RequesterPause, Status, Terms
from frontdesk.stores.columns import PLAIN, TIME, Column, Columns, Records

HEX = Column(bytes.hex, bytes.fromhex)


def read_callbacks(written: str | None) -> tuple[str, ...]:
    return tuple((written or "").split())


def write_callbacks(callbacks: tuple[str, ...]) -> str | None:
    """No address has space in it."""
    return "\n".join(callbacks) or None


CONFIRMATION = Columns(
    {
        "id": PLAIN,
        "digest": PLAIN,
        "action": PLAIN,
        "requester": PLAIN,
        "session_key": PLAIN,
        "on_behalf_of": PLAIN,
        "on_behalf_name": PLAIN,
        "turn_id": PLAIN,
        "kind_digest": PLAIN,
        "target_digest": PLAIN,
        "status": Column(Status, str),
        "terms": Column(msgspec.json.Decoder(Terms).decode, msgspec.json.encode),
        "timeout_seconds": PLAIN,
        "created_at": TIME,
        "expires_at": TIME,
        "resolved_at": TIME,
        "resolved_by": PLAIN,
        "renewal_of": PLAIN,
        "approvals": Column(msgspec.json.Decoder(tuple[str, ...]).decode, msgspec.json.encode),
    },
    kept={"redeemed_at": TIME, "redeemed_by": PLAIN, "lapsed_at": TIME},
)
PAYLOAD = Columns(
    {
        "payload": PLAIN,
        "description": PLAIN,
        "callbacks": Column(read_callbacks, write_callbacks),
    },
    kept={"resolved_as": PLAIN, "reason": PLAIN},
    after=CONFIRMATION,
)


def _confirmation(row: Row) -> dict[str, Any]:
    """Of one whose payload was erased, and of one that has none, the rest of it is gone, too."""
    kept = {name: fact for name, fact in PAYLOAD.facts(row).items() if fact is not None}
    return {**CONFIRMATION.facts(row), "payload": None, "description": "", **kept}


CONFIRMATIONS = Records("confirmation", Confirmation, _confirmation)

REQUESTER_PAUSE = Columns({"credential": PLAIN, "denials": PLAIN, "paused_at": TIME})


def _requester_pause(row: Row) -> dict[str, Any]:
    facts = REQUESTER_PAUSE.facts(row)
    return {"requester": facts.pop("credential"), **facts}


REQUESTER_PAUSES = Records("requester_pause", RequesterPause, _requester_pause)

AUDIT_ROW = Columns({"number": PLAIN, "body": PLAIN, "previous": HEX, "hash": HEX})
