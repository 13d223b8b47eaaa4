"""A connection that shows that the node lives, and hears what the others ring.

The server lets go of a dead node's lock at once, so that nobody has to wait for its leases. A node that
merely lost its connection, as all do when the server starts again, is given a moment to come back.
"""

import asyncio
import time
from collections.abc import Coroutine
from contextlib import suppress

from frontdesk import errors
from frontdesk.contracts.bells import Topic
from frontdesk.contracts.store import Work
from frontdesk.logs import get_logger
from frontdesk.stores.nodes import Nodes
from frontdesk.stores.postgres.address import DatabaseAddress
from frontdesk.stores.postgres.connections import ServerConnection, connect, disconnect
from frontdesk.stores.postgres.engine import PostgresEngine
from frontdesk.stores.postgres.faults import translated
from frontdesk.stores.work import glances, value, writes_lazily

CARRY_SECONDS = 0.01
RECONNECT_SECONDS = 0.2
GRACE_SECONDS = 1.5

log = get_logger(__name__)


class PostgresNodes(Nodes):
    is_alone = False

    def __init__(self, address: DatabaseAddress, engine: PostgresEngine) -> None:
        super().__init__(engine)
        self._address = address
        self._server = engine
        self._bells = engine.bells
        self._channel = self._scope = f"frontdesk_{address.schema}"
        self._number: int | None = None
        self._link: ServerConnection | None = None
        self._lost = asyncio.Event()
        self._times = 0
        self.standing = None
        self._missed: dict[int, float] = {}
        self._rung: set[Topic] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._bells.carry = self._carry

    async def _appear(self, number: int) -> None:
        self._number = number
        await self._connect()
        self._start(self._stay())

    async def _is_gone(self, number: int) -> bool:
        """Whether nobody holds the node's lock, now and since a moment ago."""
        if not await self._is_unlocked(number):
            self._missed.pop(number, None)
            return False
        since = self._missed.setdefault(number, time.monotonic())
        return time.monotonic() - since >= GRACE_SECONDS

    @writes_lazily
    def _is_unlocked(self, number: int) -> Work[bool]:
        return value("node_is_gone", scope=self._channel, number=number)

    async def _relieve(self) -> None:
        await self._server.end_stalled()

    async def close(self) -> None:
        self._bells.carry = None
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._link:
            await disconnect(self._link)

    async def _connect(self) -> None:
        """The server keeps the connection however long we take nothing from it: nobody waits for its lock,
        and a node that stands still keeps its lanes for as long as it believes itself."""
        self._lost.clear()
        link = await connect(self._address, unread_milliseconds=0)
        try:
            await self._show(link)
        except BaseException:
            link.terminate()
            raise
        link.add_termination_listener(self._on_lost)
        if link.is_closed():  # it was lost before anybody listened for that
            self._on_lost(link)
            return
        self._link = link
        self._times += 1
        self.standing = self._times

    async def _show(self, link: ServerConnection) -> None:
        with translated(self._address.name):
            await link.add_listener(self._channel, self._on_notified)
            await link.execute(
                "SELECT pg_advisory_lock_shared(hashtext($1), $2)", self._channel, self._number
            )

    async def _stay(self) -> None:
        """Connect again whenever the connection is lost. Meanwhile others may take our lanes, and the tokens
        keep us from writing what is theirs."""
        while True:
            await self._lost.wait()
            try:
                await self._connect()
                for topic in Topic:
                    self._bells.ring(topic, far=False)
            except errors.StoreError as error:
                log.warning("presence_lost", why=str(error))
                self._lost.set()
                await asyncio.sleep(RECONNECT_SECONDS)

    def _on_lost(self, _link: object) -> None:
        self.standing = None
        self._missed.clear()
        self._lost.set()

    async def say(self, words: str) -> None:
        await self._ring_others(words)

    def _on_notified(self, _link: object, pid: int, _channel: str, payload: object) -> None:
        """What another node says or rings; what this one has rung has rung here before."""
        if str(payload).startswith("{"):
            if self.hear is not None:
                self.hear(str(payload))
            return
        if self._server.has_process(pid):
            return
        for name in str(payload).split():
            if name in set(Topic):
                self._bells.ring(Topic(name), far=False)

    def _carry(self, topic: Topic) -> None:
        """Ring for the others a little later, once for all that rings until then."""
        if not self._rung:
            self._start(self._notify())
        self._rung.add(topic)

    async def _notify(self) -> None:
        await asyncio.sleep(CARRY_SECONDS)
        payload = " ".join(sorted(self._rung))
        self._rung.clear()
        with suppress(errors.StoreError):  # the others look by themselves, a little later
            await self._ring_others(payload)

    @glances  # nothing is stored
    def _ring_others(self, payload: str) -> Work[None]:
        yield "ring_others", {"channel": self._channel, "payload": payload}

    def _start(self, job: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(job)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
