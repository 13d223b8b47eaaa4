"""The gateway of the stand-in: sessions, their events by number, and lines that can be cut."""

import asyncio
import json
import zlib
from collections.abc import Callable
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

DISPATCH, HEARTBEAT, IDENTIFY, RESUME, INVALID, HELLO, HEARD = 0, 1, 2, 6, 9, 10, 11
CONTENT = 1 << 15
HEARTBEAT_MILLISECONDS = 41_250
SYNC = zlib.Z_SYNC_FLUSH


class GatewaySession:
    """What one client was told, so that it can go on after its line broke."""

    def __init__(self, number: int) -> None:
        self.id = f"session-{number}"
        self.events: list[dict[str, Any]] = []
        self.line: web.WebSocketResponse | None = None
        self.packer = zlib.compressobj()


class GatewayLines:
    """The sockets of the stand-in, and what is told on them."""

    def __init__(self, token: Callable[[], str], welcome: Callable[[], list[tuple[str, Any]]]) -> None:
        self._token = token
        self._welcome = welcome
        self.content_intent = True
        """Whether the bot may have the texts of messages."""
        self.sessions: list[GatewaySession] = []
        self.identified = 0
        self.resumed = 0
        self.closed_with: list[int] = []
        self.resume_url = ""
        self.changed = asyncio.Condition()

    @property
    def live(self) -> list[GatewaySession]:
        return [each for each in self.sessions if each.line is not None]

    async def tell(self, name: str, data: Any) -> None:
        """An event for everybody whose session goes on, on the line or not."""
        for session in self.sessions:
            event = {"op": DISPATCH, "t": name, "s": len(session.events) + 1, "d": data}
            session.events.append(event)
            if session.line is not None:
                await self._send(session, event)

    async def cut(self) -> None:
        """Every line breaks; sessions can be gone on with."""
        for session in self.live:
            line, session.line = session.line, None
            if line is not None and (transport := line._req.transport if line._req else None):
                transport.abort()

    def forget(self) -> None:
        """No session can be gone on with."""
        self.sessions = []

    async def serve(self, request: web.Request) -> web.StreamResponse:
        line = web.WebSocketResponse()
        await line.prepare(request)
        if request.query.get("compress") != "zlib-stream" or request.query.get("encoding") != "json":
            await line.close(code=4002, message=b"unsupported")
            return line
        session = GatewaySession(len(self.sessions))
        session.line = line
        await self._send(session, {"op": HELLO, "d": {"heartbeat_interval": HEARTBEAT_MILLISECONDS}})
        try:
            async for message in line:
                if message.type is not WSMsgType.TEXT:
                    break
                session = await self._take(session, line, json.loads(message.data))
        finally:
            if session.line is line:
                session.line = None
            await self.ring()
        return line

    async def _take(
        self, session: GatewaySession, line: web.WebSocketResponse, told: dict[str, Any]
    ) -> GatewaySession:
        data = told.get("d")
        if told["op"] == HEARTBEAT:
            await self._send(session, {"op": HEARD})
        elif told["op"] == IDENTIFY:
            await self._identify(session, line, data or {})
        elif told["op"] == RESUME:
            return await self._resume(session, line, data or {})
        return session

    async def _refuse(self, line: web.WebSocketResponse, code: int) -> None:
        self.closed_with.append(code)
        await line.close(code=code, message=b"no")
        await self.ring()

    async def _identify(
        self, session: GatewaySession, line: web.WebSocketResponse, data: dict[str, Any]
    ) -> None:
        if data.get("token") != self._token():
            await self._refuse(line, 4004)
            return
        if data.get("intents", 0) & CONTENT and not self.content_intent:
            await self._refuse(line, 4014)
            return
        self.identified += 1
        self.sessions.append(session)
        for name, told in self._welcome():
            more = (
                {"session_id": session.id, "resume_gateway_url": self.resume_url} if name == "READY" else {}
            )
            event = {"op": DISPATCH, "t": name, "s": len(session.events) + 1, "d": told | more}
            session.events.append(event)
            await self._send(session, event)
        await self.ring()

    async def _resume(
        self, fresh: GatewaySession, line: web.WebSocketResponse, data: dict[str, Any]
    ) -> GatewaySession:
        found = [each for each in self.sessions if each.id == data.get("session_id")]
        if not found or data.get("token") != self._token():
            await self._send(fresh, {"op": INVALID, "d": False})
            return fresh
        session = found[0]
        session.line, session.packer = line, fresh.packer
        self.resumed += 1
        missed = session.events[int(data.get("seq") or 0) :]
        for event in [*missed, {"op": DISPATCH, "t": "RESUMED", "s": len(session.events), "d": {}}]:
            await self._send(session, event)
        await self.ring()
        return session

    async def _send(self, session: GatewaySession, event: dict[str, Any]) -> None:
        line = session.line
        if line is None or line.closed:
            return
        packed = session.packer.compress(json.dumps(event).encode()) + session.packer.flush(SYNC)
        try:
            await line.send_bytes(packed)
        except ConnectionError:
            session.line = None

    async def close(self) -> None:
        for session in self.live:
            if session.line is not None:
                await session.line.close(code=WSCloseCode.GOING_AWAY)

    async def ring(self) -> None:
        async with self.changed:
            self.changed.notify_all()
