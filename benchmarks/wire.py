"""A client that takes next to nothing itself: requests over kept connections, at moments that are given."""

import asyncio
import json
import os
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

IDLE_SECONDS = 10.0
TICKS = os.sysconf("SC_CLK_TCK")
LENGTH = b"content-length:"


class Line(asyncio.Protocol):
    """A connection on which one request follows the other."""

    def __init__(self) -> None:
        self.answered: asyncio.Future[bytes] | None = None
        self.used_at = 0.0
        self._came = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._came += data
        head, ended, body = self._came.partition(b"\r\n\r\n")
        if self.answered and ended and len(body) >= _length(head):
            self.answered.set_result(self._came)
            self._came = b""

    def connection_lost(self, error: Exception | None) -> None:
        if self.answered and not self.answered.done():
            self.answered.set_exception(error or ConnectionResetError("closed before the answer"))


def _length(head: bytes) -> int:
    (line,) = (each for each in head.lower().split(b"\r\n") if each.startswith(LENGTH))
    return int(line.removeprefix(LENGTH))


class Lines:
    """Connections to a port of this machine."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[Line] = []

    async def ask(self, request: bytes) -> float:
        """Seconds from the request until its answer is there, all of it."""
        line = self._free() or await self._connect()
        start = time.perf_counter()
        line.answered = asyncio.get_running_loop().create_future()
        line.transport.write(request)
        answer = await line.answered
        line.used_at = time.perf_counter()
        assert answer.startswith(b"HTTP/1.1 2"), answer
        self._idle.append(line)
        return line.used_at - start

    def _free(self) -> Line | None:
        """A connection that nobody is about to close, being idle for long."""
        oldest = time.perf_counter() - IDLE_SECONDS
        while self._idle:
            line = self._idle.pop()
            if line.used_at > oldest:
                return line
            line.transport.close()
        return None

    async def _connect(self) -> Line:
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(Line, "127.0.0.1", self._port))[1]

    def close(self) -> None:
        for each in self._idle:
            each.transport.close()


def post(path: str, body: object, headers: dict[str, str]) -> bytes:
    """A request as it goes over the wire."""
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(sent)}\r\n{fields}\r\n"
    return head.encode() + sent


Ask = Callable[[], Coroutine[None, None, float]]


async def in_turns(asks: Sequence[Ask], count: int, rest: Callable[[], float]) -> list[list[float]]:
    """What so many of each took, in the order in which they were asked. One after the other has its turn,
    after a rest, so that whatever else the machine does meets all of them alike."""
    tasks: list[list[asyncio.Task[float]]] = [[] for _ in asks]
    async with asyncio.TaskGroup() as group:
        due = time.perf_counter()
        for _ in range(count):
            for ask, begun in zip(asks, tasks, strict=True):
                due += rest()
                await asyncio.sleep(due - time.perf_counter())
                begun.append(group.create_task(ask()))
    return [[task.result() for task in begun] for begun in tasks]


def cpu_seconds(pid: int) -> float:
    """What a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS
