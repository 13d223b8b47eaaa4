"""Answers that are not read: those of one sender are bounded, and keep nobody else waiting."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from frontdesk.channels.api_server import Channel, Options
from frontdesk.model.access import Role
from frontdesk.web import answers, keeping
from tests.flow.harness import PATIENCE_SECONDS
from tests.integration.test_bounds import Wire
from tests.integration.visiting import Visited, open_reception

LONG = 1024 * 1024
MESSAGES = 12
"""So many long ones are more than the system takes in for somebody who does not read."""
ANN, BOB = "matrix:ann", "matrix:bob"


@pytest.fixture
async def reception(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Visited]:
    monkeypatch.setattr(keeping, "WAITING_SECONDS", 0.5)
    # A sender has a quarter: one answer of these.
    monkeypatch.setattr(answers, "KEPT_BYTES", 4 * MESSAGES * LONG + 4 * LONG)
    async with open_reception(f"sqlite:///{tmp_path}/state.db") as opened:
        yield opened


async def long_session(reception: Visited, who: str) -> str:
    house = reception.house
    await house.finished((await house.say("hello", who)).turn_id)
    session = await house.sessions.peek_session_id(await house.key(who))
    assert session
    said = [{"role": "user", "content": "a" * LONG} for _ in range(MESSAGES)]
    await house.sessions.record_turn(session, said)
    return session


async def ask(reception: Visited, client: httpx.AsyncClient, path: str) -> Wire:
    """Somebody who asks, and reads nothing but what they are made to."""
    where, opened = urlsplit(reception.url), socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    opened.setblocking(False)
    await asyncio.get_running_loop().sock_connect(opened, (where.hostname, where.port))
    wire = Wire(*await asyncio.open_connection(sock=opened))
    reception.opened.callback(wire.close)
    shown = f"Host: localhost\r\nAuthorization: {client.headers['authorization']}\r\n"
    await wire.send(f"GET {path} HTTP/1.1\r\n{shown}\r\n".encode())
    assert await wire.begin() == b"H"
    return wire


@pytest.mark.parametrize("what", ["", "/messages?limit=200"])
async def test_long_answers_that_are_not_read_wait_for_each_other(reception: Visited, what: str) -> None:
    ann, bob = await reception.visitor(Role.USER, ANN), await reception.visitor(Role.USER, BOB)
    path = f"/api/v1/sessions/{await long_session(reception, 'ann')}{what}"
    others = f"/api/v1/sessions/{await long_session(reception, 'bob')}{what}"
    first = await ask(reception, ann, path)
    refused = await ann.get(path)
    assert refused.status_code == 503
    assert refused.headers["retry-after"]
    assert (await ann.get("/api/v1/usage")).status_code == 200, "what is short needs no room"
    assert (await bob.get(others)).status_code == 200, "others have their own"
    first.close()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (answer := await ann.get(path)).status_code == 503:
            pass
    assert len(answer.content) > 6 * LONG


async def test_answers_in_pieces_that_are_not_read_are_few(reception: Visited) -> None:
    ann, bob = await reception.visitor(Role.USER, ANN), await reception.visitor(Role.USER, BOB)
    path = f"/api/v1/sessions/{await long_session(reception, 'ann')}/export"
    others = f"/api/v1/sessions/{await long_session(reception, 'bob')}/export"
    asked = [await ask(reception, ann, path) for _ in range(answers.AT_ONCE)]
    assert (await ann.get(path)).status_code == 503
    assert (await ann.get("/api/v1/usage")).status_code == 200
    assert (await bob.get(others)).status_code == 200
    asked[0].close()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (answer := await ann.get(path)).status_code == 503:
            pass
    assert len(answer.content) > 6 * LONG


async def test_program_without_room_for_its_answer_does_not_say_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients repeat by themselves what is unavailable, unless they are told not to."""
    monkeypatch.setattr(keeping, "WAITING_SECONDS", 0.5)
    monkeypatch.setattr(answers, "KEPT_BYTES", MESSAGES * LONG)
    endpoint = Channel(Options(tokens={"ada": lambda: "a token of the settings"}))
    async with open_reception(f"sqlite:///{tmp_path}/api.db", others=[endpoint]) as reception:
        ann = await reception.visitor(Role.USER, ANN)
        body = {"model": "x", "input": "\x01" * 990_000}  # each is six characters of JSON
        made = await ann.post("/v1/responses", json=body, headers={"idempotency-key": "once"})
        assert len(made.content) > 5 * LONG
        path = f"/v1/responses/{made.json()['id']}"
        await ask(reception, ann, path)
        refused = await ann.post("/v1/responses", json=body, headers={"idempotency-key": "once"})
        assert (refused.status_code, refused.headers["x-should-retry"]) == (503, "false")


async def test_many_who_ask_at_once_and_read_are_all_answered(reception: Visited) -> None:
    ann = await reception.visitor(Role.USER, ANN)
    await reception.house.say("hello", "ann")
    paths = ("/sessions", "/api/v1/sessions") * 4 * answers.AT_ONCE
    asked = [ann.get(path) for path in paths]
    assert {each.status_code for each in await asyncio.gather(*asked)} == {200}
