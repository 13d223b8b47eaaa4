"""What became of a write whose answer was cut off: it is found out, or said that it cannot be."""

import itertools
import time
from collections.abc import Awaitable, Callable
from functools import partial

from frontdesk import errors
from frontdesk.contracts.store import Row
from frontdesk.logs import get_logger
from frontdesk.stores.postgres.connections import Backend
from frontdesk.stores.postgres.retries import pause
from frontdesk.stores.postgres.transactions import Alone, Writing

OUTCOME_SECONDS = 60.0
COMMITTED, ABORTED, IN_PROGRESS, FORGOTTEN = "committed", "aborted", "in progress", "forgotten"

Ask = Callable[..., Awaitable[list[Row]]]
"""Asks one question, by its name and its values."""

log = get_logger(__name__)


class Outcomes:
    def __init__(self, ask: Ask, name: str) -> None:
        self._ask = ask
        self._name = name

    async def was_committed(self, writing: Writing) -> bool:
        """Whether a transaction was, whose connection was cut while it was committed.

        PostgreSQL remembers the outcome under the transaction's number. After a crash it may give the numbers
        that recovery did not find a second time, so that an outcome counts only with the server's life. One
        that wrote nothing has no number, and nothing to lose.
        """
        return writing.xid is None or await self._known(partial(self._of_transaction, writing))

    async def was_kept(self, alone: Alone) -> bool:
        """Whether a statement that commits by itself was.

        Nobody knows the number of its transaction. But once the server has ended the connection, what it has
        written is there to be found, or never will be.
        """
        return await self._known(partial(self._of_statement, alone))

    async def _known(self, look: Callable[[], Awaitable[str]]) -> bool:
        """Wait until it is known; StoreFailed when it cannot be."""
        deadline = time.monotonic() + OUTCOME_SECONDS
        for number in itertools.count(1):
            outcome = await self._look(look)
            if outcome == FORGOTTEN or time.monotonic() > deadline:
                break
            if outcome != IN_PROGRESS:
                log.warning("commit_cut", outcome=outcome)
                return outcome == COMMITTED
            await pause(number)
        why = "the connection was cut during the commit, and its outcome is not known"
        raise errors.StoreFailed(path=self._name, why=why)

    async def _look(self, look: Callable[[], Awaitable[str]]) -> str:
        try:
            return await look()
        except errors.StoreUnavailable:  # a server that does not answer may still be at it
            return IN_PROGRESS
        except errors.StoreRefused:  # no transaction has that number yet: a crash took it back
            return ABORTED

    async def _of_transaction(self, writing: Writing) -> str:
        ((outcome,),) = await self._ask("outcome", xid=writing.xid, life=writing.life)
        if outcome == IN_PROGRESS:
            await self._is_there(writing.backend)
        return str(outcome)

    async def _of_statement(self, alone: Alone) -> str:
        # First the connection, then the look: one statement for both might look before the commit.
        if await self._is_there(alone.backend):
            return IN_PROGRESS
        query, values = alone.question
        return COMMITTED if await self._ask(query, **values) else ABORTED

    async def _is_there(self, backend: Backend) -> bool:
        """Whether the server's end of the connection still is; not for long, where it waits for ours."""
        return bool(await self._ask("end_waiting", pid=backend.pid, started=backend.started))
