"""What a connection may send, and for how long, over real sockets: on a port and on the owner's socket."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from frontdesk.app import sockets
from frontdesk.model.confirmations import Mode
from frontdesk.web import bounds, ports, protocol, server
from frontdesk.web.bounds import Listeners, PortConnections, PortLimits
from tests.integration.confirming import ANN, TOKENS, opened

PATIENCE_SECONDS = 60.0
HASTY = PortLimits(header_seconds=0.5)
GET = b"GET /seen HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /seen HTTP/1.1\r\nHost: localhost\r\n"
LONG = b"x" * 65_536
END = b"\r\n\r\n"


class Wire:
    """A connection, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def answer(self) -> tuple[int, bytes]:
        """The status and the body of the next answer."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            head = await self._reader.readuntil(END)
            length = next(
                int(line.partition(b":")[2])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length:")
            )
            return int(head.split()[1]), await self._reader.readexactly(length)

    async def begin(self) -> bytes:
        """The first that comes."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            with suppress(ConnectionError):
                return await self._reader.read(1)
        return b""

    async def end(self) -> bytes:
        """What comes until the other side ends the connection."""
        got = b""
        async with asyncio.timeout(PATIENCE_SECONDS):
            with suppress(ConnectionError):
                while piece := await self._reader.read(65_536):
                    got += piece
        return got

    async def send_until_cut(self, piece: bytes) -> int:
        """How many bytes the other side let us send."""
        sent = 0
        async with asyncio.timeout(PATIENCE_SECONDS):
            with suppress(ConnectionError):
                while not self._reader.at_eof():
                    await self.send(piece)
                    sent += len(piece)
        return sent

    def close(self) -> None:
        self._writer.close()


class Port(msgspec.Struct):
    """Something that listens, on a port or a Unix socket."""

    where: dict[str, Any]
    connections: PortConnections
    opened: list[Wire] = []

    async def connect(self, address: str | None = None) -> Wire:
        if "path" in self.where:
            wire = Wire(*await asyncio.open_unix_connection(**self.where))
        else:
            local = (address, 0) if address else None
            wire = Wire(*await asyncio.open_connection(**self.where, local_addr=local))
        self.opened.append(wire)
        return wire


async def show_request(scope: Any, receive: Any, send: Any) -> None:
    """Answers with the header that it saw, after the body."""
    if scope["path"] == "/seen":
        while (await receive()).get("more_body"):
            pass
    body = b"\n".join(b"%b: %b" % field for field in scope["headers"])
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def listening(folder: Path | None, limits: PortLimits = bounds.USUAL) -> AsyncIterator[Port]:
    """An application on a port, or in a folder on the owner's socket."""
    async with AsyncExitStack() as stack:
        if folder:
            found = stack.enter_context(sockets.listening(folder / "run" / "own.sock"))
            where: dict[str, Any] = {"path": str(folder / "run" / "own.sock")}
            kind: type[protocol.BoundedProtocol] = server.OwnerProtocol
        else:
            found = stack.enter_context(ports.listening("127.0.0.1", 0))
            where = {"host": "127.0.0.1", "port": found.getsockname()[1]}
            kind = protocol.BoundedProtocol
        serving = server.serving_app(show_request, found, Listeners(limits=limits), http=kind)
        port = Port(where, await stack.enter_async_context(serving), [])
        yield port
        for each in port.opened:
            each.close()


@pytest.fixture(params=["port", "socket"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path if request.param == "socket" else None


def fields(count: int, size: int = 1) -> bytes:
    return b"".join(b"x-%d: %b\r\n" % (number, b"x" * size) for number in range(count))


async def test_header_within_its_bounds_is_taken(folder: Path | None) -> None:
    async with listening(folder) as port:
        wire = await port.connect()
        for count, size in [(protocol.HEADER_FIELDS - 1, 1), (30, 1_000)]:
            await wire.send(GET + fields(count, size) + b"\r\n")
            status, seen = await wire.answer()
            assert (status, seen.count(b"x-")) == (200, count)


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (GET + fields(protocol.HEADER_FIELDS) + b"\r\n", "too_many_fields"),
        (GET + fields(33, 1_000) + b"\r\n", "header_too_long"),
        (GET + b"X: " + b"x" * protocol.HEADER_BYTES, "header_too_long"),
        (b"GET /" + b"x" * protocol.HEADER_BYTES, "header_too_long"),
        (b"\r\n" * protocol.HEADER_BYTES, "header_too_long"),
        (b"hello\r\n\r\n", "malformed"),
    ],
)
@pytest.mark.parametrize("piece", [2**20, 997])
async def test_header_beyond_its_bounds_is_refused(
    sent: bytes, why: str, piece: int, folder: Path | None
) -> None:
    status, detail = protocol.REFUSALS[why]
    async with listening(folder) as port:
        wire = await port.connect()
        for start in range(0, len(sent), piece):
            await wire.send(sent[start : start + piece])
        got, body = await wire.answer()
        assert (got, msgspec.json.decode(body)["detail"]) == (status, detail)
        assert await wire.end() == b""
        assert port.connections.refused[why] == 1
        await (other := await port.connect()).send(GET + b"\r\n")
        assert (await other.answer())[0] == 200


