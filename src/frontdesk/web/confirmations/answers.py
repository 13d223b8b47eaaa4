"""Answers: records as JSON, and what was refused as problem documents."""

from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from frontdesk import errors
from frontdesk.logs import get_logger
from frontdesk.web import problems
from frontdesk.web.confirmations.browsers import JSON

GONE = frozenset({"redeemed", "lapsed", "erased"})
"""Why a grant that there was cannot be used any more."""
FACTS: tuple[tuple[type[errors.FrontdeskError], Mapping[str, str]], ...] = (
    (errors.AlreadyResolved, {"id": "confirmation_id", "confirmation_status": "status"}),
    (errors.StillPending, {"id": "confirmation_id", "confirmation_status": "status"}),
    (
        errors.GrantUnusable,
        {
            "id": "confirmation_id",
            "confirmation_status": "status",
            "refused": "refused",
            "renewal": "renewal",
        },
    ),
    (errors.DigestMismatch, {"id": "confirmation_id"}),
    (errors.RateLimited, {"window_seconds": "window_seconds"}),
    (errors.TooManyPending, {"pending": "pending", "window_seconds": "window_seconds"}),
)
"""Fields of errors that problem documents have, by the names that they have there."""
LIMITS = (errors.RateLimited, errors.TooManyPending)
NO_STORE = "The store does not answer. Try again later."
RETRY_AFTER = "retry-after"
STORE_RETRY_SECONDS = 5
"""When to try again what the store did not take."""

Refusal = errors.FrontdeskError | HTTPException
REFUSALS = (errors.FrontdeskError, HTTPException)

log = get_logger(__name__)


def give(
    record: msgspec.Struct, status: HTTPStatus = HTTPStatus.OK, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(msgspec.json.encode(record), int(status), dict(headers or {}), media_type=JSON)


def refuse(refusal: Refusal) -> Response:
    """The answer to a request that could not be served."""
    match refusal:
        case HTTPException():
            return problems.respond(refusal.status_code, refusal.detail, refusal.headers)
        case errors.StoreError():
            log.warning("store_troubled", why=str(refusal))
            headers = {RETRY_AFTER: str(STORE_RETRY_SECONDS)}
            return problems.respond(problems.status_of(refusal), NO_STORE, headers)
        case _:
            return problems.respond(_status_of(refusal), str(refusal), _headers(refusal), **_facts(refusal))


def _headers(error: errors.FrontdeskError) -> dict[str, str]:
    seconds = getattr(error, "retry_after_seconds", None)
    return {} if seconds is None else {RETRY_AFTER: str(seconds)}


def _status_of(error: errors.FrontdeskError) -> HTTPStatus:
    if isinstance(error, errors.GrantUnusable):
        return HTTPStatus.GONE if _facts(error)["refused"] in GONE else HTTPStatus.CONFLICT
    return problems.status_of(error)


def _facts(error: errors.FrontdeskError) -> dict[str, object]:
    """What a program does not have to read out of the text."""
    names = next((names for kind, names in FACTS if isinstance(error, kind)), {})
    facts = {name: getattr(error, field, None) for name, field in names.items()}
    if isinstance(error, LIMITS):
        facts["remaining"] = 0
    if isinstance(error, errors.Withdrawn):
        facts["withdrawn"] = True
    return facts
