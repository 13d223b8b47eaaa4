"""What is asked about turns: what waits, what runs, what was set aside."""

from functools import partial
from typing import Annotated, TypedDict, cast

from frontdesk import errors
from frontdesk.app.office.counters import COUNTED, LIST_LIMIT, Counter
from frontdesk.app.office.plain import among, beginning, chosen, picked, where_of
from frontdesk.flow import endings
from frontdesk.model.asides import why_not_again
from frontdesk.model.lists import ListedTurn, ListedTurns, TurnNumbers
from frontdesk.model.turns import TurnState

UNREADABLE = "unreadable"
"""The state of a turn whose row cannot be read."""


class TurnRow(TypedDict):
    """A turn as a list shows it. One that cannot be read has a state and an id alone."""

    id: str
    kind: str | None
    state: str
    platform: str
    account: str | None
    where: str
    text: str
    is_whole: bool
    """Whether that is all of the text."""
    session_id: str | None
    session_key: str | None
    attempts: int
    error: str | None
    """Why it was set aside, failed, or waits."""
    not_again: str | None
    """Of one that was set aside: why it cannot be tried again, as far as its row tells."""
    stop_requested: bool
    due_at: str
    """While it waits: not before then."""
    received_at: str | None
    started_at: str | None
    finished_at: str | None


class TurnList(TypedDict):
    """Turns, the newest first; ``next`` is where the others are."""

    items: list[TurnRow]
    next: str | None


class AsideOutcome(TypedDict):
    """What became of a turn that was set aside."""

    id: str
    done: bool
    """Whether it was set aside until now."""
    state: str


class TurnCounts(TypedDict):
    """How many turns are under way; none is counted further than 1,000."""

    queued: int
    running: int
    waiting: int
    """For a person's approval."""
    set_aside: int
    oldest_at: str | None
    """Since when the one has waited to be run that has waited longest."""


class TurnCounter(Counter):
    async def page_turns(
        self,
        show: Annotated[str, among(ListedTurns)] = ListedTurns.RECENT,
        limit: int = LIST_LIMIT,
        after: str | None = None,
    ) -> TurnList:
        """Turns that wait to be run (`waiting`), run or wait for a person (`running`), were set aside
        (`set_aside`), or all of them (`recent`); the newest first.

        Over HTTP of each text there are the first 1,200 characters, with `is_whole` false where it goes on:
        all of it is among the messages of the session once the turn has begun, and in `frontdesk turns list
        --json`.
        """
        wanted, place = chosen("show", ListedTurns, show), await self._opened(after, "turns")
        whole = self._visitor is None
        found = await self._store.lists.turns(self._viewer, wanted, limit, place, whole=whole)
        return {
            "items": [self._shown(each) for each in found.items],
            "next": await self._closed(found.next, "turns"),
        }

    async def retry_turn(self, turn_id: str) -> AsideOutcome:
        """Try a turn once more that was set aside; whether it was, and its state now. The audit log says who
        wanted it."""
        parts, now = self._running().parts, self._clock.now()
        tell = partial(endings.retried_notices, parts, now)
        done = await self._store.turns.retry(turn_id, self._by.who, now, tell)
        return await self._outcome(turn_id, done)

    async def give_up_turn(self, turn_id: str) -> AsideOutcome:
        """Give up a turn that was set aside, and tell whoever wrote; whether it was, and its state now. The
        audit log says who wanted it."""
        parts, now = self._running().parts, self._clock.now()
        tell = partial(endings.given_up_notices, parts, now)
        done = await self._store.turns.give_up(turn_id, self._by.who, now, tell)
        return await self._outcome(turn_id, done)

    async def _outcome(self, turn_id: str, done: bool) -> AsideOutcome:
        turn = await self._store.turns.find(turn_id)
        if turn is None and not done:
            raise errors.UnknownTurn(turn_id=turn_id)
        return {"id": turn_id, "done": done, "state": str(turn.state) if turn else UNREADABLE}

    def _shown(self, listed: ListedTurn) -> TurnRow:
        row = _row(listed)
        if listed.turn and self._visitor is None:
            row["text"], row["is_whole"] = listed.turn.text, True
        if listed.turn:
            row["error"] = self._why(listed.turn.state, listed.turn.error)
        return row

    async def count_turns(self) -> TurnCounts:
        """How many turns wait, run and were set aside, and since when the oldest waits."""
        found = await self._store.lists.count_turns(self._viewer, COUNTED)
        return cast(TurnCounts, picked(found, *TurnNumbers.__struct_fields__))


def _row(listed: ListedTurn) -> TurnRow:
    turn = listed.turn
    if turn is None:
        return _unread(listed)
    names = ("id", "kind", "state", "session_id", "session_key", "attempts", "error")
    times = ("received_at", "started_at", "finished_at")
    about = picked(turn, *names, *times, "stop_requested") | picked(listed, "due_at")
    place = picked(turn.source, "platform", "account") | {"where": where_of(turn.source)}
    why = why_not_again(turn) if turn.state is TurnState.SET_ASIDE else None
    return cast(TurnRow, about | place | beginning(turn.text) | {"not_again": why})


def _unread(listed: ListedTurn) -> TurnRow:
    return {
        "id": listed.id,
        "kind": None,
        "state": UNREADABLE,
        "platform": "",
        "account": None,
        "where": "",
        "text": "",
        "is_whole": True,
        "session_id": None,
        "session_key": None,
        "attempts": 0,
        "error": None,
        "not_again": str(why_not_again(None)),
        "stop_requested": False,
        "due_at": listed.due_at.isoformat(),
        "received_at": None,
        "started_at": None,
        "finished_at": None,
    }
