"""Limits through a whole gateway: the agent is warned, the session rotated, people told, nothing lost."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from frontdesk import CheckpointManager, EndReason, GatewayConfig, ResetMode, SessionResetPolicy
from frontdesk.agents import scripted
from frontdesk.contracts.hooks import LoadTranscript, NoHooks
from frontdesk.hooks import Chain, Guarded
from frontdesk.model.access import Access
from frontdesk.model.running import Running
from frontdesk.model.sessions import Session, SessionEntry
from frontdesk.model.turns import TurnState
from frontdesk.testing import SettableClock
from tests.flow.harness import PATIENCE_SECONDS, House, Notebook, open_house, poll

FINAL = "final response of this session"
WARNING = "**Session limit:**"


def limited(**limits: Any) -> GatewayConfig:
    policy = SessionResetPolicy.from_dict({"mode": ResetMode.NONE, "max_messages": 0} | limits)
    access = {"matrix": Access(administrators=("ann",), allow=("*",))}
    return GatewayConfig(default_reset_policy=policy, access=access)


def reliable(name: str = "matrix") -> Notebook:
    return Notebook(name, reliable_sender_ids=True)


async def current(house: House) -> Session:
    session = await house.store.sessions.current(await house.key())
    assert session is not None
    return session


async def rotated(house: House, before: Session) -> Session:
    """The session after that one, as soon as there is one."""

    async def look() -> Session | None:
        session = await current(house)
        return session if session.id != before.id else None

    return await poll(look)


async def spent(house: House, text: str = "hello") -> Session:
    """The session whose allowance a message has used up."""
    receipt = await house.say(text)
    turn = await house.finished(receipt.turn_id)
    session = await house.store.sessions.find(turn.session_id or "")
    assert session is not None
    return session


def files_in(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


class Broken:
    """Snapshots that fail in a way nobody foresaw."""

    def __getattr__(self, name: str) -> Any:
        async def fail(*_: object, **__: object) -> None:
            raise RuntimeError("no snapshots today")

        return fail


class Stuck(Broken):
    """Snapshots that never come to an end."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def create_checkpoint(self, *_: object) -> None:
        self.begun.set()
        await asyncio.Event().wait()


