"""A body that comes after its sender was sent away is nobody's: nothing is done with it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk.channels import api_server
from frontdesk.files import FileShelf
from frontdesk.flow.authorization import owner_of_terminal
from frontdesk.flow.passes import PassBook
from frontdesk.model.access import Role
from frontdesk.model.passes import Pass
from frontdesk.web import bodies, visitors
from tests.flow.harness import PATIENCE_SECONDS, House, poll
from tests.integration.visiting import Visited, open_reception

Revoke = Callable[[House], Awaitable[None]]
HERS = "hers"
TALK: dict[str, Any] = {"model": "x", "messages": [{"role": "user", "content": "hello"}]}
ROWS: dict[str, dict[str, Any]] = {
    "/api/v1/passes/tokens": {"name": "more", "role": "administrator"},
    "/api/v1/people/allow": {"principal": "matrix:eve"},
    "/api/v1/chats": {"text": "hello"},
    "/v1/chat/completions": TALK,
    "/api/v1/files?name=a.txt": TALK,
}


async def end_pass(house: House) -> None:
    assert await house.gateway.parts.confirmations.passes.revoke(HERS, by="local")


async def end_elsewhere(house: House) -> None:
    """As another node does, of which nobody here is told."""
    assert await PassBook(house.store, house.gateway.parts.clock).revoke(HERS, by="local")


async def revoke_person(house: House) -> None:
    assert await house.gateway.parts.authorization.revoke("matrix:ann", owner_of_terminal())


async def used(house: House) -> Pass | None:
    """The pass, once somebody was let in with it."""
    held = await house.gateway.parts.confirmations.passes.list(10)
    return next((each for each in held if each.name == HERS and each.used_at), None)


async def send_late(reception: Visited, path: str, body: dict[str, Any], revoke: Revoke) -> httpx.Response:
    """A request whose sender is let in, and revoked before all of its body has come."""
    house = reception.house
    ann = await reception.visitor(Role.ADMINISTRATOR, "matrix:ann", HERS)
    whole = json.dumps(body).encode()

    async def pieces() -> AsyncIterator[bytes]:
        yield whole[:5]
        await poll(partial(used, house))
        await revoke(house)
        yield whole[5:]

    headers = {"content-type": "application/json", "content-length": str(len(whole))}
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await ann.post(path, content=pieces(), headers=headers)


@pytest.mark.parametrize("revoke", [end_pass, end_elsewhere, revoke_person])
@pytest.mark.parametrize("path", ROWS)
async def test_nothing_is_done_for_who_was_revoked_while_the_body_came(
    tmp_path: Path, path: str, revoke: Revoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visitors, "LOOK_AGAIN_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(bodies, "LATE_SECONDS", 0.0)
    endpoint = api_server.Channel(api_server.Options(tokens={"ada": lambda: "a token of the settings"}))
    shelf = FileShelf(tmp_path / "files")
    async with open_reception(f"sqlite:///{tmp_path}/a.db", shelf=shelf, others=[endpoint]) as reception:
        answer = await send_late(reception, path, ROWS[path], revoke)
        assert answer.status_code == 401
        house = reception.house
        assert "more" not in {each.name for each in await house.gateway.parts.confirmations.passes.list(10)}
        assert not await house.store.people.list_grants(10)
        assert not await house.store.sessions.list_current(since=None, limit=10)
        assert not await house.store.files.brought("matrix:ann")
