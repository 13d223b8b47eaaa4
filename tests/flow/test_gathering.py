"""A burst of messages, and an album, is one turn: each message is stored at once, and ends with the first."""

import asyncio
import itertools
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from frontdesk import GatewayConfig, SessionStore
from frontdesk.agents import scripted
from frontdesk.app.gateway import Gateway
from frontdesk.contracts.channels import Deleted, Edited, Receipt
from frontdesk.model import turns
from frontdesk.model.chats import Attachment, Quote, ReplyHandle
from frontdesk.model.listening import Listening
from frontdesk.model.messages import text_of
from frontdesk.model.running import Running
from frontdesk.model.sources import ChatType
from frontdesk.testing import SettableClock
from tests.flow.harness import House, Notebook, open_house, poll

ROOT = Path(__file__).parents[2]
START = datetime(2026, 1, 5, 12, tzinfo=UTC)
WINDOW = 30.0
JOINED, QUEUED = turns.TurnState.JOINED, turns.TurnState.QUEUED


class Burst:
    """A house where messages wait for others. Nobody works in it before it is opened, and whoever opens it
    begins with what waits."""

    def __init__(self, house: House, clock: SettableClock, opened: AsyncExitStack) -> None:
        self.house, self.clock = house, clock
        self._opened = opened
        self._messages = 0

    async def say(self, text: str, user: str = "ann", **fields: Any) -> Receipt:
        self._messages += 1
        source = self.house.source(user, message_id=f"m{self._messages}", **fields.pop("at", {}))
        return await self.house.say(text, source=source, **fields)

    async def states(self, *receipts: Receipt) -> list[turns.TurnState]:
        found = [await self.house.store.turns.find(each.turn_id) for each in receipts]
        return [each.state for each in found if each]

    async def open(self) -> None:
        await self._opened.enter_async_context(self.house.gateway.started())

    async def answers(self, *receipts: Receipt) -> list[str]:
        """What was answered, once all of them have ended."""
        for each in receipts:
            await self.house.finished(each.turn_id)
        said = [await self.house.store.deliveries.of_turn(each.turn_id) for each in receipts]
        return [each.text for deliveries in said for each in deliveries if each.kind == "reply"]


@asynccontextmanager
async def bursting(
    url: str, window: float = WINDOW, listening: Listening | None = None, **capabilities: Any
) -> AsyncIterator[Burst]:
    clock = SettableClock(START)
    config = GatewayConfig(listening={"matrix": listening}) if listening else None
    running = Running(drain_seconds=1.0, gather_seconds=window)
    notebook = Notebook(**capabilities)
    async with AsyncExitStack() as opened:
        sessions = await opened.enter_async_context(await SessionStore.open(url, config, clock=clock))
        agent = scripted.Driver(scripted.Options())
        gateway = Gateway(sessions, agent, [notebook], running=running, clock=clock)
        yield Burst(House(gateway, notebook), clock, opened)


@pytest.fixture
async def burst(store_url: str) -> AsyncIterator[Burst]:
    async with bursting(store_url) as opened:
        yield opened


async def test_burst_is_answered_once_and_in_order(burst: Burst) -> None:
    said = [await burst.say(text) for text in ("hello", "can you", "help me?")]
    assert await burst.states(*said) == [QUEUED, JOINED, JOINED]
    await burst.open()
    assert await burst.answers(*said) == ["echo: hello\ncan you\nhelp me?"]
    assert set(await burst.states(*said)) == {turns.TurnState.DONE}
    rows = await burst.house.transcript()
    assert [text_of(row) for row in rows] == ["hello\ncan you\nhelp me?", "echo: hello\ncan you\nhelp me?"]


async def test_message_of_a_burst_that_comes_again_is_the_same(burst: Burst) -> None:
    first = await burst.say("hello", event_id="a")
    part = await burst.say("there", event_id="b")
    again = await burst.say("there", event_id="b")
    assert (again.turn_id, again.repeated) == (part.turn_id, True)
    await burst.open()
    assert await burst.answers(first, part) == ["echo: hello\nthere"]


async def test_burst_waits_while_more_comes_and_no_longer_than_its_cap(burst: Burst) -> None:
    said = []
    for number in range(turns.LONGEST_WINDOWS + 2):
        said.append(await burst.say(str(number)))
        burst.clock.advance(seconds=WINDOW * 0.9)
    late = await burst.say("late")
    burst.clock.advance(seconds=WINDOW)
    assert await burst.states(*said, late, await burst.say("later")) == [
        QUEUED,
        *[JOINED] * 5,
        QUEUED,
        JOINED,
        QUEUED,
    ]


async def test_burst_has_a_hard_number_of_messages(burst: Burst) -> None:
    said = [await burst.say(str(number)) for number in range(turns.MOST_GATHERED + 1)]
    assert (await burst.states(*said)).count(QUEUED) == 2
    await burst.open()
    assert len(await burst.answers(*said)) == 2


async def test_people_chats_and_threads_are_never_mixed(burst: Burst) -> None:
    room = {"chat": "room", "chat_type": ChatType.GROUP}
    said = [
        await burst.say("ann", at=room),
        await burst.say("bob", "bob", at=room),
        await burst.say("ann in a thread", at=room | {"thread_id": "7"}),
        await burst.say("bob in a thread", "bob", at=room | {"thread_id": "7"}),
        await burst.say("ann elsewhere", at=room | {"chat": "other"}),
    ]
    assert set(await burst.states(*said)) == {QUEUED}
    await burst.open()
    assert len(await burst.answers(*said)) == len(said)


