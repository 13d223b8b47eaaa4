"""What is refused, as problem+json documents."""

from collections.abc import Mapping
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
UNKNOWN = (
    errors.UnknownSession,
    errors.UnknownTurn,
    errors.UnknownDelivery,
    errors.UnknownConfirmation,
    errors.UnknownCheckpoint,
)
STATUSES: Mapping[HTTPStatus, tuple[type[errors.FrontdeskError], ...]] = {
    HTTPStatus.BAD_REQUEST: (errors.InvalidInput,),
    HTTPStatus.NOT_FOUND: UNKNOWN,
    HTTPStatus.UNAUTHORIZED: (errors.Unproven,),
    HTTPStatus.FORBIDDEN: (errors.NotAllowed, errors.WrongCode, errors.SignatureRefused),
    HTTPStatus.PRECONDITION_FAILED: (errors.DigestMismatch,),
    HTTPStatus.UNPROCESSABLE_ENTITY: (errors.KeyReused,),
    HTTPStatus.TOO_MANY_REQUESTS: (errors.LockedOut, errors.RateLimited, errors.TooManyPending),
    HTTPStatus.SERVICE_UNAVAILABLE: (errors.StoreError,),
}
"""Every other error is a conflict."""
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
STORE_RETRY_SECONDS = 5
"""When to try again what the store did not take."""

Refusal = errors.FrontdeskError | HTTPException
REFUSALS = (errors.FrontdeskError, HTTPException)

log = get_logger(__name__)


class ProblemDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Why not. ``error`` is the same text as ``detail``."""

    type: str
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


def respond(status: int, detail: str, headers: Mapping[str, str] | None = None, **more: object) -> Response:
    """A problem document; ``error`` is its text, too, unless it is given."""
    known = HTTPStatus(status)
    told = {"type": "about:blank", "title": known.phrase, "status": int(known), "detail": detail}
    told |= {"error": detail, **more}
    return Response(msgspec.json.encode(told), known, headers, media_type=MEDIA_TYPE)


def refuse(refusal: Refusal) -> Response:
    """The answer to a request that could not be served."""
    match refusal:
        case HTTPException():
            return respond(refusal.status_code, refusal.detail, refusal.headers)
        case errors.StoreError():
            log.warning("store_troubled", why=str(refusal))
            return respond(status_of(refusal), NO_STORE, {"retry-after": str(STORE_RETRY_SECONDS)})
    status, seconds = status_of(refusal), getattr(refusal, "retry_after_seconds", None)
    headers = {} if seconds is None else {"retry-after": str(seconds)}
    if status is HTTPStatus.UNAUTHORIZED:
        headers |= CHALLENGE
    return respond(status, str(refusal), headers, **_facts(refusal))


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
    return respond(status_of(refusal), str(refusal), error=type(refusal).__name__, fields=fields)


def status_of(error: errors.FrontdeskError) -> HTTPStatus:
    if isinstance(error, errors.GrantUnusable) and error.refused in GONE:
        return HTTPStatus.GONE
    return next(
        (status for status, kinds in STATUSES.items() if isinstance(error, kinds)), HTTPStatus.CONFLICT
    )


def _facts(error: errors.FrontdeskError) -> dict[str, object]:
    """What a program does not have to read out of the text."""
    facts = {FACTS[name]: value for name, value in vars(error).items() if name in FACTS}
    if "window_seconds" in facts:  # a limit is reached
        facts["remaining"] = 0
    if isinstance(error, errors.Withdrawn):
        facts["withdrawn"] = True
    return facts
