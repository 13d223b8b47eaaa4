"""Sessions and transcripts over real HTTP: what the pages show, to whom, and what hostile texts do there."""

import html
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from frontdesk import Platform, SessionSource, Viewer
from tests.flow.harness import House, open_house
from tests.integration.visitors import site_of, visitor

HOSTILE = '</b><script>alert(1)</script><img src=x onerror="alert(2)">'
MARKDOWN = """# Sums

They **agree**, see [the plan](https://example.org/plan) and ![a chart](https://tracker.example/c.png).

| year | rows |
|---|---|
| 2022 | `9,876` |

[here](javascript:alert(1)) and <b onclick="x()">there</b>
"""

SHELL = {"function": {"name": "shell", "arguments": '{"command": "rm -r x"}'}}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(f"sqlite:///{tmp_path}/state.db") as opened:
        yield opened


@pytest.fixture
async def site(house: House) -> AsyncIterator[str]:
    async with site_of(house) as url:
        yield url


@pytest.fixture
async def ann(site: str) -> AsyncIterator[httpx.AsyncClient]:
    async with visitor(site, "ann") as client:
        yield client


async def begin(house: House, *messages: dict[str, Any], user: str = "ann", **fields: Any) -> str:
    """A session with what was said in it."""
    entry = await house.sessions.get_or_create_session(house.source(user, **fields))
    for message in messages:
        assert await house.sessions.append_to_transcript(entry.session_id, message)
    return entry.session_id


async def test_session_is_listed_and_opened_with_what_was_said(house: House, ann: httpx.AsyncClient) -> None:
    asked = {"role": "user", "content": "how many rows?"}
    session_id = await begin(house, asked, {"role": "assistant", "content": MARKDOWN}, chat_name="Ops room")
    listed = await ann.get("/sessions")
    assert listed.status_code == 200
    assert f'href="/sessions/{session_id}"' in listed.text
    assert "<bdi>Ops room</bdi>" in listed.text
    assert "2/200" in listed.text
    page = (await ann.get(f"/sessions/{session_id}")).text
    assert "how many rows?" in page
    assert "<strong>agree</strong>" in page
    assert '<td dir="auto"><code>9,876</code></td>' in page
    assert "2 / 200" in page


async def test_hostile_texts_are_shown_and_do_nothing(house: House, ann: httpx.AsyncClient) -> None:
    message = {"role": "user", "content": HOSTILE}
    session_id = await begin(
        house, message, {"role": "assistant", "content": MARKDOWN}, chat_name=HOSTILE + "\u202e\u200b" * 90
    )
    listed, page = [(await ann.get(path)).text for path in ("/sessions", f"/sessions/{session_id}")]
    for shown in (listed, page):
        assert "&lt;script&gt;alert(1)" in shown
        for markup in ("<script>", "<img", 'onerror="', "<b onclick", 'href="javascript', "\u202e", "\u200b"):
            assert markup not in shown
    assert '<a class="out" href="https://tracker.example/c.png" rel="noreferrer noopener nofollow"' in page
    assert "(https://tracker.example/c.png)" in page


async def test_calls_are_folded_with_what_came_of_them(house: House, ann: httpx.AsyncClient) -> None:
    call = SHELL | {"id": "1"}
    session_id = await begin(
        house,
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "no such file", "is_error": True},
        {"role": "assistant", "content": "", "tool_calls": [call | {"id": "2"}]},
        {"role": "assistant", "content": "done"},
    )
    page = (await ann.get(f"/sessions/{session_id}")).text
    assert page.count('<details class="tool" id="m2-calls') == 3, "each in the group of both"
    assert "<b>2 tool calls</b>" in page
    assert "1 failed" in page
    assert "no such file" in page
    assert "failed" in page
    assert "interrupted" in page


async def test_result_without_its_call_is_shown_alone(house: House, ann: httpx.AsyncClient) -> None:
    session_id = await begin(
        house,
        {"role": "tool", "tool_call_id": "1", "content": "whose result?"},
        {"role": "assistant", "content": "", "tool_calls": [SHELL | {"id": "2"}]},
        {"role": "tool", "tool_call_id": "2", "content": "the first result"},
        {"role": "tool", "tool_call_id": "2", "content": "one too many"},
    )
    page = await ann.get(f"/sessions/{session_id}")
    assert page.status_code == 200
    for told in ("whose result?", "the first result", "one too many"):
        assert told in page.text
    assert page.text.count('class="msg tool"') == 2


