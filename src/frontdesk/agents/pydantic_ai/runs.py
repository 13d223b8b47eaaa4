"""A turn on its way through pydantic-ai."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Coroutine, Sequence
from typing import Any

import pydantic_core
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelResponse,
    RunContext,
    ToolApproved,
    ToolDenied,
)
from pydantic_ai import messages as theirs
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.exceptions import ToolFailed, UserError
from pydantic_ai.run import AgentRun
from pydantic_ai.usage import RequestUsage

from frontdesk.agents.pydantic_ai import parts, transcripts
from frontdesk.contracts.agents import Line
from frontdesk.model import events
from frontdesk.model.sessions import Usage

CANCELLED = "The agent cancelled its own run"
BREAK = "\n\n"
DENIED = "The user did not allow this."
NOBODY_RUNS_IT = "Nobody is there to run this tool: it is one that is executed outside of the agent."

AnyAgent = AbstractAgent[Any, Any]
AnyRun = AgentRun[Any, Any]


class Relay:
    """Hands events over one by one; who hands one in goes on when the next is asked for.

    The library's scopes must be left in the task that entered them, which an iterator cannot promise.
    So its work is done in a task of its own.
    """

    def __init__(self) -> None:
        # Who puts an event waits, so that there are never more of them than senders.
        self._queue: asyncio.Queue[events.Event | None] = asyncio.Queue()
        self.is_silent = True
        """Whether nothing was handed in so far."""

    async def put(self, event: events.Event) -> None:
        self.is_silent = False
        self._queue.put_nowait(event)
        await self._queue.join()

    async def run(
        self, work: Callable[["Relay"], Coroutine[None, None, None]]
    ) -> AsyncGenerator[events.Event]:
        """What the work hands in, until it ends. Closing the iterator ends the work."""
        task = asyncio.create_task(work(self))
        task.add_done_callback(lambda _: self._queue.put_nowait(None))
        try:
            while (event := await self._queue.get()) is not None:
                yield event
                self._queue.task_done()
            if task.cancelled():
                yield events.Failed(message=CANCELLED)
        finally:
            task.cancel()
            await asyncio.wait([task])


class Run:
    """Tells what happens, and passes on what the agent is told meanwhile."""

    def __init__(self, agent: AnyAgent, turn: events.Assignment, line: Line, relay: Relay) -> None:
        self._agent = agent
        self._turn = turn
        self._line = line
        self._relay = relay
        self._running: AnyRun | None = None
        self._waiting: dict[str, asyncio.Future[events.Decision]] = {}
        self._asked = 0
        self._late: list[events.Steer] = []
        self._spoken = False
        self._apart = False
        self._thoughts: list[theirs.ThinkingPart] = []

    async def go(self, stream: bool, **settings: Any) -> None:
        """Run until there is an answer to the message and to all that came meanwhile."""
        listener = asyncio.create_task(self._listen())
        try:
            history = transcripts.to_model(self._turn.messages)
            finish = await self._run(stream, None, history, settings)
        finally:
            listener.cancel()
        await self._relay.put(events.Done(finish_reason=finish))

    async def _run(
        self,
        stream: bool,
        prompt: str | None,
        history: Sequence[theirs.ModelMessage],
        settings: dict[str, Any],
    ) -> str | None:
        gate = HandleDeferredToolCalls[Any](handler=self._decide)
        capabilities, system = [gate], self._turn.system or None
        async with self._agent.iter(
            prompt, message_history=history, instructions=system, capabilities=capabilities, **settings
        ) as run:
            self._running = run
            async for node in run:
                await self._follow(node, run, stream)
        self._running = None
        assert run.result is not None
        await self._conclude(run.result.output)
        if self._late:
            late, self._late = self._late, []
            for steer in late:
                self._line.mark_steered(steer.id)
            prompt = BREAK.join(steer.text for steer in late)
            return await self._run(stream, prompt, run.result.all_messages(), settings)
        return transcripts.REASONS.get(run.result.response.finish_reason or "stop")

    async def _follow(self, node: Any, run: AnyRun, stream: bool) -> None:
        if Agent.is_model_request_node(node) and stream:
            self._begin_response()
            pieces: AsyncIterable[object]
            async with node.stream(run.ctx) as pieces:
                async for piece in pieces:
                    await self._hear(piece)
        elif Agent.is_call_tools_node(node):
            await self._settle(node.model_response, run, stream)
            async with node.stream(run.ctx) as happenings:
                async for happening in happenings:
                    if isinstance(happening, theirs.FunctionToolResultEvent):
                        await self._relay.put(result_of(happening))

    def _begin_response(self) -> None:
        self._thoughts = []
        self._apart = self._spoken

    async def _hear(self, piece: object) -> None:
        """A piece of the model's response, as it comes in."""
        if isinstance(piece, theirs.PartStartEvent) and isinstance(piece.part, theirs.TextPart):
            await self._say(piece.part.content)
        elif isinstance(piece, theirs.PartDeltaEvent) and isinstance(piece.delta, theirs.TextPartDelta):
            await self._say(piece.delta.content_delta)
        elif isinstance(piece, theirs.PartEndEvent) and isinstance(piece.part, theirs.ThinkingPart):
            await self._think([*self._thoughts, piece.part])

    async def _say(self, text: str) -> None:
        if not text:
            return
        between = BREAK if self._apart else ""
        self._apart, self._spoken = False, True
        await self._relay.put(events.Text(text=between + text))

    async def _think(self, thoughts: list[theirs.ThinkingPart]) -> None:
        """All thoughts of the response so far; later ones stand in place of earlier ones."""
        if thoughts != self._thoughts:
            self._thoughts = thoughts
            details = transcripts.write_thoughts(thoughts)
            await self._relay.put(events.Details(fields={"reasoning_details": details}))

    async def _settle(self, response: ModelResponse, run: AnyRun, streamed: bool) -> None:
        """The whole response is there; no tool has been called yet."""
        if not streamed:
            self._begin_response()
        await self._think([part for part in response.parts if isinstance(part, theirs.ThinkingPart)])
        if not streamed:
            await self._say(BREAK.join(p.content for p in response.parts if isinstance(p, theirs.TextPart)))
        await self._relay.put(events.Used(usage=usage_of(response.usage)))
        calls = tuple(call_of(part) for part in response.tool_calls if not _is_answer(part, run))
        if calls:
            self._spoken = False
            await self._relay.put(events.Calls(calls=calls))

    async def _conclude(self, output: object) -> None:
        """What the run gave as its output, unless it is the text that was said already."""
        if isinstance(output, str) and self._spoken:
            return
        self._apart = self._spoken
        text = output if isinstance(output, str) else pydantic_core.to_json(output, fallback=str).decode()
        await self._say(text if output is not None else "")

    async def _decide(self, _context: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        """Ask for every call that needs it, all at once; then wait for all decisions."""
        asked = {call.tool_call_id: await self._ask(call, requests) for call in requests.approvals}
        approvals = {call_id: verdict_of(await decision) for call_id, decision in asked.items()}
        calls: dict[str, Any] = {call.tool_call_id: ToolFailed(NOBODY_RUNS_IT) for call in requests.calls}
        return requests.build_results(approvals=approvals, calls=calls)

    async def _ask(
        self, call: theirs.ToolCallPart, requests: DeferredToolRequests
    ) -> asyncio.Future[events.Decision]:
        self._asked += 1
        approval = approval_of(call, requests, f"{self._turn.turn_id}-{self._turn.attempt}-{self._asked}")
        self._waiting[approval.id] = asyncio.get_running_loop().create_future()
        await self._relay.put(approval)
        return self._waiting[approval.id]

    async def _listen(self) -> None:
        while True:
            signal = await self._line.take()
            if isinstance(signal, events.Decision):
                waiting = self._waiting.get(signal.id)
                if waiting and not waiting.done():
                    waiting.set_result(signal)
            elif isinstance(signal, events.Steer):
                self._steer(signal)

    def _steer(self, steer: events.Steer) -> None:
        """Before the next request to the model, or in one more when there would be none."""
        try:
            if self._running:
                self._running.enqueue(steer.text)
                self._line.mark_steered(steer.id)
                return
        except UserError:
            pass  # It has ended.
        self._late.append(steer)


def _is_answer(part: theirs.ToolCallPart, run: AnyRun) -> bool:
    """Whether the call is the model's way to give its answer, and no call of a tool."""
    tool = run.ctx.deps.tool_manager.get_tool_def(part.tool_name)
    return tool is not None and tool.kind == "output"


def call_of(part: theirs.ToolCallPart) -> events.Call:
    written = transcripts.write_call(part)
    return events.Call(id=part.tool_call_id, **written["function"])


def result_of(happening: theirs.FunctionToolResultEvent) -> events.Result:
    part = happening.part
    content = transcripts.write_result(part)
    if happening.content:
        more = [happening.content] if isinstance(happening.content, str) else happening.content
        first = parts.write_all([content]) if isinstance(content, str) else content
        content = [*first, *parts.write_all(more)]
    failed = transcripts.is_error(part)
    return events.Result(id=part.tool_call_id, content=content, is_error=failed, name=part.tool_name)


def approval_of(call: theirs.ToolCallPart, requests: DeferredToolRequests, name: str) -> events.Approval:
    """The same call gives the same action, description and details every time."""
    arguments = transcripts.write_call(call)["function"]["arguments"]
    details = {"tool": call.tool_name, "arguments": arguments}
    reasons = requests.metadata.get(call.tool_call_id)
    return events.Approval(
        id=name,
        action=call.tool_name,
        description=f"{call.tool_name} {arguments}",
        details=details
        | ({"metadata": pydantic_core.to_jsonable_python(reasons, fallback=str)} if reasons else {}),
    )


def verdict_of(decision: events.Decision) -> ToolApproved | ToolDenied:
    return ToolApproved() if decision.approved else ToolDenied(decision.reason or DENIED)


def usage_of(usage: RequestUsage) -> Usage:
    """What a request used; cached tokens are among the input tokens."""
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        cost_usd=float(usage.cost or 0),
        cost_status=None if usage.cost is None else "estimated",
        last_prompt_tokens=usage.input_tokens,
    )
