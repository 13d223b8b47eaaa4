"""What comes in: an update becomes what somebody did in a chat."""

from datetime import UTC, datetime

import msgspec

from frontdesk import errors
from frontdesk.channels.telegram import contents
from frontdesk.channels.telegram.contents import BotMessage, ChatInfo, ChatMember
from frontdesk.contracts import channels
from frontdesk.formats import quoting
from frontdesk.model.chats import Quote
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import ChatType, SessionSource, readable

KINDS = ("message", "edited_message", "callback_query", "message_reaction")
"""The updates that we ask for."""
NOBODY = frozenset({1087968824, 136817688, 777000})
"""Ids under which others write: an anonymous administrator, a channel, the channel of a group."""
MOST_NAME_CHARACTERS = 300
MOST_QUOTED_CHARACTERS = 4096
MOST_SIGNS = 20


class ButtonQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A press on a button."""

    id: str
    sender: ChatMember = msgspec.field(name="from")
    message: BotMessage | None = None
    data: str | None = None


class ReactionSign(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    emoji: str | None = None


class Reaction(msgspec.Struct, frozen=True, kw_only=True):
    chat: ChatInfo
    message_id: contents.Number
    user: ChatMember | None = None
    old_reaction: list[ReactionSign] = []
    new_reaction: list[ReactionSign] = []


class Update(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of an update that we ask for. Others are passed over."""

    update_id: contents.Number
    message: BotMessage | None = None
    edited_message: BotMessage | None = None
    callback_query: ButtonQuery | None = None
    message_reaction: Reaction | None = None


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """Our own bot."""

    id: int
    username: str = ""


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """What an update says, in our words."""

    happenings: tuple[channels.Happening, ...] = ()
    query: str | None = None
    """The press that is to be answered once it is stored."""
    chat: str | None = None


def update_number(raw: object) -> int | None:
    """The update's id, where there is one, whatever else it holds."""
    number = raw.get("update_id") if isinstance(raw, dict) else None
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def read_update(raw: object, account: str | None, me: Me) -> Happened:
    """What an update says. Total: what cannot be read raises InvalidInput."""
    try:
        update = msgspec.convert(raw, Update)
    except msgspec.ValidationError as error:
        raise errors.InvalidInput(what="The update", why=quoting.clean_text(str(error))) from None
    except (RecursionError, UnicodeError):
        raise errors.InvalidInput(what="The update", why="it is nested too deeply, or no Unicode") from None
    reader = _UpdateReader(update.update_id, account, me)
    if update.message:
        return reader.message(update.message)
    if update.edited_message:
        return reader.edit(update.edited_message)
    if update.callback_query:
        return reader.press(update.callback_query)
    return reader.reaction(update.message_reaction) if update.message_reaction else Happened()


