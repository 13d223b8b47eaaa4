"""What comes in: events of the gateway, as what people did in a chat."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import msgspec

from frontdesk import errors
from frontdesk.channels.discord.places import DiscordPlace, Snowflake
from frontdesk.contracts import channels
from frontdesk.formats import quoting
from frontdesk.model.chats import Attachment, Quote
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import ChatType, SessionSource, readable

MOST_NAME_CHARACTERS = 300
MOST_TEXT_CHARACTERS = 100_000
MOST_ROLES = 250
MOST_FILES = 20
MOST_BULK = 100
WRITTEN = (0, 19)
"""Messages and answers; other kinds tell that something happened."""
IS_VOICE = 1 << 13
COMMAND, PRESS = 2, 3
"""Kinds of interactions."""
Size = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Named = TypeVar("Named", bound=msgspec.Struct)


class DiscordUser(msgspec.Struct, frozen=True, kw_only=True):
    id: Snowflake
    username: str = ""
    global_name: str | None = None
    bot: bool = False


class GuildMember(msgspec.Struct, frozen=True, kw_only=True):
    user: DiscordUser | None = None
    nick: str | None = None
    roles: list[Snowflake] = []


class DiscordFile(msgspec.Struct, frozen=True, kw_only=True):
    id: Snowflake
    filename: str = ""
    content_type: str | None = None
    size: Size | None = None
    url: str = ""


class NamedThing(msgspec.Struct, frozen=True, kw_only=True):
    name: str = ""


class DiscordMessage(msgspec.Struct, frozen=True, kw_only=True):
    id: Snowflake
    channel_id: Snowflake
    guild_id: Snowflake | None = None
    author: DiscordUser | None = None
    member: GuildMember | None = None
    content: str = ""
    timestamp: str | None = None
    edited_timestamp: str | None = None
    type: int = 0
    flags: int = 0
    hook_id: Snowflake | None = msgspec.field(name="webhook_id", default=None)
    mentions: list[DiscordUser] = []
    mention_roles: list[Snowflake] = []
    attachments: list[DiscordFile] = []
    sticker_items: list[NamedThing] = []
    referenced_message: "DiscordMessage | None" = None
    message_snapshots: list[dict[str, Any]] = []


class DeletedMessages(msgspec.Struct, frozen=True, kw_only=True):
    channel_id: Snowflake
    id: Snowflake | None = None
    ids: list[Snowflake] = []


class EmojiName(msgspec.Struct, frozen=True, kw_only=True):
    id: Snowflake | None = None
    name: str | None = None


class DiscordReaction(msgspec.Struct, frozen=True, kw_only=True):
    user_id: Snowflake
    channel_id: Snowflake
    message_id: Snowflake
    emoji: EmojiName
    member: GuildMember | None = None


class CommandOption(msgspec.Struct, frozen=True, kw_only=True):
    value: Any = None


class InteractionData(msgspec.Struct, frozen=True, kw_only=True):
    custom_id: str | None = None
    name: str | None = None
    options: list[CommandOption] = []


class MessageName(msgspec.Struct, frozen=True, kw_only=True):
    id: Snowflake


class Interaction(msgspec.Struct, frozen=True, kw_only=True):
    id: Snowflake
    type: int
    token: str
    channel_id: Snowflake | None = None
    guild_id: Snowflake | None = None
    channel: dict[str, Any] = {}
    member: GuildMember | None = None
    user: DiscordUser | None = None
    message: MessageName | None = None
    data: InteractionData = InteractionData()


class BotSelf(msgspec.Struct, frozen=True, kw_only=True):
    """Our own bot, in one server or none."""

    id: str
    account: str | None = None
    roles: frozenset[str] = frozenset()
    """By which it can be mentioned."""


def read_as(kind: type[Named], raw: object) -> Named:
    """The record. Total: what is not one raises InvalidInput."""
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise errors.InvalidInput(what="The event", why=quoting.clean_text(str(error))) from None
    except (RecursionError, UnicodeError):
        raise errors.InvalidInput(what="The event", why="it is nested too deeply, or no Unicode") from None


def message(written: DiscordMessage, place: DiscordPlace, me: BotSelf) -> channels.Incoming | None:
    """What somebody said; None for our own messages, and for what only tells that something happened."""
    author = written.author
    if author is None or author.id == me.id or written.type not in WRITTEN:
        return None
    files = tuple(_files(written))
    text = _text(written, me)
    if not text.strip() and not files:
        return None
    return channels.Incoming(
        source=_source(place, me, author, written.member, written.id, bool(written.hook_id)),
        text=text,
        event_id=written.id,
        sent_at=_time(written.timestamp),
        files=files,
        quote=_quote(written, me),
        addressed=_is_for_us(written, me) if place.guild_id else None,
    )


def edit(written: DiscordMessage, place: DiscordPlace, me: BotSelf) -> channels.Edited | None:
    """A text that somebody changed; previews of links come as the same event, without a new time."""
    author = written.author
    if author is None or author.id == me.id or not written.edited_timestamp or written.type not in WRITTEN:
        return None
    text = _text(written, me)
    if not text.strip():
        return None
    return channels.Edited(
        source=_source(place, me, author, written.member, written.id, bool(written.hook_id)),
        text=text,
        event_id=f"{written.id}:{readable(written.edited_timestamp)[:40]}",
    )


def deletions(gone: DeletedMessages, place: DiscordPlace, me: BotSelf) -> list[channels.Deleted]:
    named = [gone.id] if gone.id else gone.ids[:MOST_BULK]
    return [
        channels.Deleted(source=_source(place, me, None, None, each), event_id=f"{each}:deleted")
        for each in named
    ]


def reaction(
    put: DiscordReaction, place: DiscordPlace, me: BotSelf, event_id: str, *, removed: bool
) -> channels.Reacted | None:
    name = put.emoji.name
    if put.user_id == me.id or not name:
        return None
    user = put.member.user if put.member else None
    who = user if user and user.id == put.user_id else DiscordUser(id=put.user_id)
    emoji = readable(name) if put.emoji.id is None else f":{readable(name)}:"
    source = _source(place, me, who, put.member, put.message_id)
    return channels.Reacted(
        source=source, emoji=emoji[:MOST_NAME_CHARACTERS], removed=removed, event_id=event_id
    )


def interaction(done: Interaction, place: DiscordPlace, me: BotSelf) -> channels.Happening | None:
    """A press on a button, or a command that was chosen from the platform's list."""
    who = done.member.user if done.member else done.user
    if who is None:
        return None
    if done.type == PRESS and done.message and done.data.custom_id:
        source = _source(place, me, who, done.member, done.message.id)
        return channels.Pressed(source=source, token=readable(done.data.custom_id), event_id=done.id)
    if done.type == COMMAND and done.data.name:
        given = [each.value for each in done.data.options if isinstance(each.value, str | int | float)]
        words = (f"/{done.data.name}", *map(str, given))
        text = readable(" ".join(words))[:MOST_TEXT_CHARACTERS]
        source = _source(place, me, who, done.member, None)
        addressed = True if place.guild_id else None
        return channels.Incoming(source=source, text=text, event_id=done.id, addressed=addressed)
    return None


