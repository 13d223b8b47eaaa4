"""A transcript over real HTTP: lineages, what was undone, decided or cannot be read, and what grows."""

import html
import json
import re
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk.model.confirmations import Caller, CallerKind, Confirmation, Status
from frontdesk.model.platforms import Platform
from frontdesk.model.policies import EndReason
from frontdesk.model.sources import SessionSource
from tests.flow.harness import House, Resting, open_house, poll
from tests.integration.visitors import site_of, visitor

OWNER = Caller(id="token:owner", kind=CallerKind.APPROVER)


@pytest.fixture
def agent() -> Resting:
    return Resting()


@pytest.fixture
async def house(tmp_path: Path, agent: Resting) -> AsyncIterator[House]:
    async with open_house(f"sqlite:///{tmp_path}/state.db", agent=agent) as opened:
        yield opened


@pytest.fixture
async def site(house: House) -> AsyncIterator[str]:
    async with site_of(house) as url:
        yield url


@pytest.fixture
async def ann(site: str) -> AsyncIterator[httpx.AsyncClient]:
    async with visitor(site, "ann") as client:
        yield client


async def begin(house: House, *texts: str) -> str:
    entry = await house.sessions.get_or_create_session(house.source())
    for text in texts:
        await house.sessions.append_to_transcript(entry.session_id, {"role": "user", "content": text})
    return entry.session_id


async def current(house: House, rows: int) -> str:
    """The session of the conversation, as soon as it has so many rows."""
    await house.rows(rows)
    session_id = await house.sessions.peek_session_id(await house.key())
    assert session_id
    return session_id


async def shown(client: httpx.AsyncClient, path: str) -> str:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_what_was_undone_is_struck(house: House, ann: httpx.AsyncClient) -> None:
    session_id = await begin(house, "keep this", "delete 2022")
    await house.sessions.rewind_session(session_id)
    page = await shown(ann, f"/sessions/{session_id}")
    assert re.search(r"<del><p[^>]*>delete 2022</p></del>", page)
    assert "undone" in page
    assert re.search(r"(?<!<del>)<p[^>]*>keep this</p>", page)


async def test_rotation_is_a_break_of_one_lineage(house: House, ann: httpx.AsyncClient) -> None:
    old = await begin(house, "before")
    await house.sessions.end_session(old, EndReason.MESSAGE_LIMIT)
    key = await house.key()
    fresh = await house.sessions.reset_session(key)
    new = await begin(house, "after")
    assert fresh is None or fresh.session_id == new
    if fresh is not None:
        page = await shown(ann, f"/sessions/{new}")
        assert page.index("before</p>") < page.index('class="break"') < page.index("after</p>")
    ended = await shown(ann, f"/sessions/{old}")
    assert f'href="/sessions/{new}"' in ended
    assert "message limit" in ended


async def test_fresh_start_is_seen_before_anything_is_said(house: House, ann: httpx.AsyncClient) -> None:
    await house.finished((await house.say("what was said")).turn_id)
    await house.finished((await house.say("/new")).turn_id)
    session_id = await house.sessions.peek_session_id(await house.key())
    page = await shown(ann, f"/sessions/{session_id}")
    assert (
        page.index("what was said</p>")
        < page.index("A fresh start")
        < page.index("<bdi>Ann</bdi></span></h3>")
    )
    assert "not given to the agent any more" in page
    await house.finished((await house.say("and after")).turn_id)
    page = await shown(ann, f"/sessions/{session_id}")
    assert page.index("A fresh start") < page.index("and after</p>")


async def test_copy_and_resumption_stand_where_they_began(house: House, ann: httpx.AsyncClient) -> None:
    for text in ("first", "/branch", "second"):
        await house.finished((await house.say(text)).turn_id)
    copy = await house.sessions.peek_session_id(await house.key())
    page = await shown(ann, f"/sessions/{copy}")
    assert page.index("first</p>") < page.index("A copy goes on from here") < page.index("second</p>")
    for text in ("/new", f"/resume {copy}"):
        await house.finished((await house.say(text)).turn_id)
    page = await shown(ann, f"/sessions/{copy}")
    assert page.index("second</p>") < page.index("Resumed ·")
    await house.finished((await house.say("third")).turn_id)
    page = await shown(ann, f"/sessions/{copy}")
    assert page.index("second</p>") < page.index("Resumed ·") < page.index("third</p>")


