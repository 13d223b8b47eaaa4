"""Callbacks: a program that asked is told of the decision, until it has heard it."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import msgspec

from frontdesk.contracts.clock import Clock, SystemClock
from frontdesk.contracts.confirmations import Owed
from frontdesk.flow import rounds
from frontdesk.flow.clockwatch import Setbacks
from frontdesk.logs import get_logger
from frontdesk.model.confirmations import Confirmation
from frontdesk.stores.store import Store

CLAIM = timedelta(seconds=60)
"""Longer than a call may take: nobody else tries meanwhile."""
FIRST_PAUSE_SECONDS = 2.0
LONGEST_PAUSE_SECONDS = 600.0
MOST_ATTEMPTS = 12
AT_ONCE = 10

Call = Callable[[str, str, bytes], Awaitable[bool]]
"""Takes an address, an id and a body there; whether it was heard."""

log = get_logger(__name__)


class DecisionCallbacks:
    def __init__(self, store: Store, call: Call, clock: Clock | None = None) -> None:
        self._store = store
        self._call = call
        self._clock = clock or SystemClock()
        self._setbacks = Setbacks()

    async def run(self) -> None:
        """Call whom it is time to call, until cancelled."""
        await rounds.make_rounds(self._store.bells, self._call_and_pause)

    async def _call_and_pause(self) -> float:
        await self._hasten()
        while (due := await self._store.confirmations.next_callback()) and due <= self._clock.now():
            if not await self.call_due():  # others are at it
                break
        return rounds.pause_until(due, self._clock.now())

    async def _hasten(self) -> None:
        """What was put off by a clock that was set back since would wait for all that time once more."""
        now = self._clock.now()
        if self._setbacks.happened(now):
            await self._store.confirmations.hasten_callbacks(now, now + CLAIM)

    async def call_due(self) -> int:
        """How many it was time for."""
        await self._hasten()
        now = self._clock.now()
        owed = await self._store.confirmations.claim_callbacks(now, now + CLAIM, AT_ONCE)
        await asyncio.gather(*map(self._tell, owed))
        return len(owed)

    async def _tell(self, owed: Owed) -> None:
        asked, kept = owed.confirmation, self._store.confirmations
        if await self._call(owed.url, asked.id, body_of(asked)):
            await kept.drop_callback(owed)
            log.info("callback_heard", confirmation=asked.id)
        elif owed.attempts >= MOST_ATTEMPTS:
            await kept.drop_callback(owed)
            log.warning("callback_given_up", confirmation=asked.id, attempts=owed.attempts)
        else:
            seconds = min(FIRST_PAUSE_SECONDS * 2 ** (owed.attempts - 1), LONGEST_PAUSE_SECONDS)
            await kept.retry_callback(owed, self._clock.now() + timedelta(seconds=seconds))


def body_of(asked: Confirmation) -> bytes:
    told = {
        "id": asked.id,
        "action": asked.action,
        "digest": asked.digest,
        "status": str(asked.status),
        "resolved_by": asked.resolved_by,
        "resolved_at": asked.resolved_at.timestamp() if asked.resolved_at else None,
    }
    return msgspec.json.encode(told)
