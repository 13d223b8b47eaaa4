"""Hearing an agent out: what it says is written down, and it can be stopped and steered meanwhile."""

import asyncio
from contextlib import aclosing
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from frontdesk import errors
from frontdesk.contracts.agents import Line
from frontdesk.flow import exhibits, limits, prompts, sending
from frontdesk.flow.crew import AskedAt, Held, Place
from frontdesk.flow.parts import Parts
from frontdesk.flow.speech import Speech
from frontdesk.formats import quoting
from frontdesk.logs import get_logger
from frontdesk.model import events, spirals
from frontdesk.model.chats import StoredFile
from frontdesk.model.files import KeptFile
from frontdesk.model.policies import EndReason, SessionResetPolicy
from frontdesk.model.sessions import USAGE_COUNTERS, Session, SessionEntry, Spent
from frontdesk.model.turns import Turn, TurnClaim, TurnTally

CLEANUP_SECONDS = 10.0
SPENT = Spent.__struct_fields__
BREATH_EVENTS = 50
BREATH_SECONDS = 0.02
UNSENT = "[The file {name} could not be sent: {why}]"

NOWHERE = Place(lambda _: None)
"""Where a turn is until it is run."""

log = get_logger(__name__)


class Stopped(Exception):
    """Somebody wanted the turn to stop, or a limit did."""

    def __init__(self, limit: EndReason | None = None) -> None:
        super().__init__(limit)
        self.limit = limit


class AgentRun(msgspec.Struct, eq=False):
    """What the agent of a turn is given and has said, and what its session may still use.

    Messages are not counted between steps: the turn that reaches their limit ends with its answer.
    """

    _parts: Parts
    _turn: Turn
    session: Session
    """It counts the message."""
    policy: SessionResetPolicy
    assignment: events.Assignment
    speech: Speech
    _had_tools: bool
    """Some were called before."""
    files: list[StoredFile] = []
    """What goes out with the answer."""
    unsent: list[str] = []
    """What is said in the place of files that do not."""
    _open_calls: set[str] = set()
    _acted: bool = False
    """The agent's step has called tools."""
    _is_between: bool = False
    """That step is over, and the agent goes on."""
    _spent: bool = False
    """The budget was used up when the agent last told what it used."""

    @property
    def seconds_left(self) -> float | None:
        """Until the session's time is over; None when it has no end or is over already."""
        if not self.policy.max_session_minutes:
            return None
        end = self.session.as_limited().created_at + timedelta(minutes=self.policy.max_session_minutes)
        left = (end - self._parts.clock.now()).total_seconds()
        return left if left > 0 else None

    def may_overrun(self, event: events.Event) -> bool:
        """Whether it is to be asked after an event of the agent if the turn may go on: between two steps, and
        when something was used.

        A step is a call to the model with the tools that it called. One that called none is the last, as far
        as anybody knows.
        """
        match event:
            case events.Calls(calls=calls):
                self._open_calls.update(call.id for call in calls)
                self._acted = True
            case events.Result(id=call_id):
                self._open_calls.discard(call_id)
            case events.Text():
                self._acted = self._acted and bool(self._open_calls)
                return False
            case events.Used():
                pass
            case _:
                return False
        self._is_between = self._acted and not self._open_calls
        return self._is_between or isinstance(event, events.Used)

    async def overrun(self) -> EndReason | None:
        """Why the turn may not go on. It is only stopped between two steps, and, where their ends cannot be
        told, when something was used once more after the budget had been used up."""
        reason = await self.reason(within_turn=True)
        stops = self._is_between or self._spent
        self._spent = self._spent or reason is not None
        return reason if stops else None

    async def reason(
        self, stopped: EndReason | None = None, *, within_turn: bool = False
    ) -> EndReason | None:
        """Why the session is over once the turn is, which a limit may have stopped; ``within_turn``, why the
        turn may not even go on. Background work holds that back. What cannot be told stops neither the turn
        nor the reply."""
        try:
            spiral = self._spiral() if self._had_tools or self.speech.has_tools else None
            now = self._parts.clock.now()
            reason = stopped or limits.rotation_reason(
                self._limited, self.policy, spiral, now=now, within_turn=within_turn
            )
            busy = reason is not None and await self._parts.conversations.is_busy(self._turn.session_key)
        except Exception:
            log.exception("overrun_unknown" if within_turn else "rotation_failed", turn=self._turn.id)
            return None
        return None if busy else reason

    @property
    def tally(self) -> TurnTally:
        """What the attempt came to so far."""
        results = [row for row in self.speech.rows if row["role"] == "tool"]
        used = self.speech.usage
        return TurnTally(
            number=self.session.entry.message_count,
            messages=self.speech.counted + (self._turn.attempts <= 1),
            tools=len(results),
            failures=len([row for row in results if row.get("is_error") is True]),
            model=(self.assignment.model or {}).get("model", ""),
            profile=self._turn.source.profile or "",
            **{name: getattr(used, name) for name in SPENT} if used else {},
        )

    def _spiral(self) -> spirals.Spiral | None:
        rows = [*self.assignment.messages[-spirals.tail_rows(self.policy) :], *self.speech.rows]
        return spirals.look(rows, self.policy)

    @property
    def _limited(self) -> SessionEntry:
        """The session's counters as its limits see them once the turn is written."""
        entry, usage = self.session.entry, self.speech.usage
        counted = replace(entry, message_count=entry.message_count + self.speech.counted)
        if usage is not None:
            sums = {name: getattr(entry, name) + getattr(usage, name) for name in USAGE_COUNTERS}
            counted = replace(counted, estimated_cost_usd=entry.estimated_cost_usd + usage.cost_usd, **sums)
        return self.session.as_limited(counted)


