"""Accounts that were linked and are not any more: nothing that is said in the chat of one is the other's."""

import asyncio
import re
from collections.abc import Awaitable, Callable

import pytest

from frontdesk.model.access import Role
from frontdesk.model.policies import EndReason
from frontdesk.model.resuming import Resuming, Wanted
from frontdesk.model.sources import SessionSource
from frontdesk.model.turns import TurnState
from tests.flow.harness import House
from tests.integration.visiting import Visited, open_reception

PEARL, RUBY = "pearl", "ruby"

Unlink = Callable[[Visited], Awaitable[None]]


async def link(house: House, one: str, other: str) -> None:
    code = re.search(r"/link (\S+)", await house.ask("/link", one))
    assert code
    await house.ask(f"/link {code[1]}", other)


async def current(house: House, user: str) -> str | None:
    return await house.sessions.peek_session_id(await house.key(user))


async def taken_along(house: House, owner: str = "ann", by: str = "amy") -> str:
    """A session of one goes on in the direct chat of the other, who is linked to them."""
    await house.ask(PEARL, owner)
    session_id = await current(house, owner)
    assert session_id
    await link(house, owner, by)
    await house.ask(f"/resume {session_id}", by)
    assert await current(house, by) == session_id
    return session_id


async def amy_unlinks(visited: Visited) -> None:
    told = await visited.house.ask("/unlink", "amy")
    assert "alone again" in told
    assert "ended here" in told


async def ann_unlinks(visited: Visited) -> None:
    assert "ended here" not in await visited.house.ask("/unlink", "ann")


async def administrator_unlinks(visited: Visited) -> None:
    owner = await visited.visitor(Role.ADMINISTRATOR, "token:owner", "owner")
    assert (await owner.post("/api/v1/people/unlink", json={"principal": "matrix:amy"})).json() is True


async def administrator_revokes(visited: Visited) -> None:
    owner = await visited.visitor(Role.ADMINISTRATOR, "token:owner", "owner")
    await owner.post("/api/v1/people/revoke", json={"principal": "matrix:amy"})


@pytest.mark.parametrize("unlink", [amy_unlinks, ann_unlinks, administrator_unlinks, administrator_revokes])
async def test_nothing_that_is_said_after_unlinking_is_the_other_ones(store_url: str, unlink: Unlink) -> None:
    async with open_reception(store_url) as visited:
        house = visited.house
        shared = await taken_along(house)
        await unlink(visited)
        left = await house.store.sessions.find(shared)
        assert left
        assert (left.reason, left.owner) == (EndReason.UNLINKED, "matrix:ann")
        said = await house.say(RUBY, "amy")
        await house.finished(said.turn_id)
        fresh = await current(house, "amy")
        ann = await visited.visitor(Role.USER, "matrix:ann")
        amy = await visited.visitor(Role.USER, "matrix:amy")
        assert fresh not in (None, shared)
        assert (await amy.get(f"/api/v1/sessions/{fresh}")).json()["parent_id"] is None
        assert RUBY in (await amy.get(f"/api/v1/sessions/{fresh}/messages")).text
        assert (await amy.get(f"/api/v1/sessions/{shared}")).status_code == 404
        assert (await ann.get(f"/api/v1/sessions/{fresh}")).status_code == 404
        assert (await ann.get(f"/api/v1/turns/{said.turn_id}")).status_code == 404
        transcript = (await ann.get(f"/api/v1/sessions/{shared}/messages")).text
        assert PEARL in transcript
        assert RUBY not in transcript


async def test_nobody_writes_into_the_chat_of_the_other_after_unlinking(store_url: str) -> None:
    async with open_reception(store_url) as visited:
        house = visited.house
        shared = await taken_along(house)
        await house.ask("/new", "amy")  # it went on there once: its place is still that chat
        await amy_unlinks_plainly(house)
        sent = len(house.notebook.sent)
        ann = await visited.visitor(Role.USER, "matrix:ann")
        owner = await visited.visitor(Role.ADMINISTRATOR, "token:owner", "owner")
        for visitor in (ann, owner):
            for order in ("stop", "resume", "messages"):
                body = {"text": "It is me."} if order == "messages" else {}
                answer = await visitor.post(f"/api/v1/sessions/{shared}/{order}", json=body)
                assert answer.status_code == 409, (order, answer.text)
        assert len(house.notebook.sent) == sent
        assert "You are back" in await house.ask(f"/resume {shared}", "ann")
        assert (await ann.post(f"/api/v1/sessions/{shared}/messages", json={"text": "hi"})).status_code == 202


async def amy_unlinks_plainly(house: House) -> None:
    assert "alone again" in await house.ask("/unlink", "amy")


async def test_turns_that_run_and_wait_when_accounts_are_unlinked(store_url: str) -> None:
    async with open_reception(store_url) as visited:
        house = visited.house
        shared = await taken_along(house)
        runs = await house.say("!sleep 600", "amy")
        await house.until(runs.turn_id, TurnState.RUNNING)
        waits = await house.say(RUBY, "amy")
        assert await house.store.people.unlink("matrix:ann", house.gateway.parts.clock.now(), by="local")
        stopped, answered = await asyncio.gather(*map(house.finished, (runs.turn_id, waits.turn_id)))
        assert (stopped.state, stopped.session_id) == (TurnState.INTERRUPTED, shared)
        assert answered.session_id == await current(house, "amy") != shared


async def test_what_one_keeps_and_what_others_share_goes_on(store_url: str) -> None:
    """Of three accounts one leaves: theirs leaves the chats of both, and nothing else is touched."""
    async with open_reception(store_url) as visited:
        house = visited.house
        await house.ask(PEARL, "bob")
        of_bob = await current(house, "bob")
        of_ann = await taken_along(house)
        await link(house, "ann", "bob")
        await house.ask(f"/resume {of_bob}", "ann")
        await house.ask(RUBY, "bob")
        assert "alone again" in await house.ask("/unlink", "amy")
        assert await current(house, "amy") is None
        assert await current(house, "ann") == of_bob
        await house.ask(f"/resume {of_ann}", "bob")
        assert await house.store.people.unlink("matrix:bob", house.gateway.parts.clock.now(), by="local")
        assert await current(house, "ann") is None
        assert await current(house, "bob") is None


async def test_whoever_is_unlinked_while_they_resume_gets_nothing(store_url: str) -> None:
    async with open_reception(store_url) as visited:
        house = visited.house
        await house.ask(PEARL, "ann")
        wanted = Wanted(session_id=await current(house, "ann"))
        await link(house, "ann", "amy")
        amy: SessionSource = house.source("amy")
        seen_before = await house.sessions.viewer_for(amy)
        await amy_unlinks_plainly(house)
        resumed = await house.sessions.resume_session(amy, wanted, seen_before)
        assert resumed.outcome is Resuming.UNKNOWN
        await link(house, "ann", "amy")
        resumed = await house.sessions.resume_session(amy, wanted, seen_before)
        assert resumed.outcome is Resuming.DONE
