"""Something between a client and a server that can be broken."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from aiohttp import ClientSession, ClientTimeout, web

from frontdesk.testing.channels import Trouble
from tests.loopback import free_port

WAIT = {"errcode": "M_LIMIT_EXCEEDED", "error": "Too many requests", "retry_after_ms": 200}
TOO_MANY = 429
HOP = {"host", "connection", "content-length", "transfer-encoding", "content-encoding"}


class Proxy:
    """Passes requests on. In trouble it does to those that write what the trouble says; ``fate`` says it anew
    for each of them, or the status that refuses it."""

    def __init__(self, target: str, fate: Callable[[], Trouble | int | None] | None = None) -> None:
        self._fate = fate
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._target = target
        self._trouble: Trouble | None = None
        self._runner: web.AppRunner | None = None
        self.passed = 0

    async def trouble(self, trouble: Trouble | None) -> None:
        self._trouble = trouble
        if trouble is Trouble.REFUSES:
            await self._stop()
        else:
            await self._start()

    async def _start(self) -> None:
        if self._runner is None:
            app = web.Application(client_max_size=100 * 1024 * 1024)
            app.router.add_route("*", "/{path:.*}", self._pass)
            self._runner = web.AppRunner(app, shutdown_timeout=0.1)
            await self._runner.setup()
            await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()

    async def _stop(self) -> None:
        runner, self._runner = self._runner, None
        if runner:
            await runner.cleanup()

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        trouble = self._fate() if self._fate else self._trouble
        writes = request.method != "GET"
        if writes and trouble == TOO_MANY:
            return web.json_response(WAIT, status=TOO_MANY)
        if writes and trouble is Trouble.FAILS:
            return web.json_response({"errcode": "M_UNKNOWN", "error": "out of order"}, status=503)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP}
        place, body = f"{self._target}{request.rel_url.raw_path_qs}", await request.read()
        async with (
            ClientSession(auto_decompress=True, timeout=ClientTimeout(total=120)) as session,
            session.request(request.method, place, data=body or None, headers=headers) as answer,
        ):
            told = await answer.read()
            status, kind = answer.status, answer.headers.get("content-type", "application/octet-stream")
        self.passed += writes
        if writes and trouble is Trouble.HANGS:
            await asyncio.Event().wait()
        if writes and trouble is Trouble.CUTS and request.transport:
            request.transport.abort()
        return web.Response(status=status, body=told, headers={"content-type": kind})


@asynccontextmanager
async def proxy_to(target: str) -> AsyncIterator[Proxy]:
    proxy = Proxy(target)
    await proxy.trouble(None)
    try:
        yield proxy
    finally:
        await proxy.trouble(Trouble.REFUSES)


@contextmanager
def fateful_proxy(target: str, fate: Callable[[], Trouble | int | None]) -> Iterator[Proxy]:
    """On a thread of its own, for tests that wait."""
    proxy, ready, over = Proxy(target, fate), threading.Event(), threading.Event()

    async def serve() -> None:
        await proxy.trouble(None)
        ready.set()
        await asyncio.to_thread(over.wait)
        await proxy.trouble(Trouble.REFUSES)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        ready.wait()
        yield proxy
    finally:
        over.set()
        thread.join()