async def test_burst_begins_when_a_command_comes(store_url: str) -> None:
    running = Running(drain_seconds=1.0, gather_seconds=WINDOW)
    async with open_house(store_url, running=running) as house:

        async def joined() -> Receipt | None:
            """What comes while the gateway starts is begun at once."""
            user = f"user-{next(users)}"
            first, second = await house.say("hello", user), await house.say("there", user)
            state = await house.store.turns.find(second.turn_id)
            await house.say("/title A talk", user)
            return first if state and state.state is JOINED else None

        users = itertools.count()
        first = await poll(joined)
        await house.finished(first.turn_id)
        (answer,) = await house.store.deliveries.of_turn(first.turn_id)
        assert answer.text == "echo: hello\nthere"


async def test_burst_begins_when_its_time_is_over(store_url: str) -> None:
    async with open_house(store_url, running=Running(drain_seconds=1.0, gather_seconds=0.2)) as house:
        assert await house.ask("hello") == "echo: hello"
        assert await house.ask("again") == "echo: again"


async def test_edits_and_deletions_of_parts_count_until_the_turn_begins(burst: Burst) -> None:
    said = [await burst.say(text) for text in ("one", "two", "three")]
    accept, source = burst.house.gateway.desk.accept, burst.house.source
    await accept(Edited(source=source(message_id="m3"), text="3", event_id="edit"))
    await accept(Deleted(source=source(message_id="m1"), event_id="gone"))
    await burst.open()
    assert await burst.answers(*said) == ["echo: two\n3"]
    await accept(Deleted(source=source(message_id="m2"), event_id="late"))
    rows = await burst.house.rows(3)
    assert text_of(rows[-1]) == '(deleted "two")'


async def test_burst_of_which_all_was_deleted_is_not_answered(burst: Burst) -> None:
    said = [await burst.say("one"), await burst.say("two")]
    for number in (2, 1):
        deleted = Deleted(source=burst.house.source(message_id=f"m{number}"), event_id=f"gone-{number}")
        await burst.house.gateway.desk.accept(deleted)
    assert set(await burst.states(*said)) == {turns.TurnState.INTERRUPTED}
    following = await burst.say("next")
    await burst.open()
    assert await burst.answers(following) == ["echo: next"]


async def test_newest_handle_comes_back_and_what_answers_something_begins_anew(burst: Burst) -> None:
    first = await burst.say("a", handle=ReplyHandle(value="h1"))
    await burst.say("b", handle=ReplyHandle(value="h2"))
    quoting = await burst.say("c", quote=Quote(message_id="m0", text="before"))
    assert await burst.states(quoting) == [QUEUED]
    await burst.open()
    assert len(await burst.answers(first, quoting)) == 2
    (answer,) = await burst.house.store.deliveries.of_turn(first.turn_id)
    assert answer.handle == ReplyHandle(value="h2")


async def test_album_is_one_turn_wherever_it_is_addressed(store_url: str) -> None:
    async with bursting(store_url, window=0.0) as burst:
        room = {"chat": "room", "chat_type": ChatType.GROUP}
        said = [
            await burst.say(text, at=room, album="a1", files=(Attachment(id=f"f{number}"),), addressed=meant)
            for number, (text, meant) in enumerate([("", False), ("look at these", True), ("", False)])
        ]
        other = await burst.say("", at=room, album="a2", files=(Attachment(id="f9"),), addressed=False)
        plain = await burst.say("by the way", at=room, addressed=True)
        assert await burst.states(*said, other, plain) == [QUEUED, JOINED, JOINED, QUEUED, QUEUED]
        await burst.open()
        await burst.answers(*said, other, plain)
        first, alone = [await burst.house.store.turns.find(each.turn_id) for each in (said[0], other)]
        assert first
        assert alone
        assert (first.kind, alone.kind) == (turns.TurnKind.MESSAGE, turns.TurnKind.OBSERVED)


async def test_platform_has_its_own_window_and_programs_none(store_url: str) -> None:
    async with bursting(store_url, listening=Listening(gather_seconds=0)) as burst:
        assert await burst.states(await burst.say("a"), await burst.say("b")) == [QUEUED, QUEUED]
    async with bursting(store_url, collects=True) as burst:
        assert await burst.states(await burst.say("a", "bob"), await burst.say("b", "bob")) == [
            QUEUED,
            QUEUED,
        ]


KILLED = """
import asyncio, os, signal, sys
from tests.flow.test_gathering import bursting

async def main() -> None:
    async with bursting(sys.argv[1]) as burst:
        for number in range(4):
            await burst.say(f"part {number}")
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_burst_survives_that_the_gateway_is_killed(store_url: str) -> None:
    program = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, store_url, cwd=ROOT)
    assert await program.wait() == -signal.SIGKILL
    async with open_house(store_url) as house:
        assert await house.notebook.wait_for(1) == ["echo: part 0\npart 1\npart 2\npart 3"]
        assert await house.ask("next", event_id="next") == "echo: next"
        assert await house.notebook.wait_for(2) == [house.notebook.replies[0], "echo: next"]
