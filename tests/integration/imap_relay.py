"""Something between a mail program and its server that can be broken, and changes what the server says."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

CHUNK_BYTES = 65_536
FETCH = re.compile(rb"(\S+) UID FETCH ")


class ImapRelay:
    """Passes everything on."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self.port = 0
        self.connections = 0
        """How many there were."""
        self.rewrite: Callable[[bytes], bytes] = bytes
        """What becomes of a line of the server's."""
        self.refuses_mail = False
        """Whether it says that mails cannot be had now."""
        self.refused = 0
        self._clients: set[asyncio.StreamWriter] = set()
        self._silent: set[asyncio.StreamWriter] = set()
        self._ways: set[asyncio.Task[None]] = set()

    @property
    def open(self) -> int:
        return len(self._clients)

    def fall_silent(self) -> None:
        """The connections that there are stay open, and nothing passes any more."""
        self._silent |= self._clients

    def say_bye(self) -> None:
        for client in self._clients:
            client.write(b"* BYE The server shuts down\r\n")
            client.close()

    def cut(self) -> None:
        for client in self._clients:
            client.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._clients.add(writer)
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self._server_port)
        ways = {
            asyncio.create_task(self._ask(reader, writer, to_server)),
            asyncio.create_task(self._answer(from_server, writer)),
        }
        self._ways |= ways
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        await asyncio.wait(ways)
        for each in (to_server, writer):
            each.close()
            with suppress(OSError):
                await each.wait_closed()
        self._ways -= ways
        self._clients.discard(writer)

    async def end(self) -> None:
        """Let nobody through any more, and leave nothing open."""
        while self._clients:
            for way in self._ways:
                way.cancel()
            await asyncio.sleep(0.01)

    async def _ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError):
            while line := await reader.readline():
                asked = FETCH.match(line)
                if writer in self._silent:
                    continue
                if asked and self.refuses_mail:
                    self.refused += 1
                    writer.write(asked[1] + b" NO [UNAVAILABLE] not now\r\n")
                else:
                    server.write(line)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while line := await reader.readline():
                if writer not in self._silent:
                    writer.write(self.rewrite(line))
        if writer in self._silent:
            await asyncio.Event().wait()


@asynccontextmanager
async def relayed(port: int) -> AsyncIterator[ImapRelay]:
    relay = ImapRelay(port)
    server = await asyncio.start_server(relay.serve, "127.0.0.1", 0, limit=CHUNK_BYTES * 100)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        server.close()
        await relay.end()
