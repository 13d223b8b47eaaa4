"""What comes in: an event, a press or a command becomes what somebody did in a chat."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeGuard

import msgspec

from frontdesk.channels.slack import texts
from frontdesk.contracts.channels import Deleted, Edited, Happening, Incoming, Pressed, Reacted
from frontdesk.model.chats import Attachment, ReplyHandle
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import ChatType, SessionSource, readable

Table = Mapping[str, Any]

STAMP = re.compile(r"[0-9]{1,12}\.[0-9]{1,9}")
ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
MOST_FILES = 20
MOST_NAME_CHARACTERS = 300
MOST_WORD_CHARACTERS = 500
WRITTEN = frozenset({None, "file_share", "thread_broadcast", "me_message", "bot_message"})
"""The kinds of messages in which somebody says something."""
GONE_FILES = ("tombstone", "hidden_by_limit")
DIRECT = "D"
SLACKBOT = "USLACKBOT"
HANDLE_TIME = timedelta(minutes=29)


class Self(msgspec.Struct, frozen=True, kw_only=True):
    """Our own app in its workspace."""

    team: str
    user: str
    bot: str = ""
    enterprise: str = ""
    """The organization that the workspace belongs to, where there is one."""


def read_self(told: Table) -> Self | None:
    """Who the platform says that we are."""
    names = ("team_id", "user_id", "bot_id", "enterprise_id")
    team, user, bot, enterprise = (each if is_id(each := told.get(name)) else "" for name in names)
    return Self(team=team, user=user, bot=bot, enterprise=enterprise) if team and user else None


class Parser:
    """Reads what the platform brings. Total: what cannot be read is nothing."""

    def __init__(self, us: Self, account: str | None, threads: bool = True) -> None:
        self._us = us
        self._account = account
        self._threads = threads

    def concerns_us(self, payload: Table) -> bool:
        """Whether it happened where our token is valid. An app that several workspaces have installed is told
        of all of them; in a channel that is shared, what happened is said to be the other one's."""
        listed = payload.get("authorizations")
        given = [table(each) for each in listed[:MOST_FILES]] if isinstance(listed, list) else []
        named = [each.get("team_id") for each in (payload, *given)] + [payload.get("context_team_id")]
        orgs = [each.get("enterprise_id") for each in (payload, *given)]
        if self._us.team in named or (self._us.enterprise and self._us.enterprise in orgs):
            return True
        return not any(is_id(each) for each in named)

    def event(self, event: object) -> Happening | None:
        """What an event of the Events API says."""
        told = table(event)
        match told.get("type"):
            case "message" | "app_mention":
                return self._message_event(told)
            case "reaction_added" | "reaction_removed":
                return self._reaction(told)
        return None

    def message(self, message: object, chat: object) -> Incoming | None:
        """A message as it stands in the history of a chat."""
        said = table(message)
        stamp, subtype = said.get("ts"), said.get("subtype")
        if not (is_stamp(stamp) and is_id(chat)) or not isinstance(subtype, str | None):
            return None
        if subtype not in WRITTEN or self._is_ours(said):
            return None
        files, raw = _files(said.get("files")), texts.told(said)
        if not (raw.strip() or files):
            return None
        addressed = texts.mentions(said, self._us.user)
        source = self._source(chat, said, stamp, addressed)
        return Incoming(
            source=source,
            text=self._read(raw),
            event_id=self._id(chat, stamp),
            sent_at=_time(stamp),
            files=files,
            addressed=None if source.chat_type is ChatType.DM else addressed,
        )

    def press(self, payload: object) -> Pressed | None:
        """A press on a button of ours."""
        told = table(payload)
        place, actions = table(told.get("container")), told.get("actions")
        chat = table(told.get("channel")).get("id") or place.get("channel_id")
        stamp = table(told.get("message")).get("ts") or place.get("message_ts")
        action = table(actions[0]) if isinstance(actions, list) and actions else {}
        user, token, when = table(told.get("user")).get("id"), action.get("value"), action.get("action_ts")
        if told.get("type") != "block_actions" or not (is_id(chat) and is_stamp(stamp) and is_id(user)):
            return None
        if not (is_word(token) and is_stamp(when)):
            return None
        thread = table(told.get("message")).get("thread_ts") or place.get("thread_ts")
        who = table(told.get("user"))
        written = {"user": user, "thread_ts": thread, "username": who.get("name"), "team": who.get("team_id")}
        source = self._source(chat, written, stamp)
        return Pressed(source=source, token=token, event_id=self._id(chat, stamp, "press", user, when))

    def command(self, fields: Table, now: datetime) -> Incoming | None:
        """The app's slash command: what follows it is one of ours."""
        chat, user, trigger = fields.get("channel_id"), fields.get("user_id"), fields.get("trigger_id")
        if not (is_id(chat) and is_id(user) and is_word(trigger)):
            return None
        words = fields.get("text")
        said = texts.shown(words).strip() if isinstance(words, str) else ""
        text = said if said.startswith("/") else f"/{said or 'help'}"
        written = {"user": user, "username": fields.get("user_name"), "team": fields.get("team_id")}
        source = self._source(chat, written, None)
        url = fields.get("response_url")
        handle = ReplyHandle(value=url, expires_at=now + HANDLE_TIME) if is_word(url) else None
        addressed = None if source.chat_type is ChatType.DM else True
        event_id = self._id(chat, "command", trigger)
        return Incoming(source=source, text=text, event_id=event_id, handle=handle, addressed=addressed)

    def _message_event(self, event: Table) -> Happening | None:
        chat = event.get("channel")
        if not is_id(chat):
            return None
        match event.get("subtype"):
            case "message_changed":
                return self._change(event, chat)
            case "message_deleted":
                return self._deletion(event, chat)
        return self.message(event, chat)

    def _change(self, event: Table, chat: str) -> Happening | None:
        """A change of the text by whoever wrote it. Previews change messages, too; and some clients bring the
        text of a new message so."""
        now, before = table(event.get("message")), table(event.get("previous_message"))
        stamp, edited = now.get("ts"), table(now.get("edited")).get("ts")
        if not is_stamp(stamp) or self._is_ours(now):
            return None
        if now.get("subtype") == "tombstone":  # others have answered it: its place stays
            return self._deletion({"deleted_ts": stamp, "previous_message": before}, chat)
        if not is_stamp(edited):
            return None if texts.told(before).strip() else self.message(now, chat)
        raw = texts.told(now)
        if now.get("text") == before.get("text") or not raw.strip():
            return None
        source = self._source(chat, now, stamp, texts.mentions(now, self._us.user))
        return Edited(source=source, text=self._read(raw), event_id=self._id(chat, stamp, "edit", edited))

    def _deletion(self, event: Table, chat: str) -> Deleted | None:
        stamp, before = event.get("deleted_ts"), table(event.get("previous_message"))
        if not is_stamp(stamp) or self._is_ours(before):
            return None
        source = self._source(chat, before, stamp)
        return Deleted(source=source, event_id=self._id(chat, stamp, "deleted"))

    def _reaction(self, event: Table) -> Reacted | None:
        item, user, name = table(event.get("item")), event.get("user"), event.get("reaction")
        chat, stamp, when = item.get("channel"), item.get("ts"), event.get("event_ts")
        if not (is_id(chat) and is_stamp(stamp) and is_stamp(when) and is_id(user) and is_word(name)):
            return None
        if user == self._us.user:
            return None
        source = self._source(chat, {"user": user}, stamp)
        removed = event.get("type") == "reaction_removed"
        event_id = self._id(chat, stamp, "sign", user, name, when)
        return Reacted(source=source, emoji=texts.sign(name), removed=removed, event_id=event_id)

    def _read(self, raw: str) -> str:
        return texts.shown(texts.without_mention(raw, self._us.user))

    def _id(self, *parts: str) -> str:
        """One mention may come as two events with two ids: what happened is known by its message."""
        return readable(":".join((self._us.team, *parts)))

    def _is_ours(self, message: Table) -> bool:
        if message.get("user") == self._us.user:
            return True
        return bool(self._us.bot) and message.get("bot_id") == self._us.bot

    def _source(self, chat: str, message: Table, stamp: str | None, begins: bool = False) -> SessionSource:
        """Where it happened, and who did it. A message that begins a thread of its own stands in it."""
        root, direct = message.get("thread_ts"), chat.startswith(DIRECT)
        thread = root if is_stamp(root) and root != stamp else None
        if thread is None and begins and self._threads and not direct:
            thread = stamp
        user = message.get("user")
        return SessionSource(
            platform=Platform.SLACK,
            account=self._account,
            chat_id=chat,
            chat_type=ChatType.DM if direct else ChatType.THREAD if thread else ChatType.GROUP,
            user_id=user if is_id(user) else None,
            user_name=cleaned_name(message.get("username")),
            thread_id=thread,
            scope_id=self._us.team,
            message_id=stamp,
            roles=_teams(message),
            is_bot=bool(message.get("bot_id")) or message.get("subtype") == "bot_message" or user == SLACKBOT,
        )


