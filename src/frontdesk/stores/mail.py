"""Turns and deliveries as rows, and back. One that cannot be read never stands in the way of the others."""

from typing import Any

import msgspec
from msgspec.structs import replace

from frontdesk.contracts.store import Row, Work
from frontdesk.logs import get_logger
from frontdesk.model import deliveries, keys, turns
from frontdesk.model.deliveries import Delivery
from frontdesk.model.sources import SessionSource
from frontdesk.model.turns import Turn
from frontdesk.stores.bodies import UNREADABLE
from frontdesk.stores.rows import from_micros, maybe_time, to_micros
from frontdesk.stores.work import first

UNREADABLE_ROW = "its row cannot be read"
SENSELESS = (*UNREADABLE, ValueError, TypeError, OverflowError)

log = get_logger(__name__)


class TurnBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What no query of turns looks at, as JSON."""

    source: dict[str, Any]
    text: str
    content: str | list[dict[str, Any]] | None = None
    history: list[dict[str, Any]] | None = None
    role: str | None = None


class DeliveryBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What no query of deliveries looks at, as JSON."""

    to: dict[str, Any]
    text: str
    final: bool = True
    event_id: str | None = None
    extra: dict[str, Any] = {}


def event_of(turn: Turn) -> dict[str, Any]:
    """By what a platform's event is known again."""
    source = turn.source
    return {"platform": str(source.platform), "account": source.account or "", "event_id": turn.event_id}


def turn_row(turn: Turn, lane: str) -> dict[str, Any]:
    return {**turn_facts(turn, lane), "body": msgspec.json.encode(turn_body(turn))}


def turn_body(turn: Turn) -> TurnBody:
    return TurnBody(
        source=turn.source.to_dict(),
        text=turn.text,
        content=turn.content,
        history=turn.history,
        role=turn.role,
    )


def turn_facts(turn: Turn, lane: str) -> dict[str, Any]:
    """What queries look at."""
    return {
        "id": turn.id,
        "lane": lane,
        "kind": str(turn.kind),
        "session_key": turn.session_key,
        **event_of(turn),
        "received_at": to_micros(turn.received_at),
    }


def find_turn(query: str, **values: Any) -> Work[Turn | None]:
    found = first((yield query, values))
    return read_turn(found) if found else None


def find_turns(query: str, **values: Any) -> Work[list[Turn]]:
    turns = map(read_turn, (yield query, values))
    return [turn for turn in turns if turn is not None]


def read_turn(found: Row) -> Turn | None:
    """The turn; None, with a warning that names it, when its row makes no sense."""
    try:
        return _turn(found)
    except SENSELESS as error:
        log.warning("turn_unreadable", turn=found[1], why=str(error))
        return None


def _turn(found: Row) -> Turn:
    (
        number, turn_id, _lane, kind, state, session_key, session_id, _platform, _account, event_id,
        received_at, _due_at, started_at, finished_at, attempts, put_backs, steers, stop_requested, error,
        draft, blob, on_trial, doubts, interrupted_at,
    ) = found  # fmt: skip
    body = msgspec.json.decode(blob, type=TurnBody)
    return Turn(
        id=turn_id,
        kind=turns.TurnKind(kind),
        state=turns.TurnState(state),
        session_key=keys.check_key(session_key),
        session_id=session_id and keys.check_session_id(session_id),
        source=SessionSource.from_dict(body.source),
        text=body.text,
        content=body.content,
        history=body.history,
        role=body.role,
        event_id=event_id,
        received_at=from_micros(received_at),
        started_at=maybe_time(started_at),
        finished_at=maybe_time(finished_at),
        attempts=attempts,
        put_backs=put_backs,
        on_trial=bool(on_trial),
        doubts=doubts,
        interrupted_at=maybe_time(interrupted_at),
        steers=bool(steers),
        stop_requested=bool(stop_requested),
        error=error,
        draft=draft,
        number=number,
    )


def delivery_row(delivery: Delivery) -> dict[str, Any]:
    body = DeliveryBody(
        to=delivery.to.to_dict(),
        text=delivery.text,
        final=delivery.final,
        event_id=delivery.event_id,
        extra=delivery.extra,
    )
    return {
        "id": delivery.id,
        "lane": delivery.lane,
        "kind": str(delivery.kind),
        "platform": str(delivery.to.platform),
        "account": delivery.to.account or "",
        "turn_id": delivery.turn_id,
        "session_id": delivery.session_id,
        "session_key": delivery.session_key,
        "created_at": to_micros(delivery.created_at),
        "body": msgspec.json.encode(body),
        "confirmation_id": delivery.confirmation_id,
    }


def erased_body(blob: bytes) -> bytes:
    """The body of a delivery that says nothing any more."""
    try:
        body = msgspec.json.decode(blob, type=DeliveryBody)
    except SENSELESS:
        return b"{}"
    return msgspec.json.encode(replace(body, text=deliveries.ERASED, extra={}))


def read_delivery(found: Row) -> Delivery | None:
    """The delivery; None, with a warning that names it, when its row makes no sense."""
    try:
        return _delivery(found)
    except SENSELESS as error:
        log.warning("delivery_unreadable", delivery=found[1], why=str(error))
        return None


def _delivery(found: Row) -> Delivery:
    (
        number, delivery_id, lane, state, kind, _platform, _account, turn_id, session_id, session_key,
        created_at, due_at, sent_at, attempts, error, platform_message_id, blob,
        _confirmation_id,
    ) = found  # fmt: skip
    body = msgspec.json.decode(blob, type=DeliveryBody)
    return Delivery(
        id=delivery_id,
        kind=deliveries.DeliveryKind(kind),
        state=deliveries.DeliveryState(state),
        lane=lane,
        to=SessionSource.from_dict(body.to),
        text=body.text,
        final=body.final,
        turn_id=turn_id,
        session_id=session_id,
        session_key=session_key,
        event_id=body.event_id,
        extra=body.extra,
        created_at=from_micros(created_at),
        due_at=maybe_time(due_at),
        sent_at=maybe_time(sent_at),
        attempts=attempts,
        error=error,
        platform_message_id=platform_message_id,
        number=number,
    )
