"""An agent without a model, for tests: it does what the message says, and otherwise echoes it.

A message without directives is answered by the steps of the option `script`, or, without any, with
``echo: `` and its own text. Directives stand in the message, several separated by ``;`` (one inside double
quotes separates nothing). A part that is no directive is echoed at its place. A turn that said nothing at
its end echoes the whole message, so that every finished turn has an answer.

===========================  =================================================================
``!say TEXT``                says the text
``!stream N``                says N pieces: ``1 ``, ``2 ``, …
``!sleep SECONDS``           waits; a stop ends the wait
``!hang [N]``                waits until it is stopped
``!tool NAME [JSON]``        calls a tool, whose result is its arguments
``!toolerror NAME [JSON]``   the same, and the result is an error
``!call NAME [JSON]``        calls a tool that never gives a result
``!approve ACTION [TEXT]``   asks, waits, and says ``approved: ACTION`` or ``denied: ACTION``; a JSON object
                             before the text is the details
``!steer``                   waits for a steering message and says ``steered: `` and its text
``!tokens IN OUT [COST]``    reports usage
``!summary TEXT``            gives a summary
``!send TO TEXT``            sends a message besides the answer
``!silent``                  says at its end that there is nothing to say
``!background NAME [S]``     says that work goes on, for S seconds at most; with ``ended`` that it has ended
``!file NAME TEXT``          gives a file with that text
``!path PATH``               gives a file of the working directory
``!choose A, B, …``          offers these options; what stands before a ``?`` is the question
``!show WHAT``               says ``attempt``, ``messages`` (how many), ``session``, ``system`` or ``model``
``!fail [retryable] [N]``    fails
``!raise [N]``               raises an error, which an agent never should
``!exit [N]``                ends the whole process at once, as a crash would
===========================  =================================================================

With N the directive works in the first N attempts only, and is passed over later. A tool whose result is
already among the messages, from an earlier attempt, is not called again.
"""

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator, Sequence

import msgspec

from frontdesk import errors
from frontdesk.contracts.agents import Abilities, Line
from frontdesk.model import events, messages
from frontdesk.model.background import DEFAULT_SECONDS
from frontdesk.model.sessions import Usage

PART = re.compile(r'(?:"(?:\\.|[^"\\])*"|[^;])+', re.DOTALL)
DIRECTIVE = re.compile(r"!([a-z]+)(?:\s+(.*))?", re.DOTALL)
ECHO = "echo"
EXIT_CODE = 70
STOPPED = events.Done(finish_reason="stopped")
FOREVER = float("inf")
DETAILS = json.JSONDecoder()


class ScriptedOptions(msgspec.Struct, frozen=True, kw_only=True):
    script: tuple[str, ...] = ()
    """Steps that answer a message without directives: directives, or texts that are said."""
    stops: bool = True
    """It ends after a stop. Otherwise it is deaf to it."""
    steers: bool = False
    """It takes steering messages: those nobody waited for are said at the end."""


Options = ScriptedOptions


class Driver:
    Options = ScriptedOptions

    def __init__(self, options: ScriptedOptions) -> None:
        self._options = options

    @property
    def abilities(self) -> Abilities:
        return Abilities(steers=self._options.steers, stops=self._options.stops, models=True, paths=True)

    def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event, None]:
        return Performance(turn, line, self._options).run()

    async def release(self, session_id: str) -> None:
        """Nothing is held."""

    async def close(self) -> None:
        """Nothing is open."""


class Step(msgspec.Struct, frozen=True):
    verb: str
    rest: str = ""

    @property
    def words(self) -> list[str]:
        return self.rest.split()

    def number(self, position: int, default: float | None = None) -> float:
        """A word as a number; InvalidInput when it is none and there is no default."""
        try:
            return float(self.words[position])
        except (IndexError, ValueError):
            if default is not None and len(self.words) <= position:
                return default
            raise errors.InvalidInput(what=f"!{self.verb} {self.rest}", why="a number is missing") from None


def parse_message(text: str) -> list[Step] | None:
    """The steps that a message asks for; None when there is no directive in it."""
    parts = [part.strip() for part in PART.findall(text)]
    if not any(map(DIRECTIVE.fullmatch, parts)):
        return None
    return [parse_step(part, ECHO) for part in parts if part]


def parse_step(part: str, otherwise: str) -> Step:
    """A directive; what is none is the object of the other verb."""
    found = DIRECTIVE.fullmatch(part)
    return Step(found[1], found[2] or "") if found else Step(otherwise, part)