def _source(
    place: DiscordPlace,
    me: BotSelf,
    who: DiscordUser | None,
    member: GuildMember | None,
    message_id: str | None,
    is_webhook: bool = False,
) -> SessionSource:
    """Where it happened, and who did it. A thread is a channel of its own, which hangs on another."""
    kind = ChatType.THREAD if place.is_thread else ChatType.GROUP
    name = (member.nick if member else None) or (who.global_name or who.username if who else None)
    return SessionSource(
        platform=Platform.DISCORD,
        account=me.account,
        chat_id=(place.parent_id or place.id) if place.is_thread else place.id,
        chat_name=place.name[:MOST_NAME_CHARACTERS] if place.name else None,
        chat_type=kind if place.guild_id else ChatType.DM,
        user_id=who.id if who else None,
        user_name=name[:MOST_NAME_CHARACTERS] if name else None,
        thread_id=place.id if place.is_thread else None,
        parent_chat_id=place.parent_id if place.is_thread else None,
        scope_id=place.guild_id,
        message_id=message_id,
        roles=tuple(member.roles[:MOST_ROLES]) if member and place.guild_id else (),
        is_bot=is_webhook or (who is not None and who.bot),
    )


def _text(written: DiscordMessage, me: BotSelf) -> str:
    """The text without our name at its beginning, so that commands are known behind it."""
    text = re.sub(rf"\A\s*<@!?{me.id}>\s*", "", written.content) if me.id else written.content
    if not text:
        told = [
            f"(Sticker: {each.name[:MOST_NAME_CHARACTERS]})" for each in written.sticker_items if each.name
        ]
        told += [f"(Forwarded: {each})" for each in map(_forwarded, written.message_snapshots) if each]
        text = "\n".join(told)
    return readable(text)[:MOST_TEXT_CHARACTERS]


def _forwarded(snapshot: dict[str, Any]) -> str:
    inner = snapshot.get("message")
    content = inner.get("content") if isinstance(inner, dict) else None
    return content if isinstance(content, str) else ""


def _is_for_us(written: DiscordMessage, me: BotSelf) -> bool:
    if any(each.id == me.id for each in written.mentions) or not me.roles.isdisjoint(written.mention_roles):
        return True
    answered = written.referenced_message
    return bool(answered and answered.author and answered.author.id == me.id)


def _quote(written: DiscordMessage, me: BotSelf) -> Quote | None:
    answered = written.referenced_message
    if answered is None:
        return None
    ours = bool(answered.author and answered.author.id == me.id)
    text = readable(answered.content)[:MOST_TEXT_CHARACTERS] or None
    return Quote(message_id=answered.id, text=text, is_ours=ours)


def _files(written: DiscordMessage) -> list[Attachment]:
    """By where they are found again: links end after a day."""
    return [
        Attachment(
            id=f"{written.channel_id}/{written.id}/{each.id}",
            name=readable(each.filename)[:255] or None,
            kind=readable(each.content_type or "application/octet-stream").partition(";")[0][:255],
            size=each.size,
            is_voice=bool(written.flags & IS_VOICE),
        )
        for each in written.attachments[:MOST_FILES]
    ]


def _time(text: str | None) -> datetime | None:
    try:
        read = datetime.fromisoformat(text) if text else None
        return read.astimezone(UTC) if read and read.tzinfo else None
    except (ValueError, OverflowError):
        return None
