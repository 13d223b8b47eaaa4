"""Encrypted rooms: the keys of our device, what is read with them and written."""

import fcntl
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mautrix.client import Client
from mautrix.crypto import OlmMachine, PgCryptoStore
from mautrix.crypto.attachments import decrypt_attachment, encrypt_attachment
from mautrix.crypto.store import StateStore
from mautrix.errors import EncryptionError, MatrixError
from mautrix.types import (
    DeviceID,
    DeviceLists,
    DeviceOTKCount,
    EncryptedEvent,
    EventType,
    IdentityKey,
    RoomEncryptionStateEventContent,
    RoomID,
    SerializerError,
    StateEvent,
    ToDeviceEvent,
    TrustState,
    UserID,
)
from mautrix.util.async_db import Database

from frontdesk import errors
from frontdesk.channels.matrix.client import Homeserver
from frontdesk.channels.matrix.inbound import Event, Us
from frontdesk.channels.matrix.outbound import Content
from frontdesk.channels.matrix.rooms import Rooms
from frontdesk.logs import get_logger

PICKLE_KEY = "frontdesk"
"""The library wants one. The file is its owner's alone; a key beside it would hide nothing."""
FOLDER = "matrix"
NOBODYS = (TrustState.BLACKLISTED, TrustState.UNKNOWN_DEVICE)
"""Of a sender who has no such device: perhaps somebody else's words."""

UNREADABLE = (MatrixError, SerializerError, LookupError, TypeError, ValueError, AttributeError)
"""What the library raises for what people send: some of it was not meant to be sent."""

log = get_logger(__name__)


class RoomStates(StateStore):
    """What the library asks about rooms."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms

    async def is_encrypted(self, room_id: RoomID) -> bool:
        return (await self._rooms.find(room_id)).is_encrypted

    async def get_encryption_info(self, room_id: RoomID) -> RoomEncryptionStateEventContent | None:
        settings = await self._rooms.encryption_of(room_id)
        return RoomEncryptionStateEventContent.deserialize(_json(settings)) if settings else None

    async def find_shared_rooms(self, user_id: UserID) -> list[RoomID]:  # noqa: ARG002
        """Nobody of whom nothing is known is followed for what they might write."""
        return []


class Encryption:
    """The keys of one device, in a file that one process has."""

    def __init__(self, server: Homeserver, us: Us, rooms: Rooms, home: Path) -> None:
        self._server = server
        self._us = us
        name = hashlib.sha256(f"{us.user_id}\0{us.device_id}".encode()).hexdigest()[:16]
        self._file = home.expanduser() / FOLDER / f"{name}.db"
        self._client = Client(mxid=UserID(us.user_id), device_id=DeviceID(us.device_id), api=server.api)
        self._database = Database.create(f"sqlite:///{self._file}", upgrade_table=PgCryptoStore.upgrade_table)
        self._store = PgCryptoStore(us.user_id, PICKLE_KEY, self._database)
        self._machine = OlmMachine(self._client, self._store, RoomStates(rooms))
        self._lock = -1

    async def open(self, recovery_key: str | None) -> None:
        """Load the keys, or make them; sign the device where that is wanted."""
        self._own()
        await self._database.start()
        await self._store.put_device_id(DeviceID(self._us.device_id))
        await self._store.open()
        await self._machine.load()
        await self._machine.share_keys()
        if recovery_key:
            try:
                await self._machine.verify_with_recovery_key(recovery_key)
            except (MatrixError, ValueError, KeyError) as error:
                raise errors.InvalidInput(
                    what="The recovery key", why=f"it signs nothing: {error}"
                ) from error

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

    async def take(self, synced: Mapping[str, Any]) -> None:
        """What a sync says about devices and keys: kept before anything is read with it."""
        counts = synced.get("device_one_time_keys_count")
        if isinstance(counts, Mapping):
            left = counts.get("signed_curve25519", 0)
            await self._machine.handle_otk_count(DeviceOTKCount(curve25519=0, signed_curve25519=int(left)))
        lists = synced.get("device_lists")
        changed = lists.get("changed", []) if isinstance(lists, Mapping) else []
        await self._machine.handle_device_lists(DeviceLists(changed=changed, left=[]))
        sent = synced.get("to_device")
        for raw in sent.get("events", []) if isinstance(sent, Mapping) else []:
            await self._take_key(raw)

    async def _take_key(self, raw: Any) -> None:
        """Anybody can send us anything here; what is no key for us is passed over."""
        try:
            if not isinstance(raw, Mapping) or raw.get("type") != "m.room.encrypted":
                return
            await self._machine.handle_to_device_event(ToDeviceEvent.deserialize(_json(raw)))
        except UNREADABLE as error:
            log.warning("matrix_key_refused", sender=raw.get("sender"), why=str(error))

    async def note_member(self, room_id: str, event: Event) -> None:
        """Who comes is not to read what was said before, who goes not what is said after."""
        try:
            await self._machine.handle_member_event(
                StateEvent.deserialize(_json({**event, "room_id": room_id}))
            )
        except UNREADABLE as error:
            log.warning("matrix_event_unreadable", room=room_id, why=str(error))

    async def read(self, room_id: str, event: Event) -> Event:
        """The event in the clear; as it is where it cannot be read."""
        try:
            locked = EncryptedEvent.deserialize(_json({**event, "room_id": room_id}))
            opened = await self._machine.decrypt_megolm_event(locked)
        except UNREADABLE as error:
            log.warning("matrix_not_decrypted", room=room_id, message=event.get("event_id"), why=str(error))
            return event
        if opened["mautrix"]["trust_state"] in NOBODYS:
            log.warning("matrix_unknown_device", room=room_id, message=event.get("event_id"))
            return event
        read: Event = opened.serialize()
        return read

    async def ask_for_key(self, room_id: str, event: Event) -> None:
        """Whoever wrote it may still have what opens it."""
        content = event.get("content")
        content = content if isinstance(content, Mapping) else {}
        sender, session, device = event.get("sender"), content.get("session_id"), content.get("device_id")
        if sender and session and device:
            key, whom = IdentityKey(content.get("sender_key", "")), {sender: [device]}
            await self._machine.request_room_key(RoomID(room_id), key, session, whom, timeout=0)

    async def lock(self, room_id: str, kind: str, content: Content) -> Content:
        """An event for the devices of those who are in the room now."""
        event_type, room = EventType.find(kind, EventType.Class.MESSAGE), RoomID(room_id)
        try:
            locked = await self._machine.encrypt_megolm_event(room, event_type, content)
        except EncryptionError:
            members = [UserID(each) for each in await self._server.members(room_id)]
            await self._machine.share_group_session(room, members)
            locked = await self._machine.encrypt_megolm_event(room, event_type, content)
        sealed: Content = locked.serialize()
        return sealed

    async def close(self) -> None:
        await self._store.close()
        await self._database.stop()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def lock_file(data: bytes) -> tuple[bytes, dict[str, Any]]:
    """A file as others can keep it for us, and what opens it."""
    sealed, opens = encrypt_attachment(data)
    return sealed, opens.serialize()


def open_file(data: bytes, opens: Mapping[str, Any]) -> bytes:
    """The file that something was made of, with what came in the message."""
    try:
        key, digest, start = opens["key"]["k"], opens["hashes"]["sha256"], opens["iv"]
        return bytes(decrypt_attachment(data, key, digest, start))
    except (KeyError, TypeError, ValueError, MatrixError) as error:
        raise errors.FileUnavailable(why=f"it cannot be decrypted: {error}") from None


def _json(table: Mapping[str, Any]) -> Any:
    """A copy that the library may change."""
    return dict(table)
