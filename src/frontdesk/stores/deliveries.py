"""Deliveries: written with what they answer, sent later, once."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import asdict, replace

from frontdesk.contracts.bells import Topic
from frontdesk.contracts.store import Row, TryAgain, Work, ring
from frontdesk.model import feed, lanes
from frontdesk.model.audit import AuditEntry, AuditKind
from frontdesk.model.buttons import KeptButton, LiveButton, chat_of, plain_sign
from frontdesk.model.chats import message_digest
from frontdesk.model.deliveries import (
    DRAFT,
    REPLACES,
    Delivery,
    DeliveryClaim,
    DeliveryState,
    Hindrance,
    Settlement,
)
from frontdesk.model.lanes import Lease, Taker
from frontdesk.model.sources import SessionSource
from frontdesk.stores import audit
from frontdesk.stores.columns import clean, from_micros, maybe_time, to_micros
from frontdesk.stores.feed import announce
from frontdesk.stores.lanes import claim_lanes, free, hold, line_up, take_lane, unlined
from frontdesk.stores.rows import BUTTON, DELIVERIES, UNREADABLE_ROW, delivery_body, delivery_row
from frontdesk.stores.work import Noun, few_or_many, glances, reads, value, writes, writes_lazily

LOCKED_AT_ONCE = 100
FEW = 10
"""As many are looked at without waking a reader."""
NODE_GONE = "the node that was sending it is gone"


class Deliveries(Noun):
    @writes
    def add(self, deliveries: Sequence[Delivery]) -> Work[int]:
        """Have these sent; how many of them are new."""
        fresh = yield from add(deliveries, tells=True)
        yield ring(Topic.DELIVERIES)
        return fresh

    @writes
    def claim(
        self, node: int, limit: int, now: datetime, lease_seconds: float = lanes.LEASE_SECONDS
    ) -> Work[list[DeliveryClaim]]:
        """Take the first deliveries of free chats that are due, and count the attempt."""
        claims = []
        for lease in (yield from claim_lanes(lanes.LaneKind.CHAT, node, limit, now, lease_seconds)):
            delivery = yield from _take_first(lease.lane, now)
            if delivery:
                claims.append(DeliveryClaim(delivery=delivery, lease=lease))
            else:
                yield from free(lease.lane)
        return claims

    @writes
    def settle(self, claim: DeliveryClaim, settlement: Settlement, now: datetime) -> Work[None]:
        yield from _settle(claim.delivery, settlement, now, claim.lease)
        if (yield from free(claim.lease.lane)):
            yield ring(Topic.DELIVERIES)

    @writes_lazily
    def prune(self, before: datetime, limit: int) -> Work[int]:
        """Forget what arrived before that time, no more than so many; how many."""
        return len((yield "prune_deliveries", {"before": to_micros(before), "limit": limit}))

    @writes_lazily
    def expire_boxes(self, now: datetime, before: datetime, limit: int) -> Work[int]:
        """Give up what was laid ready before that time and nobody collected; how many."""
        expired = yield "expire_boxes", {"before": to_micros(before), "limit": limit}
        for delivery_id, *place in expired:
            yield from _tell(delivery_id, place, DeliveryState.DEAD, now)
        return len(expired)

    @reads
    def find(self, delivery_id: str) -> Work[Delivery | None]:
        return DELIVERIES.one("delivery", delivery_id=delivery_id)

    @reads
    def of_message(self, source: SessionSource, message_id: str) -> Work[Delivery | None]:
        """The delivery that became a message of the source's chat."""
        return DELIVERIES.one("delivery_of_message", message_digest=message_digest(source, message_id))

    @glances
    def has_spoken(self, lane: str) -> Work[bool]:
        """Whether anything was ever to be said to a chat."""
        return bool((yield "lane_holder", {"lane": lane}))

    @reads
    def of_turn(self, turn_id: str) -> Work[list[Delivery]]:
        return DELIVERIES.many("deliveries_of", turn_id=turn_id)

    async def waiting(self, lane: str, limit: int) -> list[Delivery]:
        found = await few_or_many(self._engine, "pending_in", FEW, limit, lane=lane)
        return [delivery for delivery in map(DELIVERIES.read, found) if delivery]

    @reads
    def troubled(self, limit: int) -> Work[list[Delivery]]:
        """What did not arrive or may not have, newest first."""
        return DELIVERIES.many("troubled_deliveries", limit=limit)

    @reads
    def late(self, limit: int) -> Work[list[Delivery]]:
        """What was tried in vain and is tried again, and what waits behind it, newest first."""
        return DELIVERIES.many("late_deliveries", limit=limit)

    @reads
    def why_troubled(self, limit: int) -> Work[list[Hindrance]]:
        """What is said of each that troubled() tells of, without the texts."""
        return [_hindrance(row) for row in (yield "why_troubled", {"limit": limit})]

    @reads
    def why_late(self, limit: int) -> Work[list[Hindrance]]:
        """The same of late()."""
        return [_hindrance(row) for row in (yield "why_late", {"limit": limit})]

    @reads
    def count_troubled(self, at_most: int) -> Work[dict[str, tuple[int, datetime]]]:
        """On how many answers of each platform troubled() tells, no further than so many, and since when."""
        found = yield "count_troubled", {"limit": at_most}
        return {platform: (count, from_micros(since)) for platform, count, since in found}

    @reads
    def count_late(self, at_most: int) -> Work[dict[str, tuple[int, datetime]]]:
        """The same of late()."""
        found = yield "count_late", {"limit": at_most}
        return {platform: (count, from_micros(since)) for platform, count, since in found}

    async def bring_forward(self, late: Sequence[Delivery], now: datetime) -> None:
        """What is to be tried later is due now, as far as it still waits."""
        by_lane = sorted(late, key=lambda delivery: delivery.lane)
        for start in range(0, len(by_lane), LOCKED_AT_ONCE):
            await self._bring_forward(by_lane[start : start + LOCKED_AT_ONCE], now)

    @writes
    def _bring_forward(self, late: Sequence[Delivery], now: datetime) -> Work[None]:
        for delivery in late:
            yield "lock_lane", {"lane": delivery.lane}  # before the delivery, as whoever settles does
            if (yield "bring_forward", {"delivery_id": delivery.id, "now": to_micros(now)}):
                yield from unlined(delivery.lane)
        yield ring(Topic.DELIVERIES)

    @writes
    def collect(self, delivery_ids: Sequence[str], now: datetime) -> Work[int]:
        collected = 0
        for delivery_id in delivery_ids:
            for place in (yield "collect_delivery", {"delivery_id": delivery_id, "now": to_micros(now)}):
                yield from _tell(delivery_id, place, DeliveryState.SENT, now)
                collected += 1
        return collected

    @writes
    def revive(self, delivery_id: str, now: datetime) -> Work[bool]:
        """Send it again, because a person wants it; False when it is not in trouble."""
        revived = yield "revive_delivery", {"delivery_id": delivery_id, "now": to_micros(now)}
        if not revived:
            return False
        lane, *place = revived[0]
        yield from _tell(delivery_id, place, DeliveryState.PENDING, now)
        if lanes.kind_of(lane) is not lanes.LaneKind.BOX:
            yield from line_up(lane, now)
        yield ring(Topic.DELIVERIES)
        return True

    @writes
    def discard(self, delivery_id: str, by: str, now: datetime) -> Work[bool]:
        """Give it up for good, because a person wants that, who is named in the audit log; False when it is
        not in trouble."""
        found = yield "discard_delivery", {"delivery_id": delivery_id, "now": to_micros(now)}
        if not found:
            return False
        yield from _tell(delivery_id, found[0], DeliveryState.DISCARDED, now)
        facts = {"delivery": delivery_id}
        kind = AuditKind.DELIVERY_DISCARDED
        yield from audit.append(AuditEntry(kind=kind, at=now, actor=by, facts=facts))
        return True

    @reads
    def counts(self) -> Work[dict[str, int]]:
        return {state: int(number) for state, number in (yield "count_deliveries", {})}

    @glances
    def next_due(self) -> Work[datetime | None]:
        return maybe_time((yield from value("next_due", kind=str(lanes.LaneKind.CHAT))))


