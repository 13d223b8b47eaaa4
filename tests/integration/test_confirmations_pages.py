"""The pages for approvers over real HTTP: the whole action is shown, looking changes nothing."""

import asyncio
import base64
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest

from frontdesk.formats import canonical, links
from frontdesk.model.confirmations import Caller, CallerKind, Confirmation, Mode
from frontdesk.model.passes import PassKind, new_secret
from frontdesk.model.rules import Effect, Rule
from frontdesk.testing import SettableClock
from frontdesk.web.confirmations import Credentials
from frontdesk.web.operations import PROOF_HEADER
from frontdesk.web.pages import assets
from frontdesk.web.visitors import COOKIE
from tests.integration.confirming import FORM, LINK_KEY, TOKENS, Desk, opened_pages, problem

MANIFEST = "/manifest.webmanifest"
AGENT = Caller(id="token:bot", kind=CallerKind.AGENT)
ANN = Caller(id="token:ann", kind=CallerKind.APPROVER, people=frozenset({"matrix:@ann"}))
SECRET = "aB3dE5gH7jK9"
NASTY = "<script>alert(1)</script>\" onload='x' &amp; </pre>"
NAVIGATION = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture
async def desk(clock: SettableClock) -> AsyncIterator[Desk]:
    async with opened_pages(clock=clock) as opened_desk:
        yield opened_desk


async def submitted(desk: Desk, **more: Any) -> Confirmation:
    data = {"action": "send_mail", "description": "Write to the press", "details": {"to": "a@example.org"}}
    kept = {name: more.pop(name) for name in ("on_behalf_of",) if name in more}
    return (await desk.service.submit(data | more, AGENT, **kept)).confirmation


def link_to(asked: Confirmation, approver: str = "token:ann") -> str:
    """A one-tap link, as the path that it leads to."""
    link = links.decision(asked.id, asked.digest, approver, asked.expires_at)
    return links.address("", LINK_KEY, link)


def own(desk: Desk) -> dict[str, str]:
    """The headers that the page's own script sends, with those that a browser adds."""
    origin = str(desk.http.base_url).rstrip("/")
    return {"x-frontdesk-page": "1", "origin": origin, "sec-fetch-site": "same-origin"}


async def decide(desk: Desk, asked: Confirmation, link: str | None = None, **more: Any) -> httpx.Response:
    token = link_to(asked).partition("t=")[2] if link is None else link
    body = {"approves": True, "digest": asked.digest, "t": token or None} | more
    return await desk.http.post(f"/approvals/{asked.id}/decision", json=body, headers=own(desk))


async def sign_in(desk: Desk, name: str = "ann") -> httpx.Response:
    """As the page does: it keeps the proof, and sends it from then on."""
    answer = await desk.http.post("/login", json={"token": TOKENS[name]}, headers=own(desk))
    desk.http.headers[PROOF_HEADER] = answer.json()["proof"]
    return answer


