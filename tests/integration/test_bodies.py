"""Bodies on the public port: whose are read, and how much of them is kept together."""

import asyncio
from functools import partial
from urllib.parse import urlsplit

import pytest

from frontdesk.channels.api_server import Channel, Options
from frontdesk.model.access import Role
from frontdesk.web import keeping
from frontdesk.web.bounds import PortLimits
from frontdesk.web.guesses import MOST_WRONG, WINDOW_SECONDS, Guesses
from tests.integration.test_bounds import Wire
from tests.integration.visiting import Visited, open_reception

TOKEN = "a phrase of ada's own making"
SHORT = "nineteen characters"
ROOM = 4_000_000
"""For all; a sender has a quarter of it."""
BODY = 600_000
ASKING = "/v1/chat/completions"


def endpoint(**tokens: str) -> Channel:
    return Channel(Options(tokens={user: partial(str, token) for user, token in tokens.items()}))


async def begin(visited: Visited, authorization: str) -> Wire:
    """Somebody who has shown a credential, and then sends all but the end of a body."""
    where = urlsplit(visited.url)
    wire = Wire(*await asyncio.open_connection(where.hostname, where.port))
    visited.opened.callback(wire.close)
    shown = f"Host: localhost\r\nAuthorization: {authorization}\r\n"
    await wire.send(f"GET /v1/models HTTP/1.1\r\n{shown}\r\n".encode())
    await wire.answer()
    head = f"POST {ASKING} HTTP/1.1\r\n{shown}Content-Length: {BODY}\r\n\r\n"
    await wire.send(head.encode() + b" " * (BODY - 2))
    return wire


async def test_long_bodies_of_one_sender_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_reception(
        "sqlite:///:memory:", others=[endpoint(ada=TOKEN)], limits=PortLimits(kept_bytes=ROOM)
    ) as visited:
        first, second = [await begin(visited, f"Bearer {TOKEN}") for _ in range(2)]
        ann = await visited.visitor(Role.USER, "matrix:ann")
        other = await begin(visited, ann.headers["authorization"])
        await other.send(b"{}")
        assert (await other.answer())[0] == 400
        await first.send(b"{}")
        assert (await first.answer())[0] == 400
        await second.send(b"{}")
        assert (await second.answer())[0] == 400
        monkeypatch.setattr(keeping, "WAITING_SECONDS", 0.1)
        await begin(visited, f"Bearer {TOKEN}")
        late = await begin(visited, f"Bearer {TOKEN}")
        got = await late.end()
        assert b" 503 " in got.splitlines()[0]
        assert b"retry-after: 5" in got.lower()
        short = await visited.nobody.get("/v1/models", headers={"authorization": f"Bearer {TOKEN}"})
        assert short.status_code == 200


async def test_nobody_makes_the_endpoint_read_a_body_without_a_token() -> None:
    """Also after somebody else's credential was shown on the same connection."""
    async with open_reception("sqlite:///:memory:", others=[endpoint(ada=TOKEN)]) as visited:
        where = urlsplit(visited.url)
        viewer = await visited.visitor(Role.VIEWER, "pass:eye")
        for shown in (None, viewer.headers["authorization"], "Bearer nonsense"):
            wire = Wire(*await asyncio.open_connection(where.hostname, where.port))
            visited.opened.callback(wire.close)
            field = f"Authorization: {shown}\r\n" if shown else ""
            head = f"POST {ASKING} HTTP/1.1\r\nHost: localhost\r\n{field}Content-Length: {BODY}\r\n\r\n"
            await wire.send(head.encode())
            assert (await wire.answer())[0] in (401, 403)


async def test_guessing_tokens_of_the_settings_is_slow() -> None:
    seconds = [1000.0]
    async with open_reception(
        "sqlite:///:memory:", others=[endpoint(ada=TOKEN)], guesses=Guesses(lambda: seconds[0])
    ) as visited:

        async def status(token: str) -> int:
            headers = {"authorization": f"Bearer {token}"}
            return (await visited.nobody.get("/v1/models", headers=headers)).status_code

        wrong = [await status(f"wrong guess number {number}") for number in range(MOST_WRONG)]
        assert wrong == [401] * MOST_WRONG
        assert await status(TOKEN) == 429
        seconds[0] += WINDOW_SECONDS
        assert await status(TOKEN) == 200
        for number in range(MOST_WRONG):
            await status(f"wrong guess number {number}")
        assert await status("one more wrong guess") == 429
        assert await status(TOKEN) == 200  # it was right before, from here


async def test_short_token_of_the_settings_is_nobodys() -> None:
    async with open_reception("sqlite:///:memory:", others=[endpoint(ada=SHORT, bob=SHORT + "!")]) as visited:
        for token, status in ((SHORT, 401), (SHORT + "!", 200)):
            headers = {"authorization": f"Bearer {token}"}
            assert (await visited.nobody.get("/v1/models", headers=headers)).status_code == status
    assert "20 characters" in (endpoint(ada=SHORT).trouble() or "")
    assert endpoint(ada=SHORT, bob=TOKEN).trouble() is None
