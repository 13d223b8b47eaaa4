"""A chat-completions endpoint on loopback that is strict about requests and does what a test planned."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

Headers = dict[str, str]
FIELDS = {"model", "messages", "stream", "stream_options", "tools", "temperature", "max_tokens"}
MESSAGE_FIELDS = {
    "system": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls", "reasoning_content"},
    "tool": {"role", "content", "tool_call_id"},
}


class Seen(NamedTuple):
    path: str
    headers: Headers
    body: dict[str, Any]


class Peer:
    """The connection of a request that is to be answered."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def head(self, status: int = 200, kind: str = "text/event-stream", **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} Planned", f"Content-Type: {kind}", "Transfer-Encoding: chunked"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.raw("\r\n".join([*lines, "", ""]).encode())

    async def piece(self, data: bytes) -> None:
        await self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    async def end(self) -> None:
        await self.raw(b"0\r\n\r\n")

    async def raw(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    @property
    def port(self) -> int:
        """The other side's."""
        return int(self._writer.get_extra_info("peername")[1])

    def close(self) -> None:
        self._writer.close()

    def cut(self) -> None:
        self._writer.transport.abort()

    async def gone(self) -> None:
        """Until the other side has closed the connection."""
        with suppress(ConnectionError):
            await self._reader.read()


Plan = Callable[[Peer, Seen], Awaitable[None]]


class Endpoint:
    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.seen: list[Seen] = []
        self.problems: list[str] = []
        self.base_url = ""

    def plan(self, *plans: Plan) -> None:
        """What becomes of the next requests, one each."""
        self.plans += plans

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while True:
                    await self._answer(reader, Peer(reader, writer))
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, peer: Peer) -> None:
        request = await read_request(reader)
        self.seen.append(request)
        found = problems_of(request)
        self.problems += found
        if found or not self.plans:
            await status(400, {"error": {"message": f"not planned: {found}"}})(peer, request)
        else:
            await self.plans.pop(0)(peer, request)


async def read_request(reader: asyncio.StreamReader) -> Seen:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii").split("\r\n")
    pairs = (line.partition(":") for line in head[1:] if line)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers["content-length"]))
    return Seen(path=head[0], headers=headers, body=json.loads(body))


def problems_of(request: Seen) -> list[str]:
    """What a strict endpoint would refuse."""
    body = request.body
    found = [f"request: {request.path}"] if request.path.split()[0] != "POST" else []
    if not request.path.split()[1].endswith("/v1/chat/completions"):
        found.append(f"path: {request.path}")
    if request.headers.get("content-type") != "application/json":
        found.append("content type")
    if extra := set(body) - FIELDS:
        found.append(f"fields {sorted(extra)}")
    if body.get("stream") is not True or not isinstance(body.get("model"), str) or not body.get("messages"):
        found.append("no stream, model or messages")
    return found + message_problems(body["messages"])


def message_problems(messages: Sequence[dict[str, Any]]) -> list[str]:
    found, open_calls = [], list[str]()
    for message in messages:
        role = message.get("role", "")
        if extra := set(message) - MESSAGE_FIELDS.get(role, set()):
            found.append(f"{role!r} with {sorted(extra)}")
        if role == "tool":
            if message["tool_call_id"] not in open_calls:
                found.append("a result without its call")
            open_calls = [call for call in open_calls if call != message["tool_call_id"]]
        elif open_calls:
            found.append("a call without its result")
        if message.get("content") is None and not message.get("tool_calls"):
            found.append(f"{role!r} without content")
        open_calls += [checked_call(call) for call in message.get("tool_calls", ())]
    return found + (["a call without its result"] if open_calls else [])


def checked_call(call: dict[str, Any]) -> str:
    assert set(call) == {"id", "type", "function"}
    assert set(call["function"]) == {"name", "arguments"}
    assert isinstance(call["function"]["arguments"], str)
    return str(call["id"])


@asynccontextmanager
async def serving() -> AsyncIterator[Endpoint]:
    """A running endpoint; at the end every request must have been a proper one."""
    endpoint = Endpoint()
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        tasks.add(task)
        await endpoint.serve(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    endpoint.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield endpoint
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert endpoint.problems == []


def event(chunk: dict[str, Any] | str) -> bytes:
    return b"data: " + (chunk if isinstance(chunk, str) else json.dumps(chunk)).encode() + b"\n\n"


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
    }


def usage(prompt: int, completion: int, cached: int = 0) -> dict[str, Any]:
    counts = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    return chunk({}) | {"choices": [], "usage": counts}


def saying(*texts: str, finish: str = "stop") -> Plan:
    """A whole answer in these pieces."""
    deltas = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": text}) for text in texts)]
    return stream(*map(event, [*deltas, chunk({}, finish), usage(12, 3, 4)]), event("[DONE]"))


def stream(*pieces: bytes) -> Plan:
    async def plan(peer: Peer, _: object = None) -> None:
        await peer.head()
        for piece in pieces:
            await peer.piece(piece)
        await peer.end()

    return plan


def cut_after(*pieces: bytes) -> Plan:
    async def plan(peer: Peer, _: object = None) -> None:
        await peer.head()
        for piece in pieces:
            await peer.piece(piece)
        peer.cut()

    return plan


def status(code: int, body: object, **headers: str) -> Plan:
    async def plan(peer: Peer, _: object = None) -> None:
        await peer.head(code, "application/json", **headers)
        await peer.piece(json.dumps(body).encode())
        await peer.end()

    return plan
