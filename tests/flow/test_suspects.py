"""Turns that were running when the gateway died, in its next life: nobody waits for them in silence."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from frontdesk import Platform, SessionSource, plugins
from frontdesk.model import lanes, turns
from frontdesk.stores.store import Store
from tests.flow.harness import House, open_house, poll


async def doubted(store_url: str, people: Sequence[str], text: str) -> list[str]:
    """A message of each, and a gateway that died three times while all were being answered; their turns."""
    now = datetime.now(UTC) - timedelta(seconds=1)
    store: Store = await plugins.load_store(store_url)(store_url)
    try:
        node = await store.nodes.join("dead", now)
        for name in people:
            source = SessionSource(platform=Platform.MATRIX, chat_id=f"chat-{name}", user_id=name)
            key = f"agent:main:matrix:dm:chat-{name}"
            turn = turns.Turn(id=f"t-{name}", session_key=key, source=source, text=text, received_at=now)
            await store.turns.accept(turn, lambda *_: turns.Admission())
        for _ in range(turns.MAX_ATTEMPTS):
            assert await store.turns.claim(node, lanes.LaneKind.TURN, 10, now, lambda _: [])
            await store.turns.recover(node, lambda _, now: now, now)
    finally:
        await store.close()
    return [f"t-{name}" for name in people]


async def held_back(house: House, names: Sequence[str]) -> list[str]:
    found = [await house.store.turns.find(name) for name in names]
    return [turn.id for turn in found if turn and turn.is_held_back]


async def test_person_whose_turn_is_held_back_is_told_why(store_url: str) -> None:
    names = await doubted(store_url, ["ann", "bob"], "!hang")

    async def look() -> str | None:
        waiting = await held_back(house, names)
        return waiting[0].removeprefix("t-") if waiting else None

    async with open_house(store_url) as house:
        waiting = await poll(look)
        assert turns.HELD_BACK in await house.ask("/status", user=waiting)
        (other,) = {"ann", "bob"} - {waiting}
        assert "working" in await house.ask("/status", user=other)
        assert await house.ask("hello", user="carl") == "echo: hello"


async def test_suspects_in_doubt_are_all_answered(store_url: str) -> None:
    names = await doubted(store_url, ["ann", "bob", "carl", "dora"], "hello")
    async with open_house(store_url) as house:
        ended = [(await house.finished(name)).state for name in names]
    assert ended == [turns.TurnState.DONE] * 4


async def test_hanging_suspect_holds_up_another_for_the_time_of_its_trial_alone(store_url: str) -> None:
    names = await doubted(store_url, ["ann", "bob"], "!hang")

    async def look() -> bool | None:
        running = [await house.store.turns.find(name) for name in names]
        return all(turn and turn.state is turns.TurnState.RUNNING for turn in running) or None

    async with open_house(store_url) as house:
        assert await poll(look)
