"""Sessions whose time is over, and turns that a shutdown cuts short, through a whole gateway."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from frontdesk import EndReason, GatewayConfig, ResetMode, SessionResetPolicy, errors
from frontdesk.contracts.agents import Abilities, Line
from frontdesk.contracts.hooks import LoadTranscript, NoHooks
from frontdesk.flow import hook_calls
from frontdesk.flow.expiry import Forgetting, order_expired
from frontdesk.model import events, turns
from frontdesk.model.running import Running
from frontdesk.model.sessions import Session, SessionEntry, SessionStatus
from frontdesk.testing import SettableClock
from tests.flow.harness import PATIENCE_SECONDS, House, Notebook, Resting, open_house, poll

SELDOM_SECONDS = 3600.0
QUIET = Running(drain_seconds=1.0, expiry_check_seconds=SELDOM_SECONDS)
"""The tests themselves say when expired sessions are looked for."""


def idle(**fields: Any) -> GatewayConfig:
    policy = SessionResetPolicy.from_dict(
        {"mode": ResetMode.IDLE, "idle_minutes": 30, "max_messages": 0} | fields
    )
    return GatewayConfig(default_reset_policy=policy)


class Story(NoHooks):
    """Hooks and an agent that tell in which order they heard of things."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.saved: list[int] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.agent = Resting()

    async def on_session_end(self, entry: SessionEntry, reason: EndReason) -> None:
        self.told.append(f"end {reason}")
        await self.gate.wait()

    async def on_session_finalize(
        self, entry: SessionEntry, reason: EndReason, load_transcript: LoadTranscript
    ) -> None:
        self.saved.append(len(await load_transcript()))
        self.told.append(f"finalize {reason}")

    @property
    def abilities(self) -> Abilities:
        return self.agent.abilities

    def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event]:
        return self.agent.run(turn, line)

    async def release(self, session_id: str) -> None:
        self.told.append("release")

    async def close(self) -> None:
        await self.agent.close()


async def current(house: House) -> Session:
    session = await house.store.sessions.current(await house.key())
    assert session is not None
    return session


async def finalized(house: House, session_id: str) -> Session:
    async def look() -> Session | None:
        session = await house.store.sessions.find(session_id)
        return session if session and session.entry.expiry_finalized else None

    return await poll(look)


async def nothing_waits(house: House) -> None:
    async def look() -> bool | None:
        return None if await house.store.turns.counts() else True

    await poll(look)


ONCE = ["end idle", "finalize idle", "release"]


async def test_expired_session_is_finalized_once(store_url: str) -> None:
    clock, story = SettableClock(), Story()
    async with open_house(
        store_url, config=idle(), running=QUIET, clock=clock, hooks=story, agent=story
    ) as house:
        await house.ask("hello")
        session = await current(house)
        parts = house.gateway.parts
        assert await order_expired(parts) == 0
        clock.advance(minutes=31)
        assert await order_expired(parts) == 1
        await finalized(house, session.id)
        assert await order_expired(parts) == 0
        assert story.told == ONCE
        assert story.saved == [2]
        assert (await current(house)).id == session.id
        await house.ask("hello again")
        assert (await current(house)).parent_id == session.id
        assert story.told == ONCE


async def test_watcher_of_a_running_gateway_finds_it(store_url: str) -> None:
    clock, story = SettableClock(), Story()
    running = Running(drain_seconds=1.0, expiry_check_seconds=0.05)
    async with open_house(
        store_url, config=idle(), running=running, clock=clock, hooks=story, agent=story
    ) as house:
        await house.ask("hello")
        clock.advance(minutes=31)
        await finalized(house, (await current(house)).id)
        assert story.told == ONCE
        assert house.notebook.notices == []


