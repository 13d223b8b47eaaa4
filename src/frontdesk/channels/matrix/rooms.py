"""What is known of rooms: asked for when it is needed, and again when an event says that it has changed."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from mautrix.api import Method
from mautrix.errors import MForbidden, MNotFound

from frontdesk.channels.matrix import answers
from frontdesk.channels.matrix.client import Homeserver, place
from frontdesk.channels.matrix.inbound import Event, MatrixRoom, Us

STATES = {"m.room.name": "name", "m.room.topic": "topic"}
ENCRYPTION = "m.room.encryption"
MOST_ROOMS = 10_000
MOST_NAMES = 10_000
MOST_IN_DIRECT = 2
"""Who is in a direct chat. With a third person it is a room like others, whatever it was opened as."""


class Rooms:
    """Names and kinds of the rooms that this account is in."""

    def __init__(self, server: Homeserver, us: Us) -> None:
        self._server = server
        self._us = us
        self._rooms: dict[str, MatrixRoom] = {}
        self._names: dict[tuple[str, str], str | None] = {}
        self._direct: frozenset[str] | None = None
        self.are_followed = False
        """Whether a sync tells us what becomes of them: otherwise one may have been encrypted meanwhile."""
        self.had_keys: Callable[[str], Awaitable[bool]] | None = None
        """Whether a room was encrypted once, by what we hold of it: it stays so, whatever we are told."""

    async def find(self, room_id: str) -> MatrixRoom:
        """The room. What the homeserver does not say is left open; that it is encrypted is never guessed."""
        known = self._rooms.get(room_id)
        if known is None:
            known = await self._ask(room_id)
        elif not (self.are_followed or known.is_encrypted):
            known = msgspec.structs.replace(known, encryption=await self._encryption_of(room_id))
        else:
            return known
        if len(self._rooms) >= MOST_ROOMS:
            self._rooms.clear()
        self._rooms[room_id] = known
        return known

    def known(self, room_id: str) -> MatrixRoom | None:
        """Without asking anybody."""
        return self._rooms.get(room_id)

    async def _ask(self, room_id: str) -> MatrixRoom:
        said = {field: _text(await self._state(room_id, kind), field) for kind, field in STATES.items()}
        return MatrixRoom(
            id=room_id,
            is_direct=await self._is_direct(room_id),
            encryption=await self._encryption_of(room_id),
            **said,
        )

    async def _is_direct(self, room_id: str) -> bool:
        if room_id not in await self._direct_rooms():
            return False
        try:
            return len(await self._server.members(room_id)) <= MOST_IN_DIRECT
        except (MNotFound, MForbidden):
            return True  # nobody hears us there

    async def _encryption_of(self, room_id: str) -> Mapping[str, Any] | None:
        """How a room is encrypted; None where it is not."""
        told = await self._state(room_id, ENCRYPTION)
        if told is None and self.had_keys and await self.had_keys(room_id):
            return {}
        return told

    async def name_of(self, room_id: str, user_id: str) -> str | None:
        """What somebody is called in a room."""
        key = room_id, user_id
        if key not in self._names:
            if len(self._names) >= MOST_NAMES:
                self._names.clear()
            self._names[key] = _text(await self._state(room_id, answers.MEMBER, user_id), "displayname")
        return self._names[key]

    def note_state(self, room_id: str, event: Event) -> None:
        """An event of a room's state: what it is about is asked for again. An encrypted room stays one."""
        kind, key = event.get("type"), event.get("state_key")
        known = self._rooms.get(room_id)
        if kind == answers.MEMBER and isinstance(key, str):
            self._names.pop((room_id, key), None)
        if known is None:
            return
        if kind == ENCRYPTION:
            self._rooms[room_id] = msgspec.structs.replace(
                known, encryption=answers.table(event.get("content"))
            )
        elif kind in STATES or (kind == answers.MEMBER and room_id in (self._direct or {room_id})):
            self._rooms.pop(room_id)

    def note_account(self, event: Event) -> None:
        """An event of our account's own: which rooms are direct chats."""
        if event.get("type") == "m.direct":
            self._direct = answers.direct_rooms(event.get("content"))
            self._rooms.clear()

    async def note_invitation(self, room_id: str, inviter: str) -> None:
        """Somebody wants to talk to us alone: the room is kept as a direct chat of theirs."""
        known = await self._account_data("m.direct")
        rooms = [*answers.texts(known.get(inviter)), room_id]
        path = place("user", self._us.user_id, "account_data", "m.direct")
        await self._server.request(Method.PUT, path, dict(known) | {inviter: list(dict.fromkeys(rooms))})
        self._direct = None
        self._rooms.pop(room_id, None)

    async def _direct_rooms(self) -> frozenset[str]:
        if self._direct is None:
            self._direct = answers.direct_rooms(await self._account_data("m.direct"))
        return self._direct

    async def _account_data(self, kind: str) -> Mapping[str, Any]:
        try:
            return await self._server.get("user", self._us.user_id, "account_data", kind)
        except MNotFound:
            return {}

    async def _state(self, room_id: str, kind: str, key: str = "") -> Mapping[str, Any] | None:
        """None where there is none, or where we may not look."""
        try:
            return await self._server.get("rooms", room_id, "state", kind, key)
        except (MNotFound, MForbidden) as error:
            if kind == ENCRYPTION and not isinstance(error, MNotFound):
                raise  # whoever may not look may not write in the clear
            return None


def _text(state: Mapping[str, Any] | None, field: str) -> str | None:
    value = state.get(field) if state else None
    return value if isinstance(value, str) and value else None