def add(deliveries: Sequence[Delivery], *, tells: bool = False) -> Work[int]:
    """How many of them are new; the feed ``tells`` of each where it tells of nothing else that they are part
    of."""
    added = 0
    for delivery in deliveries:
        fresh = yield from _insert(delivery)
        added += fresh
        if fresh and tells:
            place = (delivery.turn_id, delivery.session_id, delivery.session_key)
            yield from _tell(delivery.id, place, DeliveryState.PENDING, delivery.created_at)
        if fresh and are_sent([delivery]):
            yield from line_up(delivery.lane, delivery.created_at)
    return added


def are_sent(deliveries: Sequence[Delivery]) -> bool:
    """Whether there is one among them that does not lie in a box until it is collected."""
    return any(lanes.kind_of(each.lane) is not lanes.LaneKind.BOX for each in deliveries)


def _insert(delivery: Delivery) -> Work[bool]:
    """Whether it is new; then its buttons are, too."""
    fresh = bool((yield "insert_delivery", delivery_row(delivery)))
    for button in delivery.buttons if fresh else ():
        if isinstance(button, LiveButton):
            kept = KeptButton(
                token=button.token,
                delivery_id=delivery.id,
                chat=chat_of(delivery.to),
                sign=plain_sign(button.sign) if button.sign else None,
                does=button.does,
                until=button.until,
            )
            yield "insert_button", BUTTON.values(asdict(kept))
    return fresh