class Missing(Story):
    """Hooks whose program cannot be started until it is installed."""

    def __init__(self) -> None:
        super().__init__()
        self.installed = False
        self.tried: list[tuple[str, str]] = []

    async def on_session_start(self, entry: SessionEntry) -> None:
        self._start("start", entry)
        self.told.append("start")

    async def on_session_end(self, entry: SessionEntry, reason: EndReason) -> None:
        self._start("end", entry)
        await super().on_session_end(entry, reason)

    async def on_session_finalize(
        self, entry: SessionEntry, reason: EndReason, load_transcript: LoadTranscript
    ) -> None:
        self._start("finalize", entry)
        await super().on_session_finalize(entry, reason, load_transcript)

    def _start(self, event: str, entry: SessionEntry) -> None:
        self.tried.append((event, entry.session_id))
        if not self.installed and entry.origin and entry.origin.user_id == "ann":
            raise errors.HookNotStarted(name="missing", why="No such file or directory")

    async def tries(self, session: Session, times: int) -> None:
        async def look() -> bool | None:
            return True if self.tried.count(("finalize", session.id)) >= times else None

        await poll(look)

    async def heard(self, *told: str) -> None:
        """Wait until all of that was told, each once, in whatever order."""

        async def look() -> bool | None:
            return True if sorted(self.told) == sorted(told) else None

        await poll(look)


async def nobody_waits(house: House) -> None:
    """No turn of a person is open once the order has ended."""

    async def look() -> bool | None:
        return None if await house.store.turns.counts() else True

    await poll(look)


async def test_hooks_that_could_not_be_started_are_told_again_and_only_then_it_is_recorded(
    store_url: str,
) -> None:
    clock, story = SettableClock(), Missing()
    async with open_house(
        store_url, config=idle(), running=QUIET, clock=clock, hooks=story, agent=story
    ) as house:
        await house.ask("hello")
        session = await current(house)
        clock.advance(minutes=31)
        assert await order_expired(house.gateway.parts) == 1
        await story.tries(session, 2)
        assert not (await current(house)).entry.expiry_finalized
        assert story.told == ["release"]
        await nobody_waits(house)
        story.installed = True
        clock.advance(minutes=1)
        await finalized(house, session.id)
        await story.heard("start", *ONCE)
        assert story.saved == [2]


async def test_hooks_that_could_not_be_started_are_told_after_a_restart(store_url: str) -> None:
    clock, story = SettableClock(), Missing()
    async with open_house(
        store_url, config=idle(), running=QUIET, clock=clock, hooks=story, agent=story
    ) as house:
        await house.ask("hello")
        session = await current(house)
        clock.advance(minutes=31)
        await order_expired(house.gateway.parts)
        await story.tries(session, 2)
    story.installed = True
    clock.advance(hours=3)
    async with open_house(
        store_url, config=idle(), running=QUIET, clock=clock, hooks=story, agent=story
    ) as house:
        await finalized(house, session.id)
        await story.heard("start", *ONCE)


async def test_nobody_waits_for_a_hook_that_cannot_be_started(store_url: str) -> None:
    story = Missing()
    async with open_house(store_url, running=QUIET, hooks=story, agent=story) as house:
        assert await house.ask("hello") == "echo: hello"
        before = await current(house)
        await house.ask("/new")
        assert await house.ask("hello again") == "echo: hello again"
        await story.tries(before, 2)
        story.installed = True
        assert (await current(house)).id != before.id


async def test_hook_that_can_never_be_started_is_given_up(store_url: str) -> None:
    clock, story = SettableClock(), Missing()
    async with open_house(
        store_url, config=idle(), running=QUIET, clock=clock, hooks=story, agent=story
    ) as house:
        await house.ask("hello")
        session = await current(house)
        clock.advance(minutes=31)
        await order_expired(house.gateway.parts)
        while not (await current(house)).entry.expiry_finalized:
            clock.advance(hours=2)
            await house.ask("what is due?", user="bob")  # which rings the bell
        assert (await current(house)).id == session.id
        assert story.tried.count(("finalize", session.id)) == hook_calls.MAX_TELLINGS + 1


