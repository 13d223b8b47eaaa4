"""Session keys: the one place where the address of a conversation is made."""

import re
from collections.abc import Mapping
from enum import StrEnum
from urllib.parse import unquote_to_bytes

import msgspec

from frontdesk import errors
from frontdesk.model import whatsapp
from frontdesk.model.platforms import TERMINAL
from frontdesk.model.sources import ChatType, SessionSource

DEFAULT_NAMESPACE = "main"
PERSON, THREAD = MARKS = ("@", "#")
"""Before a person, and before a thread that stands where a chat is missing, where ids are free text."""
MAX_KEY_BYTES = 2048
MAX_SESSION_ID_BYTES = 255
SHOWN_CHARACTERS = 100

_CONTROL = "\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_CONTROLS = re.compile(f"[{_CONTROL}]")
_UNSAFE_IN_PART = re.compile(rf"[/\\:%{_CONTROL}]|\.{{2,}}")
_DRIVE = re.compile(r"[A-Za-z]:")
_PLAIN = re.compile(r"(?!.:)\.?[ -\-0-\[\]-~]+(?:\.[ -\-0-\[\]-~]+)*\.?")
"""Safe beyond doubt, seen without a search for each reason why not."""


Part = tuple[str, str]
"""An id of a key and the mark before it."""


class KeyRule(StrEnum):
    """Why a key looks as it does."""

    DM_CHAT = "direct messages: the chat"
    DM_PARTICIPANT = "direct messages without a chat id: the person"
    DM_THREAD = "direct messages without chat or person: the thread"
    PER_USER = "each person of the chat has a session"
    SHARED_THREAD = "everybody in the thread shares a session"
    SHARED_CHAT = "everybody in the chat shares a session"
    BARE = "nothing addresses a conversation"


class Address(msgspec.Struct, frozen=True):
    """A key with the rule that made it, and what it is made of."""

    key: str
    rule: KeyRule
    shared: bool
    place: str
    """Which account of ours on which platform."""
    chat: str
    person: str | None
    """Their ids as keys and permissions use them, whether the key has them or not."""


def address(
    source: SessionSource,
    group_sessions_per_user: bool = True,
    thread_sessions_per_user: bool = False,
    profile: str | None = None,
    aliases: Mapping[str, str] | None = None,
) -> Address:
    """The key of the conversation that a message belongs to, and why. Total: it never fails.

    ``aliases`` maps WhatsApp identifiers to the person's canonical one.
    """
    chat, participant = identities(source, aliases)
    if source.chat_type is ChatType.DM:
        parts, rule = _dm_parts(chat, participant, source.thread_id)
    else:
        isolated = group_sessions_per_user and (thread_sessions_per_user or not source.thread_id)
        parts, rule = _group_parts(chat, participant if isolated else None, source.thread_id)
    place = place_of(source)
    head = ("agent", namespace(profile) if profile else DEFAULT_NAMESPACE, place, source.chat_type)
    shared = source.chat_type is not ChatType.DM and rule is not KeyRule.PER_USER
    plain = source.platform.facts.distinct_ids
    written = [encode_part(each) if plain else _marked(mark, each) for mark, each in parts]
    return Address(":".join([*head, *written]), rule, shared, place, chat, participant)


def build_session_key(
    source: SessionSource,
    group_sessions_per_user: bool = True,
    thread_sessions_per_user: bool = False,
    profile: str | None = None,
    *,
    aliases: Mapping[str, str] | None = None,
) -> str:
    """The session key: ``agent:<namespace>:<platform>:<chat_type>[:<chat>][:<thread>][:<participant>]``.

    Where a platform's ids are free text, a person has a leading ``@``, and a thread without a chat ``#``.
    """
    return address(source, group_sessions_per_user, thread_sessions_per_user, profile, aliases).key


def is_shared_multi_user_session(
    source: SessionSource,
    group_sessions_per_user: bool = True,
    thread_sessions_per_user: bool = False,
    *,
    aliases: Mapping[str, str] | None = None,
) -> bool:
    """Whether several people talk in the session that this message belongs to."""
    if source.chat_type is ChatType.DM:
        return False
    return address(source, group_sessions_per_user, thread_sessions_per_user, aliases=aliases).shared


def participant_id(source: SessionSource, aliases: Mapping[str, str] | None = None) -> str | None:
    """The person's id as keys and permissions use it."""
    return identities(source, aliases)[1]


def identities(source: SessionSource, aliases: Mapping[str, str] | None) -> tuple[str, str | None]:
    """The chat's and the person's id as keys and permissions use them."""
    if source.platform is not whatsapp.PLATFORM:
        return source.chat_id, source.user_id_alt or source.user_id
    participant = whatsapp.canonical_whatsapp_identifier(source.participant or "", aliases) or None
    if source.chat_type is ChatType.DM:
        return whatsapp.canonical_whatsapp_identifier(source.chat_id, aliases), participant
    return source.chat_id, participant


