"""Running one turn: from the message to the answer, every step on disk before the next."""

from collections.abc import Sequence
from datetime import timedelta

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.flow import endings, handover, prompts
from frontdesk.flow.commands import Command, Reply, Request, Rerun, registry
from frontdesk.flow.crew import Place
from frontdesk.flow.drafting import Drafting
from frontdesk.flow.drafts import Draft
from frontdesk.flow.expiry import finalize
from frontdesk.flow.listening import Listening, Stopped
from frontdesk.flow.parts import Parts
from frontdesk.flow.rotation import Rotation, reset_notices, rotation_due
from frontdesk.formats import quoting
from frontdesk.logs import get_logger
from frontdesk.model import events, messages
from frontdesk.model.deliveries import Delivery
from frontdesk.model.messages import Plain
from frontdesk.model.sessions import Session
from frontdesk.model.turns import MAX_ATTEMPTS, Again, Begun, Claim, Ending, Kind, State, Turn

FIRST_RETRY_SECONDS = 1.0
MAX_ERROR_CHARACTERS = 2_000
"""Of what is kept about a failure."""

FAILED = "Sorry, this went wrong and your message was not answered: {why}"
OUR_FAULT = "an error in frontdesk itself; its log has the details"
UNANSWERED = "The agent gave no answer."
SET_ASIDE = (
    "Sorry, your message could not be answered: every attempt broke off. The conversation was set aside;"
    " your next message starts a new one."
)
SHUT_DOWN = "restart_timeout"
UNHEARD = frozenset({Kind.EXPIRY, Kind.OBSERVED})
"""Nobody waits for an answer to these."""

log = get_logger(__name__)


