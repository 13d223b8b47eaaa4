"""A connection to a homeserver: who we are there, what is known of the rooms, and the keys."""

import asyncio
import importlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from frontdesk import errors
from frontdesk.channels.matrix import answers, inbound, outbound
from frontdesk.channels.matrix.client import FAILURES as FAILURES  # noqa: PLC0414
from frontdesk.channels.matrix.client import REFUSALS as REFUSALS  # noqa: PLC0414
from frontdesk.channels.matrix.client import Homeserver as Homeserver  # noqa: PLC0414
from frontdesk.channels.matrix.client import NotSigned as NotSigned  # noqa: PLC0414
from frontdesk.channels.matrix.client import is_lost as is_lost  # noqa: PLC0414
from frontdesk.channels.matrix.client import is_revoked as is_revoked  # noqa: PLC0414
from frontdesk.channels.matrix.client import judge as judge  # noqa: PLC0414
from frontdesk.channels.matrix.inbound import Event
from frontdesk.channels.matrix.options import Options
from frontdesk.channels.matrix.rooms import Rooms
from frontdesk.contracts.channels import Happening, Incoming
from frontdesk.logs import get_logger
from frontdesk.model.chats import Attachment, Quote, StoredFile

if TYPE_CHECKING:
    from frontdesk.channels.matrix.encryption import Encryption

ENCRYPTED, MESSAGE, REACTION = "m.room.encrypted", "m.room.message", "m.reaction"
QUOTE_CHARACTERS = 2_000
MOST_SIGNS = 1000
CANNOT_ENCRYPT = (
    "this room is encrypted, and encryption is off, or the library for it (python-olm) is not installed;"
    " it has wheels up to Python 3.12: pip install 'frontdesk[matrix]' with such a Python"
)

LOGGED_OUT = "the homeserver does not know the access token any more: log in anew, and set access_token"
UNKNOWN_ALGORITHM = "this room is encrypted in a way that is not known here"

log = get_logger(__name__)


class RoomClosed(Exception):
    """Nothing may be written into this room in the clear, and nothing else can be."""


