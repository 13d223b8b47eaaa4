"""Personal ids, replaced in what the agent reads; routing never sees the replacements."""

import hashlib

import msgspec

from frontdesk.formats import quoting
from frontdesk.model import whatsapp
from frontdesk.model.platforms import Platform

HEX_DIGITS = 12


class Redaction(msgspec.Struct, frozen=True):
    """How people and chats are labelled: as they are, or with their ids hashed when that is wanted."""

    wanted: bool

    def covers(self, platform: Platform) -> bool:
        """Whether ids of the platform are hashed. Never Discord's: people are mentioned by id there."""
        return self.wanted and platform.pii_safe and platform is not Platform.DISCORD

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
        repeated = {_bare(platform, value) for value in ids if value}
        return None if _bare(platform, name) in repeated else name


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
    if platform is Platform.WHATSAPP:
        return whatsapp.normalize_whatsapp_identifier(text)
    return text.strip().removeprefix("+")