class Seen(HTMLParser):
    """What a browser makes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._inside: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._inside and self._inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self._inside[-1:]):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def decisions(self) -> list[dict[str, str | None]]:
        """Where something can be decided."""
        return [attributes for _, attributes in self.tags if "data-decision" in attributes]

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


async def test_link_shows_the_whole_action_and_who_asks(desk: Desk) -> None:
    asked = await submitted(desk, details={"to": "a@example.org", "body": "hello", "password": SECRET})
    answer = await desk.http.get(link_to(asked))
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    seen = Seen(answer.text)
    for shown in ("send_mail", "a@example.org", "hello", "token:bot", asked.id, asked.digest, "12:05:00 UTC"):
        assert shown in seen.text
    assert SECRET not in answer.text, "secrets are masked"
    assert "The agent's own words" in seen.text
    assert [each["data-approves"] for each in seen.all("button") if "data-approves" in each] == [
        "false",
        "true",
    ]
    (decision,) = seen.decisions
    assert decision["data-digest"] == asked.digest


async def test_whoever_denies_is_told_of_the_pause_that_it_began(desk: Desk) -> None:
    asked = [await submitted(desk, action=f"act {number}", details={"n": number}) for number in range(5)]
    told = [(await decide(desk, each, approves=False)).json() for each in asked]
    assert [each["pause"] for each in told[:4]] == [None] * 4
    assert (told[4]["pause"]["requester"], told[4]["pause"]["denials"]) == ("token:bot", 5)
    assert "5 denials in a row" in told[4]["message"]
    assert "the button on the list of approvals, frontdesk confirm lift token:bot" in told[4]["message"]


async def test_long_action_is_shown_whole(desk: Desk) -> None:
    asked = await submitted(desk, details={"lines": [f"line {number}" for number in range(5_000)]})
    text = Seen((await desk.http.get(link_to(asked))).text).text
    assert all(f"line {number}" in text for number in (0, 2_500, 4_999))


async def test_nothing_that_strangers_say_is_markup(desk: Desk) -> None:
    asked = await submitted(desk, action=NASTY, description=NASTY, details={NASTY: NASTY}, session_key=NASTY)
    seen = Seen((await desk.http.get(link_to(asked))).text)
    assert len(seen.all("script")) == 1
    assert not [
        attributes for _, attributes in seen.tags if any(name.startswith("on") for name in attributes)
    ]
    assert "alert(1)" in seen.text


async def test_policy_allows_our_own_files_and_nothing_else(desk: Desk) -> None:
    asked = await submitted(desk)
    for path in ("/approvals", link_to(asked), "/approvals/c_0000000000000000?t=x"):
        answer = await desk.http.get(path)
        policy = dict(
            part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";")
        )
        assert {name for name, value in policy.items() if value == "'self'"} == {
            *("script-src", "style-src", "img-src", "connect-src", "manifest-src", "form-action")
        }
        assert {value for value in policy.values() if value != "'self'"} == {"'none'"}
        assert {"default-src", "frame-ancestors", "base-uri"} <= policy.keys()
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        seen = Seen(answer.text)
        assert not [names for _, names in seen.tags if "style" in names or any(n[:2] == "on" for n in names)]
        assert not seen.all("style")
        assert "<script>" not in answer.text
        loaded = [each["src"] for each in seen.all("script")] + [each["href"] for each in seen.all("link")]
        assert all(str(each).startswith(("/static/", MANIFEST)) for each in loaded)


async def test_files_of_pages_are_kept_by_browsers_under_the_digest_of_what_is_in_them(desk: Desk) -> None:
    seen = Seen((await desk.http.get("/approvals")).text)
    kinds = {
        ".css": "text/css",
        ".js": "text/javascript",
        ".svg": "image/svg+xml",
        ".png": "image/png",
    }
    loaded = [str(each.get("src") or each.get("href")) for each in seen.all("script") + seen.all("link")]
    loaded.remove(MANIFEST)
    for address in (*loaded, *(f"{assets.ADDRESS}/{name}" for name in assets.FILES)):
        answer = await desk.http.get(address)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(kinds[address[address.rindex(".") :]])
        assert "immutable" in answer.headers["cache-control"]
        assert (await desk.http.get(address.replace(assets.VERSION, "0" * 16))).status_code == 404
        assert (await desk.http.get(address, headers={"sec-fetch-site": "cross-site"})).status_code == 403
    for name in ("nothing.js", "style.js", "..%2f__init__.js", "__init__.py", ".js"):
        assert (await desk.http.get(f"{assets.ADDRESS}/{name}")).status_code == 404


def test_every_depth_of_a_line_has_its_indent() -> None:
    style = assets.FILES["style.css"].decode()
    assert all(f".d{depth} " in style for depth in range(1, canonical.MAX_DEPTH + 2))


async def test_looking_changes_nothing_however_often(desk: Desk) -> None:
    asked = await submitted(desk)
    before = [row.hash for row in await desk.service.audit_newest(10)]
    for _ in range(20):
        assert (await desk.http.get(link_to(asked))).status_code == 200
        assert (await desk.http.head(link_to(asked))).status_code == 200
    assert [row.hash for row in await desk.service.audit_newest(10)] == before
    assert await desk.status(asked.id) == "pending"


@pytest.mark.parametrize(("approves", "status"), [(True, "approved"), (False, "denied")])
async def test_button_decides_as_the_one_that_the_link_is_for(
    desk: Desk, approves: bool, status: str
) -> None:
    asked = await submitted(desk)
    answer = await decide(desk, asked, approves=approves, reason="because")
    assert (answer.status_code, answer.json()["status"]) == (200, status)
    assert answer.json()["message"]
    decided = await desk.service.find(asked.id)
    assert (decided.resolved_by, decided.reason) == ("token:ann", "because")
    seen = Seen((await desk.http.get(link_to(asked))).text)
    assert f"It is {status}" in seen.text
    assert not seen.decisions, "there is nothing more to decide"


async def test_link_used_again_decides_nothing_more(desk: Desk) -> None:
    asked = await submitted(desk)
    assert (await decide(desk, asked, approves=False)).status_code == 200
    for approves in (True, False):
        told = problem(await decide(desk, asked, approves=approves), 409)
        assert told["confirmation_status"] == "denied"


async def test_link_decides_about_the_action_that_was_shown(desk: Desk) -> None:
    asked = await submitted(desk)
    problem(await decide(desk, asked, digest="0" * 64), 412)
    problem(await decide(desk, asked, digest=None), 400)
    assert await desk.status(asked.id) == "pending"


async def test_link_of_one_request_is_refused_for_another(desk: Desk) -> None:
    asked, other = await submitted(desk), await submitted(desk, details={"n": 2})
    token = link_to(other).partition("t=")[2]
    assert (await desk.http.get(f"/approvals/{asked.id}?t={token}")).status_code == 403
    problem(await decide(desk, asked, token), 403)
    assert await desk.status(asked.id) == "pending"


async def test_link_ends_with_the_request(desk: Desk, clock: SettableClock) -> None:
    asked = await submitted(desk)
    clock.advance(seconds=301)
    answer = await desk.http.get(link_to(asked))
    assert answer.status_code == 403
    assert "a@example.org" not in answer.text
    problem(await decide(desk, asked), 403)


async def test_link_to_nothing_looks_like_a_forged_one(desk: Desk) -> None:
    asked = await submitted(desk)
    forged = await desk.http.get(f"/approvals/{asked.id}?t=forged")
    nothing = await desk.http.get("/approvals/c_0000000000000000?t=forged")
    assert (forged.status_code, forged.text) == (nothing.status_code, nothing.text)
    assert forged.status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"x-frontdesk-page": ""},
        {"x-frontdesk-page": "0"},
    ],
)
async def test_decision_that_our_page_did_not_send_is_refused(desk: Desk, headers: dict[str, str]) -> None:
    asked = await submitted(desk)
    body = {"approves": True, "digest": asked.digest, "t": link_to(asked).partition("t=")[2]}
    path = f"/approvals/{asked.id}/decision"
    problem(await desk.http.post(path, json=body, headers=own(desk) | headers), 403)
    without = own(desk)
    del without["origin"]
    problem(await desk.http.post(path, json=body, headers=without), 403)
    assert await desk.status(asked.id) == "pending"


async def test_form_is_no_decision(desk: Desk) -> None:
    asked = await submitted(desk)
    for kind in (FORM, "text/plain", "multipart/form-data; boundary=x"):
        headers = own(desk) | {"content-type": kind}
        problem(await desk.http.post(f"/approvals/{asked.id}/decision", content=b"a=b", headers=headers), 415)


async def test_link_in_a_chat_of_another_site_opens_the_page(desk: Desk) -> None:
    asked = await submitted(desk)
    assert (await desk.http.get(link_to(asked), headers=NAVIGATION)).status_code == 200


@pytest.mark.parametrize(
    "other", [{"sec-fetch-mode": "cors"}, {"sec-fetch-dest": "iframe"}, {"sec-fetch-mode": "no-cors"}]
)
async def test_page_is_neither_framed_nor_fetched_from_elsewhere(desk: Desk, other: dict[str, str]) -> None:
    asked = await submitted(desk)
    answer = await desk.http.get(link_to(asked), headers=NAVIGATION | other)
    assert answer.status_code == 403
    assert "a@example.org" not in answer.text


async def test_without_link_or_session_there_is_only_a_way_to_sign_in(desk: Desk) -> None:
    asked = await submitted(desk)
    for path in ("/approvals", f"/approvals/{asked.id}", "/approvals/c_0000000000000000"):
        answer = await desk.http.get(path)
        assert answer.status_code == 401
        seen = Seen(answer.text)
        assert [each["type"] for each in seen.all("input")] == ["password"]
        assert "send_mail" not in seen.text
    problem(await decide(desk, asked, ""), 401)


async def test_signing_in_shows_what_waits_and_lets_decide(desk: Desk) -> None:
    asked = await submitted(desk)
    answer = await sign_in(desk)
    cookie = answer.headers["set-cookie"]
    assert answer.status_code == 200
    assert re.search("; HttpOnly", cookie)
    assert re.search("; SameSite=lax", cookie), "links in chats lead to pages; with a cookie one only looks"
    assert re.search("; Path=/;", cookie)
    assert TOKENS["ann"] not in cookie
    seen = Seen((await desk.http.get("/approvals")).text)
    assert f"/approvals/{asked.id}" in [each.get("href") for each in seen.all("a")]
    assert "Signed in as ann" in seen.text
    assert "a@example.org" in (await desk.http.get(f"/approvals/{asked.id}")).text
    assert (await desk.http.get("/approvals/c_0000000000000000")).status_code == 404
    assert (await decide(desk, asked, "")).json()["status"] == "approved"
    assert "Nothing waits" in (await desk.http.get("/approvals")).text


async def sign_out(desk: Desk) -> httpx.Response:
    return await desk.http.post("/login/end", json={}, headers=own(desk))


def carried(cookies: httpx.Cookies) -> dict[str, str]:
    """A session as a copy of its cookie."""
    return {"cookie": f"{COOKIE}={cookies[COOKIE]}"}


async def test_signing_out_ends_this_session_and_no_other(desk: Desk) -> None:
    proof = (await sign_in(desk)).json()["proof"]
    ended = carried(desk.http.cookies)
    desk.http.cookies.clear()
    await sign_in(desk)
    kept = carried(desk.http.cookies)
    assert kept != ended
    desk.http.cookies.clear()
    proven = own(desk) | ended | {PROOF_HEADER: proof}
    answer = await desk.http.post("/login/end", json={}, headers=proven)
    assert (answer.status_code, "Max-Age=0" in answer.headers["set-cookie"]) == (200, True)
    assert (await desk.http.get("/approvals", headers=ended)).status_code == 401
    assert (await desk.http.get("/approvals", headers=kept)).status_code == 200
    await sign_in(desk)
    assert (await desk.http.get("/approvals")).status_code == 200


async def test_session_that_ended_decides_nothing(desk: Desk) -> None:
    asked = await submitted(desk)
    await sign_in(desk)
    ended = carried(desk.http.cookies)
    await sign_out(desk)
    body = {"approves": True, "digest": asked.digest}
    path = f"/approvals/{asked.id}/decision"
    problem(await desk.http.post(path, json=body, headers=own(desk) | ended), 401)
    problem(await desk.http.get("/approvals/events", headers=ended), 401)
    assert await desk.status(asked.id) == "pending"


async def test_signing_out_takes_a_session(desk: Desk) -> None:
    for cookie in ({}, {"cookie": f"{COOKIE}=../../x.forged"}, {"cookie": f"{COOKIE}=."}):
        problem(await desk.http.post("/login/end", json={}, headers=own(desk) | cookie), 401)


async def next_piece(pieces: AsyncIterator[str], text: str) -> None:
    async with asyncio.timeout(60):
        async for piece in pieces:
            if text in piece:
                return
    raise AssertionError(f"the stream ended without {text!r}")


async def test_open_page_is_told_that_something_happened_and_never_what(desk: Desk) -> None:
    first = await submitted(desk)
    await sign_in(desk)
    for path in ("/approvals/events", f"/approvals/{first.id}/events"):
        async with desk.http.stream("GET", path) as events:
            assert events.headers["content-type"].startswith("text/event-stream")
            pieces = events.aiter_text()
            await next_piece(pieces, "retry:")
            asked = await submitted(desk, details={"for": path})
            await next_piece(pieces, "data: changed\n\n")
            await decide(desk, asked)
            await next_piece(pieces, "data: changed\n\n")


async def test_page_of_a_link_listens_with_it(desk: Desk) -> None:
    asked = await submitted(desk)
    address, _, link = link_to(asked).partition("?")
    async with desk.http.stream("GET", f"{address}/events?{link}") as events:
        pieces = events.aiter_text()
        await next_piece(pieces, "retry:")
        await decide(desk, asked, approves=False)
        await next_piece(pieces, "data: changed\n\n")
    problem(await desk.http.get(f"{address}/events"), 401)
    problem(await desk.http.get(f"{address}/events?t=forged"), 403)


async def test_stream_of_a_session_ends_with_it(desk: Desk) -> None:
    await sign_in(desk)
    async with desk.http.stream("GET", "/approvals/events") as events:
        pieces = events.aiter_text()
        await next_piece(pieces, "retry:")
        await sign_out(desk)
        await submitted(desk)
        async with asyncio.timeout(60):
            assert [piece async for piece in pieces] == []


async def test_streams_of_pages_end_when_the_server_does(desk: Desk) -> None:
    await sign_in(desk)
    async with desk.http.stream("GET", "/approvals/events") as events:
        pieces = events.aiter_text()
        await next_piece(pieces, "retry:")
        desk.app.close()
        async with asyncio.timeout(60):
            assert "data:" not in "".join([piece async for piece in pieces])


async def test_page_of_another_origin_does_not_listen(desk: Desk) -> None:
    await sign_in(desk)
    for headers in ({"sec-fetch-site": "same-site"}, {"origin": "http://127.0.0.1:1"}):
        problem(await desk.http.get("/approvals/events", headers=headers), 403)
    assert (await desk.http.head("/approvals/events")).status_code == 405


async def test_long_body_is_read_and_refused_like_any_other(desk: Desk) -> None:
    token = "x" * 40_000
    problem(await desk.http.post("/login", json={"token": token}, headers=own(desk)), 401)
    many = {"token": [1] * 15_000}
    problem(await desk.http.post("/login", json=many, headers=own(desk)), 400)
    problem(await desk.http.post("/login", json={"token": token * 2}, headers=own(desk)), 413)


async def test_agents_and_strangers_do_not_sign_in(desk: Desk) -> None:
    for token in (TOKENS["bot"], "", " ", "wrong", "ü", "x" * 5_000, TOKENS["ann"][:-1]):
        answer = await desk.http.post("/login", json={"token": token}, headers=own(desk))
        problem(answer, 401)
        assert "set-cookie" not in answer.headers
    problem(await desk.http.post("/login", json={"token": TOKENS["ann"]}), 403)


async def test_session_ends_after_some_hours(desk: Desk, clock: SettableClock) -> None:
    await sign_in(desk)
    clock.advance(hours=7)
    assert (await desk.http.get("/approvals")).status_code == 200
    clock.advance(hours=1)
    assert (await desk.http.get("/approvals")).status_code == 401


async def test_session_ends_when_the_token_changes(clock: SettableClock) -> None:
    tokens = [TOKENS["ann"]]
    known = Credentials(approvers={"ann": lambda: tokens[0]})
    async with opened_pages(clock=clock, known=known) as desk:
        await sign_in(desk)
        assert (await desk.http.get("/approvals")).status_code == 200
        tokens[0] = "another-token-of-ann"
        assert (await desk.http.get("/approvals")).status_code == 401


async def test_forged_session_is_none(desk: Desk, clock: SettableClock) -> None:
    asked = await submitted(desk)
    end = clock.now() + timedelta(hours=1)
    for forged in (
        "garbage",
        TOKENS["ann"],
        links.sign(LINK_KEY, links.look(asked.id, asked.digest, "token:ann", end)),
        new_secret(),
        new_secret(PassKind.TOKEN),
        link_to(asked).partition("t=")[2],
    ):
        for cookie in (forged, f"0123456789abcdef.{forged}"):
            headers = {"cookie": f"{COOKIE}={cookie}"}
            assert (await desk.http.get("/approvals", headers=headers)).status_code == 401


@pytest.mark.parametrize("who", ["token:ann", "token:nobody"])
async def test_end_that_no_clock_reaches_proves_nothing_and_breaks_nothing(desk: Desk, who: str) -> None:
    asked = await submitted(desk)
    named = base64.urlsafe_b64encode(f'["{who}",{10**300}]'.encode()).decode().rstrip("=")
    headers = {"cookie": f"{COOKIE}=0123456789abcdef.{named}.x"}
    assert (await desk.http.get("/approvals", headers=headers)).status_code == 401
    assert (await desk.http.get(f"/approvals/{asked.id}", params={"t": f"{named}.x"})).status_code == 403


async def test_session_is_not_another_one_by_another_number(desk: Desk) -> None:
    await sign_in(desk)
    number, _, proof = desk.http.cookies[COOKIE].partition(".")
    desk.http.cookies.clear()
    for other in (number[::-1], "", number.upper() + "0"):
        headers = {"cookie": f"{COOKIE}={other}.{proof}"}
        assert (await desk.http.get("/approvals", headers=headers)).status_code == 401


async def test_cookie_is_kept_from_plain_http_where_the_page_is_not() -> None:
    async with opened_pages(page_url="https://desk.example") as desk:
        assert "; Secure" in (await sign_in(desk)).headers["set-cookie"]


async def test_link_to_another_name_of_an_approver_is_theirs(desk: Desk) -> None:
    asked = await submitted(desk)
    token = link_to(asked, "matrix:@ann").partition("t=")[2]
    assert (await decide(desk, asked, token)).status_code == 200
    assert (await desk.service.find(asked.id)).resolved_by == "token:ann"


async def test_somebody_who_may_not_decide_is_told_why_and_has_no_buttons(clock: SettableClock) -> None:
    async with opened_pages(clock=clock, mode=Mode.STRICT) as desk:
        asked = await submitted(desk, on_behalf_of="matrix:@ann")
        seen = Seen((await desk.http.get(link_to(asked))).text)
        assert "on their behalf" in seen.text
        assert not seen.decisions
        problem(await decide(desk, asked), 403)
        assert await desk.status(asked.id) == "pending"


async def test_yes_of_one_of_two_is_told_so(clock: SettableClock) -> None:
    async with opened_pages(clock=clock, mode=Mode.STRICT) as desk:
        asked = await submitted(desk, action="delete_data")
        told = (await decide(desk, asked, target=asked.digest[-6:])).json()
        assert (told["status"], "1 of 2" in told["message"]) == ("pending", True)
        assert "1 of 2" in (await desk.http.get(link_to(asked))).text


async def test_erased_request_shows_that_it_was_erased(desk: Desk) -> None:
    asked = await submitted(desk)
    await decide(desk, asked)
    assert await desk.service.erase(asked.id, ANN)
    seen = Seen((await desk.http.get(link_to(asked))).text)
    assert "was erased" in seen.text
    assert "a@example.org" not in seen.text


async def test_request_denied_at_once_shows_that_it_was_not_kept(desk: Desk) -> None:
    await desk.service.add_rule(Rule(id="r_1", effect=Effect.DENY, action="send_mail"), ANN)
    refused = await submitted(desk)
    await sign_in(desk)
    seen = Seen((await desk.http.get(f"/approvals/{refused.id}")).text)
    assert ("was not kept" in seen.text, "erased" in seen.text) == (True, False)
    assert refused.digest in seen.text


async def test_same_again_after_a_no_shows_that_it_was_not_kept(desk: Desk) -> None:
    await decide(desk, await submitted(desk), approves=False)
    muted = await submitted(desk)
    await sign_in(desk)
    assert "was not kept" in (await desk.http.get(f"/approvals/{muted.id}")).text


async def test_expired_request_says_so(desk: Desk, clock: SettableClock) -> None:
    asked = await submitted(desk)
    clock.advance(seconds=301)
    await desk.service.sweep()
    await sign_in(desk)
    seen = Seen((await desk.http.get(f"/approvals/{asked.id}")).text)
    assert "It has expired" in seen.text
    assert not seen.decisions


@pytest.mark.parametrize(
    "path", ["/approvals/%00", "/approvals/" + "x" * 100, "/approvals/a/b", "/approvals/"]
)
async def test_address_of_nothing_is_not_found(desk: Desk, path: str) -> None:
    await sign_in(desk)
    assert (await desk.http.get(path)).status_code == 404


HIDING = {"to": "a@example.org", "token": f"{SECRET}_\u202e!", "env": {"API_KEY": SECRET}}


async def reveal(desk: Desk, asked: Confirmation, link: str | None = None, **more: str) -> httpx.Response:
    token = link_to(asked).partition("t=")[2] if link is None else link
    body = {"t": token or None}
    return await desk.http.post(f"/approvals/{asked.id}/reveal", json=body, headers=own(desk) | more)


async def kinds(desk: Desk) -> list[str]:
    return [str(row.entry.kind) for row in reversed(await desk.service.audit_newest(100))]


async def test_hidden_values_are_counted_and_shown_with_the_button(desk: Desk) -> None:
    asked = await submitted(desk, details=HIDING)
    answer = await desk.http.get(link_to(asked))
    seen = Seen(answer.text)
    assert "2 values are hidden: env.API_KEY (12 characters), token (12 characters)." in seen.text
    (button,) = [each for each in seen.all("button") if "data-reveal" in each]
    assert button["data-reveal"] == f"/approvals/{asked.id}/reveal"
    assert SECRET not in answer.text
    revealed = await reveal(desk, asked)
    assert revealed.status_code == 200
    lines = [(line["depth"], line["text"]) for line in revealed.json()["lines"]]
    assert (2, f'API_KEY: "{SECRET}"') in lines
    assert (1, f'token: "{SECRET}_\\u{{202e}}!"') in lines
    assert await kinds(desk) == ["submitted", "revealed"]
    assert await desk.status(asked.id) == "pending"
    assert SECRET not in (await desk.http.get(link_to(asked))).text


async def test_what_is_hidden_is_approved_only_by_who_has_looked_at_it(desk: Desk) -> None:
    asked, other = await submitted(desk, details=HIDING), await submitted(desk, details={**HIDING, "n": 2})
    seen = Seen((await desk.http.get(link_to(asked))).text)
    (button,) = [each for each in seen.all("button") if each.get("data-approves") == "true"]
    assert button["aria-disabled"] == "true"
    assert [each.get("data-todo") for _, each in seen.tags if "data-todo" in each] == ["look"]
    elsewhere = (await reveal(desk, other)).json()["seen"]
    eve = link_to(asked, "token:eve").partition("t=")[2]
    looked = (await reveal(desk, asked)).json()["seen"]
    for proof in (None, "", "forged", elsewhere, link_to(asked).partition("t=")[2]):
        assert "not looked at" in problem(await decide(desk, asked, seen=proof), 400)["detail"]
    problem(await decide(desk, asked, eve, seen=looked), 400)
    assert await desk.status(asked.id) == "pending"
    assert (await decide(desk, asked, seen=looked)).json()["status"] == "approved"


async def test_what_is_hidden_is_denied_unseen(desk: Desk) -> None:
    asked = await submitted(desk, details=HIDING)
    assert (await decide(desk, asked, approves=False)).json()["status"] == "denied"


@pytest.mark.parametrize("signed", [True, False])
async def test_one_of_the_ten_is_approved_by_typing_its_target(desk: Desk, signed: bool) -> None:
    asked = await submitted(desk, action="wipe_database", details={"database": "customers_prod"})
    link = "" if signed else None
    if signed:
        await sign_in(desk)
    path = f"/approvals/{asked.id}" if signed else link_to(asked)
    seen = Seen((await desk.http.get(path)).text)
    assert 'To approve, type the value of "database"' in seen.text
    for said in (None, "", "customers", "CUSTOMERS_PROD", "customers_prod now", asked.digest[-6:]):
        told = problem(await decide(desk, asked, link, target=said), 400)
        assert "type the value of" in told["detail"]
        assert "customers_prod" not in told["detail"]
    assert await desk.status(asked.id) == "pending"
    assert (await decide(desk, asked, link, target=" customers_prod ")).json()["status"] == "approved"


async def test_page_ends_in_the_action_and_quotes_five_lines_of_words(desk: Desk) -> None:
    forged = "\n".join(["Harmless."] * 30 + ['Action: "list_files"', "Approve"])
    asked = await submitted(desk, description=forged)
    await sign_in(desk)
    for path in (f"/approvals/{asked.id}", link_to(asked)):
        page = (await desk.http.get(path)).text
        folded = page.index("<details>")
        places = [
            page.index(text)
            for text in ("<h1", "What is unusual", "Harmless.", 'class="bar"', "data-decision")
        ]
        assert places == sorted(places)
        assert page.count("Harmless.", 0, folded) == 5
        assert folded < page.index("list_files") < places[3]
        bar = page[places[4] :]
        assert "<q" not in bar, "nothing that the agent says stands by the buttons"
        assert bar.index("send_mail") < bar.index("a@example.org") < bar.index("<button")


async def test_request_without_hidden_values_has_no_such_button(desk: Desk) -> None:
    seen = Seen((await desk.http.get(link_to(await submitted(desk)))).text)
    assert "is hidden:" not in seen.text
    assert not [each for each in seen.all("button") if "data-reveal" in each]


async def test_revealing_takes_a_session_or_a_link_of_this_request(desk: Desk) -> None:
    asked, other = await submitted(desk, details=HIDING), await submitted(desk)
    problem(await reveal(desk, asked, ""), 401)
    problem(await reveal(desk, asked, link_to(other).partition("t=")[2]), 403)
    problem(await reveal(desk, asked, "forged"), 403)
    await sign_in(desk)
    assert (await reveal(desk, asked, "")).status_code == 200
    assert await kinds(desk) == ["submitted", "submitted", "signed_in", "revealed"]


@pytest.mark.parametrize(
    "headers",
    [{"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"x-frontdesk-page": "0"}],
)
async def test_only_our_page_reveals(desk: Desk, headers: dict[str, str]) -> None:
    asked = await submitted(desk, details=HIDING)
    problem(await reveal(desk, asked, **headers), 403)
    problem(await reveal(desk, asked, **{"content-type": FORM}), 415)
    assert (await desk.http.get(f"/approvals/{asked.id}/reveal")).status_code == 405
    assert await kinds(desk) == ["submitted"]


async def test_whoever_may_not_decide_has_no_button_and_reveals_nothing(desk: Desk) -> None:
    await desk.service.add_rule(
        Rule(id="r1", effect=Effect.ASK, action="send_mail", approvers=("token:eve",)), ANN
    )
    asked = await submitted(desk, details=HIDING)
    seen = Seen((await desk.http.get(link_to(asked))).text)
    assert "token (12 characters). Those who may decide can see them." in seen.text
    assert not [each for each in seen.all("button") if "data-reveal" in each]
    problem(await reveal(desk, asked), 403)
    assert "revealed" not in await kinds(desk)


async def test_list_has_the_worst_first_and_then_what_ends_soonest(desk: Desk) -> None:
    details = {"later": {"to": "b"}, "soon": {"to": "c"}, "worse": {"argv": ["rm", "-rf", "/srv"]}}
    asked = {
        name: (await submitted(desk, details=each, timeout_seconds=60 if name == "soon" else 600)).id
        for name, each in details.items()
    }
    asked["ten"] = (await submitted(desk, action="wipe_database", details={"database": "d"})).id
    await sign_in(desk)
    links = [each.get("href") for each in Seen((await desk.http.get("/approvals")).text).all("a")]
    rows = [link for link in links if link and "c_" in link]
    assert rows == [f"/approvals/{asked[name]}" for name in ("ten", "worse", "soon", "later")]


async def test_when_others_may_decide_is_told_where_they_may(desk: Desk) -> None:
    passing = Rule(
        id="r1",
        effect=Effect.ASK,
        action="send_mail",
        approvers=("token:ann",),
        escalate_after_seconds=60,
        escalate_to=("token:eve",),
    )
    await desk.service.add_rule(passing, ANN)
    asked = await submitted(desk)
    await sign_in(desk)
    assert "others may decide in" in Seen((await desk.http.get("/approvals")).text).text
    assert "others may decide at" in Seen((await desk.http.get(f"/approvals/{asked.id}")).text).text


async def test_nothing_is_revealed_of_what_was_erased(desk: Desk) -> None:
    asked = await submitted(desk, details=HIDING)
    await desk.service.deny(asked.id, ANN)
    await desk.service.erase(asked.id, ANN)
    problem(await reveal(desk, asked), 410)


async def test_everything_that_speaks_of_the_future_is_exchanged_once_it_is_decided(desk: Desk) -> None:
    asked = await submitted(desk)
    before = (await desk.http.get(link_to(asked))).text
    future = ("Allow this?", "denied in", "denied at", "data-decision", "To approve")
    await desk.service.deny(asked.id, ANN)
    page = (await desk.http.get(link_to(asked))).text
    assert all(text in live(before) or text not in before for text in future)
    assert not [text for text in future if text in page]


def live(page: str) -> str:
    """What the script exchanges when something has changed."""
    found = re.findall(r"<(div|dl) id=\"\w+\" [^>]*data-live[^>]*>(.*?)\n      </\1>", page, re.DOTALL)
    return "".join(text for _, text in found)
