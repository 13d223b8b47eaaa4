"""JSON-RPC 2.0 with the agent, a message to a line."""

import asyncio
from typing import Any

import msgspec

from frontdesk.agents.acp.options import AcpOptions
from frontdesk.agents.programs import Process
from frontdesk.formats import quoting
from frontdesk.logs import get_logger
from frontdesk.model import events

log = get_logger(__name__)

MAX_INBOX = 256
MAX_STRAY_LINES = 20
MAX_WORDS = 300
WRITE_SECONDS = 30.0
SETTLE_SECONDS = 1.0
METHOD_NOT_FOUND = -32601
AUTH_REQUIRED = -32000
PERMISSION = "session/request_permission"
UPDATE = "session/update"


class Lost(Exception):
    """The agent cannot go on."""

    def __init__(self, why: str, *, detail: str = "", retryable: bool = False) -> None:
        """Why, in words of our own; the detail may be the agent's and is for the log."""
        told = f"{why}: {detail}" if detail else why
        super().__init__(told)
        self.failed = events.Failed(
            message=f"The agent failed: {why}", retryable=retryable, detail=told if detail else None
        )


class UpdateTold(msgspec.Struct, frozen=True):
    """Something new in the turn."""

    body: dict[str, Any]


class PermissionAsked(msgspec.Struct, frozen=True):
    """The agent wants a permission."""

    id: int | str
    params: dict[str, Any]


class PromptAnswered(msgspec.Struct, frozen=True):
    """The turn has ended: the answer to the prompt."""

    message: dict[str, Any]


Item = UpdateTold | PermissionAsked | PromptAnswered | Lost | events.Signal