class Performance:
    """Each directive is a method ``do_…`` that gives its events; approving has two, asking and waiting."""

    def __init__(self, turn: events.Assignment, line: Line, options: ScriptedOptions) -> None:
        self._turn = turn
        self._line = line
        self._options = options
        self._text = messages.text_of(turn.input)
        self._said = False
        self._silent = False
        self._calls = 0
        self._asked = 0
        # None says that the turn is to stop. The line before them is bounded.
        self._steers: asyncio.Queue[events.Steer | None] = asyncio.Queue()
        self._decisions: asyncio.Queue[events.Decision | None] = asyncio.Queue()

    async def run(self) -> AsyncGenerator[events.Event, None]:
        listening = asyncio.create_task(self._listen())
        try:
            for step in self._steps():
                for event in await self._act(step):
                    yield event
                    if isinstance(event, events.Failed):
                        return
                if self._stopping:
                    break
            for event in self._closing_words():
                yield event
        finally:
            listening.cancel()
            await asyncio.wait({listening})

    def _steps(self) -> list[Step]:
        steps = parse_message(self._text)
        if steps is None:
            steps = [parse_step(each, "say") for each in self._options.script]
        return [each for step in steps for each in _expanded(step)]

    async def _act(self, step: Step) -> Sequence[events.Event]:
        act = getattr(self, f"do_{step.verb}", None)
        if act is None:
            return [events.Failed(message=f"there is no directive !{step.verb}")]
        try:
            done: Sequence[events.Event] = await act(step)
        except errors.InvalidInput as error:
            return [events.Failed(message=str(error))]
        self._said = self._said or any(
            isinstance(event, events.Text | events.File | events.Choice) for event in done
        )
        return done

    def _closing_words(self) -> list[events.Event]:
        if self._stopping:
            return [STOPPED]
        words = [] if self._said or self._silent else [events.Text(text=f"echo: {self._text}")]
        while not self._steers.empty():
            words += self._heed(self._steers.get_nowait())
        return [*words, events.Done(silent=self._silent)]

    def _heed(self, steer: events.Steer | None) -> list[events.Text]:
        if steer is None:
            return []
        self._line.mark_steered(steer.id)
        return [events.Text(text=f"steered: {steer.text}")]

    @property
    def _stopping(self) -> bool:
        return self._options.stops and self._line.stopping

    async def _listen(self) -> None:
        while True:
            match await self._line.take():
                case events.Decision() as decision:
                    self._decisions.put_nowait(decision)
                case events.Steer() as steer:
                    self._steers.put_nowait(steer)
                case events.Stop() if self._options.stops:
                    self._decisions.put_nowait(None)
                    self._steers.put_nowait(None)

    async def _wait(self, seconds: float | None) -> None:
        """Wait so long, or until stopped."""
        stopped = self._line.stopped if self._options.stops else asyncio.Event().wait
        try:
            async with asyncio.timeout(seconds):
                await stopped()
        except TimeoutError:
            return

    def _works(self, step: Step, position: int = 0) -> bool:
        """Whether the directive is meant for this attempt, too."""
        return self._turn.attempt <= step.number(position, default=FOREVER)

    async def do_echo(self, step: Step) -> Sequence[events.Event]:
        return [events.Text(text=f"echo: {step.rest}")]

    async def do_say(self, step: Step) -> Sequence[events.Event]:
        return [events.Text(text=step.rest)]

    async def do_stream(self, step: Step) -> Sequence[events.Event]:
        return [events.Text(text=f"{number} ") for number in range(1, int(step.number(0)) + 1)]

    async def do_sleep(self, step: Step) -> Sequence[events.Event]:
        await self._wait(step.number(0))
        return []

    async def do_hang(self, step: Step) -> Sequence[events.Event]:
        if self._works(step):
            await self._wait(None)
        return []

    async def do_call(self, step: Step) -> Sequence[events.Event]:
        self._calls += 1
        name, _, arguments = step.rest.partition(" ")
        made = events.Call(
            id=self._call_id(self._turn.attempt), name=name or "tool", arguments=arguments.strip() or "{}"
        )
        return [] if self._has_result() else [events.Calls(calls=(made,))]

    async def do_tool(self, step: Step, is_error: bool = False) -> Sequence[events.Event]:
        calls = await self.do_call(step)
        return [*calls, *(_result(each, is_error) for each in calls)]

    async def do_toolerror(self, step: Step) -> Sequence[events.Event]:
        return await self.do_tool(step, is_error=True)

    def _call_id(self, attempt: int) -> str:
        return f"{self._turn.turn_id}.{attempt}.{self._calls}"

    def _has_result(self) -> bool:
        """Whether an earlier attempt got the result of this call."""
        ids = {self._call_id(attempt) for attempt in range(1, self._turn.attempt)}
        return any(
            message.get("tool_call_id") in ids and message.get("content") != messages.INTERRUPTED
            for message in self._turn.messages
        )

    async def do_approve(self, step: Step) -> Sequence[events.Event]:
        action, _, rest = step.rest.partition(" ")
        details, end = DETAILS.raw_decode(rest) if rest.startswith("{") else ({}, 0)
        self._asked += 1
        return [
            events.Approval(
                id=self._approval_id,
                action=action or "act",
                description=rest[end:].strip() or f"May I {action}?",
                details=details,
            )
        ]

    async def do_decision(self, step: Step) -> Sequence[events.Event]:
        while (decision := await self._decisions.get()) is not None:
            if decision.id == self._approval_id:
                reason = f" ({decision.reason})" if decision.reason else ""
                word = "approved" if decision.approved else "denied"
                return [events.Text(text=f"{word}: {step.words[0] if step.words else 'act'}{reason}")]
        return []

    @property
    def _approval_id(self) -> str:
        return f"{self._turn.turn_id}.approval.{self._asked}"

    async def do_steer(self, _: Step) -> Sequence[events.Event]:
        return self._heed(await self._steers.get())

    async def do_tokens(self, step: Step) -> Sequence[events.Event]:
        usage = Usage(
            input_tokens=int(step.number(0)),
            output_tokens=int(step.number(1)),
            cost_usd=step.number(2, default=0.0),
        )
        return [events.Used(usage=usage.checked())]

    async def do_background(self, step: Step) -> Sequence[events.Event]:
        name, *rest = step.words or ["work"]
        if rest == ["ended"]:
            return [events.Background(name=name, running=False)]
        seconds = step.number(1, default=DEFAULT_SECONDS)
        return [events.Background(name=name, seconds=seconds)]

    async def do_send(self, step: Step) -> Sequence[events.Event]:
        to, _, text = step.rest.partition(" ")
        return [events.Send(to=to, text=text)]

    async def do_silent(self, _: Step) -> Sequence[events.Event]:
        self._silent = True
        return []

    async def do_summary(self, step: Step) -> Sequence[events.Event]:
        return [events.Summary(text=step.rest)]

    async def do_file(self, step: Step) -> Sequence[events.Event]:
        name, _, text = step.rest.partition(" ")
        return [events.File(name=name, data=text.encode())]

    async def do_path(self, step: Step) -> Sequence[events.Event]:
        return [events.File(path=step.rest)]

    async def do_choose(self, step: Step) -> Sequence[events.Event]:
        question, mark, options = step.rest.rpartition("?")
        offered = [each.strip() for each in options.split(",")]
        return [events.Choice(text=question + mark, options=tuple(offered))]

    async def do_show(self, step: Step) -> Sequence[events.Event]:
        shown: dict[str, object] = {
            "attempt": self._turn.attempt,
            "messages": len(self._turn.messages),
            "session": self._turn.session_id,
            "system": self._turn.system,
            "model": dict(self._turn.model or {}),
        }
        return [events.Text(text=f"{step.rest}: {shown.get(step.rest, 'unknown')}")]

    async def do_fail(self, step: Step) -> Sequence[events.Event]:
        retryable = step.words[:1] == ["retryable"]
        if not self._works(step, position=int(retryable)):
            return []
        return [events.Failed(message="the script says so", retryable=retryable)]

    async def do_raise(self, step: Step) -> Sequence[events.Event]:
        if self._works(step):
            raise RuntimeError("the script says so")
        return []

    async def do_exit(self, step: Step) -> Sequence[events.Event]:
        if self._works(step):
            os._exit(EXIT_CODE)
        return []


def _expanded(step: Step) -> list[Step]:
    return [step, Step("decision", step.rest)] if step.verb == "approve" else [step]


def _result(event: events.Event, is_error: bool) -> events.Result:
    assert isinstance(event, events.Calls)
    (call,) = event.calls
    return events.Result(id=call.id, content=call.arguments, is_error=is_error, name=call.name)
