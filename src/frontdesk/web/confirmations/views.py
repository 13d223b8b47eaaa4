"""Records of the model as those that go out."""

import base64
from collections.abc import Iterable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.responses import Response

from frontdesk.model import audit
from frontdesk.model.confirmations import MUTED, Confirmation, Status, Submitted
from frontdesk.web import problems
from frontdesk.web.confirmations import records
from frontdesk.web.endpoints import Record, give

AUTO_APPROVED = "auto_approved"
WAITS = "It waits until somebody decides, at most {seconds} seconds."
LOOK = " Approvers see it at {url}."
ALLOWED = "It is allowed: redeem it within a minute to carry it out."
REFUSED = "It is refused: a rule denies it."
REFUSED_BEFORE = "It is refused: the same was denied a while ago."
REFUSED_BY = "It was denied{reason}."
FORGOTTEN = "What it was about was erased, or was not kept."
TOO_LATE = "Nobody decided in time."
MOST_DETAILS_BYTES = 4 * 1024 * 1024
"""So much of details is in one list; those that come later are left out."""
NULL = msgspec.Raw(b"null")


def submitted(what: Submitted, page_url: str | None) -> Response:
    """What became of a submission; whatever is not allowed is no success."""
    asked = what.confirmation
    match asked.status:
        case Status.PENDING:
            return give(_waiting(what, page_url), HTTPStatus.ACCEPTED)
        case Status.APPROVED:
            return give(_allowed(what))
        case Status.DENIED:
            return _refusal(HTTPStatus.FORBIDDEN, _refused(what), asked)
        case Status.EXPIRED:
            return _refusal(HTTPStatus.CONFLICT, TOO_LATE, asked)


def _refusal(status: HTTPStatus, detail: str, asked: Confirmation) -> Response:
    return problems.respond(status, detail, id=asked.id, confirmation_status=str(asked.status))


def _waiting(what: Submitted, page_url: str | None) -> records.Waiting:
    asked = what.confirmation
    look = LOOK.format(url=f"{page_url.rstrip('/')}/approvals/{asked.id}") if page_url else ""
    return _told(
        records.Waiting,
        asked,
        message=WAITS.format(seconds=asked.timeout_seconds) + look,
        approve_url=f"/confirm/{asked.id}/approve",
        deny_url=f"/confirm/{asked.id}/deny",
        repeated=what.repeated,
    )


def _allowed(what: Submitted) -> records.Allowed:
    status = AUTO_APPROVED if what.automatic else str(what.confirmation.status)
    facts = {"auto_approved": what.automatic, "message": ALLOWED, "repeated": what.repeated}
    return _told(records.Allowed, what.confirmation, status=status, **facts)


def _refused(what: Submitted) -> str:
    if what.confirmation.resolved_by == MUTED:
        return REFUSED_BEFORE
    if what.automatic:
        return REFUSED
    reason = what.confirmation.reason
    return REFUSED_BY.format(reason=f": {reason}" if reason else "")


class Payload(msgspec.Struct, frozen=True):
    details: msgspec.Raw


def listed(found: Iterable[Confirmation]) -> tuple[records.ShownConfirmation, ...]:
    """Requests in a list, with details as far as there is room."""
    room, told = MOST_DETAILS_BYTES, []
    for each in found:
        room -= len(each.payload or b"")
        told.append(shown(each if room >= 0 else replace(each, payload=None, left_out=True)))
    return tuple(told)


def shown(asked: Confirmation) -> records.ShownConfirmation:
    return _told(
        records.ShownConfirmation,
        asked,
        details=details(asked),
        details_omitted=asked.left_out,
        created_at_iso=iso(asked.created_at),
        resolved_at_iso=iso(asked.resolved_at) if asked.resolved_at else None,
        quorum=asked.terms.quorum,
    )


def decided(asked: Confirmation) -> records.Decided:
    return _told(records.Decided, asked, quorum=asked.terms.quorum)


def _told(kind: type[Record], asked: Confirmation, **different: Any) -> Record:
    """The fields that are called the same in both, and what is not; times as seconds since 1970."""
    same = {name: getattr(asked, name) for name in kind.__struct_fields__ if name not in different}
    times = {name: each.timestamp() for name, each in same.items() if isinstance(each, datetime)}
    return kind(**same | times | different)


def revealed(asked: Confirmation) -> records.Revealed:
    return _told(records.Revealed, asked, payload=msgspec.Raw(seen_payload(asked)))


def seen_payload(asked: Confirmation) -> bytes:
    """The bytes that people vote on; 410 when they were erased, or never kept."""
    if asked.payload is None:
        raise HTTPException(HTTPStatus.GONE, FORGOTTEN)
    return asked.payload


def redeemed(asked: Confirmation, payload: bytes) -> records.RedeemedPayload:
    encoded = base64.b64encode(payload).decode()
    return _told(records.RedeemedPayload, asked, payload_base64=encoded, payload=msgspec.Raw(payload))


def event(row: audit.Row) -> records.AuditEvent:
    """A row; also one whose entry somebody has changed, so that whoever verifies the log finds it."""
    entry = row.readable
    return records.AuditEvent(
        number=row.number,
        kind=str(entry.kind) if entry else records.UNREADABLE,
        at=entry.at.isoformat() if entry else None,
        actor=entry.actor if entry else "",
        confirmation_id=entry.confirmation_id if entry else None,
        digest=entry.digest if entry else None,
        facts=dict(entry.facts) if entry else {},
        body=row.body.decode(errors="replace"),
        previous=row.previous,
        hash=row.hash,
    )


def details(asked: Confirmation) -> msgspec.Raw:
    """The arguments, as they are in the bytes that people vote on."""
    return msgspec.json.decode(asked.payload, type=Payload).details if asked.payload else NULL


def iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()
