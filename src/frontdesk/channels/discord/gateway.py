"""The line on which the platform tells what happens, by its own library, which keeps it alive."""

import asyncio
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import aiohttp
import discord
import yarl
from discord.gateway import DiscordWebSocket, ReconnectWebSocket
from discord.http import HTTPClient, Route
from discord.state import ConnectionState

from frontdesk import errors
from frontdesk.channels import streams
from frontdesk.channels.discord.calls import RestCalls
from frontdesk.channels.discord.options import Options
from frontdesk.channels.discord.verdicts import RestFailure

EVENTS = (
    "READY",
    "RESUMED",
    "GUILD_CREATE",
    "GUILD_DELETE",
    "CHANNEL_CREATE",
    "CHANNEL_UPDATE",
    "CHANNEL_DELETE",
    "THREAD_CREATE",
    "THREAD_UPDATE",
    "THREAD_DELETE",
    "MESSAGE_CREATE",
    "MESSAGE_UPDATE",
    "MESSAGE_DELETE",
    "MESSAGE_DELETE_BULK",
    "MESSAGE_REACTION_ADD",
    "MESSAGE_REACTION_REMOVE",
    "INTERACTION_CREATE",
)
CONNECT_SECONDS = 60.0
STEADY_SECONDS = 120.0
"""A line that held so long works: the next one is tried at once."""
CLOSED_FOR_GOOD_SECONDS = 300.0
"""The platform takes a bot's token away that opens a thousand lines in a day."""
CLOSED = {
    4004: "Discord refuses the bot's token: reset it in the Developer Portal (Bot, Reset Token)",
    4014: (
        "Discord keeps the texts of messages from the bot: in the Developer Portal, under Bot, Privileged"
        " Gateway Intents, turn on Message Content Intent"
    ),
}
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError, zlib.error)
"""What the library raises for what is no event at all."""

Hear = Callable[[str, Any, str], None]
"""Given the event's name, what it says, and its number."""

discord.VoiceClient.warn_nacl = False
discord.VoiceClient.warn_dave = False


class LineHttp(HTTPClient):
    """How the library calls the platform: in our way, once."""

    def __init__(self, calls: RestCalls) -> None:
        super().__init__(asyncio.get_running_loop())
        self._calls = calls

    async def request(self, route: Route, **_: Any) -> Any:
        return await self._calls.ask(route.method, route.url.removeprefix(Route.BASE))


class DiscordLine(discord.Client):
    """One line after the other. What comes is handed on as it came, in its order: nothing is kept here."""

    def __init__(
        self, calls: RestCalls, options: Options, hear: Hear, note: Callable[[str | Exception], None]
    ) -> None:
        self._calls = calls
        self._options = options
        self._hear = hear
        self._note = note
        self._resuming: dict[str, Any] = {}
        self._is_first = True
        super().__init__(
            intents=discord.Intents(guilds=True, messages=True, reactions=True, message_content=True),
            max_messages=None,
            member_cache_flags=discord.MemberCacheFlags.none(),
            chunk_guilds_at_startup=False,
        )

    def _get_state(self, **options: Any) -> ConnectionState[Any]:
        self.http = LineHttp(self._calls)
        state = super()._get_state(**options)
        state.parsers = {name: partial(self._take, name) for name in EVENTS}
        return state

    def _take(self, name: str, data: Any) -> None:
        self._hear(name, data, f"{self.ws.session_id}:{self.ws.sequence}")

    async def stay(self) -> None:
        """Be on the line, whatever happens to it, until cancelled."""
        loop, pauses = asyncio.get_running_loop(), streams.GrowingPauses()
        try:
            await self._async_setup_hook()
            while True:
                began, wanted = loop.time(), None
                try:
                    await self._listen()
                except ReconnectWebSocket as again:
                    self._remember(again.resume)
                except discord.ConnectionClosed as closed:
                    self._note(CLOSED.get(closed.code, f"Discord has ended the connection: {closed.code}"))
                    self._remember(False)
                    wanted = CLOSED_FOR_GOOD_SECONDS
                except (RestFailure, aiohttp.ClientError, TimeoutError, OSError) as error:
                    self._note(error)
                    self._remember(True)
                except (discord.DiscordException, errors.MissingSecret, *UNREADABLE) as error:
                    self._note(error)
                    self._remember(False)
                await self._hang_up()
                if loop.time() - began > STEADY_SECONDS:
                    pauses.forget()
                await pauses.wait(wanted)
        finally:
            await self._hang_up(code=1000)
            await self.http.close()

    async def _listen(self) -> None:
        if not self.http.token or self.http.token != self._calls.token():
            await self.http.close()
            self.http = LineHttp(self._calls)
            await self.http.static_login(self._calls.token())
        # Between two sessions the library leaves the five seconds that the platform wants.
        where: dict[str, Any] = {"gateway": yarl.URL(self._options.gateway_url), "initial": self._is_first}
        where |= self._resuming
        self.ws = None  # type: ignore[assignment]
        opening = DiscordWebSocket.from_client(self, **where)
        self.ws = await asyncio.wait_for(opening, CONNECT_SECONDS)
        self._is_first = False
        while True:
            await self.ws.poll_event()

    def _remember(self, resume: bool) -> None:
        """How the next line goes on where this one was."""
        ws = self.ws
        if not resume or ws is None or not ws.session_id:
            self._resuming = {}
        else:
            self._resuming = {
                "resume": True,
                "session": ws.session_id,
                "sequence": ws.sequence,
                "gateway": ws.gateway,
            }

    async def _hang_up(self, code: int = 4000) -> None:
        ws: DiscordWebSocket | None = self.ws
        if ws is not None:
            await ws.close(code=code)
