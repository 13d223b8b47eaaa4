"""The statements of turns on PostgreSQL without the gateway around them: what the database alone can do."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import asyncpg

from benchmarks.raw import REPLY, USER
from frontdesk.contracts.bells import Bells
from frontdesk.contracts.store import RING, Row, Statement, Work
from frontdesk.model import deliveries, lanes, messages, moves, policies, sessions, turns
from frontdesk.stores.postgres.address import parse_url
from frontdesk.stores.postgres.connections import ServerConnection
from frontdesk.stores.postgres.transactions import drive
from frontdesk.stores.sql import load_queries
from frontdesk.stores.store import Store

T = TypeVar("T")

POOL = 10
AT_ONCE = 32


class BareEngine:
    """Runs work on a pool of connections: no retries, no outcomes to find out, no bounds."""

    glanced_rows = 0

    def __init__(self, pool: asyncpg.Pool) -> None:
        self.bells = Bells()
        self._pool = pool
        self._queries = load_queries("postgres")

    async def write(
        self, start: Callable[[], Work[T]], *, lazy: bool = False, supersedes: str | None = None
    ) -> T:
        del lazy, supersedes
        async with self._pool.acquire() as link, link.transaction():
            return await drive(start(), partial(self._ask, link))

    async def read(self, start: Callable[[], Work[T]]) -> T:
        async with self._pool.acquire() as link:
            return await drive(start(), partial(self._ask, link))

    async def glance(self, start: Callable[[], Work[T]]) -> T:
        return await self.read(start)

    async def try_glance(self, start: Callable[[], Work[T]]) -> tuple[T] | None:
        del start
        return None

    async def post(self, mark: str, start: Callable[[], Work[object]]) -> None:
        del mark
        await self.write(start)

    async def check(self) -> None:
        """Nobody asks."""

    async def inspect(self, seconds: float) -> bool:
        del seconds
        return True

    async def close(self) -> None:
        await self._pool.close()

    async def _ask(self, link: Any, statement: Statement) -> list[Row]:
        name, values = statement
        if name == RING:
            return []
        query = self._queries[name]
        records = await link.fetch(query.sql, *query.arguments(values))
        numbered = "AS xid" in query.sql
        return [tuple(record)[:-1] if numbered else tuple(record) for record in records]


async def open_bare(url: str) -> Store:
    address = parse_url(url)
    settings = {"search_path": f'"{address.schema}"', "jit": "off"}
    pool = await asyncpg.create_pool(
        address.dsn,
        min_size=POOL,
        max_size=POOL,
        server_settings=settings,
        connection_class=ServerConnection,  # which is not reset after each use
    )
    return Store(BareEngine(pool))


@contextmanager
def bare_nodes(url: str, count: int) -> Iterator[None]:
    """Processes that do nothing but run the statements, until no turn is left."""
    command = [sys.executable, "-m", "benchmarks.bare", url]
    processes = [subprocess.Popen([*command, str(number)]) for number in range(count)]
    try:
        yield
        assert not any(process.wait(60) for process in processes), "a bare node failed"
    finally:
        for process in processes:
            process.kill()
            process.wait()


async def work_off(url: str, node: int) -> None:
    """Claim, begin and finish turns until none is left."""
    store = await open_bare(url)
    places = asyncio.Semaphore(AT_ONCE)
    pending: set[asyncio.Task[None]] = set()
    while claims := await store.turns.claim(node + 1_000, lanes.LaneKind.TURN, AT_ONCE, _now(), lambda _: ()):
        for claim in claims:
            await places.acquire()
            task = asyncio.create_task(_turn(store, claim))
            pending.add(task)
            task.add_done_callback(pending.discard)
            task.add_done_callback(lambda _: places.release())
    await asyncio.gather(*pending)
    await store.close()


async def _turn(store: Store, claim: turns.TurnClaim) -> None:
    turn, session_id = claim.turn, f"s-{claim.turn.id}"
    now = _now()
    await store.sessions.settle(
        turn.session_key, partial(_start, turn, session_id), now=now, new_id=lambda: session_id
    )
    await store.turns.begin(
        claim, session_id, [messages.pack({"role": "user", "content": USER}, turn.id, 0)], now
    )
    await store.transcripts.load(session_id)
    reply = messages.pack({"role": "assistant", "content": REPLY}, turn.id, 1)
    delivery = deliveries.Delivery(
        id=f"d-{turn.id}",
        lane=lanes.chat_lane(turn.source, collects=True),
        to=turn.source,
        text=REPLY,
        turn_id=turn.id,
        session_id=session_id,
        created_at=now,
    )
    ending = turns.Ending(
        state=turns.TurnState.DONE, session_id=session_id, messages=(reply,), deliveries=(delivery,)
    )
    await store.turns.finish(claim, ending, _now())


def _start(turn: turns.Turn, session_id: str, _situation: moves.Situation) -> moves.Move:
    entry = sessions.SessionEntry(
        session_key=turn.session_key, session_id=session_id, created_at=_now(), updated_at=_now()
    )
    session = sessions.Session(entry=entry, owner=turn.session_key, peer=turn.session_key)
    return moves.Start(session=session, ends=policies.EndReason.NEW)


def _now() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    asyncio.run(work_off(sys.argv[1], int(sys.argv[2])))
