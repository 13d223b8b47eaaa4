"""What a message of the Bot API holds: its text, its files, and what is marked in it."""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from frontdesk.model.chats import Attachment
from frontdesk.model.sources import readable

Number = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Size = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Seconds = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799)]
MOST_FILE_NAME_CHARACTERS = 255
MOST_ENTITIES = 200


class ChatMember(msgspec.Struct, frozen=True, kw_only=True):
    id: Number
    is_bot: bool = False
    first_name: str = ""
    last_name: str | None = None

    @property
    def name(self) -> str:
        return f"{self.first_name} {self.last_name or ''}".strip()


class ChatInfo(msgspec.Struct, frozen=True, kw_only=True):
    id: Number
    type: str = "private"
    title: str | None = None


class Entity(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    offset: Size
    length: Size
    user: ChatMember | None = None


class Media(msgspec.Struct, frozen=True, kw_only=True):
    file_id: str
    file_name: str | None = None
    mime_type: str | None = None
    file_size: Size | None = None


class Quoted(msgspec.Struct, frozen=True, kw_only=True):
    text: str = ""


class BotMessage(msgspec.Struct, frozen=True, kw_only=True):
    message_id: Number
    chat: ChatInfo
    sender: ChatMember | None = msgspec.field(name="from", default=None)
    sender_chat: ChatInfo | None = None
    date: Seconds = 0
    message_thread_id: Number | None = None
    is_topic_message: bool = False
    text: str | None = None
    caption: str | None = None
    entities: list[Entity] = []
    caption_entities: list[Entity] = []
    reply_to_message: "BotMessage | None" = None
    quote: Quoted | None = None
    media_group_id: str | None = None
    forum_topic_created: Any = None
    forward_origin: Any = None
    photo: list[Media] = []
    document: Media | None = None
    voice: Media | None = None
    audio: Media | None = None
    video: Media | None = None
    video_note: Media | None = None
    animation: Media | None = None
    sticker: Media | None = None
    location: Any = None
    venue: Any = None
    contact: Any = None
    poll: Any = None
    dice: Any = None

    @property
    def in_topic(self) -> bool:
        return self.is_topic_message and self.message_thread_id is not None

    @property
    def replied(self) -> "BotMessage | None":
        """The message that this one answers: every message of a topic names the topic's beginning."""
        replied = self.reply_to_message
        if replied is None or replied.forum_topic_created is not None:
            return None
        return None if self.in_topic and replied.message_id == self.message_thread_id else replied


class Content(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    files: tuple[Attachment, ...] = ()


def read(message: BotMessage) -> Content:
    """What a message says and brings; nothing of either when it only tells that something happened."""
    text = readable((message.text if message.text is not None else message.caption) or _described(message))
    if text and message.forward_origin is not None:  # somebody else's words, and no command
        text = f"(Forwarded: {text})"
    return Content(text=text, files=tuple(_files(message)))


KINDS = {
    "animation": "video/mp4",
    "audio": "audio/mpeg",
    "document": "application/octet-stream",
    "sticker": "image/webp",
    "video": "video/mp4",
    "video_note": "video/mp4",
    "voice": "audio/ogg",
}
"""What a file is, unless it is said."""


def _files(message: BotMessage) -> Iterator[Attachment]:
    if message.photo:
        largest = max(message.photo, key=lambda each: each.file_size or 0)
        yield Attachment(id=readable(largest.file_id), kind="image/jpeg", size=largest.file_size)
    for field, kind in KINDS.items():
        media: Media | None = getattr(message, field)
        if media is None or (field == "document" and message.animation):
            continue  # an animation stands there twice
        yield Attachment(
            id=readable(media.file_id),
            name=readable(media.file_name)[:MOST_FILE_NAME_CHARACTERS] if media.file_name else None,
            kind=readable(media.mime_type or kind),
            size=media.file_size,
            is_voice=field == "voice",
        )


def _described(message: BotMessage) -> str:
    """A message without text, in words."""
    told: list[str] = []
    if isinstance(message.venue, dict):
        told = ["Place", *_named(message.venue, "title", "address")]
    elif isinstance(message.location, dict):
        told = ["Location", *_named(message.location, "latitude", "longitude")]
    elif isinstance(message.contact, dict):
        told = ["Contact", *_named(message.contact, "first_name", "last_name", "phone_number")]
    elif isinstance(message.poll, dict):
        options = message.poll.get("options")
        listed = [each for each in options if isinstance(each, dict)] if isinstance(options, list) else []
        told = ["Poll", *_named(message.poll, "question")]
        told += [words for each in listed for words in _named(each, "text")]
    elif isinstance(message.dice, dict):
        told = ["Dice", *_named(message.dice, "emoji", "value")]
    return f"({told[0]}: {', '.join(told[1:])})" if told[1:] else ""


def _named(part: dict[str, Any], *names: str) -> list[str]:
    given = (part.get(name) for name in names)
    return [str(each)[:MOST_FILE_NAME_CHARACTERS] for each in given if isinstance(each, str | int | float)]


def entities(message: BotMessage) -> Iterator[tuple[str, str, ChatMember | None]]:
    """What is marked in the text: its kind, its words, whom it names. Places count UTF-16 units."""
    text = message.text if message.text is not None else message.caption
    marked = message.entities if message.text is not None else message.caption_entities
    units = (text or "").encode("utf-16-le", "surrogatepass")
    for each in marked[:MOST_ENTITIES]:
        words = units[2 * each.offset : 2 * (each.offset + each.length)]
        yield each.type, words.decode("utf-16-le", "replace"), each.user
