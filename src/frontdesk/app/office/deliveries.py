"""What is asked about answers on their way, and what is sent unprompted."""

import secrets

from frontdesk import errors
from frontdesk.app.office.counters import LIST_LIMIT, Counter
from frontdesk.app.office.plain import Plain, picked, where_of
from frontdesk.flow.sending import Outlets
from frontdesk.model import inputs
from frontdesk.model.deliveries import Delivery, DeliveryState

KEY_BYTES = 16


class DeliveryCounter(Counter):
    async def list_deliveries(self, limit: int = LIST_LIMIT) -> list[Plain]:
        """Answers that did not arrive, or not yet at the first attempt, or may not have; newest first."""
        most = inputs.check_limit(limit)
        found = [*await self._store.deliveries.troubled(most), *await self._store.deliveries.late(most)]
        found.sort(key=lambda each: each.number, reverse=True)
        return [_plain_delivery(each) for each in found[:most]]

    async def resend_delivery(self, delivery_id: str) -> Plain:
        """Send an answer again that is in trouble; whether it was, and what it is now."""
        resent = await self._store.deliveries.revive(delivery_id, self._clock.now())
        delivery = await self._store.deliveries.find(delivery_id)
        if delivery is None:
            raise errors.UnknownDelivery(delivery_id=delivery_id)
        return _plain_delivery(delivery) | {"resent": resent}

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


def _next_try(delivery: Delivery) -> str | None:
    """When it is tried again by itself; what waits behind another one goes when that has arrived."""
    retried = delivery.state is DeliveryState.PENDING and delivery.error is not None
    return delivery.due_at.isoformat() if retried and delivery.due_at else None


def _plain_delivery(delivery: Delivery) -> Plain:
    to = picked(delivery.to, "platform", "account", "chat_id") | {"where": where_of(delivery.to)}
    tries = picked(delivery, "text", "error", "attempts") | {"next_try_at": _next_try(delivery)}
    about = picked(delivery, "turn_id", "session_id", "created_at", "sent_at")
    return picked(delivery, "id", "kind", "state") | to | tries | about
