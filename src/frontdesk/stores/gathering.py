"""Gathering: what somebody writes in a burst is one turn. Each message is a row, and part of the first."""

from collections.abc import Mapping
from typing import Any

from frontdesk.contracts.store import Work
from frontdesk.model.turns import Gathering, Turn, TurnKind, TurnState
from frontdesk.stores.columns import to_micros
from frontdesk.stores.feed import tell_turn
from frontdesk.stores.lanes import unlined
from frontdesk.stores.rows import TURNS

Values = Mapping[str, Any]


def join(turn: Turn, lane: str, values: Values, gathering: Gathering) -> Work[Turn | None]:
    """Make a message part of the turn that is being gathered from its sender in a lane that is locked; that
    turn, or None when there is none."""
    now = turn.received_at
    waiting = yield from TURNS.many("gathering_in", lane=lane, now=to_micros(now))
    first = next((each for each in waiting if gathering.joins(each, turn)), None)
    if first is None:
        return None
    part = {"state": str(TurnState.JOINED), "part_of": first.id}
    if not (yield "insert_turn", {**values, **part}):
        return None  # it came in twice at once, for two lanes: whoever asked finds that out
    due_at = min(now + gathering.window, first.received_at + gathering.longest)
    kind = TurnKind.MESSAGE if turn.kind is TurnKind.MESSAGE else first.kind
    gathered = {"due_at": to_micros(max(due_at, now)), "kind": str(kind)}
    yield "gather_turn", {"turn_id": first.id, **gathered}
    yield from unlined(lane)
    yield from tell_turn(turn, TurnState.JOINED, now)
    return first


def close(turn: Turn, lane: str) -> Work[None]:
    """Whatever is being gathered in the lane is whole: something came after it that does not wait."""
    yield "close_gathering", {"lane": lane, "now": to_micros(turn.received_at)}
    yield from unlined(lane)


def whole(turn: Turn) -> Work[Turn]:
    """A turn that has parts, with everything that was gathered into it."""
    return turn.joined((yield from TURNS.many("parts_of", turn_id=turn.id)))
