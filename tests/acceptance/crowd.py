"""``python -m tests.acceptance.crowd COUNT KIND WHERE...``: connections that say little, or never end, of one
kind or of all (``all``), to each HOST:PORT in turn, until it is killed.

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
MOST_BODY_BYTES = 1024 * 1024
START = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n"
ASKING = START.replace(b"GET /openapi.json", b"POST /confirm") + b"Content-Type: application/json\r\n"

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


async def send_nearly_all(reader: Reader, writer: Writer) -> None:
    """The longest body that is taken, but for the end."""
    writer.write(ASKING + b"Content-Length: %d\r\n\r\n" % MOST_BODY_BYTES)
    writer.write(b"x" * (MOST_BODY_BYTES - 1))
    await reader.read()


async def read_nothing(_: Reader, writer: Writer) -> None:
    await send_endless(writer, b"", START + b"\r\n")


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
    send_nearly_all,
    read_nothing,
    ask_and_stay,
)


async def come_back(kind: Kind, where: str, made: asyncio.Semaphore) -> None:
    arrived, (host, _, port) = False, where.rpartition(":")
    while True:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(host, int(port), limit=1)
            if not arrived:
                arrived = True
                made.release()
            with contextlib.closing(writer):
                await kind(reader, writer)
        await asyncio.sleep(PAUSE_SECONDS * random.uniform(0.5, 1.5))


async def gather_crowd(count: int, name: str, places: list[str]) -> None:
    made = asyncio.Semaphore(0)
    chosen = [each for each in KINDS if name in ("all", each.__name__)]
    who = itertools.islice(itertools.cycle(itertools.product(chosen, places)), count)
    async with asyncio.TaskGroup() as tasks:
        running: list[asyncio.Task[Any]] = [
            tasks.create_task(come_back(kind, where, made)) for kind, where in who
        ]
        for _ in running:
            await made.acquire()
        print("there", flush=True)


def main() -> None:
    count, name, *places = sys.argv[1:]
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(int(count) + MORE_FILES, most), most))
    asyncio.run(gather_crowd(int(count), name, places))


if __name__ == "__main__":
    main()
