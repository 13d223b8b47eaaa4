"""What is known of rooms: asked for when it is needed, and again when an event says that it has changed."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec
from mautrix.api import Method
from mautrix.errors import MForbidden, MNotFound

from frontdesk.channels.matrix.client import ROOT, Homeserver
from frontdesk.channels.matrix.inbound import Event, MatrixRoom, Us

STATES = {"m.room.name": "name", "m.room.topic": "topic"}
MOST_ROOMS = 10_000
MOST_NAMES = 10_000


class Rooms:
    """Names and kinds of the rooms that this account is in."""

    def __init__(self, server: Homeserver, us: Us) -> None:
        self._server = server
        self._us = us
        self._rooms: dict[str, MatrixRoom] = {}
        self._names: dict[tuple[str, str], str | None] = {}
        self._direct: frozenset[str] | None = None

    async def find(self, room_id: str) -> MatrixRoom:
        """The room. What the homeserver does not say is left open; that it is encrypted is never guessed."""
        if room_id in self._rooms:
            return self._rooms[room_id]
        said = {field: _text(await self._state(room_id, kind), field) for kind, field in STATES.items()}
        room = MatrixRoom(
            id=room_id,
            is_direct=room_id in await self._direct_rooms(),
            is_encrypted=bool(await self.encryption_of(room_id)),
            **said,
        )
        if len(self._rooms) >= MOST_ROOMS:
            self._rooms.clear()
        self._rooms[room_id] = room
        return room

    async def encryption_of(self, room_id: str) -> Mapping[str, Any]:
        """How a room is encrypted; empty where it is not."""
        return await self._state(room_id, "m.room.encryption")

    async def name_of(self, room_id: str, user_id: str) -> str | None:
        """What somebody is called in a room."""
        key = room_id, user_id
        if key not in self._names:
            if len(self._names) >= MOST_NAMES:
                self._names.clear()
            self._names[key] = _text(await self._state(room_id, "m.room.member", user_id), "displayname")
        return self._names[key]

    def note_state(self, room_id: str, event: Event) -> None:
        """An event of a room's state: what it is about is asked for again. An encrypted room stays one."""
        kind, key = event.get("type"), event.get("state_key")
        if kind == "m.room.member" and isinstance(key, str):
            self._names.pop((room_id, key), None)
        known = self._rooms.get(room_id)
        if kind == "m.room.encryption" and known:
            self._rooms[room_id] = msgspec.structs.replace(known, is_encrypted=True)
        elif kind in STATES:
            self._rooms.pop(room_id, None)

    def note_account(self, event: Event) -> None:
        """An event of our account's own: which rooms are direct chats."""
        if event.get("type") == "m.direct":
            self._direct = _direct_in(event.get("content"))
            self._rooms.clear()

    async def note_invitation(self, room_id: str, inviter: str) -> None:
        """Somebody wants to talk to us alone: the room is kept as a direct chat of theirs."""
        known = await self._account_data("m.direct")
        rooms = [*_texts(known.get(inviter)), room_id]
        path = f"{ROOT}/user/{quote(self._us.user_id)}/account_data/m.direct"
        await self._server.request(Method.PUT, path, dict(known) | {inviter: list(dict.fromkeys(rooms))})
        self._direct = None
        self._rooms.pop(room_id, None)

    async def _direct_rooms(self) -> frozenset[str]:
        if self._direct is None:
            self._direct = _direct_in(await self._account_data("m.direct"))
        return self._direct

    async def _account_data(self, kind: str) -> Mapping[str, Any]:
        try:
            path = f"{ROOT}/user/{quote(self._us.user_id)}/account_data/{kind}"
            return await self._server.request(Method.GET, path)
        except MNotFound:
            return {}

    async def _state(self, room_id: str, kind: str, key: str = "") -> Mapping[str, Any]:
        """Empty where there is none, or where we may not look."""
        path = f"{ROOT}/rooms/{quote(room_id)}/state/{kind}/{quote(key)}"
        try:
            return await self._server.request(Method.GET, path)
        except (MNotFound, MForbidden) as error:
            if kind == "m.room.encryption" and not isinstance(error, MNotFound):
                raise  # whoever may not look may not write in the clear
            return {}


def _direct_in(content: object) -> frozenset[str]:
    listed = content.values() if isinstance(content, Mapping) else ()
    return frozenset(room for rooms in listed for room in _texts(rooms))


def _texts(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _text(state: Mapping[str, Any], field: str) -> str | None:
    value = state.get(field)
    return value if isinstance(value, str) and value else None
