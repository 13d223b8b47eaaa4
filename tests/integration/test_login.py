"""Coming in over real HTTP: links that count once, tokens, cookies that look, and the address of a proxy."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from frontdesk.app.reception import THE_OWNER, Reception
from frontdesk.model import passes
from frontdesk.model.access import Role
from frontdesk.model.confirmations import Caller, CallerKind
from frontdesk.model.rules import Effect, Rule
from frontdesk.testing import SettableClock
from frontdesk.web import server
from frontdesk.web.addresses import PublicAddress
from frontdesk.web.confirmations import Credentials, ServedConfirmations
from frontdesk.web.guesses import MOST_WRONG, Guesses
from frontdesk.web.operations import PROOF_HEADER, VISITOR_HEADER
from frontdesk.web.visitors import COOKIE, IN_ADDRESSES, cookie_name
from tests.flow.harness import House, open_house
from tests.integration.confirming import ASKED, LINK_KEY, TOKENS, problem

ANN = "matrix:ann"
OWNERS = "owners-token-0123456789abcdef"
URL = "https://desk.example.org/frontdesk"
AGENT = Caller(id="token:bot", kind=CallerKind.AGENT)


class Doors:
    """The public port of a gateway, and who comes there."""

    def __init__(self, house: House, served: ServedConfirmations, url: str) -> None:
        self.house, self.url = house, url
        self.reception: Reception = served.reception
        self.clients: list[httpx.AsyncClient] = []

    def browser(self, **headers: str) -> httpx.AsyncClient:
        """A browser's own script, in a browser of its own."""
        own = {"x-frontdesk-page": "1", "origin": self.url, "sec-fetch-site": "same-origin"}
        client = httpx.AsyncClient(
            base_url=self.url, headers=own | headers, trust_env=False, timeout=60, verify=False
        )
        self.clients.append(client)
        return client

    def program(self, token: str) -> httpx.AsyncClient:
        headers = {"authorization": f"Bearer {token}"}
        client = httpx.AsyncClient(
            base_url=self.url, headers=headers, trust_env=False, timeout=60, verify=False
        )
        self.clients.append(client)
        return client

    async def code(self, role: Role = Role.ADMINISTRATOR, person: str | None = None) -> str:
        made = await self.reception.make_link(role, person)
        return made["url"].partition("#")[2]

    async def token(self, role: Role, person: str | None = None, name: str = "robot") -> str:
        return (await self.reception.make_token(name, role, person))["token"]

    async def signed_in(
        self, role: Role = Role.ADMINISTRATOR, person: str | None = None
    ) -> httpx.AsyncClient:
        """A browser with cookie and proof."""
        browser = self.browser()
        answer = await sign_in(browser, await self.code(role, person))
        browser.headers[PROOF_HEADER] = answer.raise_for_status().json()["proof"]
        return browser


async def sign_in(browser: httpx.AsyncClient, secret: str) -> httpx.Response:
    return await browser.post("/login", json={"token": secret})


@asynccontextmanager
async def opened(**more: Any) -> AsyncIterator[Doors]:
    public_url, known = more.pop("public_url", None), more.pop("known", None)
    async with open_house("sqlite:///:memory:", **more) as house:
        service = house.gateway.parts.confirmations
        known = known or Credentials(
            approvers={"approver": lambda: OWNERS, "ann": lambda: TOKENS["ann"]},
            agents={"bot": lambda: TOKENS["bot"]},
            people={"ann": [ANN]},
        )
        served = ServedConfirmations(service, known, LINK_KEY, public_url=public_url)
        async with server.serving(house.gateway, port=0, confirmations=served) as address:
            doors = Doors(house, served, address.url)
            try:
                yield doors
            finally:
                await asyncio.gather(*(client.aclose() for client in doors.clients))
                served.close()


@pytest.fixture
async def doors() -> AsyncIterator[Doors]:
    async with opened() as found:
        yield found


async def test_link_signs_one_browser_in_and_no_second_one(doors: Doors) -> None:
    code = await doors.code()
    first, second = doors.browser(), doors.browser()
    shown = await first.get("/login")
    assert shown.status_code == 200
    assert "default-src 'none'" in shown.headers["content-security-policy"]
    answer = await sign_in(first, code)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    problem(await sign_in(second, code), 401)
    assert (await first.get("/overview")).status_code == 200
    assert (await second.get("/overview")).status_code == 401


