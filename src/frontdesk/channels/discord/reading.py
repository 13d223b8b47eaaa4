"""Hands on what the gateway tells, in its order, and reads in the history what it did not tell."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from frontdesk import errors
from frontdesk.channels import streams
from frontdesk.channels.discord import inbound, verdicts
from frontdesk.channels.discord.places import PRIVATE, DiscordPlace, Guild, Places, later, snowflake_at
from frontdesk.contracts.channels import Desk, Happening
from frontdesk.logs import get_logger
from frontdesk.model.chats import Cursor

if TYPE_CHECKING:
    from frontdesk.channels.discord.calls import RestCalls

MOST_EVENTS = 10_000
PAGE = 100
THREAD_SECONDS = 7 * 24 * 3600
"""A thread without a message for so long is closed. Who writes there opens it, and then it is told of."""

NO_HISTORY = "nothing is given of it: may the bot read the message history there?"
HOLD_SECONDS = 120.0
"""So long edits, deletions and reactions wait for a store that fails."""

log = get_logger(__name__)


class HeardEvent(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    data: Any
    number: str


class Lag(msgspec.Struct, kw_only=True):
    """A chat whose history has to be read."""

    after: str
    told: bool = False
    """Whether something came since it was last asked for."""


class Reader:
    """What happens while the channel receives. A chat whose message could not be stored is read again from
    its history; what comes from it meanwhile is found there."""

    def __init__(self, calls: "RestCalls", account: str | None, desk: Desk, fine: Callable[[], None]) -> None:
        self._calls = calls
        self._desk = desk
        self._fine = fine
        self._me = inbound.BotSelf(id="", account=account)
        self._places = Places()
        self._events: asyncio.Queue[HeardEvent] = asyncio.Queue(MOST_EVENTS)
        self._behind: dict[str, Lag] = {}
        self._woken = asyncio.Event()
        self._cursors: dict[str, str] = {}
        self._floors: dict[str, str] = {}
        """How far servers were read whose chats are being read."""

    def hear(self, name: str, data: Any, number: str) -> None:
        """Called by the line, one event after the other."""
        try:
            self._events.put_nowait(HeardEvent(name=name, data=data, number=number))
        except asyncio.QueueFull:
            log.warning("update_not_stored", account=self._me.account, why="too many events wait")
            if name == "MESSAGE_CREATE":
                self._miss(data)

    async def begin(self) -> None:
        """Learn how far we have read; it is waited until the store can say so."""
        pauses = streams.GrowingPauses()
        while True:
            try:
                self._cursors = dict(await self._desk.cursors())
                return
            except errors.StoreError as error:
                self._note_held(error)
                await pauses.wait()

    async def take_events(self) -> None:
        while True:
            event = await self._events.get()
            try:
                await self._take(event)
            except errors.InvalidInput as error:
                log.warning("update_unreadable", account=self._me.account, why=error)

    async def _take(self, event: HeardEvent) -> None:
        name, data = event.name, event.data
        if name in ("READY", "RESUMED"):
            self._begin_line(name, data)
        elif name == "GUILD_CREATE":
            self._join(inbound.read_as(Guild, data))
        elif name in ("CHANNEL_DELETE", "THREAD_DELETE"):
            self._places.forget(inbound.read_as(DiscordPlace, data).id)
        elif name.startswith(("CHANNEL_", "THREAD_")):
            self._places.learn(inbound.read_as(DiscordPlace, data))
        elif name == "MESSAGE_CREATE":
            await self._take_message(inbound.read_as(inbound.DiscordMessage, data))
        elif name.startswith("MESSAGE_"):
            for happening in await self._changes(event):
                await self._hand_on(happening)

    async def _hand_on(self, happening: Happening) -> None:
        """Store what people did to messages, which no history tells again: what comes behind it waits
        meanwhile, and so does not overtake it."""
        pauses, until = streams.GrowingPauses(), time.monotonic() + HOLD_SECONDS
        while True:
            try:
                await streams.hand_over(self._desk, happening)
                return
            except errors.StoreError as error:
                self._note_held(error)
                if time.monotonic() > until:
                    return
            except errors.TooManyWaiting as error:
                self._note_held(error)
                return
            await pauses.wait()

    def _begin_line(self, name: str, data: Any) -> None:
        """On a new line nothing is told of what was missed; one that goes on tells all of it."""
        if name == "READY":
            user = inbound.read_as(inbound.DiscordUser, data.get("user") if isinstance(data, dict) else None)
            self._me = inbound.BotSelf(id=user.id, account=self._me.account)
            for key, seen in self._cursors.items():
                where, _, channel_id = key.partition("/")
                if where == PRIVATE and channel_id.isdigit():
                    self._lag(self._places.learn(DiscordPlace(id=channel_id, type=1)), seen)
        self._fine()

    def _join(self, guild: Guild) -> None:
        """Find the chats of a server in which something was said since they were read."""
        if guild.unavailable:
            return
        floor, newest = self._cursors.get(f"{guild.id}/"), "0"
        listed = self._places.learn_guild(guild, self._me.id)
        for place in listed:
            last = place.last_message_id or "0"
            newest = last if later(last, newest) else newest
            seen = self._cursors.get(place.key) or floor
            if seen is not None and later(last, seen):
                self._lag(place, seen)
        known = {place.key for place in listed}
        lately = snowflake_at(time.time() - THREAD_SECONDS)
        for key, seen in self._cursors.items():
            where, _, channel_id = key.partition("/")
            if where == guild.id and channel_id and key not in known and int(seen) > lately:
                self._behind.setdefault(channel_id, Lag(after=seen))
        if floor is None or later(newest, floor):
            self._floors[guild.id] = newest
        self._woken.set()

    def _lag(self, place: DiscordPlace, after: str) -> None:
        self._behind.setdefault(place.id, Lag(after=after)).told = True
        self._woken.set()

    def _miss(self, data: Any) -> None:
        try:
            missed = inbound.read_as(inbound.DiscordMessage, data)
        except errors.InvalidInput:
            return
        place = DiscordPlace(id=missed.channel_id, guild_id=missed.guild_id)
        self._lag(place, str(int(missed.id) - 1))

    async def _take_message(self, written: inbound.DiscordMessage) -> None:
        place = await self.place(written.channel_id, written.guild_id)
        before = str(max(int(written.id) - 1, 0))
        if place.id in self._behind:
            self._lag(place, before)
            return
        try:
            await self._store(written, place)
        except streams.LATER as error:
            self._note_held(error)
            self._lag(place, before)

    async def _store(self, written: inbound.DiscordMessage, place: DiscordPlace) -> bool:
        """Whether there was something to store; one of LATER when it could not be."""
        incoming = inbound.message(written, place, self.me_in(place))
        if incoming is None:
            return False
        cursor = Cursor(chat=place.key, value=written.id)
        await streams.hand_over(self._desk, incoming, cursor)
        self._cursors[place.key] = written.id
        return True

    async def _changes(self, event: HeardEvent) -> list[Happening]:
        """What people did to messages."""
        named, data = event.name, event.data
        given = data.get("guild_id") if isinstance(data, dict) else None
        guild_id = given if isinstance(given, str) and given.isdigit() else None
        if named == "MESSAGE_UPDATE":
            written = inbound.read_as(inbound.DiscordMessage, data)
            place = await self.place(written.channel_id, guild_id)
            edited = inbound.edit(written, place, self.me_in(place))
            return [edited] if edited else []
        if named.startswith("MESSAGE_DELETE"):
            gone = inbound.read_as(inbound.DeletedMessages, data)
            place = await self.place(gone.channel_id, guild_id)
            return list(inbound.deletions(gone, place, self.me_in(place)))
        put = inbound.read_as(inbound.DiscordReaction, data)
        place = await self.place(put.channel_id, guild_id)
        removed = named == "MESSAGE_REACTION_REMOVE"
        reacted = inbound.reaction(put, place, self.me_in(place), event.number, removed=removed)
        return [reacted] if reacted else []

    def me_in(self, place: DiscordPlace) -> inbound.BotSelf:
        return msgspec.structs.replace(self._me, roles=self._places.roles(place.guild_id))

    async def place(self, channel_id: str, guild_id: str | None) -> DiscordPlace:
        """What is known of a chat. A server's is asked for that nobody has told of."""
        if known := self._places.get(channel_id):
            return known
        if guild_id is None:
            return self._places.learn(DiscordPlace(id=channel_id, type=1))
        try:
            return await self._asked_place(channel_id)
        except verdicts.RestFailure as error:
            log.info("chat_unknown", account=self._me.account, chat=channel_id, why=str(error))
            return DiscordPlace(id=channel_id, guild_id=guild_id)

    async def _asked_place(self, channel_id: str) -> DiscordPlace:
        told = await self._calls.ask("GET", f"/channels/{channel_id}")
        try:
            return self._places.learn(inbound.read_as(DiscordPlace, told))
        except errors.InvalidInput as error:
            raise verdicts.RestUnclear(str(error)) from None

    # What was not told.

    async def catch_up(self) -> None:
        """Read the histories of chats that are behind, again and again until they are not."""
        pauses = streams.GrowingPauses()
        while True:
            await self._woken.wait()
            self._woken.clear()
            wanted = 0.0
            for channel_id in list(self._behind):
                wanted = max(wanted, await self._read_on(channel_id))
            if await self._raise_floors():
                pauses.forget()
            else:
                await pauses.wait(wanted)
                self._woken.set()

    async def _read_on(self, channel_id: str) -> float:
        """Read one chat to its end. How long the platform wants to be left alone."""
        try:
            place = self._places.get(channel_id) or await self._asked_place(channel_id)
            await self._read_history(place, self._behind[channel_id])
        except streams.LATER as error:
            self._note_held(error)
        except verdicts.RestRefused as error:
            if error.is_for_good:
                self._note_unread(channel_id, str(error))
                self._behind.pop(channel_id, None)
            return error.wait or 0.0
        except verdicts.RestFailure as error:
            self._note_unread(channel_id, str(error))
        return 0.0

    async def _read_history(self, place: DiscordPlace, lag: Lag) -> None:
        members: dict[str, inbound.GuildMember | None] = {}
        while True:
            lag.told = False
            after = self._cursors.get(place.key) or lag.after
            query = {"after": after, "limit": str(PAGE)}
            page = await self._calls.ask("GET", f"/channels/{place.id}/messages", query=query)
            if not isinstance(page, list):
                raise verdicts.RestUnclear("the answer is no list of messages")
            if not page and later(place.last_message_id or "0", after):
                self._note_unread(place.id, NO_HISTORY)
            for number, raw in sorted(
                (each for each in map(_numbered, page) if each), key=lambda each: each[0]
            ):
                await self._store_old(place, raw, members)
                after = str(max(number, int(after)))
            if after != (self._cursors.get(place.key) or lag.after):
                await self._desk.move_cursor(Cursor(chat=place.key, value=after))
                self._cursors[place.key] = after
            if len(page) < PAGE and not lag.told:
                del self._behind[place.id]
                return

    async def _store_old(
        self, place: DiscordPlace, raw: Mapping[str, Any], members: dict[str, inbound.GuildMember | None]
    ) -> None:
        """The history does not say which roles its people have."""
        try:
            written = inbound.read_as(inbound.DiscordMessage, raw)
        except errors.InvalidInput as error:
            log.warning("update_unreadable", account=self._me.account, why=error)
            return
        author = written.author
        if place.guild_id and author and author.id != self._me.id and not (author.bot or written.hook_id):
            if author.id not in members:
                members[author.id] = await self._member(place.guild_id, author.id)
            written = msgspec.structs.replace(written, member=members[author.id])
        await self._store(written, place)

    async def _member(self, guild_id: str, user_id: str) -> inbound.GuildMember | None:
        try:
            told = await self._calls.ask("GET", f"/guilds/{guild_id}/members/{user_id}")
            return inbound.read_as(inbound.GuildMember, told)
        except verdicts.RestRefused as error:
            if error.is_for_good:
                return None  # they have left
            raise
        except errors.InvalidInput:
            return None

    async def _raise_floors(self) -> bool:
        """Whether nobody is behind, and that is stored."""
        if self._behind:
            return False
        floors, self._floors = self._floors, {}
        for guild_id, value in floors.items():
            try:
                await self._desk.move_cursor(Cursor(chat=f"{guild_id}/", value=value))
            except errors.StoreError as error:
                self._note_held(error)
                self._floors = floors | self._floors
                return False
            self._cursors[f"{guild_id}/"] = value
        return True

    def _note_unread(self, channel_id: str, why: str) -> None:
        log.info("history_unreadable", account=self._me.account, chat=channel_id, why=why)

    def _note_held(self, error: Exception) -> None:
        log.warning("update_not_stored", account=self._me.account, why=error)


def _numbered(raw: object) -> tuple[int, Mapping[str, Any]] | None:
    """A message of the history with its id as a number."""
    number = raw.get("id") if isinstance(raw, dict) else None
    if isinstance(raw, dict) and isinstance(number, str) and number.isascii() and number.isdigit():
        return int(number), raw
    return None
