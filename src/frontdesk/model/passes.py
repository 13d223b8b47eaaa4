"""Passes: what lets somebody in over HTTP, as whom, and until when. The secret of one is told once, when it
is made; what is kept of it is a digest."""

import hashlib
import hmac
import re
import secrets
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from frontdesk import errors
from frontdesk.model import inputs
from frontdesk.model.access import Role
from frontdesk.model.people import plain_name
from frontdesk.model.platforms import TERMINAL

PASS = "pass:"
"""Begins the name of somebody whom no platform knows: a pass is all that they have."""
LINK_MINUTES, MOST_MINUTES = 10, 24 * 60
PAGE_SECONDS = 8 * 3600
MOST_PAGES = 20
"""So many browsers somebody may be signed in with: one more takes the place of what rested longest."""
TOKEN_DAYS, MOST_DAYS = 90, 3650
USED_EVERY = timedelta(minutes=1)
"""When a pass was used last is known no better than this."""
KEPT_FOR = timedelta(days=30)
"""How long one that is over is still listed."""
SECRET_BYTES, ID_BYTES = 32, 8
SECRET_CHARACTERS = 43
"""So long is a secret, without what is put before it."""

MOST_NAME = 64
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_.@+-]{{0,{MOST_NAME - 1}}}")
_UNNAMED = re.compile(r"[^A-Za-z0-9_.@+-]")
_ID = re.compile(r"[pP]_[0-9a-fA-F]+")
_PERSON = re.compile(rf"{TERMINAL}|[a-z0-9][a-z0-9_-]*(@[^\s:]+)?:[^\s:](.*\S)?")


class PassKind(StrEnum):
    """What a pass is for."""

    TOKEN = "token"
    """Programs send it with each request to the API."""
    LINK = "link"
    """Becomes a page, once, in the browser that is first to show it."""
    PAGE = "page"
    """A browser in which somebody signed in."""


SIGNS = {PassKind.TOKEN: "fdt_", PassKind.LINK: "fdl_", PassKind.PAGE: ""}
"""What secrets begin with, so that people and programs that look for secrets know them when they see one."""


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """One that was given out."""

    id: str
    kind: PassKind
    name: str
    role: Role
    person: str
    """Who it is for, by the name that they have in votes."""
    digest: bytes
    proof: bytes | None = None
    """The digest of what a page shows besides, to do more than look."""
    bound_to: str | None = None
    """The mark of the token of the settings that a page was begun with: another token, no page."""
    parent: str | None = None
    """The pass that a page was begun with, and ends with."""
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None = None
    used_at: datetime | None = None

    def holds(self, now: datetime) -> bool:
        return self.revoked_at is None and now < self.expires_at

    def fits(self, secret: str) -> bool:
        """Whether it is its secret; it takes the same time for every one."""
        return hmac.compare_digest(self.digest, digest_of(secret))

    def fits_proof(self, proof: str) -> bool:
        return self.proof is not None and hmac.compare_digest(self.proof, digest_of(proof))


def new_secret(kind: PassKind = PassKind.PAGE) -> str:
    return SIGNS[kind] + secrets.token_urlsafe(SECRET_BYTES)


def new_id() -> str:
    return f"p_{secrets.token_hex(ID_BYTES)}"


def digest_of(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def may_be_secret(text: str) -> bool:
    """Whether it has the form of one: nothing else is looked for."""
    return text.isascii() and len(text) in {len(sign) + SECRET_CHARACTERS for sign in SIGNS.values()}


def check_most(what: str, given: int, most: int) -> int:
    """How long a pass lasts. InvalidInput unless it is between 1 and so many."""
    inputs.check_kind(what, given, int)
    if not 1 <= given <= most:
        raise errors.InvalidInput(what=f"{what} {given}", why=f"use 1 to {most}")
    return given


def check_name(name: str) -> str:
    if _ID.fullmatch(name):
        raise errors.InvalidInput(what=f"The name {name!r}", why="it looks like the id of a pass")
    if not _NAME.fullmatch(name):
        why = f"use a-z, A-Z, 0-9 and '_.@+-', at most {MOST_NAME} characters"
        raise errors.InvalidInput(what=f"The name {name!r}", why=why)
    return name


def usual_name(role: Role, person: str | None) -> str:
    """What a pass is called where nobody says: after whom it is for, else after the role."""
    return _UNNAMED.sub(".", person)[:MOST_NAME] if person and _NAME.match(person) else str(role)


def person_for(role: Role, person: str | None, name: str, owner: str) -> str:
    """Whose a new pass is. InvalidInput where nobody is named for a role that somebody has to have."""
    if person is not None:
        if not _PERSON.fullmatch(person) or person.startswith(PASS):
            why = "write it as in 'telegram:42' or 'matrix:@ann:example.org'"
            raise errors.InvalidInput(what=f"The person {person!r}", why=why)
        return plain_name(person)
    if role is Role.ADMINISTRATOR:
        return owner
    if role is Role.VIEWER:
        return PASS + name
    why = "say whose it is, by their name in a chat, like 'telegram:42'"
    raise errors.InvalidInput(what=f"A pass for the role {role}", why=why)
