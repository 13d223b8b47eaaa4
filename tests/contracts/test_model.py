"""The session service does what a simple model in memory does, whatever happens in whatever order."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from frontdesk import (
    ChatType,
    EndReason,
    GatewayConfig,
    ResetMode,
    SessionEntry,
    SessionResetPolicy,
    SessionSource,
    SessionStore,
    Usage,
    Viewer,
)
from frontdesk.testing import SettableClock
from tests import counts, schemas
from tests.contracts.reference import Message, Reference, Session
from tests.contracts.samples import (
    UNKNOWN_ID,
    agent_calls,
    agent_says,
    direct,
    in_group,
    in_thread,
    tool_answers,
    user_says,
)

STEPS_PER_RUN = 50
EVERYTHING_AFTER_STEPS = 10

POLICIES = {
    "dm": SessionResetPolicy(mode=ResetMode.BOTH, idle_minutes=90, max_messages=12, timezone="UTC"),
    "group": SessionResetPolicy(mode=ResetMode.NONE, max_messages=6, timezone="UTC"),
    "channel": SessionResetPolicy(mode=ResetMode.DAILY, at_hour=0, max_messages=0, timezone="UTC"),
}
CONFIG = GatewayConfig(reset_by_type=POLICIES)
SOURCES: dict[str, list[SessionSource]] = {
    "agent:main:telegram:dm:chat-ann": [direct("ann")],
    "agent:main:telegram:dm:chat-bob": [direct("bob")],
    "agent:main:telegram:group:crowd:ann": [in_group("ann")],
    "agent:main:telegram:group:crowd:bob": [in_group("bob")],
    "agent:main:telegram:group:crowd:topic": [in_thread("ann"), in_thread("bob")],
    "agent:main:discord:channel:news": [
        in_group(None, "news", platform="discord", chat_type=ChatType.CHANNEL)
    ],
}
KEYS = st.sampled_from(sorted(SOURCES))
TEXTS = st.sampled_from(["hello", "go on", "\x00", "日本"])
PLATFORM_IDS = st.sampled_from(["1", "1", "2", None])
MARKS = [
    "suspend",
    "mark",
    "clear_mark",
    "take_flags",
    "finalize",
    "use_tokens",
    "give_allowance",
    "choose_model",
    "unset_model",
    "work_in_the_background",
]
NUMBERS = st.sampled_from([0, 0, 0, 0, 1, 1, 2, 3, 5, 8])
REASONS = st.sampled_from([EndReason.CLOSED] * 3 + [EndReason.NEW, EndReason.SPIRAL, EndReason.FORGOTTEN])
PAUSES = st.sampled_from([1, 30, 600, 3_600, 5_500, 20_000, 90_000, 400_000, -40, -7_200, -100_000])


@st.composite
def messages(draw: st.DrawFn) -> Message:
    kind = draw(st.sampled_from(["user", "user", "overheard", "agent", "calls", "tool", "meta", "system"]))
    match kind:
        case "user" | "overheard":
            message = user_says(draw(TEXTS))
            if platform_id := draw(PLATFORM_IDS):
                message["platform_message_id"] = platform_id
            return message | ({"observed": True} if kind == "overheard" else {})
        case "agent":
            return agent_says(draw(TEXTS))
        case "calls":
            return agent_calls(*draw(st.sampled_from([["c1"], ["c1", "c2"]])))
        case "tool":
            return tool_answers(draw(st.sampled_from(["c1", "c2", "c3"])))
        case "meta":
            return {"role": "session_meta", "tools": [1, None]}
    return {"role": "system", "content": draw(TEXTS)}


class SessionMachine(RuleBasedStateMachine):
    def __init__(self, url: str, steps: list[int], clean_up: Callable[[], None]) -> None:
        super().__init__()
        self.url = url
        self.steps = steps
        self.clean_up = clean_up
        self.clock = SettableClock()
        self.reference = Reference(POLICIES)
        self.touched: set[str] = set()
        self.since_everything = 0
        self.runner = asyncio.Runner()
        self.service = self.open()

    def open(self) -> SessionStore:
        def is_busy(key: str) -> bool:
            return key in self.reference.busy

        opening = SessionStore.open(self.url, CONFIG, clock=self.clock, has_active_processes_fn=is_busy)
        return self.runner.run(opening)

    def teardown(self) -> None:
        try:
            self.run(self.service.close())
        finally:
            self.runner.close()
            self.clean_up()

    def run(self, call: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(call)

    @property
    def now(self) -> Any:
        return self.clock.now()

    def pick(self, number: int) -> Session | None:
        """One of the sessions there are, the newest most often."""
        sessions = list(self.reference.sessions.values())
        return sessions[-1 - number % len(sessions)] if sessions else None

    def touch(self, *sessions: Session | None) -> None:
        self.touched |= {session.id for session in sessions if session is not None}

    def agree(self, entry: SessionEntry | None, session: Session | None) -> None:
        """The service's answer says what the model says."""
        assert (entry is None) == (session is None)
        if entry is not None and session is not None:
            facts = session.facts()
            assert {name: getattr(entry, name) for name in facts} == facts
        self.touch(session)

    # messages and time

    @initialize(first=KEYS, second=KEYS, turns=st.integers(0, 3))
    def first_messages(self, first: str, second: str, turns: int) -> None:
        for key in {first: 0, second: 0}:
            for number in range(turns + 1):
                self.converse(key, str(number))

    @rule(key=KEYS, text=TEXTS)
    def converse(self, key: str, text: str) -> None:
        """A message and its answer."""
        self.message(key, 0, False)
        session = self.reference.current(key)
        assert session is not None
        self.record_in(session, [user_says(text), agent_says(text)], None, 3)

    @rule(key=KEYS, who=st.integers(0, 1), force_new=st.sampled_from([False] * 5 + [True]))
    def message(self, key: str, who: int, force_new: bool) -> None:
        source = SOURCES[key][who % len(SOURCES[key])]
        before = self.reference.current(key)
        entry = self.run(self.service.get_or_create_session(source, force_new=force_new))
        assert entry.session_key == key
        self.agree(entry, self.reference.resolve(key, source, self.now, entry.session_id, force_new))
        self.touch(before)

    @rule(seconds=PAUSES)
    def pass_time(self, seconds: int) -> None:
        self.clock.advance(seconds=seconds)

    @rule(
        what=st.sampled_from(["reopen", "crash", "crash", "prune", "prune", "prune"]), size=st.integers(0, 4)
    )
    def keep_house(self, what: str, size: int) -> None:
        """Something that concerns every session."""
        match what:
            case "reopen":
                self.run(self.service.close())
                self.service = self.open()
            case "crash":
                seconds = [0, 30, 120, 3_600, 5_000][size]
                marked = self.run(self.service.suspend_recently_active(seconds))
                assert marked == self.reference.mark_recent(seconds, self.now)
            case "prune":
                days = [-1, 0, 0.5, 1, 3][size]
                pruned = self.run(self.service.prune_old_entries(days))
                assert pruned == self.reference.prune(days, self.now)
        self.since_everything = EVERYTHING_AFTER_STEPS

    # transcripts

    @rule(number=NUMBERS, message=messages(), turn=st.none() | st.integers(0, 2))
    def append(self, number: int, message: Message, turn: int | None) -> None:
        if session := self.pick(number):
            turn_id = None if turn is None else "single"
            call = self.service.append_to_transcript(session.id, message, turn_id=turn_id, turn_position=turn)
            stored = self.run(call)
            assert stored == self.append_at(session, message, turn)
            self.touch(session)

    def append_at(self, session: Session, message: Message, turn: int | None) -> bool:
        if turn is None:
            return self.reference.append(session, [message], self.now) == 1
        return self.reference.append(session, [message], self.now, f"single-{turn}") == 1

    @rule(
        number=NUMBERS,
        turn=st.lists(messages(), max_size=4),
        turn_id=st.none() | st.sampled_from(["t1", "t2"]),
        tokens=st.none() | st.integers(0, 9),
    )
    def record_turn(self, number: int, turn: list[Message], turn_id: str | None, tokens: int | None) -> None:
        if session := self.pick(number):
            self.record_in(session, turn, turn_id, tokens)

    def record_in(
        self, session: Session, turn: list[Message], turn_id: str | None, tokens: int | None
    ) -> None:
        usage = None if tokens is None else Usage(input_tokens=tokens)
        new = self.run(self.service.record_turn(session.id, turn, turn_id=turn_id, usage=usage))
        assert new == self.reference.append(session, turn, self.now, turn_id, tokens)
        self.touch(session)

    @rule(number=NUMBERS, n=st.integers(-1, 3))
    def rewind(self, number: int, n: int) -> None:
        if session := self.pick(number):
            told = self.run(self.service.rewind_session(session.id, n))
            assert told == self.reference.rewind(session, n, self.now)
            self.touch(session)

    @rule(number=NUMBERS)
    def redo(self, number: int) -> None:
        if session := self.pick(number):
            told = self.run(self.service.redo_session(session.id))
            assert told == self.reference.redo(session, self.now)
            self.touch(session)

    @rule(number=NUMBERS, undone=st.integers(1, 3), redone=st.integers(1, 4))
    def undo_and_redo(self, number: int, undone: int, redone: int) -> None:
        for _ in range(undone):
            self.rewind(number, 1)
        for _ in range(redone):
            self.redo(number)

    @rule(key=KEYS, other=KEYS, message=messages())
    def carry_over(self, key: str, other: str, message: Message) -> None:
        """Say the same in two chats that share a session one after the other."""
        session = self.reference.current(key)
        if session and self.reference.current(other):
            self.record_in(session, [message], None, None)
            entry = self.run(self.service.switch_session(other, session.id))
            self.agree(entry, self.reference.switch(other, session.id, self.now))
            self.record_in(session, [message], None, None)

    @rule(number=NUMBERS, dropped=st.integers(0, 4), added=st.lists(messages(), max_size=2))
    def rewrite(self, number: int, dropped: int, added: list[Message]) -> None:
        if session := self.pick(number):
            transcript = self.shortened(session, dropped) + [plain(message) for message in added]
            assert self.run(self.service.rewrite_transcript(session.id, transcript))
            self.reference.rewrite(session, transcript, self.now)
            self.touch(session)

    def shortened(self, session: Session, dropped: int) -> list[Message]:
        """The end of a transcript with an even number, its beginning with an odd one."""
        transcript = session.transcript
        return transcript[dropped:] if dropped % 2 == 0 else transcript[:-dropped]

    @rule(number=NUMBERS)
    def close_tool_calls(self, number: int) -> None:
        if session := self.pick(number):
            closed = self.run(self.service.close_tool_calls(session.id))
            assert closed == self.reference.close_calls(session, self.now)
            self.touch(session)

    # sessions

    @rule(key=KEYS, name=st.none() | TEXTS)
    def reset(self, key: str, name: str | None) -> None:
        before = self.reference.current(key)
        entry = self.run(self.service.reset_session(key, name))
        fresh = before and self.reference.reset(key, self.now, entry.session_id, name)
        self.agree(entry, fresh)
        self.touch(before)

    @rule(key=KEYS, number=NUMBERS)
    def switch(self, key: str, number: int) -> None:
        before = self.reference.current(key)
        target = session.id if (session := self.pick(number)) else UNKNOWN_ID
        entry = self.run(self.service.switch_session(key, target))
        self.agree(entry, self.reference.switch(key, target, self.now))
        self.touch(before)

    @rule(key=KEYS)
    def branch(self, key: str) -> None:
        before = self.reference.current(key)
        entry = self.run(self.service.branch_session(key))
        self.agree(entry, before and self.reference.branch(key, self.now, entry.session_id))
        self.touch(before)

    @rule(key=KEYS, dropped=st.integers(0, 4), summary=st.lists(messages(), max_size=1))
    def compress(self, key: str, dropped: int, summary: list[Message]) -> None:
        before = self.reference.current(key)
        kept = self.shortened(before, dropped) if before else []
        transcript = [plain(message) for message in summary] + kept
        entry = self.run(self.service.compress_session(key, transcript))
        tip = before and self.reference.compress(key, transcript, self.now, entry.session_id)
        self.agree(entry, tip)
        self.touch(before)

    @rule(number=NUMBERS, reason=REASONS)
    def end(self, number: int, reason: EndReason) -> None:
        if session := self.pick(number):
            ended = self.run(self.service.end_session(session.id, reason))
            assert ended == self.reference.end(session.id, reason)
            self.touch(session)

    @rule(key=KEYS, what=st.sampled_from(MARKS))
    def put_a_mark(self, key: str, what: str) -> None:
        """One of the small changes of a key's session."""
        getattr(self, what)(key)

    def suspend(self, key: str) -> None:
        session = self.reference.current(key)
        changed = self.run(self.service.suspend_session(key))
        assert changed == (session is not None and not session.suspended)
        if session:
            session.suspended = True
            self.touch(session)

    def mark(self, key: str) -> None:
        session = self.reference.current(key)
        changed = self.run(self.service.mark_resume_pending(key))
        assert changed == (session is not None and not session.suspended)
        if session and changed:
            session.resume_reason, session.marked_at = "restart_timeout", self.now
            self.touch(session)

    def clear_mark(self, key: str) -> None:
        session = self.reference.current(key)
        changed = self.run(self.service.clear_resume_pending(key))
        assert changed == (session is not None and session.resume_reason is not None)
        if session:
            session.clear_mark()
            self.touch(session)

    def take_flags(self, key: str) -> None:
        session = self.reference.current(key)
        flagged = session if session and (session.was_auto_reset or session.is_fresh_reset) else None
        self.agree(self.run(self.service.consume_reset(key)), flagged)
        if session:
            session.clear_flags()

    def finalize(self, key: str) -> None:
        session = self.reference.current(key)
        changed = self.run(self.service.mark_expiry_finalized(key))
        assert changed == (session is not None and not session.expiry_finalized)
        if session:
            session.expiry_finalized = True
            self.touch(session)

    def use_tokens(self, key: str) -> None:
        self.run(self.service.update_session(key, output_tokens=7))
        if session := self.reference.current(key):
            session.output_tokens += 7
            session.updated_at = self.now
            self.touch(session)

    def give_allowance(self, key: str) -> None:
        self.run(self.service.reset_message_count(key))
        if session := self.reference.current(key):
            session.counted_from = session.next_position
            self.touch(session)

    def choose_model(self, key: str) -> None:
        self.run(self.service.set_model_override(key, {"model": "large", "api_key": "secret"}))
        if session := self.reference.current(key):
            session.model_override = {"model": "large"}
            self.touch(session)

    def unset_model(self, key: str) -> None:
        self.run(self.service.set_model_override(key, {"api_key": "secret"}))
        if session := self.reference.current(key):
            session.model_override = None
            self.touch(session)

    def work_in_the_background(self, key: str) -> None:
        self.reference.busy ^= {key}

    # what always holds

    @invariant()
    def touched_sessions_are_as_in_the_model(self) -> None:
        self.steps[0] += 1
        for session_id in sorted(self.touched):
            self.check_session(self.reference.sessions[session_id])
        self.touched = set()
        self.check_routes()

    @precondition(lambda self: self.since_everything >= EVERYTHING_AFTER_STEPS)
    @invariant()
    def everything_is_as_in_the_model(self) -> None:
        self.check_everything()

    def check_everything(self) -> None:
        self.since_everything = 0
        for session in self.reference.sessions.values():
            self.check_session(session)
        self.check_routes()
        if newest := self.pick(0):
            whole = self.run(self.service.load_transcript(newest.id, include_ancestors=True, as_stored=True))
            assert whole == self.reference.with_ancestors(newest)

    def check_session(self, session: Session) -> None:
        found = self.run(self.service.find_session(session.id, Viewer.everything()))
        entry, facts = found.entry, session.facts()
        assert {name: getattr(entry, name) for name in facts} == facts
        assert found.end_reason == session.end
        assert self.run(self.service.load_transcript(session.id, as_stored=True)) == session.transcript
        if entry.session_id in self.reference.routes.values():
            source = session.origin
            expected = self.reference.policy_reason(session, source, self.now)
            busy = session.key in self.reference.busy
            assert self.run(self.service.reset_reason(entry)) == (None if busy else expected)

    def check_routes(self) -> None:
        """One current session per key, and the same as the model's; the list in the order of activity."""
        self.since_everything += 1
        routed = [self.reference.sessions[session_id] for session_id in self.reference.routes.values()]
        listed = self.run(self.service.list_sessions())
        assert {entry.session_key: entry.session_id for entry in listed} == self.reference.routes
        assert len(listed) == len(routed)
        expected = sorted(routed, key=lambda session: (session.updated_at, session.id), reverse=True)
        assert [entry.session_id for entry in listed] == [session.id for session in expected]


def plain(message: Message) -> Message:
    """The message without a platform id: a summary comes from no platform."""
    return {name: value for name, value in message.items() if name != "platform_message_id"}


@pytest.mark.prove
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_service_does_what_the_model_does(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    steps = [0]
    file = tmp_path / "state.db"

    def remove_file() -> None:
        for part in tmp_path.glob("state.db*"):
            part.unlink()

    def machine() -> SessionMachine:
        if kind == "sqlite":
            return SessionMachine(f"sqlite:///{file}", steps, remove_file)
        return SessionMachine(
            schemas.fresh_schema(request.getfixturevalue("postgres_url")), steps, lambda: None
        )

    chosen = settings(
        max_examples=counts.count(12, 500),
        stateful_step_count=STEPS_PER_RUN,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(cast("type[RuleBasedStateMachine]", machine), settings=chosen)
    assert steps[0] >= counts.count(150, 20_000)