class Hearing(Held[TurnClaim]):
    """A turn that was claimed, as far as its agent is concerned."""

    def __init__(self, parts: Parts, claim: TurnClaim, asked: AskedAt) -> None:
        super().__init__(parts, claim, asked)
        self.turn = claim.turn
        self._line = Line(self.confirm)
        self._task: asyncio.Task[events.Failed | None] | None = None
        self._loop = asyncio.get_running_loop()
        self._given_up: asyncio.Future[None] = self._loop.create_future()
        self._stopping = False
        self._stop_told = asyncio.Event()
        self._limit: EndReason | None = None
        self._asking = False
        self._sends = 0
        self._place = NOWHERE
        self._steered: set[str] = set()
        self._unwritten: list[Turn] = []

    def stop(self, limit: EndReason | None = None) -> None:
        """Tell the agent to stop, when a limit asks for it because of that; take the turn from it when it
        cannot or does not."""
        if self._stopping:
            return
        self._stopping, self._limit = True, limit
        self._stop_told.set()
        self._line.send(events.Stop())
        able = self._parts.abilities_of(self.turn.source).stops and not self._asking
        delay = self._parts.running.stop_seconds if able else 0.0
        self._loop.call_later(delay, self._cancel)

    def lose(self) -> None:
        """Somebody else has the turn: what the agent does here is no longer wanted."""
        super().lose()
        if self._task:
            self._task.cancel()

    def steer(self, turns: tuple[Turn, ...]) -> None:
        """Pass on messages that came in meanwhile, each once."""
        if not self._parts.abilities_of(self.turn.source).steers:
            return
        for turn in turns:
            signal = events.Steer(text=turn.text, id=turn.id)
            if turn.files:
                continue  # an agent hears texts in the middle of a turn: it waits for its own
            if turn.id not in self._steered and self._line.send(signal):
                self._steered.add(turn.id)
                self._unwritten.append(turn)

    async def _received(self, session_id: str) -> list[KeptFile]:
        """The files of the message, as far as they can be had."""
        channel = self._parts.channel_of(self.turn.source)
        return await self._parts.filing.received(self.turn, session_id, channel, self._stop_told)

    async def _overheard(self, session_id: str, content: prompts.Content) -> prompts.Content | None:
        """A message with files that does not seem to be for us, as the transcript has it; None when somebody
        says in it that it is."""
        filing = self._parts.filing
        if not filing.may_be_called(self.turn):
            return exhibits.unfetched(content, self.turn.files)
        kept = await self._received(session_id)
        return None if filing.is_called(kept) else exhibits.with_files(content, kept)

    async def _hear(self, run: AgentRun) -> events.Failed | None:
        """Listen until the agent has finished or used up its allowance; Stopped when it was not to finish.

        The agent has let go when this ends, unless it had to be left behind.
        """
        await self.confirm()
        if self._stopping:  # it was told so while its message was written
            raise Stopped
        self._task = asyncio.create_task(self._listen(run))
        try:
            await self._wait({self._task, self._given_up}, run)
        finally:
            self._task.cancel()
            if not self._given_up.done():
                await asyncio.wait({self._task}, timeout=CLEANUP_SECONDS)
            self._line = Line()  # the agent had the other one, which held us, and all that the turn has
        if self.is_lost:
            raise errors.LeaseLost(lane=self.lease.lane)
        if self._stopping:
            raise Stopped(self._limit)
        return self._task.result()

    async def _wait(self, ends: set[asyncio.Future[Any]], run: AgentRun) -> None:
        """Wait for one of the ends. When the session's time is over the agent is told, however silent."""
        seconds, first = run.seconds_left, asyncio.FIRST_COMPLETED
        done, _ = await asyncio.wait(ends, timeout=seconds, return_when=first)
        if done:
            return
        if not await self._parts.conversations.is_busy(self.turn.session_key):
            self.stop(EndReason.TIME_LIMIT)
        await asyncio.wait(ends, return_when=first)

    async def _listen(self, run: AgentRun) -> events.Failed | None:
        self._parts.live.begin(self.turn.id, run.assignment.attempt)
        since, count = self._loop.time(), 0
        stream = self._parts.agent_of(self.turn.source).run(run.assignment, self._line)
        async with aclosing(stream):
            while True:
                # The agent's next step begins right after it was certain that the turn is ours: it takes
                # nothing back of what it does. What it has begun goes on until it is told to stop.
                await self.confirm()
                event = await anext(stream, None)
                if event is None:
                    break
                if not isinstance(event, events.File):  # who follows is told of it with the answer
                    self._parts.live.tell(self.turn.id, event)
                if isinstance(event, events.Failed):
                    return event
                await self._write(event, run)
                if isinstance(event, events.Done) or (run.may_overrun(event) and await self._ends(run)):
                    break
                count += 1
                if count >= BREATH_EVENTS or self._loop.time() - since > BREATH_SECONDS:
                    await asyncio.sleep(0)  # an agent that never waits would have the loop to itself
                    since, count = self._loop.time(), 0
        if self._unwritten:
            await self._write(events.Done(), run)
        return None

    async def _ends(self, run: AgentRun) -> bool:
        """Whether a limit ends the turn here. An agent that can is told to stop, and heard until it has."""
        if self._stopping or not (limit := await run.overrun()):
            return False
        self.stop(limit)
        return not self._parts.abilities_of(self.turn.source).stops

    async def _write(self, event: events.Event, run: AgentRun) -> None:
        if isinstance(event, events.Approval):
            await self._ask(event)
        if isinstance(event, events.Background):
            await self._note(event)
        if isinstance(event, events.Send):
            await self._send(event, run)
        if isinstance(event, events.File):
            await self._take_file(event, run)
        absorbed, speech = self._take_heard() if self._unwritten else [], run.speech
        rows = speech.close() if absorbed else []
        rows += [speech.row(prompts.user_message(self._parts, turn, turn.text)) for turn in absorbed]
        rows += speech.take(event)
        if rows:
            now = self._parts.clock.now()
            await self._parts.store.turns.record(self.claim, run.session.id, rows, now, absorbed)

    async def _take_file(self, file: events.File, run: AgentRun) -> None:
        """Keep it until the answer goes out; of one that cannot be sent the chat is told why."""
        filing, folder = self._parts.filing, run.assignment.working_dir
        place = len(run.files) + len(run.unsent)
        try:
            stored = await filing.given(self.turn, run.session.id, place, file, folder)
        except errors.FileUnavailable as error:
            name = quoting.quote(file.name or file.path or "without a name")
            log.warning("file_unsent", turn=self.turn.id, file=name, why=str(error))
            run.unsent.append(UNSENT.format(name=name, why=vars(error)["why"]))
            return
        run.files.append(stored)
        run.speech.attach(stored)

    async def _note(self, work: events.Background) -> None:
        """Background work; what cannot be noted of it is logged, and the turn goes on."""
        key, conversations = self.turn.session_key, self._parts.conversations
        try:
            if work.running:
                await conversations.begin_background(key, work.name, work.seconds)
            else:
                await conversations.end_background(key, work.name)
        except (errors.InvalidInput, errors.UnknownSession) as refusal:
            log.warning("background_refused", turn=self.turn.id, why=str(refusal))

    async def _send(self, wish: events.Send, run: AgentRun) -> None:
        """A message to another chat, or to this one besides the answer; what is refused is said to the agent,
        and the turn goes on."""
        refusal = None
        try:
            self._sends += 1
            written = sending.write_for_agent(self._parts, self.turn, wish, self._sends, run.session.id)
            await self.confirm()
            await self._parts.store.deliveries.add(written)
        except (errors.InvalidInput, errors.NotAllowed) as error:
            refusal = str(error)
            log.warning("send_refused", turn=self.turn.id, why=refusal)
        if wish.id:
            self._line.send(events.Handed(id=wish.id, taken=refusal is None, why=refusal))

    async def _ask(self, approval: events.Approval) -> None:
        """Wait for people; the agent is asked for nothing more meanwhile. That the turn was told to stop may
        be heard here first."""
        self._asking = True
        try:
            show = partial(self._parts.live.tell, self.turn.id)
            decision = await self._parts.gate.pass_on(self.claim, approval, show, self._place.lent)
            await self.confirm()
            self._line.send(decision)
        except errors.GrantUnusable:
            self.stop()
        finally:
            self._asking = False

    def _take_heard(self) -> list[Turn]:
        """The messages that the agent heeds and that are not yet part of the turn."""
        heard = [turn for turn in self._unwritten if self._line.has_steered(turn.id)]
        self._unwritten = [turn for turn in self._unwritten if turn not in heard]
        return heard

    def _cancel(self) -> None:
        if self._task and not self._task.done():
            self._task.cancel()
            self._loop.call_later(CLEANUP_SECONDS, self._leave)

    def _leave(self) -> None:
        """An agent that does not even let go is left behind."""
        if self._task and not self._task.done():
            log.warning("agent_left_behind", turn=self.turn.id)
            self._given_up.set_result(None)
