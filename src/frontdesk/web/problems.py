"""What is refused, as problem+json documents."""

import re
from collections.abc import Container, Iterable, Mapping
from http import HTTPStatus
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType
from starlette.exceptions import HTTPException
from starlette.responses import Response

from frontdesk import errors
from frontdesk.logs import get_logger
from frontdesk.model import confirmations

MEDIA_TYPE = "application/problem+json"
CHALLENGE = {"www-authenticate": 'Bearer realm="frontdesk"'}
TYPE = "urn:frontdesk:{code}"
STATUSES: Mapping[HTTPStatus, tuple[type[errors.FrontdeskError], ...]] = {
    HTTPStatus.BAD_REQUEST: (
        errors.InvalidInput,
        errors.InexactJson,
        errors.InvalidMessage,
        errors.InvalidQuery,
        errors.InvalidTitle,
        errors.NotLookedAt,
        errors.ReasonMissing,
        errors.TargetMissing,
        errors.UnknownProfile,
        errors.Unroutable,
    ),
    HTTPStatus.UNAUTHORIZED: (errors.Unproven,),
    HTTPStatus.FORBIDDEN: (
        errors.Denied,
        errors.NotAllowed,
        errors.RequesterPaused,
        errors.SignatureRefused,
        errors.WrongCode,
    ),
    HTTPStatus.NOT_FOUND: (
        errors.UnknownCheckpoint,
        errors.UnknownConfirmation,
        errors.UnknownDelivery,
        errors.UnknownFile,
        errors.UnknownSession,
        errors.UnknownTurn,
    ),
    HTTPStatus.CONFLICT: (
        errors.AlreadyResolved,
        errors.AnswerNotKept,
        errors.CheckpointError,
        errors.CheckpointsOff,
        errors.Expired,
        errors.FileUnavailable,
        errors.GrantUnusable,
        errors.NeedsGateway,
        errors.NoPages,
        errors.NotCurrent,
        errors.NotTriedAgain,
        errors.NotWritable,
        errors.OutcomeUnknown,
        errors.PassTaken,
        errors.RestoreBlocked,
        errors.RestoreStopped,
        errors.SessionForgotten,
        errors.StillPending,
        errors.TitleTaken,
        errors.Withdrawn,
        errors.WrongVisitor,
    ),
    HTTPStatus.PRECONDITION_FAILED: (errors.DigestMismatch,),
    HTTPStatus.UNPROCESSABLE_ENTITY: (errors.KeyReused,),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: (errors.FileTooLarge,),
    HTTPStatus.INSUFFICIENT_STORAGE: (errors.NoRoomForFile,),
    HTTPStatus.TOO_MANY_REQUESTS: (
        errors.LockedOut,
        errors.RateLimited,
        errors.TooManyChats,
        errors.TooManyPending,
        errors.TooManyUploads,
        errors.TooManyWaiting,
    ),
    HTTPStatus.SERVICE_UNAVAILABLE: (errors.StoreError,),
}
"""The errors that have a name of their own here. Another one has that of the nearest above it in their tree,
or that of its status; where nothing says otherwise, it is a conflict."""
KINDS = {kind: status for status, kinds in STATUSES.items() for kind in kinds}
KINDS_OF = {status: STATUSES.get(status, ()) for status in HTTPStatus} | {
    HTTPStatus.GONE: (errors.GrantUnusable,)
}
STATUSES_OF = {
    kind: [status for status, kinds in KINDS_OF.items() if kind in kinds]
    for each in KINDS_OF.values()
    for kind in each
}
GENERAL: Mapping[int, str] = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    409: "conflict",
    410: "gone",
    412: "precondition_failed",
    413: "body_too_large",
    415: "unsupported_media_type",
    421: "misdirected_request",
    422: "unprocessable",
    429: "too_many_requests",
    431: "header_too_large",
    500: "internal_error",
    503: "unavailable",
    507: "no_room",
}
"""Names of what is refused before it is known what it is about."""
OF_A_REQUEST = (
    errors.Denied,
    errors.RequesterPaused,
    errors.Expired,
    errors.GrantUnusable,
    errors.KeyReused,
    errors.RateLimited,
    errors.TooManyPending,
)
OF_A_VOTE = (
    errors.NotLookedAt,
    errors.ReasonMissing,
    errors.TargetMissing,
    errors.AlreadyResolved,
    errors.Withdrawn,
    errors.DigestMismatch,
)
OF_A_GRANT = (
    errors.AlreadyResolved,
    errors.StillPending,
    errors.GrantUnusable,
    errors.DigestMismatch,
)
GONE = frozenset({"redeemed", "lapsed", "erased"})
"""Why a grant that there was cannot be used any more."""
FACTS = {
    "confirmation_id": "id",
    "status": "confirmation_status",
    "refused": "refused",
    "renewal": "renewal",
    "window_seconds": "window_seconds",
    "pending": "pending",
}
"""Fields of errors that documents have, with the names that they have there."""
OUR_FAULT = "Something went wrong here. The log has the details."
NO_STORE = "The store does not answer. Try again later."
RETRY_SECONDS = 5
"""When to try again what the store did not take, or what waits behind others."""