async def test_page_changes_nothing_for_anybody_but_whom_it_was_made_for(doors: Doors) -> None:
    browser = await doors.signed_in()
    made_for = re.search(r'data-visitor="([^"]+)"', (await browser.get("/overview")).text)
    assert made_for
    for header, status in ((f"{made_for[1]}x", 409), ("", 409), (quote(made_for[1], safe=""), 200)):
        assert (await browser.get("/overview")).status_code == 200
        answer = await browser.post("/login/end", json={}, headers={VISITOR_HEADER: header})
        assert answer.status_code == status
        assert status == 200 or answer.json()["code"] == "wrong_visitor"
    document = (await browser.get("/openapi.json")).json()
    names = [each["operationId"] for methods in document["paths"].values() for each in methods.values()]
    assert len(set(names)) == len(names)
    told = document["paths"]["/login/end"]["post"]
    assert VISITOR_HEADER in [each["name"] for each in told["parameters"]]
    assert "wrong_visitor" in told["responses"]["409"]["description"]


async def test_cookies_of_two_people_show_neither_ones_pages(doors: Doors) -> None:
    own, again, other = [await doors.signed_in(*who) for who in ((), (), (Role.USER, ANN))]
    for second, status in ((again, 200), (other, 401)):
        for pair in ((own, second), (second, own)):
            cookies = "; ".join(f"{COOKIE}={each.cookies[COOKIE]}" for each in pair)
            both = doors.browser(cookie=cookies)
            assert (await both.get("/sessions")).status_code == status


async def test_two_browsers_race_for_a_link_and_one_comes_in(doors: Doors) -> None:
    code = await doors.code()
    browsers = [doors.browser() for _ in range(6)]
    answers = await asyncio.gather(*(sign_in(each, code) for each in browsers))
    assert sorted(each.status_code for each in answers) == [200, *[401] * 5]


async def test_whoever_is_not_in_gets_the_login_page_and_then_what_they_wanted(doors: Doors) -> None:
    browser = doors.browser()
    for path in ("/overview", "/sessions?state=active", "/approvals", "/"):
        answer = await browser.get(path)
        assert answer.status_code == 401
        assert 'data-session="/login"' in answer.text, "it stands where it was wanted"
        assert "location" not in answer.headers
    assert (await browser.get("/api/v1/status")).headers["content-type"] == "application/problem+json"


async def test_cookie_looks_and_takes_the_proof_to_act(doors: Doors) -> None:
    browser = await doors.signed_in()
    assert (await browser.get("/api/v1/status")).status_code == 200
    said = {"name": "robot", "role": "viewer"}
    assert (await browser.post("/api/v1/passes/tokens", json=said)).status_code == 200
    for wrong in ("", "x" * 43, browser.cookies[COOKIE]):
        browser.headers[PROOF_HEADER] = wrong
        answer = await browser.post("/api/v1/passes/revoke", json={"name": "robot"})
        assert "Sign in again" in problem(answer, 401)["detail"]
    del browser.headers[PROOF_HEADER]
    problem(await browser.post("/api/v1/passes/revoke", json={"name": "robot"}), 401)
    assert (await browser.get("/api/v1/passes")).json()["items"][0]["name"] == "robot"


async def test_page_of_another_port_does_nothing_even_with_cookie_and_proof(doors: Doors) -> None:
    browser = await doors.signed_in()
    cookie, proof = browser.cookies[COOKIE], browser.headers[PROOF_HEADER]
    for headers in ({"origin": "http://127.0.0.1:1"}, {"sec-fetch-site": "same-site"}):
        other = doors.browser(**headers, **{"cookie": f"{COOKIE}={cookie}", PROOF_HEADER: proof})
        problem(await other.post("/api/v1/passes/tokens", json={"name": "x", "role": "viewer"}), 403)
        problem(await other.post("/login", json={"token": OWNERS}), 403)
        problem(await other.get("/api/v1/status"), 403)


