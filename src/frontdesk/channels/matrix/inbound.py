"""What comes in: events of a room's timeline, as what people did there."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeGuard
from urllib.parse import quote

import msgspec

from frontdesk.contracts.channels import Deleted, Edited, Happening, Incoming, Reacted
from frontdesk.model.chats import Attachment, Quote
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import ChatType, SessionSource

MOST_TEXT_CHARACTERS = 100_000
MOST_NAME_CHARACTERS = 240
MOST_ID_CHARACTERS = 500
MOST_EMOJI_CHARACTERS = 64
MOST_FILE_SIZE = 2**53
UNREADABLE = "(An encrypted message that could not be read.)"
FILES = ("m.image", "m.file", "m.audio", "m.video")
TEXTS = ("m.text", "m.notice", "m.emote")
PUPPET = "@_"
"""How the names of accounts begin that a bridge speaks through."""
FALLBACK = re.compile(r"\A(?:> ?.*\n)+\n?")
"""The quoted message before an answer, as older clients put it into the text."""

Event = Mapping[str, Any]


class MatrixRoom(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a room."""

    id: str
    name: str | None = None
    topic: str | None = None
    is_direct: bool = False
    encryption: Mapping[str, Any] | None = None
    """How it is encrypted; None: it is not."""

    @property
    def is_encrypted(self) -> bool:
        return self.encryption is not None


class LockedFile(msgspec.Struct, frozen=True, kw_only=True):
    """An encrypted file: where it is, what opens it, and the digest of what lies there."""

    url: str
    key: str
    start: str
    digest: str


class Us(msgspec.Struct, frozen=True, kw_only=True):
    """The account that frontdesk speaks as."""

    user_id: str
    device_id: str = ""
    display_name: str | None = None
    account: str | None = None

    @property
    def server(self) -> str:
        return self.user_id.partition(":")[2]


def read_event(event: Event, room: MatrixRoom, us: Us, sender_name: str | None = None) -> Happening | None:
    """What somebody did; None for what is no business of ours. Total on any JSON."""
    sender, event_id, kind = event.get("sender"), event.get("event_id"), event.get("type")
    if not (_is_text(sender) and _is_text(event_id)) or sender == us.user_id:
        return None
    source = _source(event, room, us, sender_name)
    content = _table(event.get("content"))
    match kind:
        case "m.room.message":
            return _message(event, content, source, room, us)
        case "m.reaction":
            return _reaction(content, source, event_id)
        case "m.room.redaction":
            named = content.get("redacts") or event.get("redacts")
            return Deleted(source=_about(source, named), event_id=event_id) if _is_text(named) else None
        case "m.room.encrypted":
            return Incoming(source=source, text=UNREADABLE, event_id=event_id, observed=True)
    return None


def text_of(event: Event) -> str:
    """The text of a message, whoever wrote it."""
    return _text(_table(event.get("content")))


def relation(event: Event) -> tuple[str | None, str | None]:
    """The message that an event answers, and the root of its thread."""
    relates = _table(_table(event.get("content")).get("m.relates_to"))
    named = _table(relates.get("m.in_reply_to")).get("event_id")
    root = relates.get("event_id") if relates.get("rel_type") == "m.thread" else None
    answers = named if _is_text(named) and not (root and relates.get("is_falling_back") is True) else None
    return answers, root if _is_text(root) else None


def _message(
    event: Event, content: Event, source: SessionSource, room: MatrixRoom, us: Us
) -> Happening | None:
    relates = _table(content.get("m.relates_to"))
    event_id = str(event["event_id"])
    if relates.get("rel_type") == "m.replace":
        return _edit(content, relates, source, event_id)
    kind = content.get("msgtype")
    text = _text(content)
    files: tuple[Attachment, ...] = ()
    answers, _ = relation(event)
    if answers:
        text = FALLBACK.sub("", text)
    if kind in FILES:
        name, caption = _file_name(content, text)
        text = caption
        if attachment := _attachment(content, name, str(kind)):
            files = (attachment,)
    elif kind not in TEXTS:
        return None
    if kind == "m.emote":
        text = f"* {source.user_name or source.user_id} {text}"
    if not text.strip() and not files:
        return None
    return Incoming(
        source=source,
        text=text,
        event_id=event_id,
        sent_at=_time(event.get("origin_server_ts")),
        files=files,
        quote=Quote(message_id=answers) if answers else None,
        addressed=None if room.is_direct else _mentions(content, us),
    )