def _dm_parts(chat: str, participant: str | None, thread: str | None) -> tuple[list[Part], KeyRule]:
    tail = [("", thread)] if thread else []
    if chat:
        return [("", chat), *tail], KeyRule.DM_CHAT
    if participant:
        return [(PERSON, participant), *tail], KeyRule.DM_PARTICIPANT
    return [(THREAD, thread)] if thread else [], KeyRule.DM_THREAD if thread else KeyRule.BARE


def _group_parts(chat: str, participant: str | None, thread: str | None) -> tuple[list[Part], KeyRule]:
    parts = [("", chat)] if chat else []
    if thread:
        parts.append(("" if chat else THREAD, thread))
    if participant:
        return [*parts, (PERSON, participant)], KeyRule.PER_USER
    if thread:
        return parts, KeyRule.SHARED_THREAD
    return parts, KeyRule.SHARED_CHAT if chat else KeyRule.BARE


def _marked(mark: str, text: str) -> str:
    """An id with its mark; one that begins like a mark is not taken for marked."""
    encoded = encode_part(text)
    return mark + (_percent(encoded[0]) + encoded[1:] if encoded[:1] in MARKS else encoded)


def namespace_of(key: str) -> str:
    """The profile that a key is of, as it stands there."""
    return key.split(":", 2)[1] if key.count(":") > 1 else ""


def namespace(profile: str | None) -> str:
    """What stands in keys for a profile."""
    if not profile or profile == "default":
        return DEFAULT_NAMESPACE
    if profile == DEFAULT_NAMESPACE:  # a profile of that name is not the default one
        return _percent(profile[0]) + profile[1:]
    return encode_part(profile)


def place_of(source: SessionSource) -> str:
    """The platform, with which of our accounts on it when there are several."""
    return account_place(source.platform, source.account) if source.account else str(source.platform)


def account_place(platform: str, account: str) -> str:
    """One of our accounts on a platform, as keys and lists of people write it."""
    return f"{platform}@{encode_part(account)}"


def encode_part(text: str) -> str:
    """An id as it stands in a key: what is unsafe or ambiguous is percent-encoded, reversibly."""
    if text.isalnum():
        return text
    return _UNSAFE_IN_PART.sub(lambda found: _percent(found[0]), text)


def decode_part(text: str) -> str:
    """The id that :func:`encode_part` encoded."""
    return unquote_to_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def _percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


def check_routable(source: SessionSource, where: Address) -> None:
    """Refuse an event that has no conversation, or none that can be kept."""
    if where.rule is KeyRule.BARE and source.platform is not TERMINAL:
        raise errors.Unroutable(key=where.key)
    check_key(where.key)


def is_safe_key(key: str) -> bool:
    """Whether a ready-made key may be used."""
    return _unsafe(key, MAX_KEY_BYTES) is None


def check_key(key: str) -> str:
    """The key, when a ready-made one from outside is safe to use."""
    if isinstance(key, str) and len(key) <= MAX_KEY_BYTES and _PLAIN.fullmatch(key):
        return key
    if why := _unsafe(key, MAX_KEY_BYTES):
        raise errors.UnsafeKey(key=_cut(key), why=why)
    return key


def is_safe_session_id(session_id: str) -> bool:
    """Whether a ready-made session id may be used."""
    return _unsafe(session_id, MAX_SESSION_ID_BYTES) is None


def check_session_id(session_id: str) -> str:
    """The session id, when a ready-made one from outside is safe to use."""
    if (
        isinstance(session_id, str)
        and len(session_id) <= MAX_SESSION_ID_BYTES
        and _PLAIN.fullmatch(session_id)
    ):
        return session_id
    if why := _unsafe(session_id, MAX_SESSION_ID_BYTES):
        raise errors.UnsafeSessionId(session_id=_cut(session_id), why=why)
    return session_id


def asked_key(key: str) -> str:
    """The key, when it is safe to ask for. Nothing is kept under an empty one: it is unknown."""
    return key if key == "" else check_key(key)


def asked_session_id(session_id: str) -> str:
    """The session id, when it is safe to ask for; no session has an empty one."""
    return session_id if session_id == "" else check_session_id(session_id)


def _cut(text: object) -> object:
    """What an error repeats of a text."""
    if not isinstance(text, str) or len(text) <= SHOWN_CHARACTERS:
        return text
    return text[: SHOWN_CHARACTERS - 1] + "…"


def _unsafe(text: object, limit: int) -> str | None:
    if not isinstance(text, str) or not text:
        return "it must be a text that is not empty"
    for bad in ("..", "/", "\\"):
        if bad in text:
            return f"it must not contain {bad!r}"
    if _DRIVE.match(text):
        return "it must not begin with a drive letter"
    if _CONTROLS.search(text):
        return "it must not contain control characters"
    if len(text) > limit or len(text.encode()) > limit:
        return f"it is longer than {limit} bytes"
    return None
