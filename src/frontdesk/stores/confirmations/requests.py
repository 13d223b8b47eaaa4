"""Confirmations and rules as rows, and back. One that cannot be read stands in nobody's way."""

from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from frontdesk.contracts.store import Row
from frontdesk.logs import get_logger
from frontdesk.model.confirmations import Confirmation, Status, Submission, Terms
from frontdesk.model.rules import Effect, Rule
from frontdesk.model.spellings import skeleton
from frontdesk.stores.columns import SENSELESS, clean, maybe_micros
from frontdesk.stores.rows import CONFIRMATION, CONFIRMATIONS, PAYLOAD, read_callbacks

log = get_logger(__name__)

ID, DIGEST = map(CONFIRMATION.names.index, ("id", "digest"))
"""Columns that are read also when the others make no sense."""
DESCRIPTION = PAYLOAD.names.index("description")


def hash_text(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


def hash_key(key: str) -> bytes:
    return bytes.fromhex(hash_text(key))


def new_confirmation(submission: Submission, terms: Terms, new_id: str, now: datetime) -> Confirmation:
    """A request as it waits from now on."""
    return Confirmation(
        id=new_id,
        action=submission.action,
        description=clean(submission.description) or "",
        digest=submission.digest,
        payload=submission.payload,
        requester=submission.requester,
        session_key=submission.session_key,
        on_behalf_of=submission.on_behalf_of,
        turn_id=submission.turn_id,
        callbacks=read_callbacks(clean(submission.callback_url)),
        terms=terms,
        timeout_seconds=submission.timeout_seconds,
        created_at=now,
        expires_at=now + timedelta(seconds=submission.timeout_seconds),
    )


def renewed(lapsed: Confirmation, new_id: str, now: datetime) -> Confirmation:
    """The same request, asked again."""
    return replace(
        lapsed,
        id=new_id,
        status=Status.PENDING,
        created_at=now,
        expires_at=now + timedelta(seconds=lapsed.timeout_seconds),
        resolved_at=None,
        resolved_by=None,
        resolved_as=None,
        reason=None,
        renewal_of=lapsed.id,
        approvals=(),
    )


def confirmation_row(asked: Confirmation) -> dict[str, Any]:
    """The values of ``insert_confirmation``."""
    return {
        **CONFIRMATION.values(asdict(asked)),
        "asked": int(asked.status is Status.PENDING),
        "escalates_at": maybe_micros(_escalates_at(asked)),
        "reads_as": skeleton(asked.action),
    }


def _escalates_at(asked: Confirmation) -> datetime | None:
    """None when it never does: what has ended is not passed on."""
    seconds = asked.terms.escalate_after_seconds
    if seconds is None or seconds >= asked.timeout_seconds:
        return None
    return asked.created_at + timedelta(seconds=max(seconds, 0))


def payload_row(asked: Confirmation) -> dict[str, Any]:
    """The values of ``insert_payload``."""
    return {"confirmation_id": asked.id, **PAYLOAD.values(asdict(asked))}


def read_listed(found: Row) -> Confirmation | None:
    """The confirmation out of a list, which says so when it left the payload out."""
    asked = CONFIRMATIONS.read(found)
    is_erased = found[DESCRIPTION] is None
    return replace(asked, left_out=asked.payload is None and not is_erased) if asked else None


def rule_row(rule: Rule) -> dict[str, Any]:
    """The values of ``insert_rule``."""
    return {
        "id": rule.id,
        "expires_at": maybe_micros(rule.expires_at),
        "body": msgspec.json.encode(rule),
    }


def read_rule(found: Row) -> Rule:
    """The rule. One that cannot be read, which may have denied anything, has everything asked."""
    rule_id, body = found
    try:
        return msgspec.json.decode(body, type=Rule)
    except SENSELESS as error:
        log.warning("rule_unreadable", rule=rule_id, why=str(error))
        return Rule(id=rule_id, effect=Effect.ASK)