async def test_result_that_came_late_stands_with_its_call(house: House, ann: httpx.AsyncClient) -> None:
    one, two = ({"role": "assistant", "content": "", "tool_calls": [SHELL | {"id": each}]} for each in "12")
    results = ({"role": "tool", "tool_call_id": each, "content": f"result {each}"} for each in "12")
    page = (await ann.get(f"/sessions/{await begin(house, one, two, *results)}")).text
    assert "result 1" in page
    assert "result 2" in page
    assert "interrupted" not in page
    assert 'class="msg tool"' not in page


async def test_results_stand_on_the_page_of_their_calls(house: House, ann: httpx.AsyncClient) -> None:
    """Whatever row it is with which a page begins."""
    rows: list[dict[str, Any]] = []
    for turn in range(75):
        rows.append({"role": "user", "content": f"question-{turn}."})
        rows.append({"role": "assistant", "content": "", "tool_calls": [SHELL | {"id": f"{turn}"}]})
        rows.append({"role": "tool", "tool_call_id": f"{turn}", "content": f"result-{turn}."})
    path = f"/sessions/{await begin(house, *rows)}"
    seen: list[str] = []
    while path:
        page = await ann.get(path)
        assert page.status_code == 200
        assert 'class="msg tool"' not in page.text
        seen = re.findall(r"(?:question|result)-\d+\.(?=</p>|</code>)", page.text) + seen
        path = way_back(page.text)
    assert seen == [f"{each}-{turn}." for turn in range(75) for each in ("question", "result")]


def way_back(page: str) -> str:
    """The address of what is older, if there is something."""
    return (
        page.partition('rel="prev"')[0].rpartition('href="')[2].split('"')[0] if 'rel="prev"' in page else ""
    )


async def test_long_transcript_has_a_way_to_what_is_older(house: House, ann: httpx.AsyncClient) -> None:
    rows = [{"role": "user", "content": f"message-{number}."} for number in range(1, 251)]
    session_id = await begin(house, *rows)
    seen: list[int] = []
    path = f"/sessions/{session_id}"
    while path:
        page = (await ann.get(path)).text
        shown = [number for number in range(1, 251) if f"message-{number}.</p>" in page]
        assert len(shown) <= 100
        seen = shown + seen
        path = way_back(page)
    assert seen == list(range(1, 251))


async def test_huge_message_is_cut_and_says_so(house: House, ann: httpx.AsyncClient) -> None:
    session_id = await begin(house, {"role": "user", "content": "words " * 100_000})
    page = await ann.get(f"/sessions/{session_id}")
    assert len(page.content) < 100_000
    told = page.text.partition("590000 more characters are not shown here")[2].partition("</p>")[0]
    whole = await ann.get(html.unescape(told.partition('href="')[2].partition('"')[0]))
    assert whole.text.count("words") == 100_000, "the way to the rest stands beside it"


@pytest.mark.parametrize(
    "path", ["/sessions/{}", "/api/v1/sessions/{}/messages", "/api/v1/sessions/{}/facts"]
)
async def test_session_of_another_is_like_one_that_is_not_there(house: House, site: str, path: str) -> None:
    session_id = await begin(house, {"role": "user", "content": "secret"})
    async with visitor(site, "bob") as bob, visitor(site, "vic") as vic:
        other = await bob.get(path.format(session_id))
        unknown = await bob.get(path.format("20200101_000000_00000000"))
        assert other.status_code == unknown.status_code == 404
        assert other.text.replace(session_id, "") == unknown.text.replace("20200101_000000_00000000", "")
        assert session_id not in (await bob.get("/sessions")).text
        assert (await vic.get(path.format(session_id))).status_code == 200


async def test_nobody_sees_anything_without_saying_who_they_are(site: str) -> None:
    async with visitor(site, "nobody") as stranger:
        assert (await stranger.get("/sessions")).status_code == 401


@pytest.mark.parametrize(
    ("who", "first"),
    [("ann", "/sessions"), ("eve", "/approvals"), ("vic", "/overview"), ("ada", "/overview")],
)
async def test_everybody_begins_with_what_their_role_is_for(site: str, who: str, first: str) -> None:
    async with visitor(site, who) as client:
        assert (await client.get("/")).headers["location"] == first