@pytest.mark.parametrize(
    "start",
    [
        GET + b"X: ",
        b"",
        b"GET /",
        POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ",
        POST + b"Transfer-Encoding: chunked\r\n\r\n1;",
        GET + b"\r\n" + GET + b"X: ",
    ],
    ids=["field", "lines", "address", "trailer", "extension", "second"],
)
async def test_what_never_ends_is_cut_off(start: bytes, folder: Path | None) -> None:
    async with listening(folder) as port:
        wire = await port.connect()
        await wire.send(start)
        await wire.send_until_cut(LONG if start else b"\r\n" * 10_000)
        assert sum(port.connections.refused.values()) == 1


async def test_connection_goes_on_after_a_body_that_was_answered_before_it_came(folder: Path | None) -> None:
    async with listening(folder) as port:
        wire = await port.connect()
        await wire.send(b"POST /unread HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2097152\r\n\r\n")
        assert (await wire.answer())[0] == 200
        await wire.send(LONG * 32 + GET + b"\r\n")
        assert (await wire.answer())[0] == 200
        assert not port.connections.refused


async def test_body_that_is_answered_already_is_cut_off(folder: Path | None) -> None:
    async with listening(folder) as port:
        wire = await port.connect()
        await wire.send(b"POST /unread HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000000\r\n\r\n")
        assert (await wire.answer())[0] == 200
        assert await wire.send_until_cut(LONG) >= protocol.LATE_BYTES
        assert port.connections.refused == {"body_too_late": 1}


@pytest.mark.parametrize(
    ("start", "why"),
    [
        (b"", bounds.SILENT),
        (GET, "too_slow"),
        (b"\r\n", "too_slow"),
        (GET + b"\r\n" + GET, "too_slow"),
        (b"POST /unread HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n", "too_slow"),
    ],
    ids=["silent", "half", "line", "second", "body"],
)
async def test_who_takes_too_long_is_cut_off(start: bytes, why: str, folder: Path | None) -> None:
    async with listening(folder, HASTY) as port:
        wire = await port.connect()
        await wire.send(start)
        await wire.end()
        assert port.connections.refused == {why: 1}


async def test_header_that_trickles_is_cut_off() -> None:
    async with listening(None, HASTY) as port:
        wire = await port.connect()
        await wire.send(GET)

        async def trickle() -> None:
            with suppress(ConnectionError):
                while True:
                    await wire.send(b"X: 1\r\n")
                    await asyncio.sleep(0.05)

        task = asyncio.create_task(trickle())
        await wire.end()
        task.cancel()
        assert port.connections.refused == {"too_slow": 1}


async def test_connection_may_rest_between_requests() -> None:
    async with listening(None, HASTY) as port:
        wire = await port.connect()
        for _ in range(2):
            await wire.send(GET + b"\r\n")
            assert (await wire.answer())[0] == 200
            await asyncio.sleep(HASTY.header_seconds + 1.5)
        assert not port.connections.refused


async def test_fields_after_the_body_are_no_header(folder: Path | None) -> None:
    async with listening(folder) as port:
        wire = await port.connect()
        trailer = b"0\r\nAuthorization: Bearer x\r\nX-One: 1\r\n\r\n"
        await wire.send(POST + b"Transfer-Encoding: chunked\r\n\r\n" + trailer)
        assert b"authorization" not in (await wire.answer())[1]
        await wire.send(GET + b"\r\n")
        assert (await wire.answer())[1] == b"host: localhost"


async def test_requests_at_once_are_answered_in_order_up_to_a_bound() -> None:
    async with listening(None) as port:
        wire = await port.connect()
        await wire.send(b"".join(GET + b"N: %d\r\n\r\n" % number for number in range(10)))
        answers = [(await wire.answer())[1].rpartition(b" ")[2] for _ in range(10)]
        assert answers == [b"%d" % number for number in range(10)]
        await wire.send((GET + b"\r\n") * 100)
        await wire.end()
        assert port.connections.refused == {"too_many_requests": 1}