async def test_order_survives_a_restart_in_the_middle(store_url: str) -> None:
    clock, story = SettableClock(), Story()
    story.gate.clear()
    running = Running(drain_seconds=0.05, expiry_check_seconds=SELDOM_SECONDS)
    async with open_house(
        store_url, config=idle(), running=running, clock=clock, hooks=story, agent=story
    ) as house:
        await house.ask("hello")
        session = await current(house)
        clock.advance(minutes=31)
        assert await order_expired(house.gateway.parts) == 1

        async def told() -> bool | None:
            return True if story.told else None

        await poll(told)
    assert story.told == ["end idle"]
    story.gate.set()
    async with open_house(
        store_url, config=idle(), running=QUIET, clock=clock, hooks=story, agent=story
    ) as house:
        after = await finalized(house, session.id)
        assert not after.entry.resume_pending
        assert story.told == ["end idle", *ONCE]


async def test_two_nodes_finalize_once(store_url: str) -> None:
    if store_url.startswith("sqlite"):
        pytest.skip("a SQLite file belongs to one node")
    clock, story = SettableClock(), Story()
    async with AsyncExitStack() as opened:
        houses = [
            await opened.enter_async_context(
                open_house(store_url, config=idle(), running=QUIET, clock=clock, hooks=story, agent=story)
            )
            for _ in range(2)
        ]
        await houses[0].ask("hello")
        session = await current(houses[0])
        clock.advance(minutes=31)
        found = await asyncio.gather(*(order_expired(house.gateway.parts) for house in houses))
        assert sum(found) == 1
        await finalized(houses[0], session.id)
        await nothing_waits(houses[0])
        assert story.told == ONCE


async def test_session_that_is_active_again_is_left_alone(store_url: str) -> None:
    clock, story = SettableClock(), Story()
    async with open_house(
        store_url, config=idle(), running=QUIET, clock=clock, hooks=story, agent=story
    ) as house:
        await house.ask("hello")
        session = await current(house)
        clock.advance(minutes=20)
        receipt = await house.say("!rest; still here")
        await house.rows(3)
        clock.advance(minutes=31)
        await order_expired(house.gateway.parts)  # the order waits behind the turn, which ends just now
        story.agent.may_go_on.set()
        await house.finished(receipt.turn_id)
        await nothing_waits(house)
        after = await current(house)
        assert (after.id, after.entry.expiry_finalized) == (session.id, False)
        assert story.told == []


async def test_session_that_was_busy_is_finalized_on_another_day(store_url: str) -> None:
    clock, story, busy = SettableClock(), Story(), [False, True]
    async with open_house(
        store_url,
        config=idle(),
        running=QUIET,
        clock=clock,
        hooks=story,
        agent=story,
        has_active_processes_fn=lambda _key: busy.pop(0) if busy else False,
    ) as house:
        await house.ask("hello")
        clock.advance(minutes=31)
        assert await order_expired(house.gateway.parts) == 1
        await nothing_waits(house)
        assert story.told == []
        clock.advance(days=1)
        assert await order_expired(house.gateway.parts) == 1
        await finalized(house, (await current(house)).id)


async def test_session_that_time_does_not_end_is_never_finalized(store_url: str) -> None:
    clock, story = SettableClock(), Story()
    config = idle(mode=ResetMode.NONE)
    async with open_house(
        store_url, config=config, running=QUIET, clock=clock, hooks=story, agent=story
    ) as house:
        await house.ask("hello")
        clock.advance(days=1000)
        assert await order_expired(house.gateway.parts) == 0
        await nothing_waits(house)
        assert story.told == []


async def test_webhook_session_rests_after_its_answer_and_is_taken_up_again(store_url: str) -> None:
    story = Story()
    running = Running(drain_seconds=1.0, close_after_answer=("webhook",))
    async with open_house(
        store_url, running=running, notebook=Notebook("webhook"), hooks=story, agent=story
    ) as house:
        await house.say("hello")

        async def rests() -> Session | None:
            session = await house.store.sessions.current(await house.key())
            return session if session and session.status is SessionStatus.ENDED else None

        session = await poll(rests)
        assert (session.reason, story.told) == (EndReason.CLOSED, ["end closed"])
        assert await house.ask("again") == "echo: again"
        assert len(await house.transcript()) == 4
        assert (await poll(rests)).id == session.id


# shutdown