class _UpdateReader:
    def __init__(self, number: int, account: str | None, me: Me) -> None:
        self._number = number
        self._account = account
        self._me = me

    def message(self, message: BotMessage) -> Happened:
        read = contents.read(message)
        if self._is_ours(message) or not (read.text or read.files):
            return Happened()
        source = self._source(message.chat, message, message.sender)
        text, addressed = self._aimed(message, read.text)
        incoming = channels.Incoming(
            source=source,
            text=text,
            event_id=self._event(message.chat.id, message.message_id),
            observed=addressed is None,
            sent_at=_time(message.date),
            files=read.files,
            quote=self._quote(message),
            album=readable(message.media_group_id) if message.media_group_id else None,
            addressed=None if source.chat_type is ChatType.DM else bool(addressed),
        )
        return Happened(happenings=(incoming,), chat=source.chat_id)

    def edit(self, message: BotMessage) -> Happened:
        written = contents.read(message).text
        if self._is_ours(message) or not written:
            return Happened()
        source = self._source(message.chat, message, message.sender)
        text, _ = self._aimed(message, written)
        event_id = self._event(message.chat.id, message.message_id)
        edited = channels.Edited(source=source, text=text, event_id=event_id)
        return Happened(happenings=(edited,), chat=source.chat_id)

    def press(self, query: ButtonQuery) -> Happened:
        if query.message is None or not query.data:
            return Happened(query=query.id)
        source = self._source(query.message.chat, query.message, query.sender)
        pressed = channels.Pressed(
            source=source, token=readable(query.data), event_id=self._event("press", readable(query.id))
        )
        return Happened(happenings=(pressed,), query=query.id, chat=source.chat_id)

    def reaction(self, reaction: Reaction) -> Happened:
        if reaction.user is None or reaction.user.id == self._me.id:
            return Happened()
        place = BotMessage(message_id=reaction.message_id, chat=reaction.chat)
        source = self._source(reaction.chat, place, reaction.user)
        before, after = _signs(reaction.old_reaction), _signs(reaction.new_reaction)
        changed = [(each, True) for each in before if each not in after]
        changed += [(each, False) for each in after if each not in before]
        event = self._event(reaction.chat.id, reaction.message_id)
        happenings = tuple(
            channels.Reacted(source=source, emoji=emoji, removed=removed, event_id=f"{event}:{number}")
            for number, (emoji, removed) in enumerate(changed)
        )
        return Happened(happenings=happenings, chat=source.chat_id)

    def _event(self, *parts: object) -> str:
        """The update's id alone starts anew after a week of quiet."""
        return ":".join(str(each) for each in (self._number, *parts))

    def _is_ours(self, message: BotMessage) -> bool:
        return message.sender is not None and message.sender.id == self._me.id

    def _source(self, chat: ChatInfo, message: BotMessage, sender: ChatMember | None) -> SessionSource:
        """Where it happened, and who did it. A thread id stands at every reply in a group: it is a topic only
        where the platform says so."""
        known = sender if sender and sender.id not in NOBODY else None
        named = chat if chat.type != "private" else None
        return SessionSource(
            platform=Platform.TELEGRAM,
            account=self._account,
            chat_id=str(chat.id),
            chat_name=_short(named.title) if named else None,
            chat_type=CHAT_TYPES.get(chat.type, ChatType.GROUP),
            user_id=str(known.id) if known else None,
            user_name=_short(known.name) if known else _author(message),
            thread_id=str(message.message_thread_id) if message.in_topic else None,
            message_id=str(message.message_id),
            is_bot=known is not None and known.is_bot,
        )

    def _aimed(self, message: BotMessage, text: str) -> tuple[str, bool | None]:
        """The text without our name behind a command, and whether we are meant; None when another bot is."""
        mentioned = False
        for kind, words, user in contents.entities(message):
            if kind == "bot_command" and "@" in words and text.startswith(words):
                command, _, bot = words.partition("@")
                if not self._names_us(bot):
                    return text, None
                return _greeted(command + text[len(words) :]), True
            named = kind == "mention" and self._names_us(words.removeprefix("@"))
            mentioned = mentioned or named or bool(user and user.id == self._me.id)
        return _greeted(text), mentioned or self._answers_us(message)

    def _names_us(self, name: str) -> bool:
        return bool(name) and name.lower() == self._me.username.lower()

    def _answers_us(self, message: BotMessage) -> bool:
        replied = message.replied
        return replied is not None and self._is_ours(replied)

    def _quote(self, message: BotMessage) -> Quote | None:
        replied = message.replied
        if replied is None:
            return None
        whole = contents.read(replied).text
        text = message.quote.text if message.quote else whole
        return Quote(
            message_id=str(replied.message_id),
            text=readable(text[:MOST_QUOTED_CHARACTERS]) or None,
            is_ours=self._is_ours(replied),
        )


CHAT_TYPES = {"private": ChatType.DM, "channel": ChatType.CHANNEL}


def _greeted(text: str) -> str:
    """The platform has everybody's first words to a bot be /start: they are told what there is."""
    return "/help" if text == "/start" or text.startswith("/start ") else text


def _signs(signs: list[ReactionSign]) -> list[str]:
    return [readable(each.emoji) for each in signs[:MOST_SIGNS] if each.type == "emoji" and each.emoji]


def _author(message: BotMessage) -> str | None:
    """The name of somebody who writes as nobody."""
    return _short(message.sender_chat.title) if message.sender_chat else None


def _short(name: str | None) -> str | None:
    return name[:MOST_NAME_CHARACTERS] if name else None


def _time(date: int) -> datetime | None:
    return datetime.fromtimestamp(date, UTC) if date else None
