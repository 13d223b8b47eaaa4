"""Whoever hears what an agent writes hears nothing more once their pass was revoked."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontdesk.model.access import Role
from frontdesk.web import turn_events
from tests.flow.harness import PATIENCE_SECONDS, Resting
from tests.integration.visiting import Visited, open_reception


@pytest.fixture
def agent() -> Resting:
    return Resting()


@pytest.fixture
async def reception(tmp_path: Path, agent: Resting) -> AsyncIterator[Visited]:
    async with open_reception(f"sqlite:///{tmp_path}/state.db", agent=agent) as opened:
        yield opened


@pytest.mark.parametrize("path", ["/api/v1/turns/{turn}/events", "/sessions/{session}/growing"])
async def test_turn_is_told_no_further_to_who_was_revoked(
    reception: Visited, agent: Resting, path: str
) -> None:
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
        assert await house.gateway.parts.confirmations.passes.revoke("hers", by="local")
        await asyncio.sleep(turn_events.ASKED_SECONDS)
        agent.may_go_on.set()
        await house.finished(receipt.turn_id)
        heard += "".join([piece async for piece in pieces])
    assert "after" not in heard
