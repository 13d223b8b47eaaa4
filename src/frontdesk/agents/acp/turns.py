"""A turn with an agent: what it reports goes out, what it is told goes in."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from frontdesk.agents.acp import prompts, updates
from frontdesk.agents.acp.kept import Kept
from frontdesk.agents.acp.options import Options
from frontdesk.agents.acp.wire import Answer, Asked, Ended, Item, Lost, Update, result_of
from frontdesk.contracts.agents import Line
from frontdesk.logs import get_logger
from frontdesk.model import events
from frontdesk.model.sessions import Usage

log = get_logger(__name__)

CANCELLED = "cancelled"


class Turn:
    def __init__(self, kept: Kept, turn: events.Assignment, line: Line, options: Options) -> None:
        self._kept = kept
        self._wire = kept.wire
        self._turn = turn
        self._line = line
        self._options = options
        self._scribe = updates.Scribe(turn)
        self._asked: dict[str, Asked] = {}
        self._deadline: float | None = None
        """Set once the agent was told to stop."""
        self._over = False

    async def run(self, blocks: list[prompts.Block]) -> AsyncGenerator[events.Event]:
        await self._line.confirm()
        await self._wire.prompt(self._kept.agent_session, blocks)
        ear = asyncio.create_task(self._listen())
        try:
            while not self._over:
                for event in await self._handle(await self._next()):
                    yield event
        finally:
            ear.cancel()
            await asyncio.wait({ear})
            self._wire.finish_turn()

    async def _listen(self) -> None:
        while True:
            await self._wire.inbox.put(await self._line.take())

    async def _next(self) -> Item:
        """What comes next. Lost when nothing comes in time; while a person decides there is time."""
        if self._wire.lost and self._wire.inbox.empty():
            return Ended(self._wire.lost)
        loop, seconds = asyncio.get_running_loop(), self._options.silence_seconds
        patient = None if self._asked else loop.time() + seconds
        try:
            async with asyncio.timeout_at(self._deadline or patient):
                return await self._wire.inbox.get()
        except TimeoutError:
            return Ended(Lost(f"hang: it said nothing for {seconds:g} seconds"))

    async def _handle(self, item: Item) -> Sequence[events.Event]:
        match item:
            case Update(body=body):
                return [*self._scribe.take(body), *self._costs()]
            case Asked():
                return await self._ask(item)
            case Answer(message=message):
                return self._finish(message)
            case Ended(lost=lost):
                return self._break(lost)
            case events.Decision():
                await self._decide(item)
            case events.Stop():
                return await self._stop()
        return ()

    async def _ask(self, asked: Asked) -> Sequence[events.Event]:
        if self._deadline:
            await self._wire.permit(asked.id, None)
            return ()
        approval = self._scribe.approval(asked.id, asked.params)
        self._asked[approval.id] = asked
        return [*self._scribe.flush(), approval]

    async def _decide(self, decision: events.Decision) -> None:
        asked = self._asked.pop(decision.id, None)
        if asked:
            await self._wire.permit(asked.id, option_for(asked.params, decision.approved))

    async def _stop(self) -> Sequence[events.Event]:
        self._deadline = asyncio.get_running_loop().time() + self._options.cancel_seconds
        try:
            await self._wire.cancel(self._kept.agent_session)
            while self._asked:
                await self._wire.permit(self._asked.popitem()[1].id, None)
        except Lost as lost:
            return self._break(lost)
        return ()

    def _finish(self, message: dict[str, Any]) -> Sequence[events.Event]:
        try:
            result = result_of(message, "session/prompt")
        except Lost as lost:
            return self._break(lost)
        self._over = self._kept.settled = True
        self._kept.seen = prompts.seen_after(self._turn)
        usage = updates.usage_of(result, self._scribe.used, self._spent())
        used = [events.Used(usage=usage)] if usage else []
        return [*self._scribe.flush(), *used, events.Done(finish_reason=updates.finish_of(result))]

    def _costs(self) -> Sequence[events.Event]:
        """What more the turn has cost, as soon as that is known: it may be more than it is allowed to."""
        spent = self._spent()
        if not spent:
            return ()
        used = Usage(cost_usd=spent, cost_status="reported", last_prompt_tokens=self._scribe.used)
        return [events.Used(usage=used)]

    def _spent(self) -> float | None:
        """What this turn cost: agents tell the sum of their session."""
        before, after = self._kept.cost_usd, self._scribe.cost_usd
        if after is None:
            return None
        self._kept.cost_usd = after
        return None if before is None else max(0.0, after - before)

    def _break(self, lost: Lost) -> Sequence[events.Event]:
        """The end of one that was told to stop is no failure."""
        self._over = True
        return [events.Done(finish_reason=CANCELLED) if self._deadline else lost.failed]


def option_for(params: dict[str, Any], approved: bool) -> str | None:
    """The option that says yes or no this once. A lasting yes is never given, nor a lasting no."""
    wanted = "allow_once" if approved else "reject_once"
    options = params.get("options")
    for option in options if isinstance(options, list) else []:
        if (
            isinstance(option, dict)
            and option.get("kind") == wanted
            and isinstance(option.get("optionId"), str)
        ):
            return str(option["optionId"])
    log.warning("agent_permission_without_option", wanted=wanted)
    return None