def _teams(message: Table) -> tuple[str, ...]:
    """The workspace that whoever wrote it belongs to: in a channel that is shared, there are several."""
    named = (message.get(name) for name in ("user_team", "source_team", "team"))
    return next(((team,) for team in named if is_id(team)), ())


def table(value: object) -> Table:
    return value if isinstance(value, Mapping) else {}


def is_stamp(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and STAMP.fullmatch(value) is not None


def is_id(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and ID.fullmatch(value) is not None


def is_word(value: object) -> TypeGuard[str]:
    return _is_short(value) and value.isprintable() and value.isascii()


def order(stamp: str) -> tuple[int, str]:
    """What messages of a chat are ordered by."""
    seconds, _, rest = stamp.partition(".")
    return int(seconds), rest


def is_newer(stamp: str, than: str | None) -> bool:
    return than is None or not is_stamp(than) or order(stamp) > order(than)


def _is_short(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= MOST_WORD_CHARACTERS


def _files(files: object) -> tuple[Attachment, ...]:
    listed = [table(each) for each in files[:MOST_FILES]] if isinstance(files, list) else []
    return tuple(
        _file(each) for each in listed if is_id(each.get("id")) and each.get("mode") not in GONE_FILES
    )


def _file(file: Table) -> Attachment:
    kind, size = file.get("mimetype"), file.get("size")
    whole = isinstance(size, int) and not isinstance(size, bool) and 0 <= size < 2**63
    return Attachment(
        id=file["id"],
        name=cleaned_name(file.get("name")),
        kind=kind if is_word(kind) else "application/octet-stream",
        size=size if whole else None,
        is_voice=file.get("subtype") == "slack_audio",
    )


def cleaned_name(name: object) -> str | None:
    return readable(name).strip()[:MOST_NAME_CHARACTERS] or None if isinstance(name, str) else None


def _time(stamp: str) -> datetime | None:
    try:
        return datetime.fromtimestamp(float(stamp), UTC)
    except (ValueError, OverflowError, OSError):
        return None
