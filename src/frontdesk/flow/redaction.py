"""Personal ids, replaced in what the agent reads; routing never sees the replacements."""

import hashlib
import re

import msgspec

from frontdesk.formats import quoting
from frontdesk.model import whatsapp
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import SessionSource

HEX_DIGITS = 12


class Redaction(msgspec.Struct, frozen=True):
    """How people and chats are labelled: as they are, or with their ids hashed when that is wanted."""

    wanted: bool

    def covers(self, platform: Platform) -> bool:
        """Whether ids of the platform are hashed."""
        return self.wanted and platform.pii_safe

    def user_id(self, platform: Platform, user_id: str) -> str:
        return hash_user(user_id) if self.covers(platform) else user_id

    def chat_id(self, platform: Platform, chat_id: str) -> str:
        return hash_chat(chat_id) if self.covers(platform) else chat_id

    def name(self, platform: Platform, name: str | None, *ids: str | None) -> str | None:
        """The name, if there is one to read; one that merely repeats a hashed id is none."""
        if not name or not quoting.clean_text(name):
            return None
        if not self.covers(platform):
            return name
        shown = _bare(platform, name)
        repeated = {_bare(platform, value) for value in ids if value}
        return None if shown in repeated or _number(shown) in {*map(_digits, repeated)} else name

    def topic(self, source: SessionSource, *, shared: bool) -> str | None:
        """The chat's topic, with the ids of chat and person hashed where they stand in it.

        What several people share must not change with who speaks: there only the chat's ids are hashed.
        """
        topic = source.chat_topic
        if not topic or not self.covers(source.platform):
            return topic
        hashes = _hashes(source, shared)
        # The longest first: an id may begin with another.
        spellings = "|".join(map(re.escape, sorted(hashes, key=len, reverse=True)))
        found = rf"(?<!\w)(?:{spellings})(?!\w)"
        return re.sub(found, lambda match: hashes[match[0]], topic) if hashes else topic


def hash_user(user_id: str) -> str:
    """``user_<12 hex>``."""
    return f"user_{_digest(user_id)}"


def hash_chat(chat_id: str) -> str:
    """12 hex of the id's SHA-256. A platform's name before the id stays; any other prefix may be personal."""
    head, colon, rest = chat_id.partition(":")
    if colon and Platform.parse(head):
        return f"{head}:{_digest(rest)}"
    return _digest(chat_id)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:HEX_DIGITS]


def _bare(platform: Platform, text: str) -> str:
    """An id or name without what differs between two spellings of one phone number."""
    if platform is whatsapp.PLATFORM:
        return whatsapp.normalize_whatsapp_identifier(text)
    return text.strip().removeprefix("+")


def _hashes(source: SessionSource, shared: bool) -> dict[str, str]:
    """The hash for each spelling of the source's ids."""
    ids = () if shared else (source.user_id, source.user_id_alt)
    people = {user_id: hash_user(user_id) for user_id in ids if user_id}
    chats = {chat_id: hash_chat(chat_id) for chat_id in (source.chat_id, source.chat_id_alt) if chat_id}
    whole = people | chats
    bare = {_bare(source.platform, value): hashed for value, hashed in whole.items()}
    return {value: hashed for value, hashed in (bare | whole).items() if value.strip()}


def _number(text: str) -> str | None:
    """The digits of what may be a phone number, however it is punctuated; None for a name with letters."""
    return None if any(map(str.isalpha, text)) else _digits(text) or None


def _digits(text: str) -> str:
    return "".join(filter(str.isdecimal, text))
