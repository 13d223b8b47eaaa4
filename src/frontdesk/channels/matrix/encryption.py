"""Encrypted rooms: the keys of our device, what is read with them and written."""

import asyncio
import copy
import fcntl
import hashlib
import os
import sqlite3
from collections import defaultdict
from collections.abc import Coroutine, Mapping
from contextlib import closing
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
from mautrix.client import Client
from mautrix.crypto import InboundGroupSession, OlmMachine, PgCryptoStore
from mautrix.crypto.attachments import decrypt_attachment, encrypt_attachment
from mautrix.crypto.store import StateStore
from mautrix.errors import (
    EncryptionError,
    MatrixConnectionError,
    MatrixError,
    MatrixRequestError,
    SessionNotFound,
)
from mautrix.types import (
    DeviceID,
    DeviceLists,
    EncryptedEvent,
    EventType,
    IdentityKey,
    RoomEncryptionStateEventContent,
    RoomID,
    SerializerError,
    SessionID,
    ToDeviceEvent,
    TrustState,
    UserID,
)
from mautrix.util.async_db import Database
from olm.account import OlmAccountError
from olm.group_session import OlmGroupSessionError
from olm.session import OlmSessionError
from olm.utility import OlmVerifyError

from frontdesk import errors
from frontdesk.channels.matrix import answers
from frontdesk.channels.matrix.client import Homeserver, NotSigned, Throttled
from frontdesk.channels.matrix.inbound import Event, LockedFile, Us
from frontdesk.channels.matrix.outbound import Content
from frontdesk.channels.matrix.rooms import Rooms
from frontdesk.logs import get_logger

PICKLE_KEY = "frontdesk"
"""The library wants one. The file is its owner's alone; a key beside it would hide nothing."""
FOLDER = "matrix"
DURABLE = {"init_commands": ["PRAGMA synchronous = FULL"]}
"""A key that was used must not be used again after a power cut."""
NOBODYS = (TrustState.BLACKLISTED, TrustState.UNKNOWN_DEVICE, TrustState.FORWARDED)
"""Of a sender who has no such device, or by the word of somebody else: perhaps another's words."""
MOST_MISSING = 1_000
OTHER_KEYS = "the homeserver has other keys for this device: {why}. Log in anew, and set access_token"
LOST = "those in frontdesk's folder are lost, or another node's"
OLD = "those in frontdesk's folder are an old copy"
NO_RECOVERY = "the account has no recovery; set it up in a client, or leave recovery_key out"
OTHER_IDENTITY = "the account has another identity by now; set up recovery anew, and take its new key"
TAKEN = "already exists"
"""What a homeserver says of a one-time key whose number it has for another one."""

AWAY = (MatrixConnectionError, Throttled, aiohttp.ClientError, TimeoutError)
"""The homeserver could not be asked: what it was about is no worse for that."""
UNREADABLE = (
    *(MatrixError, SerializerError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError),
    *(RecursionError, sqlite3.ProgrammingError, sqlite3.InterfaceError, sqlite3.DataError),
    *(OlmAccountError, OlmGroupSessionError, OlmSessionError, OlmVerifyError),
)
"""What the library raises for what people send: some of it was not meant to be sent."""

Done = TypeVar("Done")
log = get_logger(__name__)


class KeyStore(PgCryptoStore):
    """The library's, which would let anybody who was given a key say that it is theirs."""

    async def put_group_session(
        self, room_id: RoomID, sender_key: IdentityKey, session_id: SessionID, session: InboundGroupSession
    ) -> None:
        asked = "SELECT sender_key FROM crypto_megolm_inbound_session WHERE session_id = $1"
        if await self.db.fetchval(asked, session_id) in (None, sender_key):
            await super().put_group_session(room_id, sender_key, session_id, session)
        else:
            log.warning("matrix_key_refused", room=room_id, why="it is known as somebody else's")


