"""What comes in: a signed request becomes a message, and the message an answer over HTTP."""

from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

import msgspec

from frontdesk import errors
from frontdesk.channels.called import read_json
from frontdesk.contracts import channels
from frontdesk.logs import get_logger
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import ChatType, SessionSource

log = get_logger(__name__)

MAX_ID_CHARACTERS = 500
RETRY_AFTER_SECONDS = 5
NO_FILES = "`attachments`: files cannot be taken yet; send the text without them"
LATER = {"retry-after": str(RETRY_AFTER_SECONDS)}

_Number = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Id = Annotated[str, msgspec.Meta(max_length=MAX_ID_CHARACTERS)] | _Number
_Time = Annotated[datetime, msgspec.Meta(tz=True)]


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a request. Others are passed over, so that a sender may be ahead of us."""

    text: str
    id: _Id | None = None
    chat_id: _Id | None = None
    chat_type: ChatType = ChatType.DM
    chat_name: str | None = None
    chat_topic: str | None = None
    user_id: _Id | None = None
    user_name: str | None = None
    thread_id: _Id | None = None
    scope_id: _Id | None = None
    parent_chat_id: _Id | None = None
    message_id: _Id | None = None
    observed: bool = False
    sent_at: _Time | None = None
    in_reply_to: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    attachments: Any = None
    """Files are not taken: a message with some is refused, since its text alone may mean something else."""


NAMES = ("chat_name", "chat_topic", "user_name")
IDS = ("user_id", "thread_id", "scope_id", "parent_chat_id", "message_id")


def read_message(
    body: bytes, signed_id: str, account: str | None, max_text_characters: int
) -> channels.Incoming:
    """The message in a body whose signature is proven. Total: what is none raises InvalidInput.

    InvalidMessage, one of these, is about a text that is too long.
    """
    read = read_json(Body, body)
    if read.in_reply_to is not msgspec.UNSET:
        raise errors.InvalidInput(what="The body", why="`in_reply_to`: this is an answer, not a message")
    if read.attachments:
        raise errors.InvalidInput(what="The body", why=NO_FILES)
    if not read.text.strip():
        raise errors.InvalidInput(what="The body", why="`text` is empty")
    if len(read.text) > max_text_characters:
        raise errors.InvalidMessage(why=f"`text` is longer than {max_text_characters} characters")
    return channels.Incoming(
        source=_source(read, account),
        text=read.text,
        event_id=signed_id if read.id in (None, "") else str(read.id),
        observed=read.observed,
        sent_at=read.sent_at,
    )


def _source(read: Body, account: str | None) -> SessionSource:
    named: dict[str, Any] = {name: getattr(read, name) for name in NAMES}
    given = {name: getattr(read, name) for name in IDS}
    named |= {name: str(value) for name, value in given.items() if value is not None}
    return SessionSource(
        platform=Platform.WEBHOOK,
        account=account,
        chat_id="" if read.chat_id is None else str(read.chat_id),
        chat_type=read.chat_type,
        **named,
    )


async def hand_over(desk: channels.Desk, incoming: channels.Incoming) -> channels.Response:
    """The answer to the sender, once the desk has the message or has refused it."""
    try:
        receipt = await desk.accept(incoming)
    except errors.TooManyWaiting as error:
        return problem(HTTPStatus.TOO_MANY_REQUESTS, str(error), LATER)
    except errors.NotAllowed as error:
        return problem(HTTPStatus.FORBIDDEN, str(error))
    except (errors.Unroutable, errors.InvalidInput) as error:
        return problem(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
    except errors.StoreError as error:
        log.warning("webhook_not_stored", account=incoming.source.account, why=error)
        return try_later(f"The message could not be stored: {error.outside}.")
    status = HTTPStatus.OK if receipt.repeated else HTTPStatus.ACCEPTED
    told = {
        "turn_id": receipt.turn_id,
        "session_key": receipt.session_key,
        "status": "repeated" if receipt.repeated else "accepted",
    }
    return _json(status, told, "application/json")


def try_later(detail: str) -> channels.Response:
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, f"{detail} Send it again.", LATER)


def problem(status: HTTPStatus, detail: str, headers: Mapping[str, str] | None = None) -> channels.Response:
    """A problem+json document."""
    told = {"type": "about:blank", "title": status.phrase, "status": int(status), "detail": detail}
    return _json(status, told, "application/problem+json", headers)


def _json(
    status: HTTPStatus, told: Mapping[str, object], kind: str, headers: Mapping[str, str] | None = None
) -> channels.Response:
    return channels.Response(
        status=int(status),
        body=msgspec.json.encode(told),
        headers={"content-type": kind, **(headers or {})},
    )