def _edit(content: Event, relates: Event, source: SessionSource, event_id: str) -> Edited | None:
    named, text = relates.get("event_id"), _text(_table(content.get("m.new_content")))
    if not (_is_text(named) and text.strip()):
        return None
    return Edited(source=_about(source, named), text=text, event_id=event_id)


def _reaction(content: Event, source: SessionSource, event_id: str) -> Reacted | None:
    relates = _table(content.get("m.relates_to"))
    named, key = relates.get("event_id"), relates.get("key")
    if not (_is_text(named) and _is_text(key)):
        return None
    return Reacted(source=_about(source, named), emoji=key[:MOST_EMOJI_CHARACTERS], event_id=event_id)


def _source(event: Event, room: MatrixRoom, us: Us, sender_name: str | None) -> SessionSource:
    sender = str(event["sender"])
    _, root = relation(event)
    notice = _table(event.get("content")).get("msgtype") == "m.notice"
    return SessionSource(
        platform=Platform.MATRIX,
        account=us.account,
        chat_id=room.id,
        chat_name=_short(room.name),
        chat_topic=_short(room.topic),
        chat_type=_chat_type(room, root),
        user_id=sender,
        user_name=_short(sender_name) or sender,
        thread_id=root,
        scope_id=us.server,
        message_id=str(event["event_id"]),
        is_bot=notice or sender.startswith(PUPPET),
    )


def _chat_type(room: MatrixRoom, root: str | None) -> ChatType:
    if room.is_direct:
        return ChatType.DM
    return ChatType.THREAD if root else ChatType.GROUP


def _about(source: SessionSource, message_id: str) -> SessionSource:
    return msgspec.structs.replace(source, message_id=message_id)


def _mentions(content: Event, us: Us) -> bool:
    """By the list that clients of today send along; of those without one, by a link to us, or our name."""
    listed = content.get("m.mentions")
    if isinstance(listed, Mapping):
        named = listed.get("user_ids")
        return isinstance(named, list) and us.user_id in named
    formatted = content.get("formatted_body")
    if isinstance(formatted, str) and any(
        f"matrix.to/#/{each}" in formatted for each in (us.user_id, quote(us.user_id, safe=""))
    ):
        return True
    return us.user_id in _text(content)


def _file_name(content: Event, body: str) -> tuple[str | None, str]:
    """The file's name, and what is said of it: where both are given, the body is the latter."""
    name = content.get("filename")
    if _is_text(name) and name != body:
        return _short(name), body
    return _short(body), ""


def _attachment(content: Event, name: str | None, kind: str) -> Attachment | None:
    """Its id is where it is; of an encrypted one with the key that opens it."""
    info, locked = _table(content.get("info")), _locked(content.get("file"))
    place = locked.url if locked else content.get("url")
    if not (_is_text(place) and place.startswith("mxc://")):
        return None
    mime, size = info.get("mimetype"), info.get("size")
    known = isinstance(size, int) and not isinstance(size, bool) and 0 <= size < MOST_FILE_SIZE
    return Attachment(
        id=msgspec.json.encode(locked).decode() if locked else place,
        name=name,
        kind=mime if _is_text(mime) else "application/octet-stream",
        size=size if known else None,
        is_voice=kind == "m.audio" and isinstance(content.get("org.matrix.msc3245.voice"), Mapping),
    )


def _locked(file: object) -> LockedFile | None:
    held = _table(file)
    url, start = held.get("url"), held.get("iv")
    key, digest = _table(held.get("key")).get("k"), _table(held.get("hashes")).get("sha256")
    if _is_text(url) and _is_text(key) and _is_text(start) and _is_text(digest):
        return LockedFile(url=url, key=key, start=start, digest=digest)
    return None


def _text(content: Event) -> str:
    body = content.get("body")
    return _unicode(body)[:MOST_TEXT_CHARACTERS] if isinstance(body, str) else ""


def _time(stamp: object) -> datetime | None:
    if not isinstance(stamp, int) or isinstance(stamp, bool):
        return None
    try:
        return datetime.fromtimestamp(stamp / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _short(text: object) -> str | None:
    return _unicode(text)[:MOST_NAME_CHARACTERS] or None if isinstance(text, str) else None


def _unicode(text: str) -> str:
    """JSON may hold half a character, which nothing can store."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _table(value: object) -> Event:
    return value if isinstance(value, Mapping) else {}


def _is_text(value: object) -> TypeGuard[str]:
    """Whether it can be an id, or a short word."""
    return isinstance(value, str) and 0 < len(value) <= MOST_ID_CHARACTERS and value.isprintable()