async def test_token_looks_and_acts_until_it_is_revoked(doors: Doors) -> None:
    program = doors.program(await doors.token(Role.ADMINISTRATOR))
    assert (await program.get("/api/v1/status")).status_code == 200
    made = await program.post("/api/v1/passes/tokens", json={"name": "second", "role": "viewer"})
    second = doors.program(made.json()["token"])
    assert (await second.get("/api/v1/status")).status_code == 200
    problem(await second.post("/api/v1/passes/revoke", json={"name": "robot"}), 403)
    assert (await program.post("/api/v1/passes/revoke", json={"name": "second"})).json() is True
    problem(await second.get("/api/v1/status"), 401)
    listed = (await program.get("/api/v1/passes")).text
    assert "digest" not in listed
    assert made.json()["token"] not in listed


async def test_token_is_told_once_even_to_who_asks_again_with_the_same_key(doors: Doors) -> None:
    program = doors.program(await doors.token(Role.ADMINISTRATOR))
    said, key = {"name": "second", "role": "viewer"}, {"idempotency-key": "one"}
    first = await program.post("/api/v1/passes/tokens", json=said, headers=key)
    assert first.status_code == 200
    again = await program.post("/api/v1/passes/tokens", json=said, headers=key)
    assert first.json()["token"] not in again.text
    assert again.status_code == 409


async def test_token_signs_a_browser_in_which_ends_with_it(doors: Doors) -> None:
    browser = doors.browser()
    assert (await sign_in(browser, await doors.token(Role.VIEWER))).status_code == 200
    assert (await browser.get("/overview")).status_code == 200
    assert await doors.reception.revoke_pass("robot")
    assert (await browser.get("/overview")).status_code == 401


async def test_token_in_an_address_is_refused(doors: Doors) -> None:
    token = await doors.token(Role.ADMINISTRATOR)
    browser = await doors.signed_in()
    for name in IN_ADDRESSES:
        for client in (browser, doors.program(token)):
            answer = await client.get("/overview", params={name: token})
            assert answer.status_code == 400
            assert token not in answer.text


@pytest.mark.parametrize(
    "given",
    ["", "Bearer", "Bearer,", "Basic YTpi", f"Bearer {'x' * 43}", f"Bearer fdt_{'x' * 43}", "Bearer ü"],
)
async def test_what_is_no_token_lets_nobody_in_even_beside_a_cookie(doors: Doors, given: str) -> None:
    browser = await doors.signed_in()
    headers = {b"authorization": given.encode("latin-1")}
    problem(await browser.get("/api/v1/status", headers=headers), 401)


async def test_link_page_and_proof_are_no_bearer_tokens(doors: Doors) -> None:
    browser = await doors.signed_in()
    for secret in (await doors.code(), browser.cookies[COOKIE], browser.headers[PROOF_HEADER]):
        problem(await doors.program(secret).get("/api/v1/status"), 401)
    for secret in (browser.cookies[COOKIE], browser.headers[PROOF_HEADER]):
        problem(await sign_in(doors.browser(), secret), 401)


async def test_agent_is_no_visitor(doors: Doors) -> None:
    problem(await doors.program(TOKENS["bot"]).get("/api/v1/status"), 403)
    problem(await sign_in(doors.browser(), TOKENS["bot"]), 401)


async def test_approvers_token_of_the_settings_lets_in_as_what_they_are(doors: Doors) -> None:
    problem(await doors.program(TOKENS["ann"]).get("/api/v1/status"), 403)
    assert (await doors.program(TOKENS["ann"]).get("/approvals")).status_code == 200
    assert (await doors.program(OWNERS).get("/api/v1/status")).status_code == 200
    browser = doors.browser()
    assert (await sign_in(browser, TOKENS["ann"])).json()["role"] == "approver"
    assert (await browser.get("/approvals")).status_code == 200


async def test_signing_out_ends_the_page_wherever_its_cookie_is(doors: Doors) -> None:
    browser = await doors.signed_in()
    cookie = {"cookie": f"{COOKIE}={browser.cookies[COOKIE]}"}
    assert (await browser.post("/login/end", json={})).status_code == 200
    assert COOKIE not in browser.cookies
    assert (await doors.browser(**cookie).get("/overview")).status_code == 401


