"""What became of a transaction whose connection was cut while it was committed.

PostgreSQL remembers the outcome under the transaction's number. After a crash it may give the numbers that
recovery did not find a second time, so that an outcome counts only together with the server's life.
"""

import itertools
import time
from enum import StrEnum
from uuid import UUID

import asyncpg

from frontdesk import errors
from frontdesk.logs import get_logger
from frontdesk.stores.postgres.connections import ConnectionPool, Lent
from frontdesk.stores.postgres.faults import translated
from frontdesk.stores.postgres.retries import pause
from frontdesk.stores.sql import Query

OUTCOME_SECONDS = 60.0

log = get_logger(__name__)


class Outcome(StrEnum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    IN_PROGRESS = "in progress"
    FORGOTTEN = "forgotten"


class Outcomes:
    def __init__(self, pool: ConnectionPool, query: Query, name: str) -> None:
        self._pool = pool
        self._query = query
        self._name = name

    async def was_committed(self, xid: int, life: UUID) -> bool:
        """Wait until it is known; StoreFailed when it cannot be."""
        deadline = time.monotonic() + OUTCOME_SECONDS
        for number in itertools.count(1):
            outcome = await self._ask(xid, life)
            if outcome is Outcome.FORGOTTEN or time.monotonic() > deadline:
                break
            if outcome is not Outcome.IN_PROGRESS:
                log.warning("commit_cut", transaction=xid, outcome=str(outcome))
                return outcome is Outcome.COMMITTED
            await pause(number)
        why = "the connection was cut during the commit, and its outcome is not known"
        raise errors.StoreFailed(path=self._name, why=why)

    async def _ask(self, xid: int, life: UUID) -> Outcome:
        """The outcome; a server that does not answer may still be at it."""
        try:
            async with self._pool.lent() as link:
                with translated(self._name):
                    return await self._look_up(link, xid, life)
        except errors.StoreUnavailable:
            return Outcome.IN_PROGRESS

    async def _look_up(self, link: Lent, xid: int, life: UUID) -> Outcome:
        arguments = self._query.arguments({"xid": xid, "life": life})
        try:
            return Outcome(await link.fetchval(self._query.sql, *arguments))
        except asyncpg.InvalidParameterValueError:
            return Outcome.ABORTED  # no transaction has that number yet: a crash took it back
