"""Whoever hears what an agent writes hears nothing more once their pass was revoked."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from frontdesk import plugins
from frontdesk.flow.authorization import owner_of_terminal
from frontdesk.model.access import Role
from frontdesk.web import turn_events, visitors
from tests.flow.harness import PATIENCE_SECONDS, House, Resting
from tests.integration.visiting import Visited, open_reception

Revoke = Callable[[House], Awaitable[None]]


@pytest.fixture
def agent() -> Resting:
    return Resting()


@pytest.fixture
async def reception(tmp_path: Path, agent: Resting) -> AsyncIterator[Visited]:
    async with open_reception(f"sqlite:///{tmp_path}/state.db", agent=agent) as opened:
        yield opened


async def end_pass(house: House) -> None:
    assert await house.gateway.parts.confirmations.passes.revoke("hers", by="local")


async def revoke_person(house: House) -> None:
    assert await house.gateway.parts.authorization.revoke("matrix:ann", owner_of_terminal())


@pytest.mark.parametrize("revoke", [end_pass, revoke_person])
@pytest.mark.parametrize("path", ["/api/v1/turns/{turn}/events", "/sessions/{session}/growing"])
async def test_turn_is_told_no_further_to_who_was_revoked(
    reception: Visited, agent: Resting, path: str, revoke: Revoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visitors, "LOOK_AGAIN_SECONDS", PATIENCE_SECONDS)
    house = reception.house
    ann = await reception.visitor(Role.USER, "matrix:ann", "hers")
    receipt = await house.say("!say before; !rest; !say after", "ann")
    await house.rows(1)
    session = await house.sessions.peek_session_id(await house.key())
    heard = ""
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        ann.stream("GET", path.format(turn=receipt.turn_id, session=session)) as stream,
    ):
        assert stream.status_code == 200
        pieces = stream.aiter_text()
        while "before" not in heard:
            heard += await anext(pieces)
        await revoke(house)
        await asyncio.sleep(turn_events.ASKED_SECONDS)
        agent.may_go_on.set()
        await house.finished(receipt.turn_id)
        heard += "".join([piece async for piece in pieces])
    assert "after" not in heard


@pytest.mark.parametrize("is_elsewhere", [False, True])
async def test_stream_of_events_ends_when_its_person_is_revoked(
    store_url: str, is_elsewhere: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what the feed tells, whatever was known of them a moment ago."""
    if is_elsewhere and store_url.startswith("sqlite"):
        pytest.skip("a SQLite file has one node")
    monkeypatch.setattr(visitors, "LOOK_AGAIN_SECONDS", PATIENCE_SECONDS)
    async with AsyncExitStack() as opened:
        reception = await opened.enter_async_context(open_reception(store_url))
        store = reception.house.store
        if is_elsewhere:
            store = await opened.enter_async_context(await plugins.load_store(store_url)(store_url))
        ann = await reception.visitor(Role.USER, "matrix:ann", "hers")
        async with asyncio.timeout(PATIENCE_SECONDS), ann.stream("GET", "/api/v1/events") as stream:
            pieces = stream.aiter_text()
            assert "here" in await anext(pieces)
            assert await store.people.revoke("matrix:ann", datetime.now(UTC))
            heard = "".join([piece async for piece in pieces])
        assert "revoked" not in heard