class Wire:
    """Requests out, answers in. What belongs to a turn comes in the order of its arrival in `inbox`.

    When the inbox is full nothing more is read, so that an agent that writes too fast has to wait.
    """

    def __init__(self, process: Process, options: AcpOptions) -> None:
        self.inbox: asyncio.Queue[Item] = asyncio.Queue(MAX_INBOX)
        self._process = process
        self._options = options
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._numbers = 0
        self._session: str | None = None
        self._prompt: int | None = None
        self._stray_lines = 0
        self._bytes = 0
        self.lost: Lost | None = None
        """Why there will be nothing more."""
        self._reader = asyncio.create_task(self._read())

    async def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask, and wait for the answer. Lost when there is none in time or it is a refusal."""
        future = asyncio.get_running_loop().create_future()
        number = self._number()
        self._waiting[number] = future
        seconds = self._options.start_seconds
        try:
            async with asyncio.timeout(seconds):
                await self._send({"id": number, "method": method, "params": params})
                return result_of(await future, method)
        except TimeoutError:
            raise Lost(f"it did not answer {method} within {seconds:g} seconds") from None
        finally:
            self._waiting.pop(number, None)
            if future.done() and not future.cancelled():
                future.exception()  # told to whoever wrote, when the process ended before it could be asked

    async def prompt(self, session: str, blocks: list[dict[str, Any]]) -> None:
        """Begin a turn; its answer comes into the inbox after everything that belongs to it."""
        self._clear()
        self._session, self._prompt, self._bytes = session, self._number(), 0
        self._process.begin_turn()
        params = {"sessionId": session, "prompt": blocks}
        await self._send({"id": self._prompt, "method": "session/prompt", "params": params})

    def finish_turn(self) -> None:
        """From now on nothing belongs to a turn."""
        self._session = self._prompt = None
        self._clear()

    async def cancel(self, session: str) -> None:
        await self._send({"method": "session/cancel", "params": {"sessionId": session}})

    async def permit(self, asked: int | str, option: str | None) -> None:
        """Answer a request for permission with one of its options, or say that the turn is cancelled."""
        outcome = {"outcome": "selected", "optionId": option} if option else {"outcome": "cancelled"}
        await self._send({"id": asked, "result": {"outcome": outcome}})

    async def close(self) -> None:
        """End the process. A turn that is still running is told."""
        self.lost = self.lost or Lost("it was ended")
        await self._process.end(self._options.stop_seconds, self._options.kill_seconds)
        await asyncio.wait({self._reader}, timeout=SETTLE_SECONDS)
        self._reader.cancel()
        await asyncio.wait({self._reader})

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _clear(self) -> None:
        while not self.inbox.empty():
            self.inbox.get_nowait()

    async def _send(self, message: dict[str, Any]) -> None:
        if self.lost:
            raise self.lost
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await self._process.write(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")
        except TimeoutError:
            raise Lost(f"it read nothing for {WRITE_SECONDS:g} seconds") from None
        except OSError:
            raise await self._ended() from None

    async def _read(self) -> None:
        """Read to the end, and tell everybody who waits what kind of end it was."""
        try:
            while line := await self._process.read():
                await self._take(line)
            lost = await self._ended()
        except asyncio.LimitOverrunError:
            lost = Lost(f"flood: it wrote a line of more than {self._options.max_line_bytes} bytes")
        except Lost as error:
            lost = error
        self.lost = self.lost or lost
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(self.lost)
        if self._prompt is not None:
            await self.inbox.put(self.lost)

    async def _ended(self) -> Lost:
        return Lost("it ended", detail=await self._process.end_told(), retryable=True)

    async def _take(self, line: bytes) -> None:
        self._bytes += len(line)
        if self._bytes > self._options.max_turn_bytes:
            raise Lost(f"flood: it wrote more than {self._options.max_turn_bytes} bytes in a turn")
        if not line.strip():
            return
        message = _decoded(line)
        if message is None:
            self._stray_lines += 1  # Some programs greet before they speak JSON.
            log.warning("agent_stray_output", text=line[:MAX_WORDS].decode("utf-8", "replace").strip())
            if self._stray_lines > MAX_STRAY_LINES:
                raise Lost(f"garbage: it wrote more than {MAX_STRAY_LINES} lines that are not JSON-RPC")
        elif "method" in message:
            await self._hear(message)
        else:
            await self._match(message)

    async def _hear(self, message: dict[str, Any]) -> None:
        method, number = message["method"], message.get("id")
        body = fields(message.get("params"))
        ours = self._session is not None and body.get("sessionId") == self._session
        if isinstance(number, int | str):
            await self._serve(method, number, body, ours)
        elif method == UPDATE and ours and isinstance(body.get("update"), dict):
            await self.inbox.put(UpdateTold(body["update"]))

    async def _serve(self, method: str, number: int | str, body: dict[str, Any], ours: bool) -> None:
        """A request of the agent. It has no files and no terminals of ours."""
        if method == PERMISSION and ours:
            await self.inbox.put(PermissionAsked(number, body))
        elif method == PERMISSION:
            await self.permit(number, None)
        else:
            error = {"code": METHOD_NOT_FOUND, "message": "Method not found"}
            await self._send({"id": number, "error": error})

    async def _match(self, message: dict[str, Any]) -> None:
        number = message.get("id")
        if number is not None and number == self._prompt:
            await self.inbox.put(PromptAnswered(message))
        future = self._waiting.get(number) if isinstance(number, int) else None
        if future and not future.done():
            future.set_result(message)


def result_of(message: dict[str, Any], method: str) -> dict[str, Any]:
    """The result in an answer. Lost when it is a refusal; what the agent says about it goes along."""
    error = message.get("error")
    if isinstance(error, dict):
        if error.get("code") == AUTH_REQUIRED:
            raise Lost("somebody has to sign in to it first")
        raise Lost(f"it refused {method}", detail=quoting.quote(str(error.get("message"))[:MAX_WORDS]))
    return fields(message.get("result"))


def fields(value: object) -> dict[str, Any]:
    """An object's fields; whatever else an agent wrote in its place has none."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[dict[str, Any]]:
    """The objects in a list; whatever else is there is none."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _decoded(line: bytes) -> dict[str, Any] | None:
    try:
        message = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    return message if isinstance(message, dict) and message.get("jsonrpc") == "2.0" else None
