"""Answers that take their time: a decision that is waited for, events as they happen. All end with us."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from typing import Any, TypeVar

import msgspec

from frontdesk import errors
from frontdesk.flow.confirmations.confirming import LONGEST_WAIT_SECONDS, ConfirmationService
from frontdesk.logs import get_logger
from frontdesk.model import audit
from frontdesk.model.confirmations import Confirmation
from frontdesk.web.confirmations import records

QUIET_SECONDS = 15.0
"""After so long without an event the client is told that we are still here."""
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
    def __init__(self, service: ConfirmationService, *, quiet_seconds: float = QUIET_SECONDS) -> None:
        self._service = service
        self._quiet_seconds = quiet_seconds
        self._closing = asyncio.Event()
        self.waiting = 0
        """How many wait for a decision just now."""

    def close(self) -> None:
        """End everything that waits, now and from now on."""
        self._closing.set()

    async def wait(self, confirmation_id: str, seconds: float) -> Confirmation:
        """The confirmation once it is decided, the time is over, or we close."""
        decided = asyncio.ensure_future(self._service.wait(confirmation_id, seconds))
        self.waiting += 1
        try:
            # The service's own wait ends first, with its last look; the second more is for that.
            await self._until(decided, seconds + 1)
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
        rows = self._service.follow(after)
        end = asyncio.get_running_loop().time() + STREAM_SECONDS
        coming: asyncio.Future[audit.Row] | None = None
        try:
            yield OPENING
            while not self._closing.is_set() and asyncio.get_running_loop().time() < end:
                coming = coming or asyncio.ensure_future(anext(rows))
                await self._until(coming, self._quiet_seconds)
                if coming.done():
                    row, coming = coming.result(), None
                    yield write(row)
                else:
                    yield STILL_HERE
        except errors.StoreError as error:
            log.warning("events_cut", why=str(error))
        finally:
            if coming is not None:
                await _cancel(coming)
            await rows.aclose()

    async def _until(self, waiting: "asyncio.Future[Result]", seconds: float) -> None:
        """Wait for it, no longer than so many seconds, and not when we close."""
        closing = asyncio.ensure_future(self._closing.wait())
        either: set[asyncio.Future[Any]] = {waiting, closing}
        try:
            await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            closing.cancel()


async def _cancel(waiting: "asyncio.Future[Result]") -> None:
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