async def test_long_body_in_small_pieces_is_taken() -> None:
    async with listening(None) as port:
        wire = await port.connect()
        await wire.send(POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 100_000 + b"0\r\n\r\n")
        assert (await wire.answer())[0] == 200


async def test_newest_is_heard_however_many_say_nothing(folder: Path | None) -> None:
    async with listening(folder, PortLimits(connections=10)) as port:
        for _ in range(50):
            await port.connect()
        await (wire := await port.connect()).send(GET + b"\r\n")
        assert (await wire.answer())[0] == 200
        assert len(port.connections) <= 10


async def test_address_has_its_part_of_the_places() -> None:
    limits = PortLimits(connections=40, proxies=("127.0.0.3",))
    async with listening(None, limits) as port:
        spared = [await port.connect("127.0.0.2"), *[await port.connect("127.0.0.3") for _ in range(12)]]
        crowd = [await port.connect("127.0.0.1") for _ in range(20)]
        await asyncio.sleep(bounds.YOUNG_SECONDS)
        await port.connect("127.0.0.1")
        assert [await each.end() for each in crowd[:11]] == [b""] * 11
        for wire in [*spared, *crowd[11:]]:
            await wire.send(GET + b"\r\n")
            assert (await wire.answer())[0] == 200
        assert port.connections.refused == {"too_many_of_one": 11}


async def test_bodies_of_strangers_have_a_bound_together() -> None:
    async with listening(None, PortLimits(body_bytes=1_000_000)) as port:
        await (modest := await port.connect()).send(POST + b"Content-Length: 200000\r\n\r\n" + LONG)
        greedy = [await port.connect() for _ in range(4)]
        for each in greedy:
            await each.send(POST + b"Content-Length: 400000\r\n\r\n" + b"x" * 300_000)
        await modest.send(b"x" * (200_000 - len(LONG)))
        assert (await modest.answer())[0] == 200
        for each in greedy:
            with suppress(ConnectionError):
                await each.send(b"x" * 100_000)
        answers = [await each.begin() for each in greedy]
        assert set(answers) == {b"", b"H"}
        assert port.connections.refused == {"too_much_of_bodies": answers.count(b"")}


async def test_body_that_is_answered_counts_no_more() -> None:
    async with listening(None, PortLimits(body_bytes=100_000)) as port:
        wire = await port.connect()
        for _ in range(10):
            await wire.send(POST + b"Content-Length: 60000\r\n\r\n" + b"x" * 60_000)
            assert (await wire.answer())[0] == 200
        assert not port.connections.refused


async def test_whoever_answers_is_told_that_nobody_listens(caplog: pytest.LogCaptureFixture) -> None:
    """Also when another request came meanwhile on the same connection."""
    left = asyncio.Event()

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while (await receive())["type"] != "http.disconnect":
            await send({"type": "http.response.body", "body": LONG, "more_body": True})
        await send({"type": "http.response.body", "body": LONG})
        left.set()

    with ports.listening("127.0.0.1", 0) as found:
        async with server.serving_app(answer, found):
            wire = Wire(*await asyncio.open_connection(*found.getsockname()))
            await wire.send((GET + b"\r\n") * 2)
            assert await wire.begin()
            wire.close()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await left.wait()
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("mode", [Mode.SOLO, Mode.TEAM])
async def test_connection_with_a_valid_credential_stays(mode: Mode, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with opened(mode=mode, limits=PortLimits(connections=20)) as desk:
        where = (desk.http.base_url.host, desk.http.base_url.port)
        wire = Wire(*await asyncio.open_connection(*where))
        asking = b"GET /confirm HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %b\r\n\r\n"
        await wire.send(asking % TOKENS["ann"].encode())
        assert (await wire.answer())[0] == 200
        crowd = [Wire(*await asyncio.open_connection(*where)) for _ in range(60)]
        assert (await desk.http.get("/confirm", headers=ANN)).status_code == 200
        await wire.send(asking % TOKENS["ann"].encode())
        assert (await wire.answer())[0] == 200
        for each in [wire, *crowd]:
            each.close()
    told = [record.getMessage() for record in caplog.records if "connections_refused" in record.getMessage()]
    assert len(told) == 1


async def test_long_poll_with_an_endless_body_is_ended() -> None:
    async with opened() as desk:
        asked = await desk.ask()
        wire = Wire(*await asyncio.open_connection(desk.http.base_url.host, desk.http.base_url.port))
        await wire.send(
            b"GET /confirm/%b HTTP/1.1\r\nHost: localhost\r\nPrefer: wait=60\r\n"
            b"Content-Length: 1000000000\r\n\r\n" % asked["id"].encode()
        )
        await wire.send_until_cut(LONG)
        wire.close()
