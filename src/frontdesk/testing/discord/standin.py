"""The stand-in itself: its people and chats, its calls, its gateway."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from frontdesk.testing import faults
from frontdesk.testing.discord import rest
from frontdesk.testing.discord.lines import GatewayLines
from frontdesk.testing.discord.rest import DiscordFault, DiscordRefusal, ReceivedFile
from frontdesk.testing.discord.sites import LoopbackSite

EPOCH_MILLISECONDS = 1_420_070_400_000
PRESS_SECONDS = 3.0
NONCE_SECONDS = 120.0


class DiscordApi:
    """Discord on loopback, and the people who write to the bot."""

    def __init__(
        self, token: str = "MTIzNDU2Nzg5MDEyMzQ1Njc4.Gabcde.abcdefghijklmnopqrstuvwxyz0123456789AB"
    ) -> None:
        self.token = token
        self.me = {"id": "900", "username": "desk", "bot": True, "discriminator": "0", "avatar": None}
        self.application = {"id": "901", "name": "desk", "flags": 1 << 19, "interactions_endpoint_url": None}
        self.guilds: dict[str, dict[str, Any]] = {}
        self.channels: dict[str, dict[str, Any]] = {}
        self.members: dict[tuple[str, str], dict[str, Any]] = {}
        self.messages: dict[str, list[dict[str, Any]]] = {}
        self.files: dict[str, ReceivedFile] = {}
        self.hidden: set[str] = set()
        """Channels that the bot may not see."""
        self.no_history: set[str] = set()
        """Channels whose history it may not read: it is given nothing."""
        self.calls: list[tuple[str, str]] = []
        self.faults: list[DiscordFault] = []
        self.weather: Callable[[str, str], DiscordFault | None] = lambda *_: None
        self.commands: list[Any] = []
        self.commands_set = 0
        self.typed: list[str] = []
        self.signs: dict[str, list[str]] = {}
        self.pressed: dict[str, float] = {}
        self.answered: dict[str, dict[str, Any]] = {}
        """Interactions, and what was said to each."""
        self._nonces: dict[tuple[str, str], tuple[float, dict[str, Any]]] = {}
        self._last_id = 0
        self.gateway = GatewayLines(lambda: self.token, self._welcome)
        self._rest = LoopbackSite(self._answer, most_bytes=2 * rest.MOST_REQUEST_BYTES)
        self._lines = LoopbackSite(self.gateway.serve)
        self.gateway.resume_url = self.gateway_url

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator["DiscordApi"]:
        api = cls()
        await api.start()
        try:
            yield api
        finally:
            await api.close()

    async def start(self) -> None:
        await self.listen()
        await self._lines.listen()

    async def close(self) -> None:
        await self.gateway.close()
        await self._rest.close()
        await self._lines.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._rest.port}/api/v10"

    @property
    def gateway_url(self) -> str:
        return f"ws://127.0.0.1:{self._lines.port}/"

    async def listen(self) -> None:
        await self._rest.listen()

    async def refuse(self) -> None:
        """Nobody answers calls; lines stay."""
        await self._rest.refuse()

    async def until(self, holds: Callable[[], object], seconds: float = 60) -> None:
        """Wait until something holds that a call or a line brings about."""
        async with asyncio.timeout(seconds), self.gateway.changed:
            await self.gateway.changed.wait_for(holds)

    async def connected(self) -> None:
        await self.until(lambda: self.gateway.live)

    # What people do.

    def guild(self, guild_id: str = "100", name: str = "Team") -> dict[str, Any]:
        role = {"id": f"{guild_id}9", "name": "desk", "tags": {"bot_id": self.me["id"]}}
        return self.guilds.setdefault(guild_id, {"id": guild_id, "name": name, "roles": [role]})

    def channel(self, channel_id: str, guild_id: str | None = "100", **more: Any) -> dict[str, Any]:
        """A channel of a server, a thread (with ``type`` 11 and a ``parent_id``), or a direct chat."""
        if guild_id:
            self.guild(guild_id)
        made = {"id": channel_id, "type": 0 if guild_id else 1, "name": f"chat-{channel_id}"}
        made |= {"guild_id": guild_id} if guild_id else {}
        return self.channels.setdefault(channel_id, made | {"last_message_id": None} | more)

    def next_id(self) -> str:
        now = (int(time.time() * 1000) - EPOCH_MILLISECONDS) << 22
        self._last_id = max(now, self._last_id + 1)
        return str(self._last_id)

    def person(self, user_id: str, **more: Any) -> dict[str, Any]:
        return {"id": user_id, "username": f"user-{user_id}", "bot": False} | more

    async def say(self, user_id: str, text: str, channel_id: str, **more: Any) -> dict[str, Any]:
        """Somebody writes; ``more`` are fields of the message. It is told on the lines that there are."""
        message = self.keep(more.pop("author", None) or self.person(user_id), text, channel_id, **more)
        await self.tell_message(message)
        return message

    def keep(self, author: dict[str, Any], text: str, channel_id: str, **more: Any) -> dict[str, Any]:
        """A message in the history of a chat."""
        message = {
            "id": self.next_id(),
            "channel_id": channel_id,
            "author": author,
            "content": text,
            "timestamp": datetime.now(UTC).isoformat(),
            "edited_timestamp": None,
            "type": 0,
            "flags": 0,
            "mentions": [],
            "mention_roles": [],
            "attachments": [],
            "components": [],
        } | more
        self.messages.setdefault(channel_id, []).append(message)
        self.channels[channel_id]["last_message_id"] = message["id"]
        return message

    async def tell_message(self, message: dict[str, Any], name: str = "MESSAGE_CREATE") -> None:
        """The gateway says more of a message than the history does."""
        guild_id = self.channels[message["channel_id"]].get("guild_id")
        more: dict[str, Any] = {}
        if guild_id:
            more = {"guild_id": guild_id, "member": self.member(guild_id, message["author"]["id"])}
        await self.gateway.tell(name, message | more)

    def member(self, guild_id: str, user_id: str) -> dict[str, Any]:
        return self.members.get((guild_id, user_id), {"roles": [], "nick": None})

    async def edit(self, message: dict[str, Any], text: str) -> None:
        message |= {"content": text, "edited_timestamp": datetime.now(UTC).isoformat()}
        await self.tell_message(message, "MESSAGE_UPDATE")

    async def delete(self, message: dict[str, Any]) -> None:
        self.messages[message["channel_id"]].remove(message)
        await self.gateway.tell("MESSAGE_DELETE", self._where(message["channel_id"]) | {"id": message["id"]})

    async def react(
        self, user_id: str, emoji: str, message: dict[str, Any], *, removed: bool = False
    ) -> None:
        told = self._where(message["channel_id"]) | {"user_id": user_id, "message_id": message["id"]}
        if not removed and "guild_id" in told:
            told["member"] = self.member(told["guild_id"], user_id) | {"user": self.person(user_id)}
        named = "MESSAGE_REACTION_REMOVE" if removed else "MESSAGE_REACTION_ADD"
        await self.gateway.tell(named, told | {"emoji": {"id": None, "name": emoji}})

    async def press(
        self, user_id: str, token: str, message: dict[str, Any], number: str | None = None
    ) -> str:
        """Somebody presses a button under a message; gives the interaction's id."""
        more = {"message": message, "data": {"component_type": 2, "custom_id": token}}
        return await self._interact(user_id, 3, message["channel_id"], more, number)

    async def command(self, user_id: str, name: str, channel_id: str, text: str | None = None) -> str:
        """Somebody chooses a command from the list."""
        options = [{"type": 3, "name": "text", "value": text}] if text is not None else []
        more = {"data": {"name": name, "type": 1, "options": options}}
        return await self._interact(user_id, 2, channel_id, more, None)

    async def _interact(
        self, user_id: str, kind: int, channel_id: str, more: dict[str, Any], number: str | None
    ) -> str:
        number = number or self.next_id()
        self.pressed[number] = time.monotonic()
        told = self._where(channel_id) | {"id": number, "type": kind, "token": f"token-{number}"} | more
        told["channel"] = {
            key: self.channels[channel_id].get(key) for key in ("id", "type", "name", "parent_id")
        }
        person = self.person(user_id)
        if "guild_id" in told:
            told["member"] = self.member(told["guild_id"], user_id) | {"user": person}
        else:
            told["user"] = person
        await self.gateway.tell("INTERACTION_CREATE", told)
        return number

    def upload(self, name: str, data: bytes, kind: str) -> dict[str, Any]:
        """A file that somebody has put to a message, as messages name it."""
        number = self.next_id()
        self.files[number] = ReceivedFile(name=name, kind=kind, data=data)
        url = f"http://127.0.0.1:{self._rest.port}/attachments/{number}"
        return {"id": number, "filename": name, "content_type": kind, "size": len(data), "url": url}

    def _where(self, channel_id: str) -> dict[str, Any]:
        guild_id = self.channels[channel_id].get("guild_id")
        return {"channel_id": channel_id} | ({"guild_id": guild_id} if guild_id else {})

    def ours(self, channel_id: str | None = None) -> list[dict[str, Any]]:
        """What the bot has said, oldest first."""
        said = [each for told in self.messages.values() for each in told if each["author"] == self.me]
        return sorted(
            (each for each in said if channel_id in (None, each["channel_id"])),
            key=lambda each: int(each["id"]),
        )

    def _welcome(self) -> list[tuple[str, Any]]:
        named = [{"id": each, "unavailable": True} for each in self.guilds]
        ready = {
            "v": 10,
            "user": self.me,
            "guilds": named,
            "application": {"id": self.application["id"], "flags": 0},
        }
        return [("READY", ready), *(("GUILD_CREATE", self._told(each)) for each in self.guilds.values())]

    def _told(self, guild: dict[str, Any]) -> dict[str, Any]:
        inside = [each for each in self.channels.values() if each.get("guild_id") == guild["id"]]
        threads = [each for each in inside if "parent_id" in each]
        told = [{k: v for k, v in each.items() if k != "guild_id"} for each in inside if each not in threads]
        return guild | {"channels": told, "threads": [each for each in threads if not each.get("archived")]}

    def forget_numbers(self) -> None:
        """As some minutes later: a message that is sent again is another one."""
        self._nonces.clear()

    # Calls.

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        method, path = request.method, request.path.removeprefix("/api/v10")
        self.calls.append((method, path))
        fault = self._fault(method, path)
        try:
            if fault is None:
                return await self._carry_out(request, method, path)
            if fault.taken:
                await self._carry_out(request, method, path)
            if fault.hangs:
                await asyncio.Event().wait()
            if fault.status is None:
                assert request.transport
                request.transport.abort()
                return web.Response()
            more = {"retry_after": fault.retry_after, "global": fault.everywhere} if fault.retry_after else {}
            return DiscordRefusal(fault.status, 0, "out of order", **more).response()
        except DiscordRefusal as refusal:
            return refusal.response()
        finally:
            await self.gateway.ring()

    def _fault(self, method: str, path: str) -> DiscordFault | None:
        concerned = faults.take(self.faults, lambda fault: fault.concerns(method, path))
        return concerned or self.weather(method, path)

    async def _carry_out(self, request: web.Request, method: str, path: str) -> web.Response:
        told, files = await rest.read_body(request)
        parts = path.strip("/").split("/")
        if parts[0] == "attachments":
            return self._download(request, parts[1])
        if request.headers.get("authorization") != f"Bot {self.token}":
            raise rest.UNAUTHORIZED
        match (method, *parts):
            case ("GET", "users", "@me"):
                return web.json_response(self.me)
            case ("GET", "applications", "@me"):
                return web.json_response(self.application)
            case ("GET", "users", "@me", "guilds"):
                return web.json_response(list(self.guilds.values()))
            case ("GET", "guilds", guild_id, "members", user_id):
                return web.json_response(self.member(guild_id, user_id) | {"user": self.person(user_id)})
            case (_, "applications", _, "commands"):
                return self._list_commands(method, told)
            case ("POST", "interactions", number, token, "callback"):
                return self._hear_out(number, token, told)
            case (_, "channels", channel_id, *rest_of):
                return self._at_channel(request, channel_id, method, rest_of, told, files)
        raise DiscordRefusal(404, 0, "404: Not Found")

    def _download(self, request: web.Request, number: str) -> web.Response:
        if "authorization" in request.headers:
            raise AssertionError("the token was sent with a link")
        file = self.files[number]
        return web.Response(body=file.data, content_type=file.kind)

    def _list_commands(self, method: str, told: Any) -> web.Response:
        if method == "PUT":
            rest.check_commands(told)
            self.commands, self.commands_set = told, self.commands_set + 1
        return web.json_response(self.commands)

    def _hear_out(self, number: str, token: str, told: Any) -> web.Response:
        pressed = self.pressed.get(number)
        if pressed is None or token != f"token-{number}" or time.monotonic() - pressed > PRESS_SECONDS:
            raise rest.UNKNOWN_INTERACTION
        if number in self.answered:
            raise DiscordRefusal(400, 40060, "Interaction has already been acknowledged.")
        self.answered[number] = told
        return web.Response(status=204)

    def _at_channel(
        self,
        request: web.Request,
        channel_id: str,
        method: str,
        parts: list[str],
        told: Any,
        files: list[ReceivedFile],
    ) -> web.Response:
        if channel_id not in self.channels:
            raise rest.UNKNOWN_CHANNEL
        if channel_id in self.hidden:
            raise rest.MISSING_ACCESS
        match (method, *parts):
            case ("GET",):
                return web.json_response(self.channels[channel_id])
            case ("POST", "typing"):
                self.typed.append(channel_id)
                return web.Response(status=204)
            case ("GET", "messages"):
                readable = () if channel_id in self.no_history else self.messages.get(channel_id, ())
                return web.json_response(rest.page(readable, request.query))
            case ("POST", "messages"):
                return web.json_response(self._post(channel_id, told, files))
            case (_, "messages", message_id, *more):
                return self._at_message(self._find(channel_id, message_id), method, more, told)
        raise DiscordRefusal(405, 0, "405: Method Not Allowed")

    def _at_message(self, message: dict[str, Any], method: str, parts: list[str], told: Any) -> web.Response:
        match (method, *parts):
            case ("GET",):
                return web.json_response(message)
            case ("PATCH",):
                if message["author"] != self.me:
                    raise rest.NOT_OURS
                rest.check_message(told, [], is_new=False)
                message |= {key: told[key] for key in ("content", "components") if key in told}
                return web.json_response(message)
            case ("PUT" | "DELETE", "reactions", emoji, "@me"):
                put = self.signs.setdefault(message["id"], [])
                if method == "PUT" and emoji not in put:
                    put.append(emoji)
                elif method == "DELETE":
                    if emoji not in put:
                        raise DiscordRefusal(404, 10014, "Unknown Emoji")
                    put.remove(emoji)
                return web.Response(status=204)
        raise DiscordRefusal(405, 0, "405: Method Not Allowed")

    def _find(self, channel_id: str, message_id: str) -> dict[str, Any]:
        for message in self.messages.get(channel_id, ()):
            if message["id"] == message_id:
                return message
        raise rest.UNKNOWN_MESSAGE

    def _post(self, channel_id: str, told: Any, files: list[ReceivedFile]) -> dict[str, Any]:
        rest.check_message(told, files, is_new=True)
        if answered := told.get("message_reference"):
            there = [each["id"] for each in self.messages.get(channel_id, ())]
            if answered["message_id"] not in there:
                if answered.get("fail_if_not_exists", True):
                    raise rest.UNKNOWN_MESSAGE
                answered = None
        once = (channel_id, str(told.get("nonce")))
        if told.get("enforce_nonce") and once in self._nonces:
            at, message = self._nonces[once]
            if time.monotonic() - at < NONCE_SECONDS:
                return message
        kept = [self.upload(each.name, each.data, each.kind) for each in files]
        fields = {
            "components": told.get("components") or [],
            "message_reference": answered,
            "attachments": kept,
        }
        message = self.keep(self.me, told.get("content", ""), channel_id, **fields)
        self._nonces[once] = time.monotonic(), message
        self._telling = asyncio.get_running_loop().create_task(self.tell_message(message))
        return message
