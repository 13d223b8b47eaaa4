"""Every operation on conversations in one service: their life, what was said in them, finding them again."""

from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.flow.lifecycle import Lifecycle
from frontdesk.logs import get_logger
from frontdesk.model import inputs, keys, messages
from frontdesk.model.chats import ChatBound
from frontdesk.model.sessions import MAX_COUNT, SessionEntry, Usage
from frontdesk.model.sources import SessionSource
from frontdesk.model.transcripts import NewestRows, Revision, Rewound
from frontdesk.stores.loading import SLICE_ROWS, giving_way

log = get_logger(__name__)

MAX_TURN_ID = 500


class Conversations(Lifecycle):
    """Finds, keeps and changes conversations, for any number of callers. What was said is there once."""

    async def begin_chat(self, source: SessionSource, most: int, within: timedelta) -> SessionEntry:
        """The session of a chat, which may be its first. TooManyChats when its owner has begun so many."""
        key, resolver = await self.route(source), self.resolver(source)
        if await self._store.sessions.current(key) is None:
            newborn = await self._newborn(key, source, resolver.now)
            bound = ChatBound(
                owner=newborn.owner, platform=str(source.platform), most=most, within=within, now=resolver.now
            )
            await self._store.sessions.settle(
                key,
                msgspec.structs.replace(resolver, newborn=newborn).decide,
                now=resolver.now,
                new_id=self.new_id,
                peer=newborn.peer,
                bound=bound,
            )
        return await self.get_or_create_session(source)

    async def append_to_transcript(
        self,
        session_id: str,
        message: Mapping[str, Any],
        *,
        turn_id: str | None = None,
        turn_position: int | None = None,
    ) -> bool:
        """Store a message; False when it is already there."""
        named = _turn(turn_id, turn_position)
        packed = messages.pack(message, named, turn_position if named else None)
        return await self._append(session_id, [packed], None) == 1

    async def record_turn(
        self,
        session_id: str,
        transcript: Sequence[Mapping[str, Any]],
        *,
        turn_id: str | None = None,
        first_position: int = 0,
        usage: Usage | None = None,
    ) -> int:
        """Store a turn's messages and what it used in one transaction; how many messages were new.

        With a ``turn_id`` the same turn can be handed in again, its messages numbered from
        ``first_position``: each is stored once, and usage is added only when something was new.
        """
        _turn(turn_id, first_position)
        inputs.check_kind("transcript", transcript, list, tuple)
        if usage is not None:
            inputs.check_kind("usage", usage, Usage)
        packed = [
            messages.pack(message, turn_id, position if turn_id is not None else None)
            for position, message in enumerate(transcript, first_position)
        ]
        return await self._append(session_id, packed, usage.checked() if usage else None)

    def _append(
        self, session_id: str, packed: list[messages.Message], usage: Usage | None
    ) -> Coroutine[Any, Any, int]:
        keys.asked_session_id(session_id)
        return self._store.transcripts.append(session_id, packed, self._clock.now(), usage)

    async def load_transcript(
        self,
        session_id: str,
        include_ancestors: bool = False,
        *,
        revision: int | None = None,
        as_stored: bool = False,
    ) -> list[dict[str, Any]]:
        """The messages, oldest first, each tool call followed by its result; ``as_stored`` leaves them as
        they came. ``revision`` gives those that a rewind or rewrite took out."""
        if revision is not None:
            inputs.check_kind("revision", revision, int)
        stored = await self._store.transcripts.load(
            keys.asked_session_id(session_id), ancestors=include_ancestors, revision=revision
        )
        return stored if as_stored else await _in_order(stored)

    async def load_records(self, session_id: str, include_ancestors: bool = False) -> list[dict[str, Any]]:
        """The messages as they are stored, for people and other programs: each has a ``timestamp``, which is
        when it was stored unless it came with one."""
        stored = await self._store.transcripts.load_timed(
            keys.asked_session_id(session_id), ancestors=include_ancestors
        )
        records: list[dict[str, Any]] = []
        async for part in giving_way(stored):
            records += map(_record, part)
        return records

    async def load_newest_records(self, session_id: str) -> NewestRows:
        """The newest of them, as many as somebody is shown at once."""
        stored, is_whole = await self._store.transcripts.load_newest_timed(keys.asked_session_id(session_id))
        return NewestRows(messages=list(map(_record, stored)), is_whole=is_whole)

    async def read_records(
        self, session_id: str, include_ancestors: bool = False
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The same one after the other, however many there are: only some are held at a time."""
        parts = self._store.transcripts.timed_parts(
            keys.asked_session_id(session_id), ancestors=include_ancestors
        )
        async with aclosing(parts):
            async for part in parts:
                for each in part:
                    yield _record(each)

    async def has_platform_message_id(self, session_id: str, platform_message_id: str) -> bool:
        return await self._store.transcripts.has_platform_message_id(
            keys.asked_session_id(session_id), str(platform_message_id)
        )

    async def rewrite_transcript(self, session_id: str, transcript: Sequence[Mapping[str, Any]]) -> bool:
        """Replace the transcript, all or nothing; whether that landed. The previous one stays loadable."""
        inputs.check_kind("transcript", transcript, list, tuple)
        packed = [messages.pack(message) for message in transcript]
        keys.asked_session_id(session_id)
        try:
            return await self._store.transcripts.rewrite(session_id, packed, self._clock.now())
        except errors.StoreError as error:
            log.exception("rewrite_failed", session=session_id, error=str(error))
            return False

    async def rewind_session(self, session_id: str, n: int = 1) -> dict[str, Any] | None:
        """Take back the last ``n`` user turns; None when there is none."""
        inputs.check_kind("n", n, int)
        keys.asked_session_id(session_id)
        return _as_dict(await self._store.transcripts.rewind(session_id, n, self._clock.now()))

    async def redo_session(self, session_id: str) -> dict[str, Any] | None:
        """Bring back what the last rewind took; None when something was said since."""
        keys.asked_session_id(session_id)
        return _as_dict(await self._store.transcripts.redo(session_id, self._clock.now()))

    async def close_tool_calls(self, session_id: str) -> int:
        """Give every tool call without a result an explicit "interrupted" one; how many there were."""
        keys.asked_session_id(session_id)
        return await self._store.transcripts.close_calls(session_id, self._clock.now())

    async def list_revisions(self, session_id: str) -> list[Revision]:
        """The rewinds and rewrites of a transcript; each one's rows can be loaded by its number."""
        return await self._store.transcripts.revisions(keys.asked_session_id(session_id))


def _record(stored: tuple[messages.Plain, datetime]) -> dict[str, Any]:
    message, at = stored
    return {"timestamp": at.isoformat()} | message


async def _in_order(stored: list[messages.Plain]) -> list[messages.Plain]:
    """The messages as a model takes them."""
    if len(stored) <= SLICE_ROWS:
        return messages.conversation(stored)
    ordering = messages.Ordering()
    async for part in giving_way(stored):
        ordering.add(part)
    return ordering.shown


def _turn(turn_id: str | None, position: int | None) -> str | None:
    """The turn's id, when both name a row of a turn; a position alone names none."""
    if turn_id is None:
        return None
    if not isinstance(turn_id, str) or not turn_id.isprintable() or not 0 < len(turn_id) <= MAX_TURN_ID:
        raise errors.InvalidInput(
            what=f"turn_id {turn_id!r}", why=f"use 1 to {MAX_TURN_ID} visible characters"
        )
    if isinstance(position, bool) or not isinstance(position, int) or not 0 <= position <= MAX_COUNT:
        raise errors.InvalidInput(what=f"turn position {position!r}", why=f"use 0 to {MAX_COUNT}")
    return turn_id


def _as_dict(rewound: Rewound | None) -> dict[str, Any] | None:
    return msgspec.structs.asdict(rewound) if rewound else None
