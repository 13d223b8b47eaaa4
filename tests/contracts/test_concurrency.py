"""Any number of callers and nodes: one current session per key, one key per session."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest

from frontdesk import EndReason, ResetMode, Session, SessionEntry, SessionStore, Usage, Viewer, errors
from frontdesk.testing import SettableClock
from tests import counts, schemas
from tests.contracts.conftest import OpenSessionStore
from tests.contracts.samples import agent_says, direct, in_group, user_says, with_policy

Nodes = tuple[SessionStore, SessionStore]
IDLE = with_policy(mode=ResetMode.IDLE, idle_minutes=1)


@pytest.fixture
async def nodes(postgres_url: str, clock: SettableClock) -> AsyncIterator[Nodes]:
    """Two nodes on one PostgreSQL schema."""
    url = schemas.fresh_schema(postgres_url)
    async with AsyncExitStack() as opened:
        opening = (SessionStore.open(url, IDLE, clock=clock) for _ in range(2))
        first, second = await asyncio.gather(*opening)
        await opened.enter_async_context(first)
        await opened.enter_async_context(second)
        yield first, second


async def find(service: SessionStore, session_id: str) -> Session:
    found = await service.find_session(session_id, Viewer.everything())
    assert found is not None
    return found


async def check_currents(service: SessionStore) -> None:
    """No key twice, no session twice, and nobody's current session has ended."""
    entries = await service.list_sessions()
    assert len({entry.session_key for entry in entries}) == len(entries)
    assert len({entry.session_id for entry in entries}) == len(entries)
    for entry in entries:
        assert await service.peek_session_id(entry.session_key) == entry.session_id
        assert (await find(service, entry.session_id)).ended_at is None


# one process


async def test_many_first_messages_give_one_session(service: SessionStore) -> None:
    entries = await asyncio.gather(*(service.get_or_create_session(direct()) for _ in range(50)))
    assert len({entry.session_id for entry in entries}) == 1
    assert len(await service.list_own_sessions(Viewer.everything())) == 1


