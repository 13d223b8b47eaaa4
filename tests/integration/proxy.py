"""A proxy in front of PostgreSQL that cuts connections where a test wants it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from enum import Enum, auto
from urllib.parse import urlsplit

LENGTH_BYTES = 4
CHUNK_BYTES = 65_536
SIMPLE_QUERY, PARSE, BIND, SYNC = b"Q", b"P", b"B", b"S"
BEGIN, COMMIT, LAZILY = "BEGIN", "COMMIT", "SET LOCAL synchronous_commit"


class Cut(Enum):
    """Where a connection is cut."""

    AT_A_STATEMENT = auto()
    BEFORE_COMMIT = auto()
    UNNOTICED = auto()
    """Before the commit, and the server does not learn of it."""
    AFTER_COMMIT = auto()
    AFTER_THE_ANSWER = auto()


class Hang(Enum):
    """Where a connection hangs until one of its ends is gone."""

    BEFORE_COMMIT = auto()
    AFTER_THE_ANSWER = auto()


FORWARDED = {None, Cut.AFTER_COMMIT, Cut.AFTER_THE_ANSWER, Hang.AFTER_THE_ANSWER}
SWALLOWED = {Cut.AFTER_THE_ANSWER, Hang.AFTER_THE_ANSWER}

Trouble = Cut | Hang | None


class Proxy:
    """Passes everything on, and remembers the commands that ended transactions.

    `plan` says for each transaction, and for each statement outside of one, what is to happen to it. While
    `refusing` is set, nobody gets through; while `hearing` is not, no answer is taken from the server, as by
    a client that stands still.
    """

    def __init__(self, url: str) -> None:
        self._host, self._port = urlsplit(url).hostname, urlsplit(url).port
        self.plan: Callable[[], Trouble] = lambda: None
        self.commits: list[str] = []
        self.cuts = 0
        self.kept: list[asyncio.StreamWriter] = []
        self.hanging = asyncio.Event()
        self.refusing = False
        self.hearing = asyncio.Event()
        self.hearing.set()

    def plan_once(self, trouble: Trouble) -> None:
        """What is cut is cut once: a transaction may begin on a connection that was cut just before, and then
        begins anew. What hangs never tells."""
        plan, cuts = iter([trouble]), self.cuts
        self.plan = lambda: (
            next(plan, None) if isinstance(trouble, Hang) else trouble if self.cuts == cuts else None
        )

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            if not self.refusing:
                server = await asyncio.open_connection(self._host, self._port)
                await _Passage(self, (reader, writer), server).run()
        writer.close()


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Passage:
    """One connection of a client through the proxy."""

    def __init__(self, proxy: Proxy, client: Stream, server: Stream) -> None:
        self._proxy = proxy
        self._from_client, self._to_client = client
        self._from_server, self._to_server = server
        self._in_transaction = False
        self._prepared: dict[bytes, str] = {}
        self._ending: list[str] = []
        self._trouble: Trouble = None
        self._muted = False
        self._answered = asyncio.Event()

    async def run(self) -> None:
        """Until one side ends, or the connection is cut."""
        ways = [asyncio.create_task(self._pass_requests()), asyncio.create_task(self._pass_answers())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            if self._trouble is Cut.UNNOTICED:
                self._proxy.kept.append(self._to_server)
            else:
                self._to_server.close()

    async def _pass_answers(self) -> None:
        while answer := await self._from_server.read(CHUNK_BYTES):
            await self._proxy.hearing.wait()
            if self._muted:
                self._answered.set()
            else:
                self._to_client.write(answer)

    async def _pass_requests(self) -> None:
        self._to_server.write(await self._read_message())
        cut = False
        while not cut:
            kind = await self._from_client.readexactly(1)
            cut = await self._pass_request(kind, await self._read_message())

    async def _pass_request(self, kind: bytes, message: bytes) -> bool:
        """Pass a message on, or make trouble; whether the connection was cut."""
        trouble = self._choose(kind, message)
        self._muted = trouble in SWALLOWED
        if trouble in FORWARDED:
            self._to_server.write(kind + message)
        if self._muted:
            await self._answered.wait()
        if isinstance(trouble, Hang):
            self._proxy.hanging.set()
            await asyncio.Event().wait()
        self._proxy.cuts += trouble is not None
        return trouble is not None

    def _choose(self, kind: bytes, message: bytes) -> Trouble:
        """What is to happen to a message: to a statement where it is bound, to a commit before or after all
        of it. A statement outside of a transaction is committed by its sync."""
        said = self._follow(kind, message[LENGTH_BYTES:])
        begin = said.startswith(BEGIN)
        if begin or (kind == BIND and not self._in_transaction):
            self._trouble = self._proxy.plan()
        if kind == SYNC and not self._in_transaction:
            return self._trouble
        self._in_transaction = begin or (self._in_transaction and kind != SIMPLE_QUERY)
        if said.startswith((LAZILY, COMMIT)):
            self._ending.append(said)
        if kind == SYNC and self._ending:
            self._proxy.commits.append("; ".join(self._ending))
            self._ending, self._in_transaction = [], False
            return self._trouble
        at_a_statement = kind == BIND and not begin and self._trouble is Cut.AT_A_STATEMENT
        return (
            self._trouble if at_a_statement or (said == COMMIT and self._trouble not in FORWARDED) else None
        )

    def _follow(self, kind: bytes, message: bytes) -> str:
        """The statement that a message runs."""
        name, _, rest = message.partition(b"\0")
        if kind == PARSE:
            self._prepared[name] = rest.partition(b"\0")[0].decode()
        return self._prepared[rest.partition(b"\0")[0]] if kind == BIND else ""

    async def _read_message(self) -> bytes:
        length = await self._from_client.readexactly(LENGTH_BYTES)
        return length + await self._from_client.readexactly(int.from_bytes(length, "big") - LENGTH_BYTES)


@asynccontextmanager
async def proxied(url: str) -> AsyncIterator[tuple[Proxy, str]]:
    """A proxy, and the address that leads through it."""
    proxy = Proxy(url)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    parts = urlsplit(url)
    query = "&".join(filter(None, (parts.query, "sslmode=disable")))
    try:
        yield proxy, parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}", query=query).geturl()
    finally:
        server.close()
        for kept in proxy.kept:
            kept.close()
