"""What people in the workspace do. Each gives the envelope, or None where nobody was there to get it."""

import itertools
import time
from typing import Any

from frontdesk.testing.slack.inventory import Envelope, TeamChat, TeamFile, TeamPost


class TeamPeople:
    """The conversations of a workspace, and what is said in them."""

    team_id, user_id, bot_id, app_id = "T0STANDIN", "U0DESK", "B0DESK", "A1"
    origin = ""
    skew_seconds = 0.0
    """How far the platform's clock is ahead of ours."""

    def __init__(self) -> None:
        self.chats: dict[str, TeamChat] = {}
        self.messages: dict[str, dict[str, dict[str, Any]]] = {}
        """What was said, by chat and time."""
        self.files: dict[str, TeamFile] = {}
        self.names: dict[str, str] = {}
        """What people are called; others as their ids are."""
        self.commanded: dict[str, str] = {}
        """The chats in which commands were given."""
        self._numbers = itertools.count(1)
        self._last_stamp = 0

    async def bring(self, kind: str, payload: dict[str, Any]) -> Envelope | None:
        raise NotImplementedError

    def channel(self, name: str = "C0GENERAL", kind: str = "channel") -> str:
        self.chats.setdefault(name, TeamChat(id=name, kind=kind, name=name.lower()))
        self.messages.setdefault(name, {})
        return name

    def direct(self, user: str) -> str:
        chat = self.channel(f"D{user}", "im")
        self.chats[chat].user = user
        return chat

    def written(self, user: str, text: str, chat: str, **more: Any) -> dict[str, Any]:
        """Something said that nobody was told of yet."""
        said = {"type": "message", "user": user, "text": _escaped(text), "ts": self.stamp()}
        message = {**said, "team": self.team_id, **more}
        self.messages[chat][message["ts"]] = message
        return message

    async def say(self, user: str, text: str, chat: str, **more: Any) -> Envelope | None:
        return await self.tell(self.written(user, text, chat, **more), chat)

    async def tell(self, message: dict[str, Any], chat: str, kind: str = "message") -> Envelope | None:
        """Bring a message to the app."""
        shown = {"channel": chat, "channel_type": self.chats[chat].kind, "event_ts": message["ts"]}
        return await self.event({**message, "type": kind, **shown})

    async def edit(self, message: dict[str, Any], text: str, chat: str) -> Envelope | None:
        before = dict(message)
        message |= {"text": _escaped(text), "edited": {"user": message["user"], "ts": self.stamp()}}
        change = {"subtype": "message_changed", "message": dict(message), "previous_message": before}
        return await self.tell({**change, "ts": self.stamp()}, chat)

    async def delete(self, message: dict[str, Any], chat: str) -> Envelope | None:
        self.messages[chat].pop(message["ts"], None)
        gone = {"subtype": "message_deleted", "deleted_ts": message["ts"], "previous_message": dict(message)}
        return await self.tell({**gone, "ts": self.stamp()}, chat)

    async def react(
        self, user: str, name: str, chat: str, ts: str, kind: str = "reaction_added"
    ) -> Envelope | None:
        item = {"type": "message", "channel": chat, "ts": ts}
        return await self.event(
            {"type": kind, "user": user, "reaction": name, "item": item, "event_ts": self.stamp()}
        )

    async def press(self, user: str, post: TeamPost, token: str) -> Envelope | None:
        if token not in [value for _, value in post.buttons]:
            raise AssertionError(f"there is no button {token}")
        place = {"type": "message", "message_ts": post.ts, "channel_id": post.channel}
        action = {"type": "button", "action_id": "press-0", "value": token, "action_ts": self.stamp()}
        payload: dict[str, Any] = {
            "type": "block_actions",
            "user": {"id": user, "name": user.lower(), "team_id": self.team_id},
            "channel": {"id": post.channel, "name": self.chats[post.channel].name},
            "container": place,
            "message": {"ts": post.ts, "user": self.user_id, "thread_ts": post.thread_ts},
            "actions": [action],
        }
        return await self.bring("interactive", payload)

    async def command(self, user: str, text: str, chat: str) -> Envelope | None:
        trigger = self.number("trigger-")
        self.commanded[trigger] = chat
        payload = {
            "command": "/frontdesk",
            "text": _escaped(text),
            "user_id": user,
            "user_name": user.lower(),
            "channel_id": chat,
            "team_id": self.team_id,
            "trigger_id": trigger,
            "response_url": f"{self.origin}/commands/{trigger}",
        }
        return await self.bring("slash_commands", payload)

    def keep_file(self, name: str, data: bytes, kind: str = "application/octet-stream") -> dict[str, Any]:
        """A file that somebody has uploaded, as messages name it."""
        file = TeamFile(id=self.number("F"), name=name, kind=kind, data=data, is_shared=True)
        self.files[file.id] = file
        return self.told_file(file)

    async def event(self, event: dict[str, Any]) -> Envelope | None:
        return await self.bring(
            "events_api",
            {
                "type": "event_callback",
                "team_id": self.team_id,
                "event_id": self.number("Ev"),
                "event": event,
            },
        )

    def number(self, before: str) -> str:
        return f"{before}{next(self._numbers)}"

    def now(self) -> float:
        return time.time() + self.skew_seconds

    def stamp(self) -> str:
        """The next time: no two messages have the same."""
        self._last_stamp = max(self._last_stamp + 1, int(self.now() * 1_000_000))
        seconds, rest = divmod(self._last_stamp, 1_000_000)
        return f"{seconds}.{rest:06}"

    def told_file(self, file: TeamFile) -> dict[str, Any]:
        url = f"{self.origin}/files/{file.id}"
        told = {"id": file.id, "name": file.name, "mimetype": file.kind, "size": len(file.data)}
        return {**told, "url_private": url, "url_private_download": url}


def _escaped(text: str) -> str:
    """As the platform writes what people type; whom they mention stands in brackets already."""
    kept = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return kept.replace("&lt;@U", "<@U").replace("&gt;", ">") if "<@U" in text else kept
