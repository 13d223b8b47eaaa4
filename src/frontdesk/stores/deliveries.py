"""Deliveries: written with what they answer, sent later, once."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from frontdesk.contracts.bells import Topic
from frontdesk.model import feed, lanes
from frontdesk.model.deliveries import Delivery, DeliveryClaim, DeliveryState, Settlement
from frontdesk.stores.bells import Bells
from frontdesk.stores.lanes import claim, free, hold, line_up, tell, unlined
from frontdesk.stores.mail import UNREADABLE_ROW, delivery_row, read_delivery
from frontdesk.stores.rows import clean, maybe_micros, maybe_time, to_micros
from frontdesk.stores.work import Engine, Work, first, row, rows

LOCKED_AT_ONCE = 100
NODE_GONE = "the node that was sending it is gone"


class Deliveries:
    def __init__(self, engine: Engine, bells: Bells) -> None:
        self._engine = engine
        self._bells = bells

    async def add(self, deliveries: Sequence[Delivery]) -> None:
        await self._engine.write(partial(add, deliveries))
        self._bells.ring(Topic.DELIVERIES)

    async def claim(
        self, node: int, limit: int, now: datetime, lease_seconds: float = lanes.LEASE_SECONDS
    ) -> list[DeliveryClaim]:
        return await self._engine.write(partial(_claim, node, limit, now, lease_seconds))

    async def settle(self, claim: DeliveryClaim, settlement: Settlement, now: datetime) -> None:
        more = await self._engine.write(partial(_settle, claim, settlement, now))
        self._bells.ring(Topic.FEED)
        if more:
            self._bells.ring(Topic.DELIVERIES)

    async def find(self, delivery_id: str) -> Delivery | None:
        return await self._engine.read(partial(_find, delivery_id))

    async def of_turn(self, turn_id: str) -> list[Delivery]:
        return await self._engine.read(partial(_many, "deliveries_of", turn_id=turn_id))

    async def waiting(self, lane: str, limit: int) -> list[Delivery]:
        return await self._engine.read(partial(_many, "pending_in", lane=lane, limit=limit))

    async def troubled(self, limit: int) -> list[Delivery]:
        return await self._engine.read(partial(_many, "troubled_deliveries", limit=limit))

    async def late(self, limit: int) -> list[Delivery]:
        return await self._engine.read(partial(_many, "late_deliveries", limit=limit))

    async def bring_forward(self, late: Sequence[Delivery], now: datetime) -> None:
        by_lane = sorted(late, key=lambda delivery: delivery.lane)
        for start in range(0, len(by_lane), LOCKED_AT_ONCE):
            await self._engine.write(partial(_bring_forward, by_lane[start : start + LOCKED_AT_ONCE], now))
        self._bells.ring(Topic.DELIVERIES)

    async def collect(self, delivery_ids: Sequence[str], now: datetime) -> int:
        return await self._engine.write(partial(_collect, delivery_ids, now))

    async def revive(self, delivery_id: str, now: datetime) -> bool:
        revived = await self._engine.write(partial(_revive, delivery_id, now))
        self._bells.ring(Topic.DELIVERIES)
        return revived

    async def prune(self, before: datetime, limit: int) -> int:
        values = {"before": to_micros(before), "limit": limit}
        return len(await self._engine.write(partial(rows, "prune_deliveries", **values), lazy=True))

    async def expire_boxes(self, before: datetime, limit: int) -> int:
        values = {"before": to_micros(before), "limit": limit}
        return len(await self._engine.write(partial(rows, "expire_boxes", **values), lazy=True))

    async def counts(self) -> dict[str, int]:
        found = await self._engine.read(partial(rows, "count_deliveries"))
        return {state: int(number) for state, number in found}

    async def next_due(self) -> datetime | None:
        found = await self._engine.read(partial(row, "next_due", kind=str(lanes.LaneKind.CHAT)))
        return maybe_time(found[0]) if found else None


def add(deliveries: Sequence[Delivery]) -> Work[None]:
    for delivery in deliveries:
        fresh = first((yield "insert_delivery", delivery_row(delivery)))
        if fresh and lanes.kind_of(delivery.lane) is not lanes.LaneKind.BOX:
            yield from line_up(delivery.lane, delivery.created_at)


def recover(lane: str, repeatable: Callable[[Delivery], bool], now: datetime) -> Work[None]:
    """Sends that were under way when their holder was gone: to be repeated only where that does no harm."""
    for delivery in (yield from _many("sends_under_way", lane=lane)):
        again = repeatable(delivery)
        state = DeliveryState.PENDING if again else DeliveryState.UNKNOWN
        settlement = Settlement(state=state, error=NODE_GONE, retry_at=now if again else None)
        yield from _settle_row(delivery, settlement, now)


def _claim(node: int, limit: int, now: datetime, lease_seconds: float) -> Work[list[DeliveryClaim]]:
    claims = []
    for lease in (yield from claim(lanes.LaneKind.CHAT, node, limit, now, lease_seconds)):
        delivery = yield from _take_first(lease.lane)
        if delivery is None:
            yield from free(lease.lane)
            continue
        claims.append(DeliveryClaim(delivery=delivery, lease=lease))
    return claims


def _take_first(lane: str) -> Work[Delivery | None]:
    """The first delivery of a lane; one that cannot be read is given up on the way."""
    while found := (first((yield "begin_send", {"lane": lane}))):
        delivery = read_delivery(found)
        if delivery is not None:
            return delivery
        yield (
            "settle_delivery",
            {
                "delivery_id": found[1],
                "state": str(DeliveryState.DEAD),
                "due_at": None,
                "sent_at": None,
                "error": UNREADABLE_ROW,
                "platform_message_id": None,
            },
        )
    return None


def _settle(claim: DeliveryClaim, settlement: Settlement, now: datetime) -> Work[bool]:
    yield from hold(claim.lease)
    yield from _settle_row(claim.delivery, settlement, now)
    return (yield from free(claim.lease.lane))


def _settle_row(delivery: Delivery, settlement: Settlement, now: datetime) -> Work[None]:
    yield (
        "settle_delivery",
        {
            "delivery_id": delivery.id,
            "state": str(settlement.state),
            "due_at": maybe_micros(settlement.retry_at),
            "sent_at": to_micros(now) if settlement.state is DeliveryState.SENT else None,
            "error": clean(settlement.error),
            "platform_message_id": clean(settlement.platform_message_id),
        },
    )
    yield from _tell(delivery, settlement.state, now)


def _tell(delivery: Delivery, state: DeliveryState, now: datetime) -> Work[None]:
    yield from tell(
        feed.FeedKind.DELIVERY,
        now,
        session_key=delivery.session_key,
        session_id=delivery.session_id,
        turn_id=delivery.turn_id,
        delivery_id=delivery.id,
        state=str(state),
    )


def _find(delivery_id: str) -> Work[Delivery | None]:
    found = first((yield "delivery", {"delivery_id": delivery_id}))
    return read_delivery(found) if found else None


def _many(query: str, **values: Any) -> Work[list[Delivery]]:
    deliveries = map(read_delivery, (yield query, values))
    return [delivery for delivery in deliveries if delivery is not None]


def _bring_forward(late: Sequence[Delivery], now: datetime) -> Work[None]:
    for delivery in late:
        yield "lock_lane", {"lane": delivery.lane}  # before the delivery, as whoever settles does
        if (yield "bring_forward", {"delivery_id": delivery.id, "now": to_micros(now)}):
            yield from unlined(delivery.lane)


def _collect(delivery_ids: Sequence[str], now: datetime) -> Work[int]:
    collected = 0
    for delivery_id in delivery_ids:
        found = first((yield "collect_delivery", {"delivery_id": delivery_id, "now": to_micros(now)}))
        collected += found is not None
    return collected


def _revive(delivery_id: str, now: datetime) -> Work[bool]:
    found = first((yield "revive_delivery", {"delivery_id": delivery_id, "now": to_micros(now)}))
    if found is None:
        return False
    if lanes.kind_of(found[0]) is not lanes.LaneKind.BOX:
        yield from line_up(found[0], now)
    return True
