"""Signed links: for whom one was made, what it is about, until when. Nobody else makes one."""

import base64
import hashlib
import hmac
from datetime import datetime
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from frontdesk import errors

MIN_KEY_BYTES = 32
MAX_TOKEN_CHARACTERS = 2_000
PARAMETER = "t"
"""The part of the address that holds the token."""
Moment = Annotated[int, Meta(ge=0, lt=2**40)]
"""In seconds since 1970. Whoever names a later one has not got it from us, and may break what writes it."""


class Purpose(StrEnum):
    """What a token is good for; one is never good for another."""

    DECIDE = "decide"
    """See one request and decide about it; ``about`` is its id and its digest."""
    LOOK = "look"
    """Have looked at what is hidden in one request; ``about`` is its id and its digest."""


class Link(msgspec.Struct, frozen=True, kw_only=True):
    purpose: Purpose
    about: tuple[str, ...]
    approver: str
    expires: Moment


def decision(confirmation_id: str, digest: str, approver: str, expires_at: datetime) -> Link:
    """A link for one person, about one request and exactly the action in it."""
    expires = int(expires_at.timestamp())
    return Link(purpose=Purpose.DECIDE, about=(confirmation_id, digest), approver=approver, expires=expires)


def look(confirmation_id: str, digest: str, approver: str, expires_at: datetime) -> Link:
    """That one person has looked at what is hidden in a request."""
    expires = int(expires_at.timestamp())
    return Link(purpose=Purpose.LOOK, about=(confirmation_id, digest), approver=approver, expires=expires)


def address(page_url: str, key: bytes, link: Link) -> str:
    """Where the one that the link is for sees the request."""
    return f"{page_url.rstrip('/')}/approvals/{link.about[0]}?{PARAMETER}={sign(key, link)}"


def sign(key: bytes, link: Link) -> str:
    """The link as a token: whom it is for and until when can be read, the rest must be known already."""
    if len(key) < MIN_KEY_BYTES:
        raise errors.InvalidInput(what="The key for links", why=f"use at least {MIN_KEY_BYTES} bytes")
    signature = hmac.new(key, msgspec.json.encode(link), hashlib.sha256).digest()
    return f"{_encode(msgspec.json.encode((link.approver, link.expires)))}.{_encode(signature)}"


def check(key: bytes, token: str, purpose: Purpose, about: tuple[str, ...], now: datetime) -> str:
    """Whom the token was made for. LinkRefused unless we signed it for this very purpose, and in time."""
    approver, expires = read(token)
    expected = sign(key, Link(purpose=purpose, about=about, approver=approver, expires=expires))
    genuine = hmac.compare_digest(expected.encode(), token.encode("utf-8", "replace"))
    if not genuine or expires <= now.timestamp():
        raise errors.LinkRefused()
    return approver


def read(token: str) -> tuple[str, int]:
    """Whom a token names and when it ends, which proves nothing. LinkRefused when it cannot be read."""
    if len(token) > MAX_TOKEN_CHARACTERS:
        raise errors.LinkRefused()
    said = token.partition(".")[0]
    try:
        read = base64.b64decode(said + "=" * (-len(said) % 4), altchars=b"-_", validate=True)
        return msgspec.json.decode(read, type=tuple[str, Moment])
    except (ValueError, msgspec.MsgspecError):
        raise errors.LinkRefused() from None


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