async def test_turn_without_an_answer_says_what_became_of_it(
    house: House, agent: Resting, ann: httpx.AsyncClient
) -> None:
    resting = await house.say("!say half of it; !rest")
    await house.rows(1)
    await house.say("/stop")
    await house.finished(resting.turn_id)
    for text in ("!fail", "!silent"):
        await house.finished((await house.say(text)).turn_id)
    page = await shown(ann, f"/sessions/{await current(house, 4)}")
    page = page.partition('id="messages"')[2]
    stopped, failed = (
        page.index("</span>Stopped</span><span>by <bdi>Ann</bdi>"),
        page.index("Failed: no answer"),
    )
    assert page.index("!say half of it") < stopped < page.index("!fail") < failed < page.index("!silent")
    assert page.index("!silent") < page.index("The agent had nothing to say")


async def test_what_an_agent_wrote_by_accident_is_for_who_sees_everything(house: House, site: str) -> None:
    failed = await house.say("!fail")
    await house.finished(failed.turn_id)
    session_id = await current(house, 1)
    paths = (f"/sessions/{session_id}", f"/api/v1/sessions/{session_id}/messages", "/api/v1/turns")
    async with visitor(site, "ann") as ann, visitor(site, "ada") as ada:
        for path in (*paths, f"/api/v1/turns/{failed.turn_id}"):
            theirs = (await shown(ann, path)).replace("answered: the script says so", "")
            assert "the script says so" not in theirs, "but for what they are told"
            assert "the script says so" in await shown(ada, path)


async def test_session_that_was_compressed_leads_to_what_continues_it(
    house: House, ann: httpx.AsyncClient
) -> None:
    old = await begin(house, "a long story")
    shorter = await house.sessions.compress_session(await house.key(), [{"role": "user", "content": "short"}])
    assert shorter is not None
    moved = await ann.get(f"/sessions/{old}")
    assert (moved.status_code, moved.headers["location"]) == (303, f"/sessions/{shorter.session_id}")
    page = await shown(ann, moved.headers["location"])
    assert page.index("a long story</p>") < page.index("Compressed ·") < page.index("short</p>")
    (found,) = re.findall(r'data-row id="[^"]*" href="([^"]*)"', await shown(ann, "/sessions?q=long+story"))
    path, _, anchor = html.unescape(found).partition("#")
    moved = await ann.get(path)
    assert f'id="{anchor}"' in await shown(ann, moved.headers["location"])


