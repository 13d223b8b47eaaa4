"""Answers of the service, read into records or errors."""

import base64
import binascii
from datetime import datetime
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec

from frontdesk import errors
from frontdesk.confirm.records import Decision, Ticket
from frontdesk.model.audit import Row
from frontdesk.model.confirmations import DEFAULT_TIMEOUT_SECONDS, Status

BEGINNINGS = ("may not do this: ", "cannot be redeemed: ")

Read = TypeVar("Read")


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    status: int
    body: bytes


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What the service says to a request."""

    id: str
    action: str
    digest: str
    timeout_seconds: int = DEFAULT_TIMEOUT_SECONDS
    message: str = ""
    approve_url: str = ""
    deny_url: str = ""
    auto_approved: bool = False


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What the service tells of a confirmation, as far as a client needs it."""

    id: str
    action: str
    status: Status
    resolved_by: str | None = None
    resolved_at_iso: datetime | None = None
    reason: str | None = None


class Yielded(msgspec.Struct, frozen=True, kw_only=True):
    payload_base64: str


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the audit log as the service tells it."""

    number: int
    body: str
    previous: str
    hash: str


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What the service says when it refuses."""

    detail: str = ""
    id: str = ""
    confirmation_status: str | None = None
    refused: str | None = None
    renewal: str | None = None
    window_seconds: int | None = None


def read_ticket(reply: Reply, action: str, digest: str) -> Ticket:
    """The ticket. Denied when it is refused at once; DigestMismatch when the service has understood another
    action than was asked for."""
    problem = _problem(reply)
    if problem.confirmation_status == Status.DENIED:
        raise errors.Denied(
            confirmation_id=problem.id, action=action, by="the service", because=f" ({problem.detail})"
        )
    if problem.confirmation_status == Status.EXPIRED:
        raise errors.Expired(confirmation_id=problem.id, action=action)
    taken = _read(reply, Taken)
    if taken.digest != digest:
        raise errors.DigestMismatch(confirmation_id=taken.id)
    return Ticket(
        id=taken.id,
        action=taken.action,
        digest=digest,
        timeout_seconds=taken.timeout_seconds,
        message=taken.message,
        approve_url=taken.approve_url,
        deny_url=taken.deny_url,
        automatic=taken.auto_approved,
    )


def read_decision(reply: Reply, confirmation_id: str) -> Decision:
    shown = _read(reply, Shown, confirmation_id)
    return Decision(
        id=shown.id,
        action=shown.action,
        status=shown.status,
        resolved_by=shown.resolved_by,
        resolved_at=shown.resolved_at_iso,
        reason=shown.reason,
    )


def read_payload(reply: Reply, confirmation_id: str) -> bytes:
    """The bytes to carry out."""
    given = _read(reply, Yielded, confirmation_id).payload_base64
    try:
        return base64.b64decode(given, validate=True)
    except binascii.Error as error:
        raise errors.ServiceUnreachable(url=reply.url, why="its answer holds no bytes") from error


def read_plain(reply: Reply, confirmation_id: str = "") -> Any:
    """An answer that is passed on as it is."""
    return _read(reply, object, confirmation_id) if reply.body else None


def _read(reply: Reply, kind: type[Read], confirmation_id: str = "") -> Read:
    if not HTTPStatus.OK <= reply.status < HTTPStatus.MULTIPLE_CHOICES:
        raise refusal(reply, confirmation_id)
    try:
        return msgspec.json.decode(reply.body, type=kind)
    except msgspec.MsgspecError as error:
        raise errors.ServiceUnreachable(url=reply.url, why=f"its answer cannot be read ({error})") from error


def read_row(url: str, data: str) -> Row:
    """A row of the audit log out of an event."""
    try:
        told = msgspec.json.decode(data, type=Told)
    except msgspec.MsgspecError as error:
        raise errors.ServiceUnreachable(url=url, why=f"an event cannot be read ({error})") from error
    return Row(number=told.number, body=told.body.encode(), previous=told.previous, hash=told.hash)


def refusal(reply: Reply, confirmation_id: str = "") -> errors.FrontdeskError:
    """The error that an answer tells."""
    problem = _problem(reply)
    why = _reason(problem.detail) or f"it answered {reply.status}"
    match reply.status:
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
            return errors.NotAllowed(who="This client", rule=why)
        case HTTPStatus.NOT_FOUND if confirmation_id:
            return errors.UnknownConfirmation(confirmation_id=confirmation_id)
        case HTTPStatus.PRECONDITION_FAILED:
            return errors.DigestMismatch(confirmation_id=confirmation_id)
        case HTTPStatus.CONFLICT | HTTPStatus.GONE | HTTPStatus.UNPROCESSABLE_ENTITY:
            return _conflict(problem, why, confirmation_id)
        case HTTPStatus.TOO_MANY_REQUESTS:
            return errors.AskedTooOften(why=why, window_seconds=problem.window_seconds)
        case status if HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR:
            return errors.InvalidInput(what="The request", why=why)
    return errors.ServiceUnreachable(url=reply.url, why=why)


def _problem(reply: Reply) -> Problem:
    try:
        return msgspec.json.decode(reply.body, type=Problem)
    except msgspec.MsgspecError:
        return Problem()


def _reason(detail: str) -> str:
    """What is said after the words that the error here begins with, too."""
    return next((detail.partition(each)[2] for each in BEGINNINGS if each in detail), detail)


def _conflict(problem: Problem, why: str, confirmation_id: str) -> errors.FrontdeskError:
    if problem.refused is None:
        return _settled(problem.confirmation_status, confirmation_id)
    return errors.GrantUnusable(
        confirmation_id=confirmation_id, why=why, refused=problem.refused, renewal=problem.renewal
    )


def _settled(status: str | None, confirmation_id: str) -> errors.FrontdeskError:
    if status is None:
        return errors.KeyReused()
    kind = errors.StillPending if status == Status.PENDING else errors.AlreadyResolved
    return kind(confirmation_id=confirmation_id, status=status)
