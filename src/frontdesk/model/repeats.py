"""Requests that may be sent again: each is carried out once for its idempotency key."""

import hashlib
from datetime import timedelta

import msgspec

KEPT = timedelta(days=1)
"""How long a key is known."""
MAX_KEY_CHARACTERS = 200
MOST_OF_ONE = 5_000
"""Keys of one sender that are known; for more the oldest give way."""
WHO_CHARACTERS = 32
"""With so many an id begins by which its sender is known."""


class KeyedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A request that came with a key."""

    id: str
    request: str
    """The digest of what was asked."""
    status: int | None = None
    """Of the answer; None while nobody knows how it ended."""
    answer: bytes | None = None
    """None where it is not kept: it was for the eyes of whoever asked, once."""


def call_id(who: str, key: str) -> str:
    """By what a request is known again: keys are their sender's own, and kept by their digest alone."""
    sender = who.encode("utf-8", "surrogatepass")
    return _digest(sender)[:WHO_CHARACTERS] + _digest(sender, key.encode("utf-8", "surrogatepass"))


def request_digest(method: str, address: str, body: bytes) -> str:
    return _digest(method.encode(), address.encode("utf-8", "surrogatepass"), body)


def _digest(*parts: bytes) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(b"%d:" % len(part) + part)
    return whole.hexdigest()
