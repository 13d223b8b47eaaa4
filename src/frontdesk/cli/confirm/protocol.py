"""The Model Context Protocol over standard input and output, as far as a server with tools needs it.

Revisions with a handshake (`initialize`) and the one where each request says its own version are both spoken.
Requests are answered as they are done, in any order; a call that waits holds up nothing else.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.formats import canonical
from frontdesk.logs import get_logger

HANDSHAKES = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The revisions that begin with `initialize`, newest first."""
STATELESS = ("2026-07-28",)
"""The revisions in which every request says its version."""
META = "io.modelcontextprotocol/"
VERSION, CAPABILITIES, SERVER = f"{META}protocolVersion", f"{META}clientCapabilities", f"{META}serverInfo"
MOST_AT_ONCE = 64

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, INTERNAL_ERROR = (
    -32700,
    -32600,
    -32601,
    -32602,
    -32603,
)
NO_VERSION = -32022

Plain = dict[str, Any]
Tell = Callable[[str], None]
"""Tells whoever waits how it stands."""

log = get_logger(__name__)


class ToolOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool gives back."""

    text: str
    facts: Mapping[str, Any] = {}
    failed: bool = False


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    listed: Plain
    """As clients see it: ``name``, ``title``, ``description``, ``inputSchema``."""
    call: Callable[[Mapping[str, Any], Tell], Awaitable[ToolOutcome]]


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, code: int, message: str, data: Plain | None = None) -> None:
        super().__init__(message)
        self.told = {"code": code, "message": message} | ({"data": data} if data else {})


class McpRequest(msgspec.Struct, frozen=True, kw_only=True):
    id: str | int
    method: str
    params: Plain
    meta: Plain

    @property
    def stateless(self) -> bool:
        return VERSION in self.meta


class McpServer:
    def __init__(self, tools: Sequence[Tool], instructions: str, write: Callable[[bytes], None]) -> None:
        self._tools = {tool.listed["name"]: tool for tool in tools}
        self._offered = {"capabilities": {"tools": {}}, "instructions": instructions}
        self._write = write
        self._running: dict[str | int, asyncio.Task[None]] = {}
        self._places = asyncio.Semaphore(MOST_AT_ONCE)

    async def serve(self, lines: AsyncIterator[bytes]) -> None:
        """Answer until there are no more lines; what is under way then is given up."""
        try:
            async for line in lines:
                if line.strip():
                    self._take(line)
        finally:
            tasks = list(self._running.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _take(self, line: bytes) -> None:
        try:
            message = canonical.read_strict(line)
        except errors.InexactJson as error:
            self._refuse(_id_of(line), Refused(PARSE_ERROR, str(error)))
            return
        if message == []:
            self._refuse(None, Refused(INVALID_REQUEST, "There is nothing in this batch."))
        for each in message if isinstance(message, list) else [message]:
            self._take_message(each)

    def _take_message(self, message: Any) -> None:
        try:
            request = _read(message)
        except Refused as refusal:
            self._refuse(message.get("id") if isinstance(message, dict) else None, refusal)
            return
        if request is not None:
            self._running[request.id] = asyncio.create_task(self._answer(request))
        elif isinstance(message, dict) and message.get("method") == "notifications/cancelled":
            self._cancel(message.get("params"))

    def _cancel(self, params: Any) -> None:
        wanted = params.get("requestId") if isinstance(params, dict) else None
        if isinstance(wanted, str | int) and wanted in self._running:
            self._running[wanted].cancel()

    async def _answer(self, request: McpRequest) -> None:
        """The outermost door of a request."""
        try:
            async with self._places:
                self._send({"id": request.id, "result": await self._result(request)})
        except Refused as refusal:
            self._refuse(request.id, refusal)
        except Exception:
            log.exception("mcp_request_failed", method=request.method)
            self._refuse(request.id, Refused(INTERNAL_ERROR, "Something went wrong here."))
        finally:
            self._running.pop(request.id, None)

    async def _result(self, request: McpRequest) -> Plain:
        if request.stateless:
            _check_version(request)
        match request.method:
            case "initialize" if not request.stateless:
                return self._greet(request)
            case "ping" if not request.stateless:
                return {}
            case "server/discover" if request.stateless:
                found = {"supportedVersions": [*STATELESS, *HANDSHAKES], **self._offered}
                return _complete(found, cached=True)
            case "tools/list":
                listed = {"tools": [tool.listed for tool in self._tools.values()]}
                return _complete(listed, cached=True) if request.stateless else listed
            case "tools/call":
                called = await self._call(request)
                return _complete(called) if request.stateless else called
        raise Refused(NO_METHOD, f"There is no method {request.method!r}.")

    def _greet(self, request: McpRequest) -> Plain:
        wanted = request.params.get("protocolVersion")
        return {
            "protocolVersion": wanted if wanted in HANDSHAKES else HANDSHAKES[0],
            "serverInfo": _identity(),
            **self._offered,
        }

    async def _call(self, request: McpRequest) -> Plain:
        name, arguments = request.params.get("name"), request.params.get("arguments") or {}
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool is None or not isinstance(arguments, dict):
            raise Refused(INVALID_PARAMS, f"There is no tool {name!r}, or its arguments are no object.")
        outcome = await tool.call(arguments, self._teller(request))
        return {
            "content": [{"type": "text", "text": outcome.text}],
            "structuredContent": dict(outcome.facts),
            "isError": outcome.failed,
        }

    def _teller(self, request: McpRequest) -> Tell:
        token = request.meta.get("progressToken")
        told = 0

        def tell(text: str) -> None:
            nonlocal told
            told += 1
            params = {"progressToken": token, "progress": told, "message": text}
            if token is not None:
                self._send({"method": "notifications/progress", "params": params})

        return tell

    def _refuse(self, request_id: Any, refusal: Refused) -> None:
        known = request_id if isinstance(request_id, str | int) else None
        self._send({"id": known, "error": refusal.told})

    def _send(self, message: Plain) -> None:
        self._write(msgspec.json.encode({"jsonrpc": "2.0"} | message) + b"\n")


def _read(message: Any) -> McpRequest | None:
    """The request; None for what wants no answer: notifications, and answers, since we ask nothing."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise Refused(INVALID_REQUEST, "This is no message of JSON-RPC 2.0.")
    method, params = message.get("method"), message.get("params") or {}
    if "id" not in message or (method is None and ("result" in message or "error" in message)):
        return None
    request_id = message["id"]
    if isinstance(request_id, bool) or not isinstance(request_id, str | int) or not isinstance(method, str):
        raise Refused(INVALID_REQUEST, "A request has a method, and an id that is a text or a whole number.")
    if not isinstance(params, dict) or not isinstance(params.get("_meta") or {}, dict):
        raise Refused(INVALID_PARAMS, "The parameters are no object.")
    return McpRequest(id=request_id, method=method, params=params, meta=params.get("_meta") or {})


def _check_version(request: McpRequest) -> None:
    wanted = request.meta[VERSION]
    if not isinstance(wanted, str) or not isinstance(request.meta.get(CAPABILITIES), dict):
        raise Refused(INVALID_PARAMS, f"_meta must hold {VERSION} and {CAPABILITIES}.")
    if wanted not in STATELESS:
        supported = [*STATELESS, *HANDSHAKES]
        raise Refused(
            NO_VERSION, "Unsupported protocol version", {"supported": supported, "requested": wanted}
        )


def _complete(result: Plain, *, cached: bool = False) -> Plain:
    """A result as the revision without a handshake has it."""
    caching = {"ttlMs": 0, "cacheScope": "private"} if cached else {}
    return result | caching | {"resultType": "complete", "_meta": {SERVER: _identity()}}


def _identity() -> Plain:
    return {"name": "frontdesk-confirm", "title": "frontdesk confirmations", "version": version("frontdesk")}


def _id_of(line: bytes) -> Any:
    """Whose answer it would be, as far as that can be read."""
    try:
        return msgspec.json.decode(line, type=dict[str, Any]).get("id")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
