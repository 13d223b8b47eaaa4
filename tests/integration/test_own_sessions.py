"""What is somebody's own is found by every name that they have: in chats, on the page and over HTTP."""

import re
from collections.abc import AsyncIterator

import httpx
import pytest

from frontdesk.channels.api_server.channel import Channel
from frontdesk.channels.api_server.options import Options
from frontdesk.model.access import Role
from tests.integration.visiting import Visited, open_reception

OTHERS_TOKEN = "a token of somebody else"
ASKED = {"model": "x", "messages": [{"role": "user", "content": "hello"}]}
SECOND = "/channels/api_server/second"


@pytest.fixture
async def reception(store_url: str) -> AsyncIterator[Visited]:
    options = Options(tokens={"ann": lambda: OTHERS_TOKEN})
    channels = [Channel(options), Channel(options, "second")]
    async with open_reception(store_url, others=channels) as opened:
        yield opened


async def owners(visitor: httpx.AsyncClient, person: str | None = None) -> set[str]:
    asked = await visitor.get("/api/v1/sessions", params={"person": person} if person else {})
    found = [each["owner"] for each in asked.raise_for_status().json()["items"]]
    if person:
        counts = await visitor.get("/api/v1/sessions/counts", params={"person": person})
        assert counts.json()["all"] == len(found)
    return set(found)


async def test_what_a_person_says_at_any_endpoint_is_theirs(reception: Visited) -> None:
    ann = await reception.visitor(Role.USER, "matrix:ann")
    bob = await reception.visitor(Role.USER, "matrix:bob")
    for place in ("", SECOND):
        answer = await ann.post(f"{place}/v1/chat/completions", json=ASKED)
        assert answer.status_code == 200
    headers = {"authorization": f"Bearer {OTHERS_TOKEN}"}
    other = await reception.nobody.post(f"{SECOND}/v1/chat/completions", json=ASKED, headers=headers)
    assert other.status_code == 200
    listed = (await ann.get("/api/v1/sessions")).json()["items"]
    assert {each["account"] for each in listed} == {None, "second"}
    assert await owners(ann) == {"api_server:matrix%3Aann"}
    assert await owners(bob) == set()
    assert (await ann.get(f"/api/v1/sessions/{listed[0]['id']}/messages")).status_code == 200


async def test_person_is_found_by_all_their_names_and_nobody_else_with_them(reception: Visited) -> None:
    house = reception.house
    owner = await reception.visitor(Role.ADMINISTRATOR, "token:owner", "owner")
    for user in ("t-user", "t-user2", "amy"):
        await house.ask("hello", user)
    ann = await reception.visitor(Role.USER, "matrix:t-user")
    assert (await ann.post("/api/v1/chats", json={"text": "hello"})).status_code == 202
    assert (await ann.post("/v1/chat/completions", json=ASKED)).status_code == 200
    own = {"matrix:t-user", "web:matrix%3At-user", "api_server:matrix%3At-user"}
    for name in ("matrix:t-user", "t-user", "T-User"):  # all of an id, an id, and what they are called
        assert await owners(owner, name) == own, name
    code = re.search(r"/link (\S+)", await house.ask("/link", "amy"))
    assert code
    await house.ask(f"/link {code[1]}", "t-user")
    assert await owners(owner, "matrix:amy") == own | {"matrix:amy"}
    assert await owners(owner, "matrix:t-user2") == {"matrix:t-user2"}
    assert await owners(ann, "matrix:t-user2") == set(), "of what they see"