class Connection:
    def __init__(self, options: Options, account: str | None) -> None:
        self._options = options
        self.server = Homeserver(options, account)
        self._account = account
        self._encryption: Encryption | None = None
        self._signs: dict[str, str] = {}
        """The sign that we have put to a message."""

    async def open(self, *, keys: bool = True) -> None:
        self.us = await self.server.who()
        self.rooms = Rooms(self.server, self.us)
        if keys and self._options.encryption and (found := _library()):
            recovery = self._options.recovery_key
            encryption = found.Encryption(self.server, self.us, self.rooms, Path(self._options.home))
            try:
                await encryption.open(recovery() if recovery else None)
                self._encryption = encryption
            finally:
                if self._encryption is None:
                    await encryption.close()

    @property
    def reads_encrypted(self) -> bool:
        return self._encryption is not None

    async def sync(self, since: str | None) -> Mapping[str, Any]:
        """What is new. Keys that came with it, and what it says about rooms, are noted by then."""
        try:
            synced = await self.server.sync(since)
        except BaseException:
            self.rooms.are_followed = False
            raise
        for event in answers.events_in(synced, "account_data"):
            self.rooms.note_account(event)
        for room_id, joined in answers.rooms_in(synced, "join"):
            for event in [*answers.events_in(joined, "state"), *answers.timeline_of(joined).events]:
                self.rooms.note_state(room_id, event)
        self.rooms.are_followed = True
        if self._encryption:
            await self._encryption.take(synced)
        return synced

    async def timeline(self, room_id: str, joined: Event, since: str | None) -> list[Event]:
        """What happened in a room, oldest first; what the homeserver left out is fetched."""
        told = answers.timeline_of(joined)
        is_cut = since is not None and told.gap is not None
        missed = await self.server.before(room_id, told.gap, since) if since and told.gap else []
        found = [*missed, *told.events]
        if self._encryption and (is_cut or any(map(answers.comes_or_goes, found))):
            await self._encryption.note_change(room_id)
        return found

    async def come_late(self) -> list[tuple[str, Event]]:
        """Messages whose keys have come after them, with their rooms."""
        late = await self._encryption.come_late() if self._encryption else []
        return [(room_id, await self.server.event(room_id, event_id)) for room_id, event_id in late]

    def forget_late(self, room_id: str, event: Event) -> None:
        if self._encryption:
            self._encryption.forget(room_id, event)

    async def read(self, room_id: str, event: Event) -> Happening | None:
        """What somebody did, with what it answers."""
        if event.get("type") == ENCRYPTED and self._encryption:
            event = await self._encryption.read(room_id, event)
        room, sender = await self.rooms.find(room_id), event.get("sender")
        name = await self.rooms.name_of(room_id, sender) if isinstance(sender, str) else None
        happening = inbound.read_event(event, room, self.us, name)
        if isinstance(happening, Incoming) and happening.quote:
            return await self._with_quote(room_id, happening, happening.quote)
        return happening

    async def _with_quote(self, room_id: str, incoming: Incoming, quote: Quote) -> Incoming:
        """With the text that it answers, where that can still be had."""
        try:
            event = await self.server.event(room_id, quote.message_id)
            if event.get("type") == ENCRYPTED and self._encryption:
                event = await self._encryption.read(room_id, event)
        except FAILURES as error:
            log.info("matrix_quote_missing", room=room_id, why=str(error))
            return incoming
        is_ours = event.get("sender") == self.us.user_id
        text = inbound.text_of(event)[:QUOTE_CHARACTERS]
        known = msgspec.structs.replace(quote, text=text or None, is_ours=is_ours)
        addressed = True if is_ours and incoming.addressed is False else incoming.addressed
        return msgspec.structs.replace(incoming, quote=known, addressed=addressed)

    async def ask_for_key(self, room_id: str, event: Event) -> None:
        if self._encryption:
            await self._encryption.ask_for_key(room_id, event)

    async def put(self, room_id: str, number: str, content: outbound.Content, kind: str = MESSAGE) -> str:
        """Send an event, encrypted where the room is. Signs never are."""
        room = await self.rooms.find(room_id)
        if kind != REACTION and room.is_encrypted:
            if self._encryption is None:
                raise RoomClosed(CANNOT_ENCRYPT)
            if not answers.is_megolm(room.encryption):
                raise RoomClosed(UNKNOWN_ALGORITHM)
            content, kind = await self._encryption.lock(room_id, kind, content), ENCRYPTED
        return await self.server.put(room_id, kind, number, content)

    async def put_sign(self, room_id: str, message_id: str, name: str, emoji: str) -> None:
        """React to a message: in the place of the sign before, as far as we know of one."""
        if earlier := self._signs.pop(message_id, None):
            await self.server.redact(room_id, earlier)
        shown = outbound.reaction(message_id, emoji)
        put = await self.put(room_id, f"sign-{message_id}-{name}", shown, REACTION)
        if len(self._signs) >= MOST_SIGNS:
            self._signs.clear()
        self._signs[message_id] = put

    async def put_file(self, room_id: str, file: StoredFile) -> outbound.Content:
        """A file, kept by the homeserver, as the content of a message."""
        if file.path is None:
            raise errors.FileUnavailable(why="it is not on this machine")
        data = await asyncio.to_thread(Path(file.path).read_bytes)
        if not (await self.rooms.find(room_id)).is_encrypted:
            place = {"url": await self.server.upload(data, file.kind, file.name)}
            return outbound.file_message(file, place)
        found = _library() if self._encryption else None
        if found is None:
            raise RoomClosed(CANNOT_ENCRYPT)
        sealed, opens = await asyncio.to_thread(found.lock_file, data)
        url = await self.server.upload(sealed, "application/octet-stream", None)
        return outbound.file_message(file, {"file": {**opens, "url": url}})

    async def fetch(self, attachment: Attachment, most_bytes: int) -> AsyncIterator[bytes]:
        if attachment.id.startswith("mxc://"):
            async for piece in self.server.download(attachment.id, most_bytes):
                yield piece
            return
        found = _library()
        if found is None:
            raise errors.FileUnavailable(why=CANNOT_ENCRYPT)
        try:
            locked = msgspec.json.decode(attachment.id, type=inbound.LockedFile)
        except msgspec.DecodeError:
            raise errors.FileUnavailable(why="there is no such file") from None
        pieces = [piece async for piece in self.server.download(locked.url, most_bytes)]
        yield await asyncio.to_thread(found.open_file, b"".join(pieces), locked)

    async def close(self) -> None:
        if self._encryption:
            await self._encryption.close()
        await self.server.close()


def can_encrypt() -> bool:
    return _library() is not None


def _library() -> Any:
    """What encrypted rooms need, where it is installed."""
    try:
        importlib.import_module("olm")
    except ImportError:
        return None
    return importlib.import_module("frontdesk.channels.matrix.encryption")
