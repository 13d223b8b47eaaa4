"""Messages as they are stored: JSON bytes. One that cannot be read never stands in the way of the others."""

from collections.abc import Sequence
from typing import Any

import msgspec

from frontdesk.logs import get_logger
from frontdesk.model.messages import Plain
from frontdesk.stores.columns import UNREADABLE

log = get_logger(__name__)

_ONE = msgspec.json.Decoder(dict[str, Any])
_ALL = msgspec.json.Decoder(list[dict[str, Any]])


def read_body(body: bytes, **where: object) -> Plain | None:
    """The message; None, with a warning that says where it stands, when it cannot be read."""
    try:
        return _ONE.decode(body)
    except UNREADABLE as error:
        log.warning("message_unreadable", **where, why=str(error))
        return None


def read_bodies(bodies: Sequence[bytes], **where: object) -> list[Plain | None]:
    """The messages in one go, which is much faster than one by one."""
    try:
        return list(_ALL.decode(b"[" + b",".join(bodies) + b"]"))
    except UNREADABLE:
        return [read_body(body, **where) for body in bodies]
