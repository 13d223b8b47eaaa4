"""A desk in memory, for tests of channels."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.contracts import channels
from frontdesk.model import deliveries, events, keys, lanes, turns
from frontdesk.model.chats import Cursor
from frontdesk.model.sources import SessionSource

LOOP_TURNS = 20
"""How long the desk takes to store a message, so that who does not wait for it is caught."""

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the desk has an agent do with a message."""

    seen: tuple[events.Event, ...] = ()
    """What is seen of the turn; nothing, when it runs on another node."""
    text: str = ""
    notice: str = ""
    state: turns.TurnState = turns.TurnState.DONE
    hangs: bool = False
    """Whether the turn goes on until the desk is released."""


def echo(incoming: channels.Incoming) -> Answer:
    text = f"You said: {incoming.text}"
    return Answer(seen=(events.Text(text=text),), text=text)


class RecordingDesk:
    """A desk in memory: it knows a repeated event again, and answers as it is told to."""

    def __init__(self, answer: Callable[[channels.Incoming], Answer] = echo) -> None:
        self.answer = answer
        self.refusal: errors.FrontdeskError | None = None
        """What accept raises."""
        self.offered: list[channels.Incoming] = []
        self.stored: list[channels.Incoming] = []
        self.happened: list[channels.Happening] = []
        """What was stored, messages and everything else, in its order."""
        self.read_until: dict[str, str] = {}
        """The cursors, by the chat."""
        self.collected_ids: list[str] = []
        self.released = asyncio.Event()
        self.following = asyncio.Event()
        """Set once somebody follows a turn."""
        self.interrupted_ids: list[str] = []
        self._receipts: dict[tuple[str, str | None, str | None], channels.Receipt] = {}
        self._answers: dict[str, list[deliveries.Delivery]] = {}

    async def accept(
        self, happening: channels.Happening, *, cursor: Cursor | None = None
    ) -> channels.Receipt:
        if isinstance(happening, channels.Incoming):
            self.offered.append(happening)
        for _ in range(LOOP_TURNS):
            await asyncio.sleep(0)
        if self.refusal is not None:
            raise self.refusal
        source = happening.source
        keys.check_routable(source, keys.address(source))
        if cursor:
            await self.move_cursor(cursor)
        event = (str(source.platform), source.account, happening.event_id)
        if happening.event_id is not None and event in self._receipts:
            return msgspec.structs.replace(self._receipts[event], repeated=True)
        if isinstance(happening, channels.Incoming) and happening.follows is not None:
            self._check_followed(happening.source, happening.follows)
        self.happened.append(happening)
        turn_id = f"other-{len(self.happened)}"
        if isinstance(happening, channels.Incoming):
            self.stored.append(happening)
            turn_id = f"turn-{len(self.stored)}"
            self._answers[turn_id] = _deliveries_of(turn_id, happening, self.answer(happening))
        self._receipts[event] = channels.Receipt(
            turn_id=turn_id, session_key=keys.build_session_key(source), received_at=NOW
        )
        return self._receipts[event]

    def _check_followed(self, source: SessionSource, turn_id: str) -> None:
        said = [n for n, each in enumerate(self.stored, 1) if each.source.chat_id == source.chat_id]
        if said and f"turn-{said[-1]}" != turn_id:
            raise errors.GoneOn(turn_id=turn_id)

    async def admits(self, source: SessionSource) -> bool:  # noqa: ARG002
        return not isinstance(self.refusal, errors.NotAllowed)

    async def move_cursor(self, cursor: Cursor) -> None:
        self.read_until[cursor.chat] = cursor.value

    async def cursors(self) -> dict[str, str]:
        return dict(self.read_until)

    def commands(self) -> list[channels.CommandHint]:
        return [channels.CommandHint(name="status", help="Show where this conversation stands.")]

    async def follow(self, turn_id: str) -> AsyncGenerator[events.Event | turns.Turn, None]:
        incoming = self.stored[int(turn_id.removeprefix("turn-")) - 1]
        answer = self.answer(incoming)
        self.following.set()
        for event in answer.seen:
            yield event
        if answer.hangs:
            await self.released.wait()
        found = await self.find(turn_id)
        assert found
        yield found

    async def find(self, turn_id: str) -> turns.Turn | None:
        number = turn_id.removeprefix("turn-")
        if not number.isdecimal() or not 0 < int(number) <= len(self.stored):
            return None
        incoming = self.stored[int(number) - 1]
        answer = self.answer(incoming)
        is_over = self.released.is_set() or not answer.hangs
        return turns.Turn(
            id=turn_id,
            state=answer.state if is_over else turns.TurnState.RUNNING,
            session_key=keys.build_session_key(incoming.source),
            source=incoming.source,
            text=incoming.text,
            instructions=incoming.instructions,
            follows=incoming.follows,
            noted=incoming.noted,
            received_at=NOW,
            finished_at=NOW if is_over else None,
        )

    async def has_begun(self, source: SessionSource) -> bool:
        return any(each.source.chat_id == source.chat_id for each in self.stored)

    async def said_until(self, turn: turns.Turn) -> list[dict[str, Any]]:
        said: list[dict[str, Any]] = []
        for incoming in self.stored[: int(turn.id.removeprefix("turn-"))]:
            if incoming.source == turn.source:
                answer = {"role": "assistant", "content": self.answer(incoming).text}
                said += [{"role": "user", "content": incoming.text}, answer]
        return said

    async def interrupt(self, turn_id: str) -> None:
        self.interrupted_ids.append(turn_id)
        self.released.set()

    async def uncollected(
        self, source: SessionSource, *, turn_id: str | None = None
    ) -> list[deliveries.Delivery]:
        found = await self.answers(turn_id) if turn_id else itertools.chain(*self._answers.values())
        return [each for each in found if each.to == source and each.id not in self.collected_ids]

    async def answers(self, turn_id: str) -> list[deliveries.Delivery]:
        return self._answers[turn_id]

    async def collected(self, delivery_ids: Sequence[str]) -> None:
        self.collected_ids += delivery_ids


def _deliveries_of(turn_id: str, incoming: channels.Incoming, answer: Answer) -> list[deliveries.Delivery]:
    said = ((deliveries.DeliveryKind.NOTICE, answer.notice), (deliveries.DeliveryKind.REPLY, answer.text))
    return [
        deliveries.Delivery(
            id=f"{turn_id}-{kind}",
            kind=kind,
            lane=lanes.chat_lane(incoming.source),
            to=incoming.source,
            text=text,
            turn_id=turn_id,
            event_id=incoming.event_id,
            handle=incoming.handle,
            created_at=NOW,
        )
        for kind, text in said
        if text
    ]