class RoomStates(StateStore):
    """What the library asks about rooms. It does so in the middle of its work, so nobody is asked in turn."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self.readers: dict[str, list[UserID]] = {}
        """Who has what we write with, in each room; all of it is made anew at each start."""

    async def is_encrypted(self, room_id: RoomID) -> bool:
        known = self._rooms.known(room_id)
        return known is None or known.is_encrypted

    async def get_encryption_info(self, room_id: RoomID) -> RoomEncryptionStateEventContent:
        known = self._rooms.known(room_id)
        told = answers.rotation(known.encryption) if known and known.encryption else {}
        return RoomEncryptionStateEventContent.deserialize(_json({"algorithm": answers.MEGOLM, **told}))

    async def find_shared_rooms(self, user_id: UserID) -> list[RoomID]:
        return [RoomID(room_id) for room_id, readers in self.readers.items() if user_id in readers]


class Encryption:
    """The keys of one device, in a file that one process has."""

    def __init__(self, server: Homeserver, us: Us, rooms: Rooms, home: Path) -> None:
        self._server = server
        self._us = us
        self._rooms = rooms
        name = hashlib.sha256(f"{us.user_id}\0{us.device_id}".encode()).hexdigest()[:16]
        self._file = home.expanduser() / FOLDER / f"{name}.db"
        self._client = Client(mxid=UserID(us.user_id), device_id=DeviceID(us.device_id), api=server.api)
        upgrades = PgCryptoStore.upgrade_table
        self._database = Database.create(f"sqlite:///{self._file}", upgrade_table=upgrades, db_args=DURABLE)
        self._store = KeyStore(us.user_id, PICKLE_KEY, self._database)
        self._states = RoomStates(rooms)
        self._machine = OlmMachine(self._client, self._store, self._states)
        self._locking: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._works: set[asyncio.Task[Any]] = set()
        self._missing: dict[tuple[str, str], list[str]] = {}
        self._lock = -1

    async def open(self, recovery_key: str | None) -> None:
        """Load the keys, or make them; sign the device where that is wanted."""
        self._own()
        await self._database.start()
        await self._store.put_device_id(DeviceID(self._us.device_id))
        await self._store.open()
        await self._machine.load()
        await self._check_keys(answers.device_keys(await self._server.keys_of(self._us.user_id), self._us))
        await self._database.execute("DELETE FROM crypto_megolm_outbound_session")
        await self._share_keys()
        self._rooms.had_keys = self._had_keys
        if recovery_key:
            await self._sign(recovery_key)

    async def _check_keys(self, kept: Event) -> None:
        """Others believe a device that has one identity for good. What the homeserver has lost it is given
        again; what it has of another one is not ours to replace."""
        account = self._machine.account
        assert account, "it was loaded"
        if not kept:
            account.shared = False
            return
        ours = (account.identity_key, account.signing_key)
        if (answers.key_of(kept, "curve25519"), answers.key_of(kept, "ed25519")) != ours:
            raise _refused(LOST)
        account.shared = True

    async def _share_keys(self, left: int | None = None) -> None:
        try:
            await self._machine.share_keys(left)
        except MatrixRequestError as error:
            if TAKEN in (error.message or ""):
                raise _refused(OLD) from error
            raise

    async def _sign(self, recovery_key: str) -> None:
        """With the account's own key, as it is kept at the homeserver behind the recovery key."""
        if await self._machine.ssss.get_default_key_id() is None:
            raise NotSigned(NO_RECOVERY)
        try:
            await self._machine.verify_with_recovery_key(recovery_key)
        except AWAY:
            raise
        except UNREADABLE as error:
            raise NotSigned(f"it does not open what the account keeps: {error}") from error
        if not answers.is_signed(await self._server.keys_of(self._us.user_id), self._us):
            raise NotSigned(OTHER_IDENTITY)

    def _own(self) -> None:
        """Two processes with the keys of one device would each lose what the other has read."""
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = os.open(self._file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        os.close(os.open(self._file, os.O_RDWR | os.O_CREAT, 0o600))
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            self._lock = -1
            raise errors.InvalidInput(
                what="The keys of this device", why="another process has them; give it an account of its own"
            ) from None
        with closing(
            sqlite3.connect(self._file)
        ) as held:  # the library leaves a thread behind where it cannot
            held.execute("PRAGMA schema_version")

    async def _had_keys(self, room_id: str) -> bool:
        asked = "SELECT 1 FROM crypto_megolm_inbound_session WHERE room_id = $1 LIMIT 1"
        return await self._database.fetchval(asked, room_id) is not None

    async def take(self, synced: Mapping[str, Any]) -> None:
        """What a sync says about devices and keys: kept before anything is read with it."""
        left, account = answers.keys_left(synced), self._machine.account
        if left is not None and account and left < account.max_one_time_keys // 2:
            await self._share_keys(left)
        if changed := [UserID(each) for each in answers.changed_devices(synced)]:
            try:
                await self._machine.handle_device_lists(DeviceLists(changed=changed, left=[]))
            except AWAY:
                raise
            except UNREADABLE as error:
                raise MatrixConnectionError(f"what devices there are makes no sense: {error!r}") from error
        for raw in answers.events_in(synced, "to_device"):
            await self._take_key(raw)

    async def _take_key(self, raw: Event) -> None:
        """Anybody can send us anything here; what is no key for us is passed over."""
        if raw.get("type") != "m.room.encrypted":
            return
        try:
            await self._machine.handle_to_device_event(ToDeviceEvent.deserialize(_json(raw)))
        except UNREADABLE as error:
            log.warning("matrix_key_refused", sender=raw.get("sender"), why=repr(error))

    async def note_change(self, room_id: str) -> None:
        """Who comes is not to read what was said before, who goes not what is said after."""
        self._states.readers.pop(room_id, None)
        await self._store.remove_outbound_group_session(RoomID(room_id))

    async def read(self, room_id: str, event: Event) -> Event:
        """The event in the clear; as it is where it cannot be read."""
        try:
            locked = EncryptedEvent.deserialize(_json({**event, "room_id": room_id}))
            opened = await self._machine.decrypt_megolm_event(locked)
            trust, read = opened["mautrix"]["trust_state"], opened.serialize()
        except AWAY:
            raise
        except UNREADABLE as error:
            if (
                isinstance(error, MatrixRequestError)
                and error.http_status >= HTTPStatus.INTERNAL_SERVER_ERROR
            ):
                raise
            if isinstance(error, SessionNotFound):
                self._miss(room_id, str(error.session_id), event)
            log.warning("matrix_not_decrypted", room=room_id, message=event.get("event_id"), why=repr(error))
            return event
        if trust in NOBODYS:
            log.warning("matrix_unknown_device", room=room_id, message=event.get("event_id"))
            return event
        return answers.table(read)

    def _miss(self, room_id: str, session_id: str, event: Event) -> None:
        named = event.get("event_id")
        waiting = self._missing.setdefault((room_id, session_id), [])
        if answers.is_id(named) and named not in waiting and len(waiting) < MOST_MISSING:
            waiting.append(named)
        while len(self._missing) > MOST_MISSING:
            del self._missing[next(iter(self._missing))]

    async def come_late(self) -> list[tuple[str, str]]:
        """Messages that could not be read when they came, and now can: their rooms, and their ids."""
        return [
            (room_id, each)
            for (room_id, session_id), waiting in self._missing.items()
            if await self._store.has_group_session(RoomID(room_id), SessionID(session_id))
            for each in waiting
        ]

    def forget(self, room_id: str, event: Event) -> None:
        """It was read after all, or never will be."""
        key = room_id, str(answers.table(event.get("content")).get("session_id"))
        left = [each for each in self._missing.pop(key, ()) if each != event.get("event_id")]
        if left:
            self._missing[key] = left

    async def ask_for_key(self, room_id: str, event: Event) -> None:
        """Whoever wrote it may still have what opens it."""
        content = answers.table(event.get("content"))
        sender, session, device = event.get("sender"), content.get("session_id"), content.get("device_id")
        if answers.is_id(sender) and answers.is_id(session) and answers.is_id(device):
            key = IdentityKey(str(content.get("sender_key", "")))
            whom = {UserID(sender): [DeviceID(device)]}
            await self._machine.request_room_key(RoomID(room_id), key, SessionID(session), whom, timeout=0)

    async def lock(self, room_id: str, kind: str, content: Content) -> Content:
        """An event for the devices of those who are in the room now."""
        try:
            return await self._whole(self._encrypt(room_id, kind, content))
        except MatrixError:
            raise
        except UNREADABLE as error:
            raise MatrixConnectionError(f"what devices there are makes no sense: {error!r}") from error

    async def _encrypt(self, room_id: str, kind: str, content: Content) -> Content:
        event_type, room = EventType.find(kind, EventType.Class.MESSAGE), RoomID(room_id)
        async with self._locking[room_id]:
            try:
                locked = await self._machine.encrypt_megolm_event(room, event_type, content)
            except EncryptionError:
                members = [UserID(each) for each in await self._server.members(room_id)]
                self._states.readers[room_id] = members
                await self._machine.share_group_session(room, members)
                locked = await self._machine.encrypt_megolm_event(room, event_type, content)
        sealed: Content = locked.serialize()
        return sealed

    async def _whole(self, work: Coroutine[Any, Any, Done]) -> Done:
        """Done to its end also when nobody waits for it any more: half of it would leave the file in a
        transaction that never ends."""
        task = asyncio.create_task(work)
        self._works.add(task)
        task.add_done_callback(self._end)
        return await asyncio.shield(task)

    def _end(self, task: "asyncio.Task[Any]") -> None:
        self._works.discard(task)
        if not task.cancelled():
            task.exception()  # which nobody may wait for any more

    async def close(self) -> None:
        for task in self._works:
            task.cancel()
        await asyncio.gather(*self._works, return_exceptions=True)
        await self._store.close()
        await self._database.stop()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _refused(why: str) -> errors.InvalidInput:
    return errors.InvalidInput(what="The keys of this device", why=OTHER_KEYS.format(why=why))


def lock_file(data: bytes) -> tuple[bytes, dict[str, Any]]:
    """A file as others can keep it for us, and what opens it."""
    sealed, opens = encrypt_attachment(data)
    return sealed, opens.serialize()


def open_file(data: bytes, locked: LockedFile) -> bytes:
    """The file that something was made of, with what came in the message."""
    try:
        return bytes(decrypt_attachment(data, locked.key, locked.digest, locked.start))
    except (TypeError, ValueError, MatrixError) as error:
        raise errors.FileUnavailable(why=f"it cannot be decrypted: {error}") from None


def _json(table: Mapping[str, Any]) -> Any:
    """A copy, which the library changes."""
    return copy.deepcopy(dict(table))