Kind = type[errors.FrontdeskError] | int
Refusal = errors.FrontdeskError | HTTPException
REFUSALS = (errors.FrontdeskError, HTTPException)

log = get_logger(__name__)


class ProblemDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Why not. ``error`` is the same text as ``detail``."""

    type: str
    """A URN that ends with the code."""
    code: str
    """The problem's name."""
    title: str
    status: int
    detail: str
    error: str
    id: str | UnsetType = UNSET
    confirmation_status: confirmations.Status | UnsetType = UNSET
    withdrawn: Literal[True] | UnsetType = UNSET
    """It expired because nobody waits for it any more."""
    remaining: int | UnsetType = UNSET
    window_seconds: int | UnsetType = UNSET
    pending: int | UnsetType = UNSET
    refused: str | UnsetType = UNSET
    """Why a grant cannot be used, in a word."""
    renewal: str | UnsetType | None = UNSET
    """The request that asks again, after a grant that was not used in time."""


def code_of(kind: type[errors.FrontdeskError]) -> str:
    """The name of an error, for programs."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


def respond(
    status: int,
    detail: str,
    headers: Mapping[str, str] | None = None,
    code: str | None = None,
    **more: object,
) -> Response:
    """A problem document; ``error`` is its text, too, unless it is given."""
    known = HTTPStatus(status)
    code = code or GENERAL.get(status) or GENERAL[known // 100 * 100]
    told = {"type": TYPE.format(code=code), "code": code, "title": known.phrase, "status": int(known)}
    told["detail"] = detail
    told |= {"error": detail, **more}
    return Response(msgspec.json.encode(told), known, headers, media_type=MEDIA_TYPE)


def refuse(refusal: Refusal, known: Container[type[errors.FrontdeskError]] = KINDS) -> Response:
    """The answer to a request that could not be served; its name is of an error that is known there."""
    match refusal:
        case HTTPException():
            return respond(refusal.status_code, refusal.detail, refusal.headers)
        case errors.StoreError():
            log.warning("store_troubled", why=str(refusal))
            return respond(
                status_of(refusal), NO_STORE, {"retry-after": str(RETRY_SECONDS)}, name_of(refusal, known)
            )
    status, seconds = status_of(refusal), getattr(refusal, "retry_after_seconds", None)
    if seconds is None and status is HTTPStatus.TOO_MANY_REQUESTS:
        seconds = RETRY_SECONDS
    headers = {} if seconds is None else {"retry-after": str(seconds)}
    if status is HTTPStatus.UNAUTHORIZED:
        headers |= CHALLENGE
    return respond(status, str(refusal), headers, name_of(refusal, known), **_facts(refusal))


def refuse_owner(refusal: Refusal) -> Response:
    """The same for the owner: an error of ours with its fields, so that it can be raised on the other side as
    it is."""
    if isinstance(refusal, HTTPException):
        return refuse(refusal)
    fields = {
        name: value if isinstance(value, str | int | float | bool | None) else str(value)
        for name, value in vars(refusal).items()
        if not name.startswith("_")
    }
    named = {"error": type(refusal).__name__, "fields": fields}
    return respond(status_of(refusal), str(refusal), None, name_of(refusal), **named)


def status_of(error: errors.FrontdeskError) -> HTTPStatus:
    if isinstance(error, errors.GrantUnusable) and error.refused in GONE:
        return HTTPStatus.GONE
    return KINDS.get(_kind(error), HTTPStatus.CONFLICT)


def name_of(error: errors.FrontdeskError, known: Container[type[errors.FrontdeskError]] = KINDS) -> str:
    kind = _kind(error, known)
    return code_of(kind) if kind in KINDS else GENERAL[status_of(error)]


def _kind(
    error: errors.FrontdeskError, known: Container[type[errors.FrontdeskError]] = KINDS
) -> type[errors.FrontdeskError]:
    """The nearest error above it, itself included, that has a name of its own."""
    return next(
        (kind for kind in type(error).__mro__ if kind in KINDS and kind in known), errors.FrontdeskError
    )


def kinds_by_status(kinds: Iterable[Kind]) -> dict[int, frozenset[type[errors.FrontdeskError]]]:
    """Errors by their status; a status alone stands for all that it has."""
    found: dict[int, frozenset[type[errors.FrontdeskError]]] = {}
    for each in kinds:
        named = KINDS_OF[HTTPStatus(each)] if isinstance(each, int) else (each,)
        for status in (each,) if isinstance(each, int) else STATUSES_OF.get(each, ()):
            found[int(status)] = found.get(int(status), frozenset()).union(named)
    return dict(sorted(found.items()))


def _facts(error: errors.FrontdeskError) -> dict[str, object]:
    """What a program does not have to read out of the text."""
    facts = {FACTS[name]: value for name, value in vars(error).items() if name in FACTS}
    if "window_seconds" in facts:  # a limit is reached
        facts["remaining"] = 0
    if isinstance(error, errors.Withdrawn):
        facts["withdrawn"] = True
    return facts