async def test_many_messages_after_a_long_pause_reset_once(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(IDLE)
    first = await service.get_or_create_session(direct())
    clock.advance(hours=1)
    entries = await asyncio.gather(*(service.get_or_create_session(direct()) for _ in range(50)))
    assert len({entry.session_id for entry in entries}) == 1
    assert entries[0].session_id != first.session_id
    assert len(await service.list_own_sessions(Viewer.everything())) == 2


async def begin_at_once(*nodes: SessionStore) -> list[SessionEntry]:
    """Somebody begins 20 chats, of which they may have five; each is asked for at every node."""
    begun = await asyncio.gather(
        *(
            node.begin_chat(direct(chat_id=f"chat {number}"), 5, timedelta(hours=1))
            for number in range(20)
            for node in nodes
        ),
        return_exceptions=True,
    )
    refused = [each for each in begun if isinstance(each, errors.TooManyChats)]
    assert all(vars(each) == {"count": 5, "retry_after_seconds": 3600} for each in refused)
    entries = [each for each in begun if isinstance(each, SessionEntry)]
    assert len(refused) + len(entries) == len(begun)
    return entries


async def test_chats_begun_at_once_are_bounded_and_those_that_there_are_go_on(
    service: SessionStore, clock: SettableClock
) -> None:
    begun = await begin_at_once(service)
    assert len({entry.session_id for entry in begun}) == 5
    chat = begun[0].origin
    assert chat
    assert (await service.begin_chat(chat, 5, timedelta(hours=1))).session_id == begun[0].session_id
    await service.begin_chat(direct("ben"), 5, timedelta(hours=1))
    clock.advance(hours=1)
    assert len(await begin_at_once(service)) >= 5


async def test_many_sources_get_a_session_each(service: SessionStore) -> None:
    names = [f"user-{number % 20}" for number in range(60)]
    entries = await asyncio.gather(*(service.get_or_create_session(direct(name)) for name in names))
    assert len({entry.session_id for entry in entries}) == 20


async def test_many_resets_leave_one_current_session(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    fresh = await asyncio.gather(*(service.reset_session(entry.session_key) for _ in range(20)))
    assert len({each.session_id for each in fresh if each}) == 20
    sessions = await service.list_own_sessions(Viewer.everything(), limit=100)
    assert [session.ended_at is None for session in sessions].count(True) == 1
    await check_currents(service)


async def test_each_flag_is_taken_by_one_caller(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    key = entry.session_key
    await service.reset_session(key)
    taken = await asyncio.gather(*(service.consume_reset(key) for _ in range(20)))
    assert sum(each is not None for each in taken) == 1
    for step in (service.mark_expiry_finalized, service.suspend_session):
        changed = await asyncio.gather(*(step(key) for _ in range(20)))
        assert sum(changed) == 1


async def test_concurrent_usage_is_added_up(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    await asyncio.gather(
        *(service.update_session(entry.session_key, input_tokens=1) for _ in range(25)),
        *(
            service.record_turn(entry.session_id, [user_says()], usage=Usage(input_tokens=2))
            for _ in range(25)
        ),
        *(service.get_or_create_session(direct()) for _ in range(25)),
    )
    after = await service.get_session(entry.session_key)
    assert after is not None
    assert (after.input_tokens, after.message_count) == (75, 25)


async def test_session_that_many_keys_want_is_current_for_one(service: SessionStore) -> None:
    wanted = await service.get_or_create_session(direct("wanted"))
    entries = [await service.get_or_create_session(direct(f"user-{number}")) for number in range(10)]
    await asyncio.gather(*(service.switch_session(entry.session_key, wanted.session_id) for entry in entries))
    currents = [await service.peek_session_id(entry.session_key) for entry in entries]
    assert currents.count(wanted.session_id) == 1
    assert await service.peek_session_id(wanted.session_key) is None
    await check_currents(service)


async def test_two_keys_can_swap_their_sessions_at_once(service: SessionStore) -> None:
    ann = await service.get_or_create_session(direct("ann"))
    bob = await service.get_or_create_session(direct("bob"))
    for _ in range(10):
        await asyncio.gather(
            service.switch_session(ann.session_key, bob.session_id),
            service.switch_session(bob.session_key, ann.session_id),
        )
        await check_currents(service)
        for source in (direct("ann"), direct("bob")):
            await service.get_or_create_session(source)
        await check_currents(service)


async def storm(nodes: list[SessionStore], sources: list[str], steps: int, seed: int) -> None:
    """Everything at once, from every node."""
    chance = random.Random(seed)
    known = [await nodes[0].get_or_create_session(direct(name)) for name in sources]
    keys = [entry.session_key for entry in known]

    async def step(number: int) -> None:
        node, key, entry = chance.choice(nodes), chance.choice(keys), chance.choice(known)
        match chance.randrange(9):
            case 0:
                await node.reset_session(key)
            case 1:
                await node.switch_session(key, entry.session_id)
            case 2:
                await node.branch_session(key)
            case 3:
                await node.compress_session(key, [user_says("short")])
            case 4:
                await node.close_session(entry.session_id)
            case 5:
                await node.get_or_create_session(direct(chance.choice(sources)), force_new=True)
            case _:
                current = await node.get_or_create_session(direct(chance.choice(sources)))
                await node.append_to_transcript(current.session_id, user_says(str(number)))
                known.append(current)

    await asyncio.gather(*(step(number) for number in range(steps)))


async def check_after_storm(service: SessionStore, sources: list[str]) -> None:
    entries = [await service.get_or_create_session(direct(name)) for name in sources]
    assert len({entry.session_id for entry in entries}) == len(entries)
    await check_currents(service)
    sessions = await service.list_own_sessions(Viewer.everything(), limit=10_000)
    assert sum(session.ended_at is None for session in sessions) == len(entries)
    for session in sessions:
        await check_counts(service, session.entry)


async def check_counts(service: SessionStore, entry: SessionEntry) -> None:
    transcript = await service.load_transcript(entry.session_id)
    assert entry.message_count <= len(transcript)


SOURCES = ["ann", "bob", "cid", "dan"]


async def test_storm_of_everything_leaves_order(service: SessionStore) -> None:
    await storm([service], SOURCES, counts.count(120, 2000), seed=1)
    await check_after_storm(service, SOURCES)


# two nodes


async def test_chats_begun_at_once_on_two_nodes_are_bounded(nodes: Nodes) -> None:
    assert len({entry.session_id for entry in await begin_at_once(*nodes)}) == 5
    assert len(await nodes[0].list_sessions()) == 5


async def test_two_nodes_open_an_empty_schema_at_once(nodes: Nodes) -> None:
    first, second = nodes
    entry = await first.get_or_create_session(direct())
    assert await second.get_session(entry.session_key) == entry


async def test_two_nodes_agree_on_the_first_session(nodes: Nodes) -> None:
    entries = await asyncio.gather(
        *(nodes[number % 2].get_or_create_session(direct()) for number in range(50))
    )
    assert len({entry.session_id for entry in entries}) == 1


async def test_two_nodes_reset_once(nodes: Nodes, clock: SettableClock) -> None:
    first = await nodes[0].get_or_create_session(direct())
    for _ in range(5):
        clock.advance(hours=1)
        entries = await asyncio.gather(
            *(nodes[number % 2].get_or_create_session(direct()) for number in range(20))
        )
        assert len({entry.session_id for entry in entries}) == 1
    assert len(await nodes[0].list_own_sessions(Viewer.everything())) == 6
    assert await nodes[1].peek_session_id(first.session_key) != first.session_id


async def test_two_nodes_store_a_message_once(nodes: Nodes) -> None:
    entry = await nodes[0].get_or_create_session(direct())
    turn = [user_says("q", platform_message_id="1"), agent_says("a")]
    usage = Usage(input_tokens=3)
    stored = await asyncio.gather(
        *(
            nodes[number % 2].record_turn(entry.session_id, turn, turn_id="t", usage=usage)
            for number in range(20)
        )
    )
    assert sum(stored) == 2
    assert await nodes[1].load_transcript(entry.session_id) == turn
    after = await nodes[1].get_session(entry.session_key)
    assert after is not None
    assert (after.message_count, after.input_tokens) == (2, 3)


async def test_other_node_sees_every_change_at_once(nodes: Nodes, clock: SettableClock) -> None:
    here, there = nodes
    entry = await here.get_or_create_session(direct())
    key = entry.session_key
    await here.suspend_session(key)
    fresh = await there.get_or_create_session(direct())
    assert fresh.auto_reset_reason is EndReason.SUSPENDED
    assert await here.peek_session_id(key) == fresh.session_id
    await there.append_to_transcript(fresh.session_id, user_says("needle"))
    assert await here.load_transcript(fresh.session_id) == [user_says("needle")]
    viewer = await here.viewer_for(direct())
    assert len(await here.search("needle", viewer)) == 1
    assert await here.consume_reset(key) is not None
    assert await there.consume_reset(key) is None
    await here.switch_session(key, entry.session_id)
    assert (await there.get_or_create_session(direct())).session_id == entry.session_id


async def test_reset_never_ends_a_session_that_another_key_has_taken(
    nodes: Nodes, clock: SettableClock
) -> None:
    here, there = nodes
    other = await here.get_or_create_session(in_group())
    for _ in range(counts.count(20, 300)):
        entry = await here.get_or_create_session(direct())
        clock.advance(hours=1)
        await asyncio.gather(
            here.get_or_create_session(direct()),
            there.switch_session(other.session_key, entry.session_id),
        )
        assert await here.peek_session_id(other.session_key) == entry.session_id
        assert (await find(here, entry.session_id)).ended_at is None
        await here.reset_session(other.session_key)


async def test_storm_over_two_nodes_leaves_order(nodes: Nodes) -> None:
    await storm(list(nodes), SOURCES, counts.count(120, 2000), seed=2)
    await check_after_storm(nodes[0], SOURCES)