async def test_row_that_cannot_be_read_is_shown_as_such(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/damaged.db"
    async with open_house(url) as house:
        session_id = await begin(house, "one", "two", "three")
    with closing(sqlite3.connect(f"{tmp_path}/damaged.db")) as file, file:
        file.execute("UPDATE messages SET body = X'7b' WHERE position = 1")
    async with open_house(url) as house, site_of(house) as site, visitor(site, "ann") as ann:
        page = await shown(ann, f"/sessions/{session_id}")
    assert page.index("one</p>") < page.index("cannot be read") < page.index("three</p>")


async def test_decision_stands_where_it_was_asked_for(house: House, site: str) -> None:
    receipt = await house.say("!approve remove_file; !say gone")
    confirmations = house.gateway.parts.confirmations

    async def pending() -> Confirmation | None:
        found = await confirmations.list(10, Status.PENDING)
        return found[0] if found else None

    asked = await poll(pending)
    await confirmations.approve(asked.id, OWNER)
    await house.finished(receipt.turn_id)
    path = f"/sessions/{await current(house, 2)}"
    async with visitor(site, "ann") as ann, visitor(site, "ada") as ada:
        theirs, hers = await shown(ada, path), await shown(ann, path)
    for page in (theirs, hers):
        assert "token:owner approved" in page
        assert "<code>remove_file</code>" in page
    assert f'href="/approvals/{asked.id}"' in theirs
    assert "/approvals/" not in hers.partition('id="thread"')[2]


async def test_session_that_was_forgotten_says_so(house: House, ann: httpx.AsyncClient) -> None:
    session_id = await begin(house, "forget me")
    await house.sessions.end_session(session_id, EndReason.FORGOTTEN)
    page = await shown(ann, f"/sessions/{session_id}")
    assert "Ended: forgotten." in page
    listed = await shown(ann, "/sessions?state=ended")
    assert f'href="/sessions/{session_id}?state=ended"' in listed
    assert "0 messages" not in listed, "nobody has counted them"


async def test_nothing_leads_to_a_conversation_that_was_forgotten(
    house: House, ann: httpx.AsyncClient
) -> None:
    first = await begin(house, "first")
    for text in ("/branch", "/new"):
        await house.finished((await house.say(text)).turn_id)
    last = await house.sessions.peek_session_id(await house.key())
    path = f"/sessions/{first}"
    assert f'href="/sessions/{last}"' in (await shown(ann, path)).partition('id="messages"')[2]
    await house.finished((await house.say("/forget yes")).turn_id)
    assert f'href="/sessions/{last}"' not in (await shown(ann, path)).partition('id="messages"')[2]


async def test_heading_is_one_of_the_parts_that_follow_what_happens(
    house: House, ann: httpx.AsyncClient
) -> None:
    page = await shown(ann, f"/sessions/{await begin(house, 'hello')}")
    assert re.search(r'<h2 id="thread-title"[^>]* data-live>', page)


@pytest.mark.parametrize("who", ["ann", "vic"])
async def test_whoever_looks_can_save_what_was_said_in_a_file_called_after_the_session(
    house: House, site: str, who: str
) -> None:
    session_id = await begin(house, "hello")
    async with visitor(site, who) as client:
        page = await shown(client, f"/sessions/{session_id}")
        address = f"/api/v1/sessions/{session_id}/export?format=markdown"
        assert re.findall(r'href="([^"]*export[^"]*)" download="([^"]+)"', page) == [
            (address, f"{session_id}.md")
        ]
        assert "hello" in await shown(client, address)


async def test_who_has_no_name_that_can_be_seen_is_called_by_their_id(house: House, site: str) -> None:
    source = house.source("ann", user_name="\u200b\u2060", chat_name="\u200b")
    await house.sessions.get_or_create_session(source)
    async with visitor(site, "ada") as client:
        assert "DM with ann" in await shown(client, "/sessions")


async def test_message_from_the_terminal_has_a_sender(house: House, site: str) -> None:
    source = SessionSource(platform=Platform.LOCAL, chat_id="terminal")
    entry = await house.sessions.get_or_create_session(source)
    await house.sessions.append_to_transcript(entry.session_id, {"role": "user", "content": "it is me"})
    async with visitor(site, "ada") as client:
        page = await shown(client, f"/sessions/{entry.session_id}")
    assert re.findall(r'<p class="line"><b><bdi>(.*?)</bdi></b>', page) == ["owner"]


async def grown(stream: httpx.Response) -> AsyncGenerator[tuple[str, Any], None]:
    name = ""
    async for line in stream.aiter_lines():
        kind, _, rest = line.partition(": ")
        if kind == "event":
            name = rest
        elif kind == "data":
            yield name, json.loads(rest)


async def test_answer_is_seen_growing_and_is_there_once(
    house: House, agent: Resting, ann: httpx.AsyncClient
) -> None:
    text = "!say **Half** of it; !tool look; !say and `more; !rest; !say of it`"
    receipt = await house.say(text)
    path = f"/sessions/{await current(house, 3)}"
    page = await shown(ann, path)
    assert f'data-stream="{path}/growing" data-step="1"' in page
    assert page.partition('class="msg out')[2].count("<strong>Half</strong>") == 1
    async with ann.stream("GET", f"{path}/growing", timeout=60) as stream, aclosing(grown(stream)) as told:
        async for name, data in told:
            assert name == "grown"
            if "more" in data["markup"]:
                break
        assert data["step"] == 1
        assert "Half" not in data["markup"]
        assert "and `more" in data["markup"]
        agent.may_go_on.set()
        last = [name async for name, _ in told][-1]
    assert last == "over"
    await house.finished(receipt.turn_id)
    page = (await shown(ann, path)).partition('class="msg out')[2]
    assert "data-stream" not in page
    assert page.count("<code>moreof it</code>") == 1


async def test_nobody_follows_what_is_written_to_somebody_else(
    house: House, agent: Resting, site: str
) -> None:
    receipt = await house.say("!say secret; !rest")
    session_id = await current(house, 1)
    async with visitor(site, "bob") as bob:
        for path in ("/sessions/{}/growing", "/api/v1/sessions/{}/turns"):
            answer = await bob.get(path.format(session_id))
            assert answer.status_code == 404
    agent.may_go_on.set()
    await house.finished(receipt.turn_id)
