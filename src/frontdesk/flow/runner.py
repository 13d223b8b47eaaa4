"""Running one turn: from the message to the answer, every step on disk before the next."""

import asyncio
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.contracts.hooks import HookEvent
from frontdesk.flow import (
    authors,
    buttons,
    continuation,
    endings,
    exhibits,
    handover,
    hook_calls,
    prompts,
    times,
)
from frontdesk.flow.commands import Command, CommandRequest, Refusal, Rerun, registry
from frontdesk.flow.crew import AskedAt, Crew, Place, ask
from frontdesk.flow.delivery import Sending
from frontdesk.flow.drafting import Drafting
from frontdesk.flow.expiry import finalize
from frontdesk.flow.hearing import AgentRun, Hearing, Stopped
from frontdesk.flow.parts import Parts, is_for_page
from frontdesk.flow.rotation import reset_notices, rotate
from frontdesk.flow.speech import Speech
from frontdesk.logs import get_logger
from frontdesk.model import events, messages
from frontdesk.model.chats import ChatSign
from frontdesk.model.deliveries import Delivery
from frontdesk.model.lanes import Taker
from frontdesk.model.messages import Plain
from frontdesk.model.policies import EndReason
from frontdesk.model.resolution import Opening
from frontdesk.model.sessions import RESTART_TIMEOUT, Session
from frontdesk.model.turns import MAX_ATTEMPTS, Again, Begun, Ending, TurnClaim, TurnKind, TurnState

FIRST_RETRY_SECONDS = 1.0

OUR_FAULT = "an error in frontdesk itself; its log has the details"
STORE_FAULT = "this conversation could not be read or written: {why}"
NO_MODEL = "the agent cannot be given the model {model}, which is routed to this chat"
COMPLETED = (TurnState.DONE, TurnState.SILENT)

log = get_logger(__name__)