def add_and_take(deliveries: Sequence[Delivery], taker: Taker) -> Work[DeliveryClaim | None]:
    """Add deliveries to one chat; where nothing waits before them, the first is taken to be sent at once.

    After a crash it is as if it had been claimed by itself: the send counts as under way.
    """
    # The lane before the rows: whoever adds to it waits, so that nothing comes to stand before the first.
    first_one, *others = deliveries
    lease = yield from take_lane(first_one.lane, taker)
    if lease is None:
        yield from add(deliveries)
        return None
    taken = replace(first_one, state=DeliveryState.SENDING, attempts=1)
    if not (yield from _insert(taken)):  # it was said before
        yield from add(others)
        yield from free(lease.lane)
        return None
    if others:
        yield from add(others)
    return DeliveryClaim(delivery=taken, lease=lease)


def recover(lane: str, try_again: TryAgain, now: datetime) -> Work[None]:
    """Sends that were under way when their holder was gone: to be repeated only where that does no harm."""
    for delivery in (yield from DELIVERIES.many("sends_under_way", lane=lane)):
        card = None
        if delivery.brought_by != delivery.id:
            card = yield from DELIVERIES.one("delivery", delivery_id=delivery.brought_by)
        place = {DRAFT: card.platform_message_id} if card and card.platform_message_id else {}
        retry_at = try_again(replace(delivery, extra=delivery.extra | place), now)
        state = DeliveryState.PENDING if retry_at else DeliveryState.UNKNOWN
        begun = delivery.due_at if retry_at else None  # or later: nobody knows
        settlement = Settlement(state=state, error=NODE_GONE, retry_at=retry_at, unsure_since=begun)
        yield from _settle(delivery, settlement, now)


def _take_first(lane: str, now: datetime) -> Work[Delivery | None]:
    """The first delivery of a lane; one that cannot be read is given up on the way."""
    while found := (yield "begin_send", {"lane": lane}):
        delivery = DELIVERIES.read(found[0])
        if delivery is not None:
            return delivery
        unread = Settlement(state=DeliveryState.DEAD, error=UNREADABLE_ROW)
        yield "settle_delivery", _settled(found[0][0], unread)
        yield from _tell(found[0][0], (None, None, None), DeliveryState.DEAD, now)
    return None


def _settle(
    delivery: Delivery, settlement: Settlement, now: datetime, lease: Lease | None = None
) -> Work[None]:
    """Under the lease where its lane is not locked by now."""
    sent_at = to_micros(now) if settlement.state is DeliveryState.SENT else None
    named = settlement.platform_message_id or (delivery.draft if sent_at else None)
    digest = message_digest(delivery.to, named) if named else None
    values = _settled(delivery.id, settlement, sent_at, digest)
    if lease is None:
        yield "settle_delivery", values
    elif not (yield "settle_held_delivery", values | asdict(lease)):
        yield from hold(lease)  # it is lost; else the delivery is not there any more
    if settlement.drops_draft or (settlement.unsure_since and not delivery.unsure_since):
        yield from _mark(delivery.id, settlement)
    place = (delivery.turn_id, delivery.session_id, delivery.session_key)
    yield from _tell(delivery.id, place, settlement.state, now)


def _tell(delivery_id: str, place: Sequence[str | None], state: DeliveryState, now: datetime) -> Work[None]:
    """A delivery is in another state; the place: its turn, session and key, as far as it has any."""
    turn_id, session_id, session_key = place
    yield from announce(
        feed.FeedKind.DELIVERY,
        now,
        session_key=session_key,
        session_id=session_id,
        turn_id=turn_id,
        delivery_id=delivery_id,
        state=str(state),
    )


def _hindrance(row: Row) -> Hindrance:
    platform, state, error, due_at = row
    retried = state == DeliveryState.PENDING and error is not None
    return Hindrance(platform=platform, why=error, next_try_at=maybe_time(due_at) if retried else None)


def _mark(delivery_id: str, settlement: Settlement) -> Work[None]:
    """Keep since when it may have arrived, or that it is a message of its own now. Its text may have been
    erased since it was claimed."""
    if delivery := (yield from DELIVERIES.one("delivery_locked", delivery_id=delivery_id)):
        dropped = (DRAFT, REPLACES) if settlement.drops_draft else ()
        extra = {name: value for name, value in delivery.extra.items() if name not in dropped}
        body = delivery_body(replace(delivery, unsure_since=settlement.unsure_since, extra=extra))
        yield "rewrite_message", {"delivery_id": delivery_id, "body": body}


def _settled(
    delivery_id: str, settlement: Settlement, sent_at: int | None = None, digest: str | None = None
) -> dict[str, Any]:
    error, named = settlement.error, settlement.platform_message_id
    return {
        "delivery_id": delivery_id,
        "state": str(settlement.state),
        "uncounted": int(not settlement.counts),
        "due_at": to_micros(settlement.retry_at) if settlement.retry_at else None,
        "sent_at": sent_at,
        "error": error and clean(error),
        "platform_message_id": named and clean(named),
        "message_digest": digest,
    }
