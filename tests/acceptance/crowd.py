"""``python -m tests.acceptance.crowd HOST PORT COUNT [KIND]``: connections that say little, or never end, of
one kind or of all, until it is killed.

Writes a line when as many were made as were asked for. Whoever is cut off comes back.
"""

import asyncio
import contextlib
import itertools
import random
import resource
import sys
from collections.abc import Awaitable, Callable
from typing import Any

PAUSE_SECONDS = 1.0
MORE_FILES = 100
LONG = b"x" * 65_536
START = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
ASKING = START.replace(b"GET /health", b"POST /confirm") + b"Content-Type: application/json\r\n"

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter
Kind = Callable[[Reader, Writer], Awaitable[object]]


async def say_nothing(reader: Reader, _: Writer) -> None:
    await reader.read()


async def send_half(reader: Reader, writer: Writer) -> None:
    writer.write(START)
    await reader.read()


async def trickle(_: Reader, writer: Writer) -> None:
    writer.write(START)
    while True:
        writer.write(b"X: 1\r\n")
        await writer.drain()
        await asyncio.sleep(PAUSE_SECONDS)


async def send_endless(writer: Writer, start: bytes, more: bytes) -> None:
    writer.write(start)
    while True:
        writer.write(more)
        await writer.drain()


async def send_endless_field(_: Reader, writer: Writer) -> None:
    await send_endless(writer, START + b"X: ", LONG)


async def send_endless_lines(_: Reader, writer: Writer) -> None:
    await send_endless(writer, b"", b"\r\n" * 1000)


async def send_endless_trailer(_: Reader, writer: Writer) -> None:
    await send_endless(writer, ASKING + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: ", LONG)


async def send_endless_body(_: Reader, writer: Writer) -> None:
    await send_endless(writer, ASKING + b"Content-Length: 1000000000000\r\n\r\n", LONG)


async def send_no_body(reader: Reader, writer: Writer) -> None:
    writer.write(ASKING + b"Content-Length: 1000\r\n\r\n")
    await reader.read()


async def read_nothing(_: Reader, writer: Writer) -> None:
    await send_endless(writer, b"", START.replace(b"/health", b"/openapi.json") + b"\r\n")


async def ask_and_stay(reader: Reader, writer: Writer) -> None:
    writer.write(START + b"\r\n")
    await reader.read()


KINDS: tuple[Kind, ...] = (
    say_nothing,
    send_half,
    trickle,
    send_endless_field,
    send_endless_lines,
    send_endless_trailer,
    send_endless_body,
    send_no_body,
    read_nothing,
    ask_and_stay,
)


async def come_back(kind: Kind, where: tuple[str, int], made: asyncio.Semaphore) -> None:
    arrived = False
    while True:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(*where, limit=1)
            if not arrived:
                arrived = True
                made.release()
            with contextlib.closing(writer):
                await kind(reader, writer)
        await asyncio.sleep(PAUSE_SECONDS * random.uniform(0.5, 1.5))


async def gather_crowd(host: str, port: int, count: int, kind: str) -> None:
    made = asyncio.Semaphore(0)
    async with asyncio.TaskGroup() as tasks:
        chosen = [each for each in KINDS if kind in ("", each.__name__)]
        kinds = itertools.islice(itertools.cycle(chosen), count)
        running: list[asyncio.Task[Any]] = [
            tasks.create_task(come_back(each, (host, port), made)) for each in kinds
        ]
        for _ in running:
            await made.acquire()
        print("there", flush=True)


def main() -> None:
    host, port, count, kind = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), "".join(sys.argv[4:])
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(count + MORE_FILES, most), most))
    asyncio.run(gather_crowd(host, port, count, kind))


if __name__ == "__main__":
    main()
