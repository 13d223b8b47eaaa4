"""Whoever hears what an agent writes hears nothing more once their pass was revoked."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from frontdesk import plugins
from frontdesk.channels import api_server
from frontdesk.files import FileShelf
from frontdesk.flow.authorization import owner_of_terminal
from frontdesk.model.access import Role
from frontdesk.model.lists import ListedTurn, ListedTurns
from frontdesk.model.people import Viewer
from frontdesk.web import bodies, passing, turn_events, visitors
from tests.flow.harness import PATIENCE_SECONDS, House, Resting, poll
from tests.integration.test_bounds import Wire
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
            assert await store.people.revoke("matrix:ann", datetime.now(UTC), by="local")
            heard = "".join([piece async for piece in pieces])
        assert "revoked" not in heard


async def running(house: House) -> list[ListedTurn] | None:
    return (await house.store.lists.turns(Viewer.everything(), ListedTurns.RUNNING)).items or None


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("revoke", [end_pass, revoke_person])
async def test_completion_is_told_no_further_to_who_was_revoked(
    tmp_path: Path, agent: Resting, revoke: Revoke, streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visitors, "LOOK_AGAIN_SECONDS", PATIENCE_SECONDS)
    endpoint = api_server.Channel(api_server.Options(tokens={"ada": lambda: "a token of the settings"}))
    async with open_reception(f"sqlite:///{tmp_path}/api.db", agent=agent, others=[endpoint]) as reception:
        ann = await reception.visitor(Role.USER, "matrix:ann", "hers")
        said = {"role": "user", "content": "!say before; !rest; !say after"}
        asked = {"json": {"model": "x", "stream": streams, "messages": [said]}}
        asking = asyncio.create_task(ann.post("/v1/chat/completions", **asked))  # type: ignore[arg-type]
        async with asyncio.timeout(PATIENCE_SECONDS):
            await poll(partial(running, reception.house))
            await revoke(reception.house)
            agent.may_go_on.set()
            answer = await asking
        assert "after" not in answer.text
        assert streams or answer.status_code == 401


async def test_completion_is_told_no_further_when_the_token_of_the_settings_is_another(
    tmp_path: Path, agent: Resting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passing, "LOOK_AGAIN_SECONDS", 0.0)
    current = ["a token of the settings"]
    endpoint = api_server.Channel(api_server.Options(tokens={"ada": lambda: current[0]}))
    async with open_reception(f"sqlite:///{tmp_path}/api.db", agent=agent, others=[endpoint]) as reception:
        said = {"role": "user", "content": "!say before; !rest; !say after"}
        asked = {"model": "x", "stream": True, "messages": [said]}
        headers = {"authorization": f"Bearer {current[0]}"}
        heard = ""
        async with (
            asyncio.timeout(PATIENCE_SECONDS),
            reception.nobody.stream("POST", "/v1/chat/completions", json=asked, headers=headers) as stream,
        ):
            pieces = stream.aiter_text()
            while "before" not in heard:
                heard += await anext(pieces)
            current[0] = "another token of the settings"
            agent.may_go_on.set()
            heard += "".join([piece async for piece in pieces])
        assert "after" not in heard
        assert "[DONE]" not in heard


async def test_upload_of_who_was_revoked_meanwhile_is_not_taken(tmp_path: Path) -> None:
    shelf = FileShelf(tmp_path / "files")
    async with open_reception(f"sqlite:///{tmp_path}/state.db", shelf=shelf) as reception:
        ann = await reception.visitor(Role.USER, "matrix:ann", "hers")

        async def pieces() -> AsyncIterator[bytes]:
            yield b"a" * 200_000
            await end_pass(reception.house)
            yield b"b" * 200_000

        answer = await ann.post("/api/v1/files", params={"name": "a.txt"}, content=pieces())
        assert answer.status_code == 401
        assert not await reception.house.store.files.brought("matrix:ann")


@pytest.mark.parametrize("role", [None, Role.VIEWER])
async def test_upload_of_who_may_not_is_refused_before_it_has_come(
    reception: Visited, role: Role | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "PIECE_SECONDS", 2 * PATIENCE_SECONDS)
    shown = (await reception.visitor(role, "pass:vic")).headers["authorization"] if role else ""
    where = urlsplit(reception.url)
    wire = Wire(*await asyncio.open_connection(where.hostname, where.port))
    head = f"POST /api/v1/files?name=x HTTP/1.1\r\nHost: localhost\r\nAuthorization: {shown}\r\n"
    await wire.send(f"{head}Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n".encode())
    status, _ = await wire.answer()
    wire.close()
    assert status == (403 if role else 401)