@pytest.mark.parametrize(
    ("who", "told"),
    [
        ("ann", ["Write to the agent here: ", 'href="/chat"']),
        ("eve", ["Write to the agent here: ", "you can allow", 'href="/approvals"']),
        ("vic", ["appears here by itself"]),
        ("ada", ["Write to the agent here: ", "frontdesk connect", "frontdesk chat"]),
    ],
)
async def test_empty_list_says_what_to_do_next_in_the_readers_role(
    site: str, who: str, told: list[str]
) -> None:
    async with visitor(site, who) as client:
        page = (await client.get("/sessions")).text
        unknown = (await client.get("/sessions/20200101_000000_00000000")).text
    for each in told:
        assert each in page
    assert ("frontdesk connect" in page) == (who == "ada")
    assert "There is no session" in unknown
    assert "frontdesk sessions" not in unknown


async def test_tabs_of_a_browser_can_be_told_apart(house: House, ann: httpx.AsyncClient) -> None:
    room = await begin(house, {"role": "user", "content": "hi"}, chat_name="Ops room")
    titles = {}
    for path in ("/sessions", f"/sessions/{room}", "/sessions?q=elephant", "/turns", "/deliveries?show=late"):
        (titles[path],) = re.findall("<title>(.*)</title>", (await ann.get(path)).text)
    assert list(titles.values()) == [
        "Sessions · frontdesk",
        "Ops room · Sessions · frontdesk",
        "elephant · Sessions · frontdesk",
        "All · Turns · frontdesk",
        "Late · Deliveries · frontdesk",
    ]


async def test_chat_without_a_name_is_called_by_its_title_its_first_words_or_when_it_began(
    house: House, site: str
) -> None:
    place = SessionSource(platform=Platform.WEB, user_id="matrix:ann", user_name="Ann")
    chats = [replace(place, chat_id=f"{each}@matrix:ann") for each in "abc"]
    begun = [(await house.sessions.get_or_create_session(each)).session_id for each in chats]
    said = [{"role": "user", "content": f"{HOSTILE} how many rows?"}, {"role": "user", "content": "again"}]
    for session_id in begun[:2]:
        for message in said:
            await house.sessions.append_to_transcript(session_id, message)
    await house.sessions.set_title(begun[0], "Rows of 2023", Viewer.everything())
    async with visitor(site, "ada") as ada:
        page = (await ada.get("/sessions")).text
        rows = {each: page.split(f'id="s-{each}"')[1].split("</li>")[0] for each in begun}
        opened = [(await ada.get(f"/sessions/{each}")).text for each in begun]
    assert '<b class="cut"><bdi>Rows of 2023</bdi></b>' in rows[begun[0]]
    assert "how many rows?</bdi></b>" in rows[begun[1]]
    assert "New chat, <time" in rows[begun[2]]
    for each in rows.values():
        assert "<bdi>Ann</bdi>" in each
    titles = [re.findall("<title>(.*)</title>", each)[0] for each in opened]
    assert titles[0] == "Rows of 2023 · Sessions · frontdesk"
    assert "how many rows? · Sessions" in titles[1]
    assert titles[2] == "New chat · Sessions · frontdesk"


