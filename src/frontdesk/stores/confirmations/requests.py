"""Confirmations and rules as rows, and back. One that cannot be read stands in nobody's way."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import msgspec
from msgspec.structs import replace

from frontdesk.contracts.store import Row
from frontdesk.logs import get_logger
from frontdesk.model.confirmations import Confirmation, Status, Submission, Terms
from frontdesk.model.rules import Effect, Rule
from frontdesk.model.spellings import skeleton
from frontdesk.stores.mail import SENSELESS
from frontdesk.stores.rows import clean, from_micros, maybe_micros, maybe_time, to_micros

log = get_logger(__name__)

ID, DIGEST = 1, 3
"""Columns that are read also when the others make no sense."""
DESCRIPTION = 24


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
        "id": asked.id,
        "action": asked.action,
        "digest": asked.digest,
        "requester": asked.requester,
        "session_key": asked.session_key,
        "on_behalf_of": asked.on_behalf_of,
        "turn_id": asked.turn_id,
        "status": str(asked.status),
        "asked": int(asked.status is Status.PENDING),
        "terms": msgspec.json.encode(asked.terms),
        "timeout_seconds": asked.timeout_seconds,
        "created_at": to_micros(asked.created_at),
        "expires_at": to_micros(asked.expires_at),
        "escalates_at": maybe_micros(_escalates_at(asked)),
        "resolved_at": maybe_micros(asked.resolved_at),
        "resolved_by": asked.resolved_by,
        "renewal_of": asked.renewal_of,
        "approvals": write_approvals(asked),
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
    return {
        "confirmation_id": asked.id,
        "payload": asked.payload,
        "description": asked.description,
        "callbacks": write_callbacks(asked.callbacks),
    }


def write_callbacks(callbacks: Iterable[str]) -> str | None:
    """No address has space in it."""
    return "\n".join(callbacks) or None


def read_callbacks(written: str | None) -> tuple[str, ...]:
    return tuple((written or "").split())


def write_approvals(asked: Confirmation) -> bytes:
    return msgspec.json.encode(asked.approvals)


def read_confirmation(found: Row) -> Confirmation | None:
    """The confirmation; None, with a warning that names it, when its row makes no sense."""
    try:
        return _confirmation(found)
    except SENSELESS as error:
        log.warning("confirmation_unreadable", confirmation=found[ID], why=str(error))
        return None


def read_listed(found: Row) -> Confirmation | None:
    """The confirmation out of a list, which says so when it left the payload out."""
    asked = read_confirmation(found)
    is_erased = found[DESCRIPTION] is None
    return replace(asked, left_out=asked.payload is None and not is_erased) if asked else None


def _confirmation(found: Row) -> Confirmation:
    (
        _number, confirmation_id, action, digest, requester, session_key, on_behalf_of, turn_id, status,
        _asked, terms, timeout_seconds, created_at, expires_at, _escalates_at, _escalated_at, resolved_at,
        resolved_by, redeemed_at, redeemed_by, renewal_of, approvals, _reads_as,
        payload, description, callbacks, name, reason,
    ) = found  # fmt: skip
    return Confirmation(
        id=confirmation_id,
        action=action,
        description=description or "",
        digest=digest,
        payload=payload,
        requester=requester,
        session_key=session_key,
        on_behalf_of=on_behalf_of,
        turn_id=turn_id,
        callbacks=read_callbacks(callbacks),
        status=Status(status),
        terms=msgspec.json.decode(terms, type=Terms),
        timeout_seconds=timeout_seconds,
        created_at=from_micros(created_at),
        expires_at=from_micros(expires_at),
        resolved_at=maybe_time(resolved_at),
        resolved_by=resolved_by,
        resolved_as=name,
        reason=reason,
        redeemed_at=maybe_time(redeemed_at),
        redeemed_by=redeemed_by,
        renewal_of=renewal_of,
        approvals=msgspec.json.decode(approvals, type=tuple[str, ...]),
    )


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