class RunningTurn:
    """A turn while it runs on this node: it can be stopped, steered and lost to another node."""

    def __init__(self, parts: Parts, claim: Claim) -> None:
        self._parts = parts
        self._listening = Listening(parts, claim)
        self._session_id = claim.turn.session_id
        self._draft: Draft | None = None
        self._place = Place()
        self.claim = claim

    @property
    def turn(self) -> Turn:
        return self.claim.turn

    @property
    def is_waiting(self) -> bool:
        """Whether it does nothing but wait for a person."""
        return self._place.is_lent

    def stop(self) -> None:
        self._listening.stop()

    def steer(self, turns: tuple[Turn, ...]) -> None:
        self._listening.steer(turns)

    def lose(self) -> None:
        """Somebody else has the turn."""
        self._listening.lose()

    async def run(self, place: Place) -> None:
        """Run it to its end; others have the place while it waits for a person."""
        turn, self._place = self.turn, place
        match turn.kind:
            case Kind.EXPIRY:
                await finalize(self._parts, turn)
                await self._finish(Ending(state=State.DONE))
            case Kind.OBSERVED:
                await self._overhear()
            case Kind.COMMAND | Kind.CONTROL if command := registry.parse(turn.text):
                await self._obey(*command)
            case _:
                await self._answer(turn.content or turn.text)

    async def _overhear(self) -> None:
        session = await self._resolve()
        message = prompts.user_message(self._parts, self.turn, self.turn.content or self.turn.text)
        row = messages.pack(message | {"observed": True}, self.turn.id, 0)
        await self._finish(Ending(state=State.DONE, session_id=session.id, messages=(row,)))

    async def _obey(self, command: Command, argument: str) -> None:
        parts, source = self._parts, self.turn.source
        viewer = await parts.conversations.shown_in(source)
        request = Request(turn=self.turn, argument=argument, viewer=viewer)
        try:
            reply = await command.handle(parts, request)
        except (errors.StoreError, errors.LeaseLost):
            raise
        except errors.FrontdeskError as refusal:
            reply = Reply(str(refusal), refused=True)
        if isinstance(reply, Rerun):
            await self._answer(reply.content)
            return
        said = parts.answers(self.turn, reply.text)
        why = reply.text if reply.refused else None
        await self._finish(Ending(state=State.DONE, deliveries=said, error=why))

    async def _answer(self, content: prompts.Content) -> None:
        session, assignment, draft = await self._begin(await self._resolve(), content)
        try:
            failure = await self._hear(assignment, draft)
        except Stopped:
            await self._interrupt(session, draft)
            return
        if failure:
            await self._fail(session, draft, failure)
        else:
            await self._complete(session, draft, assignment.messages)

    async def _hear(self, assignment: events.Assignment, draft: Draft) -> events.Failed | None:
        """Hear the agent out; what it says is shown meanwhile where the chat's platform lets it."""
        drafting = Drafting(self._parts, self.claim, draft, assignment.session_id)
        try:
            async with drafting:
                return await self._listening.hear(assignment, draft, self._place)
        finally:
            self.claim = replace(self.claim, turn=replace(self.turn, draft=drafting.message_id))

    async def _resolve(self) -> Session:
        """The session that the turn began in, else the one that its message belongs to."""
        parts, turn = self._parts, self.turn
        known = await parts.store.sessions.find(turn.session_id) if turn.session_id else None
        session = known or await parts.conversations.resolve_session(turn.source)
        self._session_id = session.id
        return session

    async def _begin(
        self, session: Session, content: prompts.Content
    ) -> tuple[Session, events.Assignment, Draft]:
        """Write the message down; the session with it counted, what the agent gets, and an empty draft."""
        message = prompts.user_message(self._parts, self.turn, content)
        begun = await self._write_message(session, message)
        log.info("turn_began", turn=self.turn.id, session=session.id, attempt=self.turn.attempts)
        counted = session.changed(message_count=begun.message_count)
        self._draft = Draft(self.turn.id, begun.position)
        return counted, await self._assign(counted, message), self._draft

    async def _write_message(self, session: Session, message: Plain) -> Begun:
        """Write the message into the transcript; what a session's first turn brings along is before it."""
        parts, turn = self._parts, self.turn
        if not session.started:
            await endings.take_leave_of_parent(parts, session)
            await parts.hooks.on_session_start(session.entry)
        opening = await self._opening(session)
        return await parts.store.turns.begin(
            self.claim,
            session.id,
            [messages.pack(each, turn.id, place) for place, each in enumerate((*opening, message))],
            parts.clock.now(),
            starts=not session.started,
            notices=() if session.reset_told else reset_notices(parts, turn, session),
        )

    async def _opening(self, session: Session) -> list[Plain]:
        """What stands before the first message: the hand-over, and what the other side brought along."""
        if session.started and self.turn.session_id != session.id:
            return []
        brought = list(self.turn.history or ()) if session.is_empty else []
        if not handover.is_due(session) or session.parent_id is None:
            return brought
        before = await self._parts.conversations.load_transcript(session.parent_id, as_stored=True)
        text = handover.make_handover(before, handover.last_summary(before))
        return [handover.handover_message(text), *brought]

    async def _assign(self, session: Session, message: Plain) -> events.Assignment:
        parts, turn = self._parts, self.turn
        transcript = prompts.given_rows(await parts.conversations.load_transcript(session.id))
        return events.Assignment(
            turn_id=turn.id,
            session_id=session.id,
            session_key=session.entry.session_key,
            attempt=turn.attempts,
            system=prompts.system_prompt(parts, turn, session, transcript),
            messages=transcript,
            input=message,
            model=session.entry.model_override,
            working_dir=parts.running.working_dir,
        )

    async def _complete(self, session: Session, draft: Draft, transcript: Sequence[Plain]) -> None:
        parts, turn = self._parts, self.turn
        deliveries = parts.answers(turn, draft.answer, session_id=session.id)
        if not draft.answer:
            deliveries = parts.notices(turn, UNANSWERED, final=True, session_id=session.id)
        rows = (*draft.close(), *draft.summarize())
        rotation = await rotation_due(parts, self.claim, session, transcript, draft)
        ending = Ending(
            state=State.DONE,
            messages=rows,
            deliveries=deliveries,
            clears_mark=session.entry.resume_pending,
            holds_lane=rotation is not None,
        )
        await self._finish(self._in(session, draft, ending))
        if rotation:
            await self._rotate(rotation)

    async def _rotate(self, rotation: Rotation) -> None:
        """The answer is safe by now; when this fails, the next message finds the session over."""
        try:
            await rotation.carry_out()
        except (errors.StoreError, errors.LeaseLost):
            raise
        except Exception:
            log.exception("rotation_failed", turn=self.turn.id)
            await self._parts.store.turns.release(self.claim)

    async def _interrupt(self, session: Session, draft: Draft) -> None:
        """Stopped: what was said so far stays in the transcript, and reaches the chat."""
        answer = draft.answer
        deliveries = self._parts.answers(self.turn, answer, session_id=session.id) if answer else ()
        rows = tuple(draft.close(finish_reason="stopped"))
        ending = Ending(state=State.INTERRUPTED, messages=rows, deliveries=deliveries)
        await self._finish(self._in(session, draft, ending))

    async def _fail(self, session: Session, draft: Draft, failure: events.Failed) -> None:
        parts, turn = self._parts, self.turn
        why = quoting.clean_text(failure.detail or failure.message, MAX_ERROR_CHARACTERS)
        log.warning("turn_failed", turn=turn.id, attempt=turn.attempts, why=why)
        if failure.retryable and turn.tries < MAX_ATTEMPTS:
            delay = timedelta(seconds=FIRST_RETRY_SECONDS * 2 ** (turn.tries - 1))
            again = Again(due_at=parts.clock.now() + delay, error=why)
            await self._requeue(replace(again, session_id=session.id, usage=draft.usage))
            return
        text = FAILED.format(why=quoting.clean_text(failure.message))
        ending = Ending(
            state=State.FAILED,
            messages=tuple(draft.close(finish_reason="error")),
            deliveries=parts.notices(turn, text, final=True, session_id=session.id),
            error=why,
        )
        await self._finish(self._in(session, draft, ending))

    def _in(self, session: Session, draft: Draft, ending: Ending) -> Ending:
        """The ending as it is written into the session."""
        entry = session.entry
        return replace(
            ending,
            session_id=session.id,
            usage=draft.usage,
            consumes_reset=entry.was_auto_reset or entry.is_fresh_reset,
        )

    async def _finish(self, ending: Ending) -> None:
        """End it; nobody is asked any longer for what it, or an attempt before, still waits for."""
        if ending.state is not State.DONE or self.turn.attempts > 1:
            await self._parts.gate.withdraw(self.turn, self.claim.lease)
        await self._parts.store.turns.finish(self.claim, ending, self._parts.clock.now())
        self._parts.live.tell(self.turn.id, None)
        log.info("turn_finished", turn=self.turn.id, session=ending.session_id, state=str(ending.state))

    async def _requeue(self, again: Again) -> None:
        await self._parts.store.turns.requeue(self.claim, again, self._parts.clock.now())

    async def give_up(self, error: Exception) -> None:
        """The gateway itself failed: say so."""
        notice = last_word(self._parts, self.turn, FAILED.format(why=OUR_FAULT))
        await self._finish(Ending(state=State.FAILED, deliveries=notice, error=type(error).__name__))

    @property
    def _is_at_work(self) -> bool:
        """Whether something of it is in its session."""
        return self._draft is not None or self.turn.session_id is not None

    async def put_back(self, *, mark: bool = True, counts: bool = False) -> None:
        """It goes on later, by whoever has room then. The attempt counts when the turn may be to blame."""
        again = Again(
            due_at=self._parts.clock.now() + timedelta(seconds=FIRST_RETRY_SECONDS if counts else 0.0),
            counts=counts,
            session_id=self._session_id,
            usage=self._draft.usage if self._draft else None,
            resume_reason=SHUT_DOWN if mark and self._is_at_work else None,
        )
        await self._requeue(again)


def last_word(parts: Parts, turn: Turn, text: str) -> tuple[Delivery, ...]:
    """What is said of a turn that was not answered, where somebody waits for an answer."""
    return () if turn.kind in UNHEARD else parts.notices(turn, text, final=True)


def set_aside_notices(parts: Parts, turn: Turn) -> tuple[Delivery, ...]:
    return last_word(parts, turn, SET_ASIDE)