async def test_cookie_of_somebody_else_ends_nothing_without_its_proof(doors: Doors) -> None:
    owner = await doors.signed_in()
    stolen = f"{COOKIE}={owner.cookies[COOKIE]}"
    thief = doors.browser(cookie=stolen)
    begun = await sign_in(thief, await doors.token(Role.USER, ANN))
    own = {"cookie": f"{COOKIE}={begun.cookies[COOKIE]}; {stolen}", PROOF_HEADER: begun.json()["proof"]}
    assert (await doors.browser(**own).post("/login/end", json={})).status_code == 200
    assert (await owner.get("/overview")).status_code == 200
    again = await sign_in(doors.browser(cookie=stolen), await doors.code())
    assert again.status_code == 200, "the same person, who has a new one"
    assert (await owner.get("/overview")).status_code == 401


async def test_browser_that_signs_in_as_somebody_else_was_in_before(doors: Doors) -> None:
    browser = await doors.signed_in()
    before = doors.browser(cookie=f"{COOKIE}={browser.cookies[COOKIE]}")
    async with before.stream("GET", "/api/v1/events") as events:
        answer = await sign_in(browser, await doors.code(Role.USER, ANN))
        async for _ in events.aiter_lines():
            pass  # until it ends
    assert answer.json()["still_in"] == []
    assert (await before.get("/overview")).status_code == 401
    problem(await before.get("/api/v1/sessions"), 401)


async def test_who_takes_the_place_of_somebody_without_their_proof_is_told_that_they_are_still_in(
    doors: Doors,
) -> None:
    browser = await doors.signed_in()
    before = doors.browser(cookie=f"{COOKIE}={browser.cookies[COOKIE]}")
    browser.headers[PROOF_HEADER] = passes.new_secret()
    answer = await sign_in(browser, await doors.code(Role.USER, ANN))
    assert answer.json()["still_in"] == ["owner"]
    assert (await before.get("/overview")).status_code == 200
    assert (await browser.get("/api/v1/sessions")).status_code == 200, "as somebody else"


async def test_login_page_leads_nowhere_else_where_the_code_of_a_link_would_be_lost(doors: Doors) -> None:
    assert "<a " not in (await doors.browser().get("/login")).text


async def test_wrong_tokens_of_one_address_are_looked_at_slowly() -> None:
    known = Credentials(approvers={"approver": lambda: OWNERS}, guesses=Guesses(lambda: 1000.0))
    async with opened(known=known) as doors:
        for number in range(MOST_WRONG):
            problem(await sign_in(doors.browser(), f"guess-{number}"), 401)
        problem(await sign_in(doors.browser(), "another-guess"), 429)
        problem(await doors.program("another-guess-as-bearer").get("/api/v1/status"), 429)
        assert (await sign_in(doors.browser(), await doors.code())).status_code == 200, "nobody is locked out"


async def test_one_person_has_one_vote_with_token_link_and_chat(doors: Doors) -> None:
    service = doors.house.gateway.parts.confirmations
    rule = Rule(id="two", effect=Effect.ASK, quorum=2)
    await service.add_rule(rule, Caller(id=THE_OWNER, kind=CallerKind.APPROVER))
    asked = (await service.submit(ASKED, AGENT)).confirmation
    by_link, by_token = await doors.signed_in(), doors.browser()
    by_token.headers[PROOF_HEADER] = (await sign_in(by_token, OWNERS)).json()["proof"]
    body = {"approves": True, "digest": asked.digest}
    for browser in (by_link, by_token):
        await browser.post(f"/approvals/{asked.id}/decision", json=body)
    assert (await service.find(asked.id)).status == "pending", "the owner is one person"
    anns = await doors.signed_in(Role.APPROVER, ANN)
    assert (await anns.post(f"/approvals/{asked.id}/decision", json=body)).json()["status"] == "approved"


@pytest.mark.parametrize("role", [Role.VIEWER, Role.USER])
async def test_who_may_not_decide_does_not_with_any_pass(doors: Doors, role: Role) -> None:
    service = doors.house.gateway.parts.confirmations
    asked = (await service.submit(ASKED, AGENT)).confirmation
    browser = await doors.signed_in(role, ANN)
    path, body = f"/approvals/{asked.id}", {"approves": True, "digest": asked.digest}
    problem(await browser.post(f"{path}/decision", json=body), 403)
    problem(await browser.post(f"{path}/reveal", json={}), 403)
    problem(await browser.post("/approvals/pauses/lift", json={"requester": "x"}), 403)
    assert (await browser.get(path)).status_code == (200 if role is Role.VIEWER else 403)
    assert (await service.find(asked.id)).status == "pending"


