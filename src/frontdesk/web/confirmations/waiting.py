"""Answers that take their time: a decision that is waited for, events as they happen. All end with us."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import TypeVar

import msgspec

from frontdesk import errors
from frontdesk.contracts.ticks import Ticker, Waker, with_ticks
from frontdesk.flow.confirmations.confirming import LONGEST_WAIT_SECONDS, ConfirmationService
from frontdesk.logs import get_logger
from frontdesk.model import audit
from frontdesk.model.confirmations import Confirmation
from frontdesk.web.confirmations import records

STREAM_SECONDS = 3600.0
"""A stream ends after so long; whoever comes back shows their credential again."""
RETRY_MILLISECONDS = 2000
OPENING = b": here\nretry: %d\n\n" % RETRY_MILLISECONDS
STILL_HERE = b": still here\n\n"

_WAIT = re.compile(r'wait\s*=\s*"?([0-9]{1,6})"?', re.IGNORECASE)

Result = TypeVar("Result")

log = get_logger(__name__)


def waiting_seconds(prefer: str) -> int | None:
    """How long somebody wants to wait for the answer (RFC 7240), as far as we do."""
    found = (_WAIT.fullmatch(each.partition(";")[0].strip()) for each in prefer.split(","))
    wanted = next((int(each[1]) for each in found if each), None)
    return None if wanted is None else min(wanted, int(LONGEST_WAIT_SECONDS))


def written(row: audit.Row) -> bytes:
    event = records.AuditEvent.of(row)
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (row.number, event.kind.encode(), msgspec.json.encode(event))


class Streams:
    def __init__(self, service: ConfirmationService, ticks: Ticker | None = None) -> None:
        self._service = service
        self._ticks = ticks
        self._open: set[Waker] = set()
        self._closed = False
        self.waiting = 0
        """How many wait for a decision just now."""

    def close(self) -> None:
        """End everything that waits, now and from now on."""
        self._closed = True
        for waker in self._open:
            waker.ring()

    @contextmanager
    def _opened(self) -> Iterator[Waker]:
        """Rings when we close, too."""
        waker = Waker()
        self._open.add(waker)
        try:
            yield waker
        finally:
            self._open.discard(waker)

    async def wait(self, confirmation_id: str, seconds: float) -> Confirmation:
        """The confirmation once it is decided, the time is over, or we close."""
        decided = asyncio.ensure_future(self._service.wait(confirmation_id, seconds))
        self.waiting += 1
        try:
            with self._opened() as waker:
                decided.add_done_callback(lambda _: waker.ring())
                while not self._closed and not decided.done():
                    await waker.wait()
            return decided.result() if decided.done() else await self._service.find(confirmation_id)
        finally:
            self.waiting -= 1
            await _cancel(decided)

    async def events(
        self, after: int | None, write: Callable[[audit.Row], bytes] = written
    ) -> AsyncGenerator[bytes, None]:
        """What happens after that row of the audit log, or from now on, as server-sent events; ``write``
        makes each of them."""
        if after is None:
            # What is written after this look has a higher number, and is followed: no row is missed.
            newest = await self._service.audit_newest(1)
            after = newest[0].number if newest else 0
        end = asyncio.get_running_loop().time() + STREAM_SECONDS
        with self._opened() as waker:
            try:
                yield OPENING
                if self._closed:
                    return
                async with aclosing(with_ticks(self._service.follow(after), waker, self._ticks)) as rows:
                    async for row in rows:
                        if self._closed or asyncio.get_running_loop().time() > end:
                            return
                        yield STILL_HERE if row is None else write(row)
            except errors.StoreError as error:
                log.warning("events_cut", why=str(error))


async def _cancel(waiting: "asyncio.Future[Result]") -> None:
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
