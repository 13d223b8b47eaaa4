"""What is asked about answers on their way, and what is sent unprompted."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, TypedDict, cast

from frontdesk import errors
from frontdesk.app.office.counters import COUNTED, LIST_LIMIT, Counter
from frontdesk.app.office.plain import Plain, among, beginning, chosen, picked, where_of
from frontdesk.flow.sending import Outlets
from frontdesk.model import inputs
from frontdesk.model.deliveries import Delivery, DeliveryState, Hindrance
from frontdesk.model.lists import DeliveryNumbers, ListedDeliveries

KEY_BYTES = 16
LOOKED_AT = 200
IS_LATE = (
    "It is tried again by itself at {when}, and can be sent or given up only when that has come to nothing."
)
NOT_IN_TROUBLE = "It is {state}: only what is dead or unknown is sent again or given up."
LOST = (DeliveryState.DEAD, DeliveryState.UNKNOWN)


class DeliveryFacts(TypedDict):
    """A delivery as it stands."""

    id: str
    kind: str
    state: str
    platform: str
    account: str | None
    chat_id: str
    where: str
    text: str
    error: str | None
    attempts: int
    next_try_at: str | None
    turn_id: str | None
    session_id: str | None
    created_at: str
    sent_at: str | None


class DeliveryRow(DeliveryFacts):
    """A delivery as a list shows it."""

    is_whole: bool
    """Whether that is all of the text."""


class ResentDelivery(DeliveryFacts):
    """A delivery that was to be sent again."""

    resent: bool
    refused: str | None
    """Why it was not."""


class DiscardedDelivery(DeliveryFacts):
    """A delivery that was to be given up."""

    discarded: bool
    refused: str | None
    """Why it was not."""


class OverduePlatform(TypedDict):
    """What has not arrived on a platform, for one cause."""

    platform: str
    is_lost: bool
    """It is tried again only when somebody wants it: it did not arrive, or may have. Else it is late."""
    count: int
    """None is counted further than 1,000."""
    since: str
    why: str | None
    """What was said of the newest."""
    next_try_at: str | None


class DeliveryList(TypedDict):
    """Deliveries, the newest first; ``next`` is where the others are."""

    items: list[DeliveryRow]
    next: str | None


class DeliveryCounts(TypedDict):
    """How many there are of what has not arrived; none is counted further than 1,000."""

    dead: int
    unsure: int
    late: int
    waiting: int


class DeliveryCounter(Counter):
    async def list_deliveries(self, limit: int = LIST_LIMIT) -> list[Plain]:
        """Answers that did not arrive, or not yet at the first attempt, or may not have; newest first."""
        most = inputs.check_limit(limit)
        found = [*await self._store.deliveries.troubled(most), *await self._store.deliveries.late(most)]
        found.sort(key=lambda each: each.number, reverse=True)
        return [_plain_delivery(each) for each in found[:most]]

    async def _overdue(self) -> list[OverduePlatform]:
        """What has not arrived, by platform; why, the newest rows tell."""
        kept = self._store.deliveries
        lost, late = await kept.count_troubled(COUNTED), await kept.count_late(COUNTED)
        return [
            *_overdue_on(lost, await kept.why_troubled(LOOKED_AT), is_lost=True),
            *_overdue_on(late, await kept.why_late(LOOKED_AT), is_lost=False),
        ]

    async def page_deliveries(
        self,
        show: Annotated[str, among(ListedDeliveries)] = ListedDeliveries.DEAD,
        limit: int = LIST_LIMIT,
        after: str | None = None,
    ) -> DeliveryList:
        """What did not arrive (`dead`), may have (`unsure`), is tried again or waits behind such a one
        (`late`), is on its way for the first time (`waiting`), or was given up by somebody (`discarded`); the
        newest first.

        Of each text there are the first 1,200 characters, with `is_whole` false where it goes on: all of an
        answer is among the messages of its session, and of what is in trouble in `frontdesk deliveries list
        --json`.
        """
        wanted, place = chosen("show", ListedDeliveries, show), await self._opened(after, "deliveries")
        found = await self._store.lists.deliveries(self._viewer, wanted, limit, place)
        return {
            "items": [_row(each) for each in found.items],
            "next": await self._closed(found.next, "deliveries"),
        }

    async def count_deliveries(self) -> DeliveryCounts:
        """How many deliveries have not arrived."""
        found = await self._store.lists.count_deliveries(self._viewer, COUNTED)
        return cast(DeliveryCounts, picked(found, *DeliveryNumbers.__struct_fields__))

    async def resend_delivery(self, delivery_id: str) -> ResentDelivery:
        """Send an answer again that is in trouble; whether it was, and what it is now."""
        await self._find_delivery(delivery_id)
        resent = await self._store.deliveries.revive(delivery_id, self._clock.now())
        now = await self._find_delivery(delivery_id)
        told = {"resent": resent, "refused": None if resent else _refused(now)}
        return cast(ResentDelivery, _plain_delivery(now) | told)

    async def discard_delivery(self, delivery_id: str) -> DiscardedDelivery:
        """Give up an answer that is in trouble for good; whether it was, and what it is now."""
        await self._find_delivery(delivery_id)
        discarded = await self._store.deliveries.discard(delivery_id, self._by.who, self._clock.now())
        now = await self._find_delivery(delivery_id)
        told = {"discarded": discarded, "refused": None if discarded else _refused(now)}
        return cast(DiscardedDelivery, _plain_delivery(now) | told)

    async def _find_delivery(self, delivery_id: str) -> Delivery:
        """One that the viewer may see; UnknownDelivery for any other."""
        delivery = await self._store.deliveries.find(delivery_id)
        if delivery is None or not await self._sees(delivery.session_id):
            raise errors.UnknownDelivery(delivery_id=delivery_id)
        return delivery

    async def send(
        self,
        to: str,
        text: str,
        session_id: str | None = None,
        key: str | None = None,
        markdown: bool = False,
    ) -> Plain:
        """Say something in a chat unprompted: a platform's home channel, `platform:chat_id[:thread_id]`, or
        with a session the `origin` of that. The same key to the same chat is sent once."""
        origin = (await self._find(session_id)).entry.origin if session_id else None
        channels = self._gateway.parts.channels.values() if self._gateway else await self._channels()
        named = {(str(each.name), each.account): each for each in channels}
        outlets = Outlets(named, self._conversations.config, self._clock)
        place, key = outlets.find(to, origin), key or secrets.token_hex(KEY_BYTES)
        written = outlets.write(place, text, key, is_markdown=markdown)
        fresh = await self._store.deliveries.add(written)
        first = await self._store.deliveries.find(written[0].id) or written[0]
        return _plain_delivery(first) | {"pieces": len(written), "repeated": not fresh}


def _overdue_on(
    counts: Mapping[str, tuple[int, datetime]], newest: Sequence[Hindrance], *, is_lost: bool
) -> list[OverduePlatform]:
    """For each platform, with what the newest of its answers tell."""
    return [
        {
            "platform": platform,
            "is_lost": is_lost,
            "count": count,
            "since": since.isoformat(),
            "why": next((each.why for each in newest if each.platform == platform and each.why), None),
            "next_try_at": _soonest(each.next_try_at for each in newest if each.platform == platform),
        }
        for platform, (count, since) in sorted(counts.items())
    ]


def _soonest(moments: Iterable[datetime | None]) -> str | None:
    known = [moment for moment in moments if moment]
    return min(known).isoformat() if known else None


def _row(delivery: Delivery) -> DeliveryRow:
    return cast(DeliveryRow, _plain_delivery(delivery) | beginning(delivery.text))


def _refused(delivery: Delivery) -> str:
    """Why a person can do nothing about it."""
    if when := _next_try(delivery):
        return IS_LATE.format(when=when)
    return NOT_IN_TROUBLE.format(state=delivery.state)


def _next_try(delivery: Delivery) -> str | None:
    """When it is tried again by itself; what waits behind another one goes when that has arrived."""
    retried = delivery.state is DeliveryState.PENDING and delivery.error is not None
    return delivery.due_at.isoformat() if retried and delivery.due_at else None


def _plain_delivery(delivery: Delivery) -> Plain:
    to = picked(delivery.to, "platform", "account", "chat_id") | {"where": where_of(delivery.to)}
    tries = picked(delivery, "text", "error", "attempts") | {"next_try_at": _next_try(delivery)}
    about = picked(delivery, "turn_id", "session_id", "created_at", "sent_at")
    return picked(delivery, "id", "kind", "state") | to | tries | about