class Diary(NoHooks):
    """Hooks that write down what they hear."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str, str | None]] = []
        self.saved: list[int] = []

    async def on_session_start(self, entry: SessionEntry) -> None:
        self.heard.append(("start", entry.session_id, None))

    async def on_session_end(self, entry: SessionEntry, reason: EndReason) -> None:
        self.heard.append(("end", entry.session_id, str(reason)))

    async def on_session_finalize(
        self, entry: SessionEntry, reason: EndReason, load_transcript: LoadTranscript
    ) -> None:
        self.heard.append(("finalize", entry.session_id, str(reason)))
        self.saved.append(len(await load_transcript()))


class Raising(NoHooks):
    async def on_session_start(self, entry: SessionEntry) -> None:
        raise RuntimeError("start")

    async def on_session_end(self, entry: SessionEntry, reason: EndReason) -> None:
        raise RuntimeError("end")

    async def on_session_finalize(
        self, entry: SessionEntry, reason: EndReason, load_transcript: LoadTranscript
    ) -> None:
        raise RuntimeError("finalize")


class Hanging(NoHooks):
    async def on_session_start(self, entry: SessionEntry) -> None:
        await asyncio.Event().wait()

    async def on_session_end(self, entry: SessionEntry, reason: EndReason) -> None:
        await asyncio.Event().wait()


# the whole story


async def test_marathon_is_warned_checkpointed_rotated_and_can_be_taken_up_again(
    store_url: str, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes.txt").write_text("as it was at the end")
    (work / "deep").mkdir()
    (work / "deep" / "more.txt").write_text("more")
    snapshots = CheckpointManager(root=tmp_path / "checkpoints")
    running = Running(drain_seconds=1.0, checkpoints=True, working_dir=str(work))
    async with open_house(
        store_url, config=limited(max_messages=200), running=running, notebook=reliable(), snapshots=snapshots
    ) as house:
        first = await run_marathon(house)
        receipt = await house.say("!show system; !summary tests are open; finished")
        await house.finished(receipt.turn_id)
        assert FINAL in (await house.store.deliveries.of_turn(receipt.turn_id))[0].text
        second = await rotated(house, first)
        await check_checkpoint(snapshots, work, first, receipt.turn_id)
        await check_notice(house, first, second)
        await check_first_prompt(house, first)
        before = files_in(work)
        await go_back(house, first, snapshots, work)
        assert files_in(work) == before


async def run_marathon(house: House) -> Session:
    """99 turns, up to two messages below the limit; where the warnings begin."""
    await house.ask("build the parser")
    first = await current(house)
    for number in range(2, 100):
        said = await house.ask("!show system")
        assert (WARNING in said) == (2 * number - 1 >= 170), number
        # Two below the limit, once the message is counted, is the 100th turn: none of these.
        assert (FINAL in said) == (2 * number - 1 + 2 >= 200), number
    rows = await house.transcript()
    asked = [row["content"] for row in rows if row["role"] == "user"]
    assert len(rows) == 198
    assert not any(WARNING in text for text in asked)
    assert all(row["role"] in ("user", "assistant") for row in rows)
    assert house.notebook.notices == []
    return first


async def check_checkpoint(snapshots: CheckpointManager, work: Path, first: Session, turn_id: str) -> None:
    (made,) = await snapshots.list_checkpoints(work)
    assert (made.label, made.session_id, made.turn_id) == (f"marathon-{first.id}", first.id, turn_id)


async def check_notice(house: House, first: Session, second: Session) -> None:
    (notice,) = await house.notebook.wait_for(1, "notice")
    assert "reached 200 message limit" in notice
    assert "preserved, with a checkpoint of the working directory" in notice
    assert f"/resume {first.id}" in notice
    assert "session_reset" in notice
    assert second.id in notice
    ended = await house.store.sessions.find(first.id)
    assert ended
    assert ended.reason is EndReason.MESSAGE_LIMIT
    assert (second.entry.was_auto_reset, second.entry.auto_reset_reason) == (True, EndReason.MESSAGE_LIMIT)


async def check_first_prompt(house: House, first: Session) -> None:
    system = await house.ask("!show system")
    note, context = system.index("reached its 200 message limit"), system.index("## Current Session Context")
    assert note < context
    assert "was checkpointed" in system[:context]
    assert "hand-over" in system[:context]
    handed, *rest = await house.transcript()
    assert "build the parser" in handed["content"]
    assert "tests are open" in handed["content"]
    assert (await current(house)).entry.message_count == len(rest) == 2
    assert await house.ask("!show messages") == "messages: 4"  # the hand-over, two, and this one
    assert "200 message limit" not in await house.ask("!show system")
    assert len(house.notebook.notices) == 1


async def go_back(house: House, first: Session, snapshots: CheckpointManager, work: Path) -> None:
    assert first.id in await house.ask(f"/resume {first.id}")
    again = await current(house)
    assert (again.id, again.entry.message_count) == (first.id, 0)
    assert WARNING not in await house.ask("!show system")
    assert (await current(house)).id == first.id
    (work / "notes.txt").write_text("spoilt")
    (work / "new.txt").write_text("to be removed")
    (work / "deep" / "more.txt").unlink()
    (made,) = await snapshots.list_checkpoints(work)
    assert "is as it was" in await house.ask(f"/rollback {made.number}")


# other limits


LIMITS = [
    ({"max_tokens": 100}, "!tokens 40 10; ok", 2, "reached 100 token limit"),
    ({"max_cost_usd": 1.0}, "!tokens 1 1 0.4; ok", 3, "reached $1.00 cost limit"),
]


@pytest.mark.parametrize(("limit", "text", "turns", "reason"), LIMITS)
async def test_budget_ends_with_the_turn_that_reaches_it_and_is_whole_after_resuming(
    store_url: str, limit: dict[str, Any], text: str, turns: int, reason: str
) -> None:
    async with open_house(store_url, config=limited(**limit), notebook=reliable()) as house:
        await house.ask(text)
        first = await current(house)
        for _ in range(turns - 1):
            assert (await current(house)).id == first.id
            await house.ask(text)
        second = await rotated(house, first)
        assert reason in (await house.notebook.wait_for(1, "notice"))[0]
        assert (second.entry.total_tokens, second.entry.estimated_cost_usd) == (0, 0)
        assert first.id in await house.ask(f"/resume {first.id}")
        for _ in range(turns - 1):
            await house.ask(text)
            assert (await current(house)).id == first.id
        await house.ask(text)
        await rotated(house, first)
        assert len(await house.notebook.wait_for(2, "notice")) == 2


@pytest.mark.parametrize("price", [1, 30, 99, 100, 350])
async def test_budget_is_overshot_by_one_turn_at_most(store_url: str, price: int) -> None:
    async with open_house(store_url, config=limited(max_tokens=100)) as house:
        for number in range(6):
            # Half of them fail after having spent, and only the next message finds the budget gone.
            await house.ask(f"!tokens {price} 0; {'!fail' if number % 2 else 'ok'}")
        ids = [session.id for session in await house.store.sessions.list_current()]
        while ids:
            session = await house.store.sessions.find(ids.pop())
            assert session
            assert session.entry.total_tokens < 100 + price
            ids += [session.parent_id] if session.parent_id else []


async def test_what_failed_attempts_used_counts(store_url: str) -> None:
    async with open_house(store_url, config=limited(max_tokens=1000)) as house:
        await house.ask("!tokens 10 0; !fail retryable 1")
        assert (await current(house)).entry.input_tokens == 20


async def test_time_limit_rotates_after_the_turn_that_passes_it(store_url: str) -> None:
    clock = SettableClock()
    async with open_house(store_url, config=limited(max_session_minutes=60), clock=clock) as house:
        await house.ask("hello")
        first = await current(house)
        clock.advance(minutes=59)
        assert FINAL in await house.ask("!show system")
        assert (await current(house)).id == first.id
        clock.advance(minutes=1)
        await house.say("late")
        after = await rotated(house, first)
        assert (after.id != first.id, after.entry.created_at) == (True, clock.now())
        assert "reached 1h time limit" in (await house.notebook.wait_for(1, "notice"))[0]


SPIRALS = ["; ".join(['!tool look {"path": "a"}'] * 3), "; ".join(["!toolerror look"] * 3)]


@pytest.mark.parametrize("spiral", SPIRALS)
async def test_spiral_is_warned_of_and_then_ends_the_session(store_url: str, spiral: str) -> None:
    config = limited(spiral_repeats=3, spiral_window=3)
    async with open_house(store_url, config=config) as house:
        await house.ask(spiral)
        first = await current(house)
        assert "**Tool calls:**" in await house.ask(f"!show system; {spiral}")
        await rotated(house, first)
        assert "tool calls kept failing or repeating" in (await house.notebook.wait_for(1, "notice"))[0]


# between an agent's steps


STEP = "!tokens {price} 0 {cost}; !tool look {{}}"
BUDGETS = [
    ({"max_tokens": 100}, STEP.format(price=60, cost=0), "reached its 100 token limit"),
    ({"max_cost_usd": 1.0}, STEP.format(price=60, cost=0.6), "reached its $1.00 cost limit"),
]


@pytest.mark.parametrize("stops", [True, False])
@pytest.mark.parametrize(("limit", "step", "why"), BUDGETS)
async def test_budget_is_overshot_by_one_step_at_most_and_the_turn_says_why(
    store_url: str, limit: dict[str, Any], step: str, why: str, stops: bool
) -> None:
    agent = scripted.Driver(scripted.Options(stops=stops))
    config = limited(spiral_repeats=0, **limit)
    async with open_house(store_url, config=config, agent=agent, notebook=reliable()) as house:
        receipt = await house.say("; ".join(["!say at work", *[step] * 9, "!say never"]))
        turn = await house.finished(receipt.turn_id)
        assert turn.state is TurnState.INTERRUPTED
        first = await house.store.sessions.find(turn.session_id or "")
        assert first
        assert first.entry.input_tokens == 120
        (said,) = await house.notebook.wait_for(1)
        assert said == f"at work\n\nI stopped here: this conversation {why}."
        assert (await rotated(house, first)).parent_id == first.id
        rows = await house.sessions.load_transcript(first.id, as_stored=True)
        assert [row["role"] for row in rows] == ["user", "assistant", "tool"]
        assert len(await house.notebook.wait_for(1, "notice")) == 1


async def test_answer_that_uses_up_the_budget_is_whole(store_url: str) -> None:
    async with open_house(store_url, config=limited(max_tokens=100)) as house:
        assert await house.ask("!tool look; !say the ans; !tokens 200 0; !say wer") == "the answer"


async def test_agent_that_goes_on_without_tools_is_stopped_when_it_uses_more(store_url: str) -> None:
    async with open_house(store_url, config=limited(max_tokens=100)) as house:
        first = await spent(house, "; ".join(["!tokens 90 0; !say more"] * 9))
        assert first.entry.input_tokens == 270


@pytest.mark.parametrize("call", ['!tool look {"path": "a"}', "!toolerror look"])
async def test_spiral_is_broken_off_within_its_turn(store_url: str, call: str) -> None:
    config = limited(spiral_repeats=3, spiral_window=3)
    async with open_house(store_url, config=config) as house:
        receipt = await house.say("; ".join([call] * 40))
        turn = await house.finished(receipt.turn_id)
        rows = await house.sessions.load_transcript(turn.session_id or "")
        assert sum(row["role"] == "tool" for row in rows) == 6
        told = (await house.notebook.wait_for(1, "notice"))[0]
        assert told.startswith("I stopped here: ")
        assert "tool calls kept failing or repeating" in told


@pytest.mark.parametrize("stops", [True, False])
async def test_silent_agent_is_stopped_when_the_sessions_time_is_over(store_url: str, stops: bool) -> None:
    clock, agent = SettableClock(), scripted.Driver(scripted.Options(stops=stops))
    async with open_house(
        store_url, config=limited(max_session_minutes=1), clock=clock, agent=agent
    ) as house:
        await house.ask("hello")
        first = await current(house)
        clock.advance(seconds=59.5)
        receipt = await house.say("!tokens 7 0; !say half; !hang")
        turn = await house.finished(receipt.turn_id)
        assert (turn.state, turn.session_id) == (TurnState.INTERRUPTED, first.id)
        said = (await house.notebook.wait_for(2))[1]
        assert said == "half\n\nI stopped here: this conversation reached its 1m time limit."
        assert (await rotated(house, first)).entry.auto_reset_reason is EndReason.TIME_LIMIT
        ended = await house.store.sessions.find(first.id)
        assert ended
        assert ended.entry.input_tokens == 7


async def test_background_work_lets_a_turn_go_on_beyond_its_limits(store_url: str) -> None:
    config = limited(max_tokens=100)
    async with open_house(store_url, config=config, has_active_processes_fn=lambda _key: True) as house:
        step = STEP.format(price=60, cost=0)
        assert await house.ask("; ".join([step] * 4 + ["!say done"])) == "done"


async def test_failure_is_not_tried_again_beyond_the_budget(store_url: str) -> None:
    async with open_house(store_url, config=limited(max_tokens=100)) as house:
        receipt = await house.say("!tokens 60 0; !fail retryable")
        turn = await house.finished(receipt.turn_id)
        assert (turn.state, turn.attempts) == (TurnState.FAILED, 2)
        first = await house.store.sessions.find(turn.session_id or "")
        assert first
        assert first.entry.input_tokens == 120
        assert (await rotated(house, first)).entry.auto_reset_reason is EndReason.TOKEN_LIMIT


@pytest.mark.parametrize("ending", ["!fail", "!hang"])
async def test_limit_reached_by_a_turn_without_answer_rotates_with_a_checkpoint(
    store_url: str, tmp_path: Path, ending: str
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes.txt").write_text("kept")
    snapshots = CheckpointManager(20, tmp_path / "checkpoints")
    running = Running(checkpoints=True, working_dir=str(work), drain_seconds=1.0)
    async with open_house(
        store_url, config=limited(max_tokens=100), running=running, snapshots=snapshots
    ) as house:
        receipt = await house.say(f"!tokens 200 0; !tool look; {ending}")
        await house.rows(3)
        await house.say("/stop")
        turn = await house.finished(receipt.turn_id)
        first = await house.store.sessions.find(turn.session_id or "")
        assert first
        assert (await rotated(house, first)).checkpointed
        (made,) = await snapshots.list_checkpoints(work)
        assert (made.label, made.turn_id) == (f"marathon-{first.id}", turn.id)


# what people and agents are told


async def test_excluded_platform_is_rotated_and_not_told(store_url: str) -> None:
    notebook = Notebook("webhook")
    async with open_house(store_url, config=limited(max_messages=2), notebook=notebook) as house:
        first = await spent(house)
        assert (await rotated(house, first)).entry.was_auto_reset
        await house.ask("again")
        await house.notebook.wait_for(2)
        assert house.notebook.notices == []


async def test_no_checkpoint_is_claimed_where_there_is_none(store_url: str, tmp_path: Path) -> None:
    failing: Sequence[tuple[Any, bool]] = (
        (None, True),
        (CheckpointManager(root=tmp_path / "unused"), False),
        (CheckpointManager(root=tmp_path / "kept", git=str(tmp_path / "no-git")), True),
        (Broken(), True),
    )
    work = tmp_path / "work"
    work.mkdir()
    for number, (snapshots, enabled) in enumerate(failing):
        running = Running(drain_seconds=1.0, checkpoints=enabled, working_dir=str(work))
        config = limited(max_messages=2)
        async with open_house(store_url, config=config, running=running, snapshots=snapshots) as house:
            user = f"ann{number}"
            await house.say("hello", user=user, event_id=f"{user}-1")
            assert await house.notebook.wait_for(1) == ["echo: hello"]
            (notice,) = await house.notebook.wait_for(1, "notice")
            assert "preserved. To get back" in notice
            await house.say("!show system", user=user, event_id=f"{user}-2")
            assert "checkpoint" not in (await house.notebook.wait_for(2))[1]


async def test_note_is_given_again_to_the_attempt_that_answers(store_url: str) -> None:
    async with open_house(store_url, config=limited(max_messages=2)) as house:
        await rotated(house, await spent(house))
        second = await spent(house, "!fail retryable 1; !show system")
        await rotated(house, second)
        assert "reached its 2 message limit" in (await house.notebook.wait_for(2))[1]
        rows = await house.sessions.load_transcript(second.id)
        assert [row["role"] for row in rows] == ["session_meta", "user", "assistant"]
        assert len(await house.notebook.wait_for(2, "notice")) == 2


async def test_shutdown_in_the_middle_of_a_rotation_answers_nobody_twice(
    store_url: str, tmp_path: Path
) -> None:
    stuck = Stuck()
    running = Running(drain_seconds=0.05, checkpoints=True, working_dir=str(tmp_path))
    config = limited(max_messages=2)
    async with open_house(store_url, config=config, running=running, snapshots=stuck) as house:
        receipt = await house.say("hello", event_id="first")
        async with asyncio.timeout(PATIENCE_SECONDS):
            await stuck.begun.wait()
        assert await house.notebook.wait_for(1) == ["echo: hello"]
        first = await current(house)
    async with open_house(store_url, config=config) as house:
        turn = await house.store.turns.find(receipt.turn_id)
        assert turn
        assert (turn.state, turn.attempts) == (TurnState.DONE, 1)
        assert not (await current(house)).entry.resume_pending
        await house.say("again", event_id="second")
        assert await house.notebook.wait_for(1) == ["echo: again"]
        told = await house.notebook.wait_for(1, "notice")
        assert "reached 2 message limit" in told[0]
        assert f"/resume {first.id}" in told[0]


# hooks


async def test_hooks_hear_of_every_session_in_order(store_url: str) -> None:
    diary = Diary()
    async with open_house(store_url, config=limited(max_messages=2), hooks=diary) as house:
        first = (await spent(house)).id
        second = await spent(house, "!fail retryable 1; two")
        third = await rotated(house, second)
        assert third.parent_id == second.id
    assert diary.heard == [
        ("start", first, None),
        ("end", first, "message_limit"),
        ("finalize", first, "message_limit"),
        ("start", second.id, None),
        ("end", second.id, "message_limit"),
        ("finalize", second.id, "message_limit"),
    ]
    assert diary.saved == [2, 3]


async def test_session_reset_by_the_next_message_is_taken_leave_of_before_its_turn(store_url: str) -> None:
    clock, diary = SettableClock(), Diary()
    config = limited(mode=ResetMode.IDLE, idle_minutes=30)
    # The watcher looks once, at the start: the message comes before it looks again.
    running = Running(drain_seconds=1.0, expiry_check_seconds=3600.0)
    async with open_house(store_url, config=config, hooks=diary, clock=clock, running=running) as house:
        await house.ask("one")
        first = await current(house)
        clock.advance(minutes=31)
        assert "inactive for more than 30m" in await house.ask("!show system")
        second = await current(house)
        parent = await house.store.sessions.find(first.id)
        assert parent
        assert parent.entry.expiry_finalized
    assert diary.heard == [
        ("start", first.id, None),
        ("end", first.id, "idle"),
        ("finalize", first.id, "idle"),
        ("start", second.id, None),
    ]


@pytest.mark.parametrize("hooks", [Raising(), Chain([Guarded("slow", Hanging(), 0.05)])])
async def test_hooks_that_fail_or_hang_stop_nothing(store_url: str, hooks: Any) -> None:
    async with open_house(store_url, config=limited(max_messages=2), hooks=hooks) as house:
        await house.say("hello")
        await house.say("again")
        assert await house.notebook.wait_for(2) == ["echo: hello", "echo: again"]
        assert sum("message limit" in each for each in await house.notebook.wait_for(2, "notice")) >= 1


async def test_background_work_holds_the_rotation_back(store_url: str) -> None:
    busy = True
    config = limited(max_messages=2)
    async with open_house(store_url, config=config, has_active_processes_fn=lambda _key: busy) as house:
        await house.ask("one")
        first = await current(house)
        await house.ask("two")
        assert (await current(house)).id == first.id
        busy = False
        await house.ask("three")
        assert (await current(house)).id != first.id


SHORT = limited(max_messages=2)


async def just_rotated(house: House) -> str:
    """A conversation that has just rotated; the id of the session before."""
    before = await spent(house, "build the parser")
    await rotated(house, before)
    return before.id


async def test_retry_after_a_rotation_asks_the_last_message_in_the_new_session(store_url: str) -> None:
    async with open_house(store_url, config=SHORT) as house:
        before = await just_rotated(house)
        assert await house.ask("/retry") == "echo: build the parser"
        notices = await house.notebook.wait_for(2, "notice")
        assert any("ask it again in the new one" in text and f"/resume {before}" in text for text in notices)
        kept = await house.sessions.load_transcript(before)
        assert [row["content"] for row in kept] == ["build the parser", "echo: build the parser"]


async def test_undo_and_export_after_a_rotation_say_where_the_words_are(store_url: str) -> None:
    async with open_house(store_url, config=SHORT) as house:
        before = await just_rotated(house)
        for command in ("/undo", "/export"):
            said = await house.ask(command)
            assert f"/resume {before}, then {command}" in said
        await house.ask(f"/resume {before}")
        assert "Took back 1 turn" in await house.ask("/undo")


async def test_after_new_there_is_nothing_to_retry(house: House) -> None:
    await house.ask("hello")
    await house.ask("/new")
    assert "nothing to retry" in await house.ask("/retry")