async def test_pages_below_a_prefix_lead_only_there() -> None:
    cookie = ""
    async with opened(public_url=URL) as found:
        code = await found.code()
        for prefix in ("", "/frontdesk"):  # which a proxy takes away, or leaves
            browser = found.browser(host="desk.example.org", origin="https://desk.example.org")
            shown = await browser.get(f"{prefix}/overview")
            assert shown.status_code == 401
            leads = re.findall(r'(?:href|src|data-session|data-home)="([^"#]*)', shown.text)
            assert leads
            assert [each for each in leads if not each.startswith("/frontdesk/")] == []
            for each in set(leads) - {"/frontdesk/"}:
                assert (await browser.get(each)).status_code == 200, each
            if not cookie:
                answer = await browser.post("/login", json={"token": code})
                cookie = answer.headers["set-cookie"]
            browser.headers["cookie"] = cookie.partition(";")[0]
            assert (await browser.get(f"{prefix}/overview")).status_code == 200
            told = (await browser.get(f"{prefix}/openapi.json")).json()
            assert told["servers"] == [{"url": "/frontdesk"}]
            reference = (await browser.get(f"{prefix}/api")).text
            assert "JSON under /frontdesk/api/v1." in reference
            assert "<code>/frontdesk/api/v1/passes</code>" in reference
            home = await browser.get(f"{prefix}/" if prefix else "/")
            assert home.headers["location"] == "/frontdesk/overview"
        assert (await found.reception.make_link())["url"].startswith(f"{URL}/login#")
    for part in ("__Secure-frontdesk=", "; Path=/frontdesk;", "; Secure", "; HttpOnly", "; SameSite=lax"):
        assert part in cookie


@pytest.mark.parametrize(
    ("role", "person", "name"),
    [
        (Role.USER, "webhook:ann", "webhook.ann"),
        (Role.APPROVER, "matrix:@ann:example.org", "matrix.@ann.example.org"),
        (Role.ADMINISTRATOR, f"email:{'x' * 80}@example.org", f"email.{'x' * 58}"),
        (Role.VIEWER, None, "viewer"),
    ],
)
async def test_link_without_a_name_is_called_after_whom_it_is_for(
    role: Role, person: str | None, name: str
) -> None:
    async with opened() as found:
        assert (await found.reception.make_link(role, person))["name"] == name


async def test_proxy_that_does_not_pass_the_name_on_is_no_obstacle_and_another_name_is() -> None:
    async with opened(public_url=URL) as found:
        origin = "https://desk.example.org"
        assert (await found.browser(origin=origin).get("/login")).status_code == 200
        assert (await found.browser(origin="https://evil.example").get("/login")).status_code == 403
        refused = await found.browser(origin=origin, host="evil.example").get("/login")
        assert refused.status_code == 421


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (None, COOKIE),
        ("http://desk/x", COOKIE),
        ("https://desk", f"__Host-{COOKIE}"),
        (URL, f"__Secure-{COOKIE}"),
    ],
)
def test_cookie_has_the_strictest_name_that_browsers_keep(url: str | None, name: str) -> None:
    assert cookie_name(PublicAddress.of(url)) == name


async def test_nothing_of_a_secret_is_logged(doors: Doors, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "frontdesk")
    token, code = await doors.token(Role.ADMINISTRATOR), await doors.code()
    browser = doors.browser()
    proof = (await sign_in(browser, code)).json()["proof"]
    await doors.program(token).get("/api/v1/status")
    await doors.program(token).get("/overview", params={"token": token})
    await sign_in(doors.browser(), code)
    ours = "\n".join(each.getMessage() for each in caplog.records if each.name.startswith("frontdesk"))
    for secret in (token, code, proof, browser.cookies[COOKIE]):
        assert secret[4:] not in ours
    assert "event=signed_in" in ours


async def test_page_expires_in_the_middle() -> None:
    clock = SettableClock()
    async with opened(clock=clock) as doors:
        browser = await doors.signed_in()
        clock.advance(seconds=passes.PAGE_SECONDS)
        assert (await browser.get("/overview")).status_code == 401
        problem(await browser.post("/api/v1/passes/revoke", json={"name": "x"}), 401)