class RunningTurn(Hearing):
    """A turn while it runs on this node: it can be stopped, steered and lost to another node."""

    def __init__(
        self,
        parts: Parts,
        claim: TurnClaim,
        asked: AskedAt,
        outbox: "Crew[Sending]",
        opening: Opening | None = None,
        *,
        has_lapsed: bool = False,
    ) -> None:
        """``outbox`` sends answers; ``opening`` is how the claim began it, if it did; ``has_lapsed``: it was
        interrupted too long ago to go on."""
        super().__init__(parts, claim, asked)
        self._outbox = outbox
        self._opening = opening
        self._has_lapsed = has_lapsed
        self._session_id = claim.session.entry.session_id if claim.session else claim.turn.session_id
        self._is_at_work = claim.turn.session_id is not None
        """Whether something of it is in its session."""
        self._agent_run: AgentRun | None = None
        self._claimed_at = self._loop.time()

    @property
    def is_waiting(self) -> bool:
        """Whether it does nothing but wait for a person."""
        return self._place.is_lent

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return self._loop.time() - self._claimed_at

    def _change(self, **fields: Any) -> None:
        """What the store has by now."""
        self.turn = replace(self.turn, **fields)
        self.claim = replace(self.claim, turn=self.turn)

    def acquit(self) -> None:
        """It is no longer on trial."""
        self._change(on_trial=False)

    async def run(self, place: Place) -> None:
        """Run it to its end; others have the place while it waits for a person."""
        turn, self._place = self.turn, place
        if turn.kind is not TurnKind.MESSAGE:  # whose agent is begun after another look
            await self.confirm()
        match turn.kind:
            case _ if self._has_lapsed:
                await self._lapse()
            case TurnKind.EXPIRY:
                await finalize(self._parts, turn)
                await self._finish(Ending(state=TurnState.DONE))
            case TurnKind.HOOK:
                again = await hook_calls.tell_again(self._parts, turn)
                await (self._requeue(again) if again else self._finish(Ending(state=TurnState.DONE)))
            case TurnKind.PRESS:
                await self._press()
            case TurnKind.OBSERVED:
                await self._overhear()
            case TurnKind.COMMAND | TurnKind.CONTROL if command := registry.parse(turn.text):
                await self._obey(*command)
            case _:
                await self._answer(turn.content or turn.text)

    async def _lapse(self) -> None:
        """It does not go on by itself; what it has written stays, and its sender is told how to go on."""
        said = self._tell(await continuation.not_continued(self._parts, self.turn))
        log.warning("turn_lapsed", turn=self.turn.id, session=self.turn.session_id)
        ending = Ending(state=TurnState.INTERRUPTED, deliveries=said, error=continuation.LAPSED)
        await self._finish(replace(ending, session_id=self.turn.session_id))

    async def _press(self) -> None:
        """A notice tells whoever pressed what they cannot see: it holds names, and no Markdown."""
        done = await buttons.press(self._parts, self.turn)
        told, named = buttons.told_to(self.turn, str(done)), buttons.notice_id(self.turn, done)
        said = self._parts.notices(self.turn, told, delivery_id=named) if done else ()
        why = str(done) if isinstance(done, Refusal) else None
        await self._finish(Ending(state=TurnState.DONE, deliveries=said, error=why))

    async def _overhear(self) -> None:
        session, content = await self._resolve(), self.turn.content or self.turn.text
        overheard = await self._overheard(session.id, content) if self.turn.files else content
        if overheard is None:
            self._change(kind=TurnKind.MESSAGE)  # from here on somebody waits for an answer
            await self._answer(content)
            return
        message = prompts.user_message(self._parts, self.turn, overheard)
        row = messages.pack(message | {"observed": True}, self.turn.id, 0)
        await self._finish(Ending(state=TurnState.DONE, session_id=session.id, messages=(row,)))

    async def _obey(self, command: Command, argument: str) -> None:
        parts, source = self._parts, self.turn.source
        viewer = await parts.conversations.shown_in(source)
        request = CommandRequest(turn=self.turn, argument=argument, viewer=viewer)
        try:
            await self.confirm()
            await authors.check_about(parts, self.turn)
            reply = await command.handle(parts, request)
        except (errors.StoreError, errors.LeaseLost):
            raise
        except errors.FrontdeskError as refusal:
            reply = Refusal(refusal)
        if isinstance(reply, Rerun):
            await self._answer(reply.content, reply.note)
            return
        said = parts.answers(self.turn, str(reply), is_markdown=False)
        why = str(reply) if isinstance(reply, Refusal) else None
        await self._finish(Ending(state=TurnState.DONE, deliveries=said, error=why))
        if is_for_page(self.turn):
            await parts.store.deliveries.collect([each.id for each in said], parts.clock.now())

    async def _answer(self, content: prompts.Content, note: str | None = None) -> None:
        if (self.turn.source.profile or self._parts.connected.routes) and (why := self._why_not()):
            ending = Ending(
                state=TurnState.FAILED, deliveries=self._tell(endings.FAILED.format(why=why)), error=why
            )
            await self._finish(replace(ending, session_id=self._session_id))
            return
        session = self.claim.session or await self._resolve()
        if self.turn.files:
            content = exhibits.with_files(content, await self._received(session.id))
        run = self._agent_run = await self._begin(session, content, note)
        try:
            failure = await self._hear_and_show(run)
        except Stopped as stopped:
            self._count_rest(silence=True)
            ending = await endings.stopped(self._parts, self.turn, run, stopped.limit)
            await self._conclude(run, ending, stopped.limit)
            return
        if failure:
            self._count_rest(silence=False)
        if failure and await self._may_be_tried_again(failure, run):
            await self._try_again(run, failure)
            return
        if failure:
            await self._conclude(run, endings.failed(self._parts, self.turn, run, failure))
        else:
            await self._conclude(run, await endings.answered(self._parts, self.turn, run))

    def _why_not(self) -> str | None:
        """Why nobody can answer here: the profile is gone, or its agent cannot have the model that is routed
        to the place. Another one never answers instead."""
        source = self.turn.source
        try:
            abilities = self._parts.agent_of(source).abilities
        except errors.UnknownProfile as error:
            return str(error)
        routed = self._routed_model
        return NO_MODEL.format(**routed) if routed and not abilities.models else None

    async def _hear_and_show(self, run: AgentRun) -> events.Failed | None:
        """Hear the agent out; what it says is shown meanwhile where the chat's platform lets it."""
        if self._parts.running.status_reactions:
            self._parts.signs.show(self.turn.source, ChatSign.WORKING)
        able = self._parts.capabilities_of(self.turn.source)
        if not able.edits and not able.typing_seconds:
            return await self._hear(run)
        with self._parts.signs.typing(self.turn.source, lambda: self.is_waiting):
            if not able.edits:
                return await self._hear(run)
            drafting = Drafting(self._parts, self, run.speech, run.session.id)
            try:
                async with drafting:
                    return await self._hear(run)
            finally:
                self._change(draft=drafting.message_id)

    async def _resolve(self) -> Session:
        """The session that the turn began in, else the one that its message belongs to."""
        parts, turn = self._parts, self.turn
        known = await parts.store.sessions.find(turn.session_id) if turn.session_id else None
        conversations = parts.conversations
        session = known or await conversations.resolve_session(turn.source, known_key=turn.session_key)
        self._session_id = session.id
        return session

    async def _begin(self, session: Session, content: prompts.Content, note: str | None) -> AgentRun:
        """Write the message down, and read what the agent gets."""
        parts, turn, opening, session_id = self._parts, self.turn, self._opening, session.entry.session_id
        message = opening.row if opening else prompts.user_message(parts, turn, content)
        begun = self.claim.begun or await self._write_message(session, message, note)
        self._is_at_work = True  # what is cut off from here on is to be resumed in this session
        log.info("turn_began", turn=turn.id, session=session_id, attempt=turn.attempts)
        counted = session if self.claim.begun else session.changed(message_count=begun.message_count)
        policy = opening.resolver.policy if opening else parts.conversations.policy_at(turn.source)
        newest = await parts.store.transcripts.load_newest(session_id)
        had_tools = messages.any_tools(newest.messages)
        written = prompts.given_newest(newest, had_tools=had_tools)
        transcript, given = written, message
        if messages.any_in_parts(written):
            able, shelf = parts.abilities_of(turn.source), parts.filing.shelf
            transcript, given = await exhibits.show(shelf, able, written, message)
        tells_times = parts.running.tell_times and bool([row for row in written if times.WRITTEN in row])
        if tells_times:
            transcript, given = times.tell(transcript, given, parts.conversations.zone_of(policy))
        with_tools = transcript if had_tools else ()
        assignment = events.Assignment(
            turn_id=turn.id,
            session_id=session_id,
            session_key=session.entry.session_key,
            attempt=turn.attempts,
            system=prompts.system_prompt(parts, turn, counted, policy, with_tools, tells_times=tells_times),
            messages=transcript,
            input=given,
            model=session.entry.model_override or (self._routed_model if parts.connected.routes else None),
            working_dir=parts.working_dir_of(turn.source),
        )
        speech = Speech(turn.id, begun.position)
        return AgentRun(parts, turn, counted, policy, assignment, speech, had_tools)

    @property
    def _routed_model(self) -> dict[str, str] | None:
        """The model that the place of the message has, unless its session has chosen one."""
        model = self._parts.connected.directions(self.turn.source).model
        return {"model": model} if model else None

    async def _write_message(self, session: Session, message: Plain, note: str | None) -> Begun:
        """Write the message into the transcript; what a session's first turn brings along is before it."""
        parts, turn = self._parts, self.turn
        if not session.started:
            # The session before ends before this one starts. After a crash in between both are told again,
            # since it is the transaction below that marks this one as started.
            await hook_calls.take_leave_of_parent(parts, session)
            await hook_calls.tell(parts, HookEvent.START, session.entry)
        rows: list[Plain] = [message]
        told: list[Delivery] = []
        if not session.started or turn.session_id == session.id:
            rows = [*await handover.opening(parts.conversations, session, turn.history), message]
        if not session.reset_told:
            told += reset_notices(parts, turn, parts.clock.now(), session)
        if note:
            told += parts.notices(turn, note)
        return await parts.store.turns.begin(
            self.claim,
            session.id,
            [messages.pack(each, turn.id, place) for place, each in enumerate(rows)],
            parts.clock.now(),
            starts=not session.started,
            notices=told,
        )

    def _tell(self, text: str) -> tuple[Delivery, ...]:
        return self._parts.notices(self.turn, text, final=True)

    async def _may_be_tried_again(self, failure: events.Failed, run: AgentRun) -> bool:
        """Not without end, and not beyond a budget that the attempt has used up."""
        why = endings.what_failed(failure)
        log.warning("turn_failed", turn=self.turn.id, attempt=self.turn.attempts, why=why)
        again = failure.retryable and self.turn.tries < MAX_ATTEMPTS
        return again and await run.reason(within_turn=True) is None

    async def _try_again(self, run: AgentRun, failure: events.Failed) -> None:
        delay = timedelta(seconds=FIRST_RETRY_SECONDS * 2 ** (self.turn.tries - 1))
        due_at = self._parts.clock.now() + delay
        why, usage, tally = endings.what_failed(failure), run.speech.usage, run.tally
        again = Again(due_at=due_at, error=why, session_id=run.session.id, usage=usage, tally=tally)
        await self._requeue(again)

    async def _conclude(self, run: AgentRun, ending: Ending, limit: EndReason | None = None) -> None:
        """End it in its session, which another one follows when a limit is reached, however it ended."""
        reason = await run.reason(limit)
        session, entry = run.session, run.session.entry
        session_id = entry.session_id
        ending = replace(
            ending,
            session_id=session_id,
            deliveries=tuple([replace(each, session_id=session_id) for each in ending.deliveries]),
            usage=run.speech.usage,
            tally=run.tally,
            consumes_reset=entry.was_auto_reset or entry.is_fresh_reset,
            holds_lane=reason is not None,
        )
        await self._finish(ending)
        if reason:
            await self._rotate(session, reason)

    async def _rotate(self, session: Session, reason: EndReason) -> None:
        """The answer is safe by now; when this fails, the next message finds the session over."""
        try:
            await rotate(self._parts, self, session, reason)
        except (errors.StoreError, errors.LeaseLost):
            raise
        except Exception:
            log.exception("rotation_failed", turn=self.turn.id)
            await self._parts.store.turns.release(self.claim)

    async def _finish(self, ending: Ending) -> None:
        """End it; nobody is asked any longer for what it, or an attempt before, still waits for."""
        if ending.state not in COMPLETED or self.turn.attempts > 1:
            # Before it ends: after a crash in between the turn runs again and asks again, while nobody would
            # withdraw what a turn that has ended still asks for.
            await self._parts.gate.withdraw(self.turn, self.claim.lease)
        # The write and the send go on when the turn itself is ended meanwhile: what was taken is sent, and
        # whoever empties the outbox waits for both.
        sends = bool(ending.deliveries) and self._outbox.has_room
        finishing = asyncio.create_task(self._write_ending(ending, sends))
        if sends:
            self._outbox.begin(None, finishing)
        await asyncio.shield(finishing)
        self._parts.live.tell(self.turn.id, None)
        if self._parts.running.status_reactions and self.turn.kind is TurnKind.MESSAGE:
            failed = ending.state is TurnState.FAILED
            self._parts.signs.show(self.turn.source, ChatSign.FAILED if failed else ChatSign.DONE)
        log.info("turn_finished", turn=self.turn.id, session=ending.session_id, state=str(ending.state))

    async def _write_ending(self, ending: Ending, sends: bool) -> Sending | None:
        """Write it; the answer that is to be sent at once."""
        parts, asked = self._parts, ask(self._parts)
        taker = Taker(node=self.lease.node, lease_seconds=parts.running.lease_seconds) if sends else None
        taken = await parts.store.turns.finish(self.claim, ending, parts.clock.now(), taker)
        return Sending(parts, taken, asked) if taken else None

    async def _requeue(self, again: Again) -> None:
        await self._parts.store.turns.requeue(self.claim, again, self._parts.clock.now())

    async def give_up(self, error: Exception) -> None:
        """The gateway itself or its store failed: say so."""
        why = OUR_FAULT
        if isinstance(error, errors.StoreError):
            why = STORE_FAULT.format(why=error.outside)
        notice = self._parts.last_word(self.turn, endings.FAILED.format(why=why))
        await self._finish(Ending(state=TurnState.FAILED, deliveries=notice, error=type(error).__name__))

    def _count_rest(self, *, silence: bool) -> None:
        """Count what a call to the model used that nobody will tell, where the agent would have told it."""
        run = self._agent_run
        if run and self._parts.abilities_of(self.turn.source).counts:
            likely = prompts.prompt_tokens(run.assignment, run.session)
            run.speech.count_rest(likely, silence=silence)

    async def put_back(self, *, mark: bool = True, counts: bool = False) -> None:
        """It goes on later, by whoever has room then. The attempt counts when the turn may be to blame."""
        self._count_rest(silence=True)
        again = Again(
            due_at=self._parts.clock.now() + timedelta(seconds=FIRST_RETRY_SECONDS if counts else 0.0),
            counts=counts,
            session_id=self._session_id,
            usage=self._agent_run.speech.usage if self._agent_run else None,
            tally=self._agent_run.tally if self._agent_run else None,
            resume_reason=RESTART_TIMEOUT if mark and self._is_at_work else None,
        )
        await self._requeue(again)
