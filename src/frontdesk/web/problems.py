"""Errors as problem+json documents."""

from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from starlette.responses import Response

from frontdesk import errors

STATUSES: tuple[tuple[type[errors.FrontdeskError], HTTPStatus], ...] = (
    (errors.InvalidInput, HTTPStatus.BAD_REQUEST),
    (errors.UnknownSession, HTTPStatus.NOT_FOUND),
    (errors.UnknownTurn, HTTPStatus.NOT_FOUND),
    (errors.UnknownDelivery, HTTPStatus.NOT_FOUND),
    (errors.UnknownConfirmation, HTTPStatus.NOT_FOUND),
    (errors.NotAllowed, HTTPStatus.FORBIDDEN),
    (errors.WrongCode, HTTPStatus.FORBIDDEN),
    (errors.SignatureRefused, HTTPStatus.FORBIDDEN),
    (errors.AlreadyResolved, HTTPStatus.CONFLICT),
    (errors.DigestMismatch, HTTPStatus.PRECONDITION_FAILED),
    (errors.KeyReused, HTTPStatus.UNPROCESSABLE_ENTITY),
    (errors.LockedOut, HTTPStatus.TOO_MANY_REQUESTS),
    (errors.RateLimited, HTTPStatus.TOO_MANY_REQUESTS),
    (errors.TooManyPending, HTTPStatus.TOO_MANY_REQUESTS),
    (errors.StoreError, HTTPStatus.SERVICE_UNAVAILABLE),
)
OUR_FAULT = "Something went wrong here. The log has the details."


def respond(status: int, detail: str, headers: Mapping[str, str] | None = None, **more: object) -> Response:
    """A problem document; ``error`` is its text, too, unless it is given."""
    known = HTTPStatus(status)
    told = {"type": "about:blank", "title": known.phrase, "status": int(known), "detail": detail}
    told |= {"error": detail, **more}
    return Response(
        msgspec.json.encode(told), int(known), dict(headers or {}), media_type="application/problem+json"
    )


def respond_error(error: errors.FrontdeskError) -> Response:
    """An error of ours with its fields, so that it can be raised on the other side as it is."""
    fields = {name: _plain(value) for name, value in vars(error).items() if not name.startswith("_")}
    return respond(status_of(error), str(error), error=type(error).__name__, fields=fields)


def status_of(error: errors.FrontdeskError) -> HTTPStatus:
    return next((status for kind, status in STATUSES if isinstance(error, kind)), HTTPStatus.CONFLICT)


def _plain(value: object) -> object:
    return value if isinstance(value, str | int | float | bool | None) else str(value)
