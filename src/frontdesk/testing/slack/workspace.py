"""The workspace: its people, its methods over HTTP, its socket, and its calls to the app."""

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from email.utils import formatdate
from typing import Any
from urllib.parse import urlencode

import aiohttp
from aiohttp import web

from frontdesk.testing import faults
from frontdesk.testing.slack.inventory import (
    Envelope,
    TeamCall,
    TeamFault,
    TeamPost,
    TeamRefusal,
)
from frontdesk.testing.slack.people import TeamPeople
from frontdesk.testing.slack.web_methods import METHODS

BOT_TOKEN = "xoxb-1-2-standin"
APP_TOKEN = "xapp-1-A1-2-standin"
SIGNING_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
SCOPES = (
    "app_mentions:read,assistant:write,channels:history,channels:read,chat:write,commands,files:read,files:write,"
    "groups:history,groups:read,im:history,im:read,mpim:history,mpim:read,reactions:read,reactions:write,users:read"
)
MOST_BODY_BYTES = 200_000_000
PATIENCE_SECONDS = 30.0
POLL_SECONDS = 0.01
GOES_AWAY = 1000


class Workspace(TeamPeople):
    """A workspace with our app in it. What it does is seen in ``posts``, ``calls``, ``signs``."""

    bot_token = BOT_TOKEN
    app_token = APP_TOKEN
    signing_secret = SIGNING_SECRET

    def __init__(self) -> None:
        super().__init__()
        self.posts: list[TeamPost] = []
        self.expected: dict[str, int] = {}
        self.calls: list[TeamCall] = []
        self.impatient: list[TeamCall] = []
        """Calls that came while the app had been told to wait."""
        self.signs: list[tuple[str, str, str]] = []
        self.statuses: list[tuple[str, str, str]] = []
        self.answers: list[dict[str, Any]] = []
        """What came at the addresses of commands."""
        self.whispers: list[TeamPost] = []
        """The same, as messages."""
        self.faults: list[TeamFault] = []
        self.weather: Callable[[TeamCall], TeamFault | None] = lambda _: None
        self.scopes = SCOPES
        self.socket_mode = True
        self.request_url: str | None = None
        """Where the app is called, instead of over its socket."""
        self.connects = 0
        self._sockets: list[web.WebSocketResponse] = []
        self._envelopes: dict[str, Envelope] = {}
        self._site: web.TCPSite | None = None
        self._runner: web.AppRunner | None = None
        self._release = asyncio.Event()
        self.port = 0

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator["Workspace"]:
        team = cls()
        await team.listen()
        try:
            yield team
        finally:
            await team.refuse()

    @property
    def url(self) -> str:
        return f"{self.origin}/api/"

    @property
    def connected(self) -> bool:
        return bool(self._sockets)

    def socket_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/link?ticket={self.number('t')}"

    async def listen(self) -> None:
        """Be there, at the same port as before."""
        if self._runner is not None:
            return
        app = web.Application(client_max_size=MOST_BODY_BYTES)
        app.router.add_post("/api/{method}", self._call)
        app.router.add_get("/link", self._link)
        app.router.add_post("/upload/{file}", self._upload)
        app.router.add_get("/files/{file}", self._download)
        app.router.add_post("/commands/{trigger}", self._answered)
        self._release = asyncio.Event()
        runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self.port, reuse_port=True)
        await site.start()
        self._runner, self._site = runner, site
        self.port = runner.addresses[0][1]
        self.origin = f"http://127.0.0.1:{self.port}"

    async def refuse(self) -> None:
        """Stop listening, and cut every connection."""
        runner, self._runner = self._runner, None
        if runner is not None:
            self._release.set()
            await self.hang_up()
            await runner.cleanup()

    async def hang_up(self) -> None:
        """Cut the app's sockets."""
        for socket in list(self._sockets):
            await socket.close(code=GOES_AWAY)

    async def disconnect(self, reason: str = "refresh_requested") -> None:
        """Tell the app to connect again."""
        for socket in list(self._sockets):
            await socket.send_json({"type": "disconnect", "reason": reason})

    async def until(self, condition: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(POLL_SECONDS)

    async def bring(self, kind: str, payload: dict[str, Any]) -> Envelope | None:
        """Bring anything to the app, once."""
        envelope = Envelope(id=self.number("envelope-"), kind=kind, payload=payload)
        if self.request_url is not None:
            return await self._push(envelope)
        if not self._sockets:
            return None
        self._envelopes[envelope.id] = envelope
        told = {
            "envelope_id": envelope.id,
            "type": kind,
            "payload": payload,
            "accepts_response_payload": False,
        }
        try:
            await self._sockets[-1].send_json(told)
        except ConnectionError:  # it is just being closed
            return None
        return envelope

    async def _push(self, envelope: Envelope) -> Envelope:
        """Call the app, signed."""
        kind, body = "application/json", json.dumps(envelope.payload)
        if envelope.kind != "events_api":
            fields = {"payload": body} if envelope.kind == "interactive" else envelope.payload
            kind, body = "application/x-www-form-urlencoded", urlencode(fields)
        headers = {"content-type": kind, **self.signature(body)}
        url = self.request_url or ""
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, data=body, headers=headers) as answer,
        ):
            if answer.ok:
                envelope.acknowledged.set()
        return envelope

    def signature(self, body: str, at: float | None = None) -> dict[str, str]:
        stamp = str(int(self.now() if at is None else at))
        signed = hmac.new(self.signing_secret.encode(), f"v0:{stamp}:{body}".encode(), hashlib.sha256)
        return {"x-slack-request-timestamp": stamp, "x-slack-signature": f"v0={signed.hexdigest()}"}

    # What the platform keeps.

    def add(self, post: TeamPost) -> None:
        self.posts.append(post)
        said: dict[str, Any] = {"type": "message", "user": self.user_id, "bot_id": self.bot_id, "ts": post.ts}
        said |= {"text": post.text, "metadata": post.metadata}
        if post.thread_ts:
            said["thread_ts"] = post.thread_ts
        self.messages[post.channel][post.ts] = said

    def history(self, chat: str, fields: dict[str, Any]) -> list[dict[str, Any]]:
        """What was said after a time, oldest first; metadata only for whoever asks."""
        oldest = float(fields.get("oldest") or 0)
        found = [dict(each) for ts, each in sorted(self.messages[chat].items()) if float(ts) > oldest]
        streams = {post.ts: post for post in self.posts if post.streams and post.channel == chat}
        for each in found:
            if each["ts"] in streams:
                each |= {"streaming_state": "in_progress", "text": streams[each["ts"]].text}
            answers = [
                ts for ts, one in self.messages[chat].items() if one.get("thread_ts") == each["ts"] != ts
            ]
            if answers:
                each |= {"thread_ts": each["ts"], "reply_count": len(answers), "latest_reply": max(answers)}
            if str(fields.get("include_all_metadata", "")).lower() not in ("true", "1"):
                each.pop("metadata", None)
        return found

    # Calls.

    async def _call(self, request: web.Request) -> web.StreamResponse:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        as_json = request.content_type == "application/json"
        fields = await request.json() if as_json else dict(await request.post())
        call = TeamCall(method=request.match_info["method"], fields=fields, token=token)
        self.calls.append(call)
        fault = self._fault(call)
        if fault is None:
            return self._carry_out(call)
        if fault.taken:
            self._carry_out(call)
        if fault.hangs:
            await self._release.wait()
        if fault.cut or fault.hangs:
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        if fault.body is not None:
            return web.Response(body=fault.body, content_type="application/json")
        chat = self.chats.get(str(fields.get("channel")))
        if fault.retry_after and chat is not None:
            chat.waits_until = time.monotonic() + fault.retry_after
        if fault.error is None and fault.status and fault.retry_after is None:
            return web.Response(status=fault.status, text="<html>", content_type="text/html")
        return self._refusal(
            TeamRefusal(fault.error or "ratelimited", fault.status or 200, fault.retry_after)
        )

    def _fault(self, call: TeamCall) -> TeamFault | None:
        concerned = faults.take(self.faults, lambda fault: fault.method in (None, call.method))
        return concerned or self.weather(call)

    def _carry_out(self, call: TeamCall) -> web.Response:
        wanted = self.app_token if call.method.startswith("apps.") else self.bot_token
        if call.token != wanted:
            return self._refusal(TeamRefusal("invalid_auth" if call.token else "not_authed"))
        function = METHODS.get(call.method)
        if function is None:
            return self._refusal(TeamRefusal("unknown_method"))
        try:
            result = function(self, call)
        except TeamRefusal as refused:
            return self._refusal(refused)
        headers = {"x-oauth-scopes": self.scopes, "date": formatdate(self.now(), usegmt=True)}
        return web.json_response({"ok": True, **result}, headers=headers)

    def _refusal(self, refused: TeamRefusal) -> web.Response:
        headers = {"retry-after": str(refused.retry_after)} if refused.retry_after else {}
        return web.json_response({"ok": False, "error": refused.code}, status=refused.status, headers=headers)

    async def _link(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.connects += 1
        await socket.send_json({"type": "hello", "num_connections": len(self._sockets) + 1})
        self._sockets.append(socket)
        try:
            async for message in socket:
                envelope = self._envelopes.get(str(json.loads(message.data).get("envelope_id")))
                if envelope is None:
                    raise AssertionError("an envelope was acknowledged that was never brought")
                envelope.acknowledged.set()
        finally:
            self._sockets.remove(socket)
        return socket

    async def _upload(self, request: web.Request) -> web.Response:
        file = self.files[request.match_info["file"]]
        if "authorization" in request.headers:
            raise AssertionError("the token went along with a file")
        data = await request.read()
        if len(data) != self.expected[file.id]:
            return web.Response(status=400)
        file.data = data
        return web.Response(text=f"OK - {len(data)}")

    async def _download(self, request: web.Request) -> web.Response:
        file = self.files.get(request.match_info["file"])
        if (
            request.headers.get("authorization") != f"Bearer {self.bot_token}"
            or "files:read" not in self.scopes
        ):
            return web.Response(text="<!DOCTYPE html>sign in", content_type="text/html")
        if file is None:
            return web.Response(status=404)
        return web.Response(body=file.data, content_type=file.kind)

    async def _answered(self, request: web.Request) -> web.Response:
        told, trigger = await request.json(), request.match_info["trigger"]
        self.answers.append(told)
        self.whispers.append(
            TeamPost(
                channel=self.commanded[trigger],
                ts=self.stamp(),
                text=told["text"],
                blocks=told.get("blocks") or [],
                response_url=f"{self.origin}/commands/{trigger}",
            )
        )
        return web.Response(text="ok")
