"""Codes that are shown on one side and typed on the other: to let somebody in, or to link two accounts."""

import hmac
import secrets
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from frontdesk.model.access import Grant

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Nothing that is read as something else: no I, O, 0, 1."""

CODE_CHARACTERS = 8
SALT_BYTES = 16
VALID_FOR = timedelta(hours=1)
MOST_PENDING = 3
YIELDS_AFTER = timedelta(minutes=10)
"""Who has waited so long to be let in gives way to somebody new where too many wait, and whoever found no
place may ask again: strangers who take every place keep nobody out for longer."""
MOST_FAILURES = 5
LOCKED_FOR = timedelta(hours=1)
ANSWER_EVERY = timedelta(days=1)
MOST_ANSWERS = 100
"""How many strangers of one platform hear an answer within that time."""


class CodeKind(StrEnum):
    PAIR = "pair"
    LINK = "link"


class Pairing(msgspec.Struct, frozen=True, kw_only=True):
    """A code that waits to be typed, without the code: that is known to whom it was shown alone."""

    kind: CodeKind
    principal: str
    """Whom it was shown to."""
    platform: str
    created_at: datetime
    expires_at: datetime
    name: str | None = None
    """What they call themselves, cleaned; anybody can be called anything."""


class Seal(msgspec.Struct, frozen=True):
    """What is kept of a code: enough to recognise it, too little to tell it."""

    salt: bytes
    digest: bytes

    def fits(self, code: str) -> bool:
        """Whether this is the code; it takes the same time for every one."""
        typed = clean(code)
        return hmac.compare_digest(self.digest, _digest(self.salt, typed)) and bool(typed)


class Meeting(StrEnum):
    """What became of a stranger's message."""

    SILENT = "silent"
    ANSWERED = "answered"
    OFFERED = "offered"


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a typed code: it fits, it does not, or nobody looked since too many did not."""

    pairing: Pairing | None = None
    grant: Grant | None = None
    locked_until: datetime | None = None


class Lockout(msgspec.Struct, frozen=True, kw_only=True):
    """How many wrong codes were typed lately."""

    failures: int = 0
    since: datetime
    locked_until: datetime | None = None

    def holds(self, now: datetime) -> bool:
        return self.locked_until is not None and now < self.locked_until

    def failed(self, now: datetime) -> "Lockout":
        """One more; what is long ago no longer counts."""
        if self.locked_until or now >= self.since + LOCKED_FOR:
            return Lockout(failures=1, since=now)
        failures = self.failures + 1
        until = now + LOCKED_FOR if failures >= MOST_FAILURES else None
        return Lockout(failures=failures, since=self.since, locked_until=until)


def new_code() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(CODE_CHARACTERS))


def seal(code: str) -> Seal:
    salt = secrets.token_bytes(SALT_BYTES)
    return Seal(salt, _digest(salt, clean(code)))


def shown(code: str) -> str:
    """The code as it is easy to read and to type."""
    half = CODE_CHARACTERS // 2
    return f"{code[:half]}-{code[half:]}"


def clean(code: str) -> str:
    """The code as it was made, however it was typed; empty when it can be none.

    Letters of other scripts are no codes, even where their capitals look or fold like ours.
    """
    typed = code.strip().replace("-", "").replace(" ", "")
    if not typed.isascii() or len(typed) != CODE_CHARACTERS:
        return ""
    return typed.upper() if set(typed.upper()) <= set(ALPHABET) else ""


def _digest(salt: bytes, code: str) -> bytes:
    return hmac.digest(salt, code.encode(), "sha256")
