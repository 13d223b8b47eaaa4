"""A port on loopback that can refuse everybody."""

import socket
from collections.abc import Callable
from typing import Any

from aiohttp import web


class LoopbackSite:
    """One handler on a port of its own, which can refuse everybody."""

    def __init__(self, handle: Callable[[web.Request], Any], most_bytes: int = 1024**2) -> None:
        self._handle = handle
        self._most = most_bytes
        # Bound and not listening: nobody else gets the port while we refuse.
        self._place = _bound(0)
        self.port: int = self._place.getsockname()[1]
        self._runner: web.AppRunner | None = None

    async def listen(self) -> None:
        if self._runner is None:
            app = web.Application(client_max_size=self._most)
            app.router.add_route("*", "/{path:.*}", self._handle)
            self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0)
            await self._runner.setup()
            await web.SockSite(self._runner, _bound(self.port)).start()

    async def refuse(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def close(self) -> None:
        await self.refuse()
        self._place.close()


def _bound(port: int) -> socket.socket:
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.bind(("127.0.0.1", port))
    return bound
