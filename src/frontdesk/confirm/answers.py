"""Answers of the service, read into records or errors."""

from http import HTTPStatus
from typing import TypeVar

import msgspec

from frontdesk import errors
from frontdesk.confirm.records import Ticket
from frontdesk.model.audit import Row
from frontdesk.model.confirmations import Status

BEGINNINGS = ("may not do this: ", "cannot be redeemed: ")
UNUSABLE = " cannot be used: "

Read = TypeVar("Read")


class ServiceReply(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    status: int
    body: bytes


class RowTold(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the audit log as the service tells it."""

    number: int
    body: str
    previous: str
    hash: str


class RefusalTold(msgspec.Struct, frozen=True, kw_only=True):
    """What the service says when it refuses."""

    detail: str = ""
    id: str = ""
    confirmation_status: str | None = None
    withdrawn: bool = False
    refused: str | None = None
    renewal: str | None = None
    window_seconds: int | None = None


def read_ticket(reply: ServiceReply, action: str, digest: str) -> Ticket:
    """The ticket. Denied when it is refused at once; GrantUnusable when its key led to what is used up;
    DigestMismatch when the service has understood another action than was asked for."""
    problem = _problem(reply)
    if problem.confirmation_status == Status.DENIED:
        raise errors.Denied(
            confirmation_id=problem.id, action=action, by="the service", because=f" ({problem.detail})"
        )
    if problem.confirmation_status == Status.EXPIRED:
        raise errors.Expired(confirmation_id=problem.id, action=action)
    ticket = read(reply, Ticket, problem.id)
    if ticket.digest != digest:
        raise errors.DigestMismatch(confirmation_id=ticket.id)
    return ticket


def read(reply: ServiceReply, kind: type[Read], confirmation_id: str = "") -> Read:
    """What the service says, as a record; ``confirmation_id`` is the request that it was asked about."""
    if not HTTPStatus.OK <= reply.status < HTTPStatus.MULTIPLE_CHOICES:
        raise refusal(reply, confirmation_id)
    return _decoded(reply.url, reply.body, kind, "its answer")


def read_row(url: str, data: str) -> Row:
    """A row of the audit log out of an event."""
    told = _decoded(url, data, RowTold, "an event")
    return Row(number=told.number, body=told.body.encode(), previous=told.previous, hash=told.hash)


def _decoded(url: str, data: bytes | str, kind: type[Read], what: str) -> Read:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        why = f"{what} cannot be read ({error})"
        raise errors.ServiceUnreachable(url=url, why=why, answered=True) from error


def refusal(reply: ServiceReply, confirmation_id: str = "") -> errors.FrontdeskError:
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
            what, said, reason = why.partition(UNUSABLE)  # in the words of the service
            return errors.InvalidInput(what=what, why=reason) if said else errors.RequestRefused(why=why)
    return errors.ServiceUnreachable(url=reply.url, why=why, answered=True)


def _problem(reply: ServiceReply) -> RefusalTold:
    try:
        return msgspec.json.decode(reply.body, type=RefusalTold)
    except msgspec.MsgspecError:
        return RefusalTold()


def _reason(detail: str) -> str:
    """What is said after the words that the error here begins with, too."""
    return next((detail.partition(each)[2] for each in BEGINNINGS if each in detail), detail)


def _conflict(problem: RefusalTold, why: str, confirmation_id: str) -> errors.FrontdeskError:
    status, refused = problem.confirmation_status, problem.refused
    if refused is not None:
        return errors.GrantUnusable(
            confirmation_id=confirmation_id, why=why, refused=refused, renewal=problem.renewal
        )
    if status is None:
        return errors.KeyReused()
    if problem.withdrawn:
        return errors.Withdrawn(confirmation_id=confirmation_id, status=status)
    kind = errors.StillPending if status == Status.PENDING else errors.AlreadyResolved
    return kind(confirmation_id=confirmation_id, status=status)