async def test_sessions_are_found_by_words_platform_person_and_state(
    house: House, site: str, ann: httpx.AsyncClient
) -> None:
    anns = await begin(house, {"role": "user", "content": "the purple elephant"})
    said = {"role": "user", "content": "an elephant, too"}
    bobs = await begin(house, said, user="bob", user_name="Robert Smith")
    ended = await begin(house, {"role": "user", "content": "over"}, user="eve")
    await house.sessions.close_session(ended)
    everything = {anns, bobs, ended}

    async def found(client: httpx.AsyncClient, query: str) -> set[str]:
        answer = await client.get(f"/sessions?{query}")
        assert answer.status_code == 200, answer.text
        return {each for each in everything if f'id="s-{each}"' in answer.text}

    async with visitor(site, "ada") as ada:
        assert await found(ada, "") == everything
        assert await found(ada, "q=elephant") == {anns, bobs}
        assert await found(ada, "q=purple+elephant") == {anns}
        assert await found(ada, "q=platform:matrix") == everything
        assert await found(ada, "q=platform:slack") == set()
        assert await found(ada, "q=person:bob") == await found(ada, "q=person:matrix:bob") == {bobs}
        assert await found(ada, "q=person:bob+elephant&state=all") == {bobs}
        assert await found(ada, "q=person:smith") == await found(ada, 'q=person:"Robert+Smith"') == {bobs}
        assert await found(ada, "q=PLATFORM:Matrix+state:Ended") == {ended}
        assert await found(ada, "q=state:ended&state=working") == {ended}
        assert await found(ada, "state=ended") == {ended}
        assert await found(ada, "state=nonsense") == everything
        for senseless in ('"', "*", "...", "person:", "platform:", "%F0%9F%98%80"):
            assert await found(ada, f"q={senseless}") <= everything
        assert (await ada.get("/sessions?q=%00")).status_code == 400
    assert await found(ann, "q=elephant") == {anns}
    assert await found(ann, "q=person:bob") == set()
    assert await found(ann, "q=person:smith") == set()


@pytest.mark.parametrize("said", [3, 120, 299])
async def test_words_that_are_found_are_on_the_page_that_opens(
    house: House, ann: httpx.AsyncClient, said: int
) -> None:
    rows = [{"role": "user", "content": f"message {number}"} for number in range(1, 301)]
    rows[said - 1]["content"] += " about an elephant"
    session_id = await begin(house, *rows)
    listed = (await ann.get("/sessions?q=elephant")).text
    (href,) = re.findall(r'data-row id="[^"]*" href="([^"]*)"', listed)
    path, _, anchor = html.unescape(href).partition("#")
    assert anchor == f"m{said}"
    page = (await ann.get(path)).text
    assert f'id="{anchor}"' in page
    assert "about an elephant</p>" in page
    assert (f'href="/sessions/{session_id}?q=elephant">Back to the newest' in page) == (said < 299)


async def test_search_says_which_word_it_did_not_understand_and_which_there_are(
    house: House, ann: httpx.AsyncClient
) -> None:
    await begin(house, {"role": "user", "content": "hi"})

    async def told(query: str) -> str:
        page = (await ann.get("/sessions", params={"q": query})).text
        return html.unescape(page.split('class="empty stack">')[1].split("</div>")[0])

    assert "no platform “slak”. There is api_server," in await told("platform:slak")
    assert "no state “over”. There is all, working, waiting, trouble, ended." in await told("hi state:over")
    assert "“owner” is neither" in await told("person:owner")
    assert "“plattform:” is no filter" in await told("plattform:slack")
    for each in ("platform:slak", "nothing", "plattform:slack", "person:owner"):
        assert "platform:, person: and state:" in await told(each)
    hostile = await ann.get("/sessions", params={"q": "platform:<script>alert(1)</script>"})
    assert "<script>alert" not in hostile.text


async def test_number_beside_the_list_is_of_what_the_list_shows(house: House, site: str) -> None:
    for number in range(3):
        await begin(house, {"role": "user", "content": f"number {number}"}, user=f"user{number}")
    await house.sessions.close_session(await begin(house, {"role": "user", "content": "over"}, user="eve"))

    async with visitor(site, "ada") as ada:
        for query, expected in {
            "": "4",
            "state=ended": "1",
            "q=state:ended": "1",
            "q=number": "3",
            "q=over": "1",
            "q=nowhere": "",
            "q=person:user1": "1",
            "q=platform:slak": "",
            "state=working": "",
        }.items():
            page = (await ada.get(f"/sessions?{query}")).text
            (shown,) = re.findall('id="how-many"[^>]*>([^<]*)<', page)
            assert shown == expected, query


async def test_list_goes_on_where_a_page_ends(house: House, site: str) -> None:
    wanted = {await begin(house, user=f"user{number}") for number in range(60)}
    seen: list[str] = []
    async with visitor(site, "ada") as ada:
        path = "/sessions"
        while path:
            page = (await ada.get(path)).text
            seen += re.findall('id="s-([^"]+)"', page)
            more = re.search('href="([^"]+)" rel="next"', page)
            path = html.unescape(more[1]) if more else ""
    assert len(seen) == len(wanted)
    assert set(seen) == wanted