async def test_turns_may_finish_before_the_gateway_closes(store_url: str) -> None:
    agent, bounds = Resting(), Running(drain_seconds=PATIENCE_SECONDS)
    async with open_house(store_url, running=bounds, agent=agent) as house:
        receipt = await house.say("!rest; done")
        await house.until(receipt.turn_id, turns.TurnState.RUNNING)
        asyncio.get_running_loop().call_later(0.2, agent.may_go_on.set)
        notebook = house.notebook
    assert notebook.replies == ["echo: done"]


async def test_turns_cut_short_are_marked_and_their_attempts_do_not_count(store_url: str) -> None:
    receipt = None
    for _ in range(turns.MAX_ATTEMPTS + 2):
        async with open_house(store_url, running=Running(drain_seconds=0.05)) as house:
            receipt = receipt or await house.say("!hang 5; done")
            await house.until(receipt.turn_id, turns.TurnState.RUNNING)
            await house.rows(1)
    assert receipt is not None
    async with open_house(store_url) as house:
        turn = await house.finished(receipt.turn_id)
        assert (turn.state, turn.attempts, turn.tries) == (turns.TurnState.DONE, 6, 1)
        entry = (await current(house)).entry
        assert (entry.resume_pending, entry.resume_reason, entry.last_resume_marked_at) == (False, None, None)
        assert await house.notebook.wait_for(1) == ["echo: done"]


async def test_session_of_a_turn_that_was_put_back_is_marked_to_be_resumed(store_url: str) -> None:
    async with open_house(store_url, running=Running(drain_seconds=0.05)) as house:
        receipt = await house.say("!hang; done")
        await house.rows(1)
        await house.gateway.close()
        turn = await house.store.turns.find(receipt.turn_id)
        assert turn
        assert (turn.state, turn.attempts, turn.put_backs) == (turns.TurnState.QUEUED, 1, 1)
        entry = (await current(house)).entry
        assert (entry.resume_pending, entry.resume_reason) == (True, "restart_timeout")


def forgetting(house: House, clock: SettableClock) -> Forgetting:
    """What the worker does by the clock, which goes as time does here."""
    began = clock.now()

    def elapsed() -> float:
        return (clock.now() - began).total_seconds()

    return Forgetting(house.gateway.parts, elapsed)


async def test_conversations_that_rest_for_long_are_pruned_and_taken_leave_of(store_url: str) -> None:
    clock, story = SettableClock(), Story()
    running = Running(drain_seconds=1.0, expiry_check_seconds=SELDOM_SECONDS, prune_days=30)
    lasting = GatewayConfig(default_reset_policy=SessionResetPolicy(mode=ResetMode.NONE))
    async with open_house(
        store_url, config=lasting, running=running, clock=clock, hooks=story, agent=story
    ) as house:
        sweeps = forgetting(house, clock)
        for user in ("ann", "bob", "cid"):
            await house.ask("hello", user=user)
        for days in (0, 29):
            clock.advance(days=days)
            await sweeps.sweep()
        await house.ask("again", user="bob")
        clock.advance(days=2)
        await house.sessions.begin_background(await house.key("cid"))
        await sweeps.sweep()
        left = [session.entry.session_key for session in await house.store.sessions.list_current()]
        assert set(left) == {await house.key("bob"), await house.key("cid")}
        assert story.told.count("finalize pruned") == 1


async def test_nothing_is_pruned_unless_it_is_asked_for(store_url: str) -> None:
    clock = SettableClock()
    async with open_house(store_url, running=QUIET, clock=clock) as house:
        sweeps = forgetting(house, clock)
        await sweeps.sweep()
        await house.ask("hello")
        clock.advance(days=4000)
        await sweeps.sweep()
        assert len(await house.store.sessions.list_current()) == 1


async def test_conversations_are_not_pruned_by_a_clock_that_jumped(store_url: str) -> None:
    clock = SettableClock()
    running = Running(drain_seconds=1.0, expiry_check_seconds=SELDOM_SECONDS, prune_days=30)
    async with open_house(store_url, running=running, clock=clock) as house:
        sweeps = Forgetting(house.gateway.parts, lambda: 7200.0)
        await sweeps.sweep()
        await house.ask("hello")
        clock.advance(days=4000)
        await sweeps.sweep()
        assert len(await house.store.sessions.list_current()) == 1
