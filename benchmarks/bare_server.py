"""``python -m benchmarks.bare_server FOLDER``: the least that a gateway could do with a chat completion.

The same server and parser as ours, three bare commits, an answer. It prints its port.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import uvicorn
import uvloop

from benchmarks import raw
from frontdesk.web import ports

CHATS = 32
SESSION = b"x-frontdesk-session"
HEADERS = [(b"content-type", b"application/json")]


class Answering:
    """An application that knows one endpoint."""

    def __init__(self, folder: Path) -> None:
        self._db = raw.open_raw(folder / "bare.db")
        raw.fill(self._db, CHATS)

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[dict[str, Any]]],
        send: Callable[[dict[str, Any]], Awaitable[None]],
    ) -> None:
        body, more = b"", True
        while more:
            part = await receive()
            body, more = body + part["body"], part["more_body"]
        asked = json.loads(body)
        raw.turn(self._db, dict(scope["headers"])[SESSION].decode())
        message = {"role": "assistant", "content": asked["messages"][-1]["content"]}
        told = {"object": "chat.completion", "choices": [{"index": 0, "message": message}]}
        answer = json.dumps(told).encode()
        length = (b"content-length", str(len(answer)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [*HEADERS, length]})
        await send({"type": "http.response.body", "body": answer})


async def _serve(folder: Path) -> None:
    with ports.listening("127.0.0.1", 0) as listening:
        config = uvicorn.Config(
            Answering(folder),
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
        )
        print(listening.getsockname()[1], flush=True)
        await uvicorn.Server(config).serve(sockets=[listening])


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(Path(sys.argv[1])))
