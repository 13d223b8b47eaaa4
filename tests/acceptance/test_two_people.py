"""Two people and one browser: nobody acts as the other without knowing it."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from frontdesk.web.visitors import COOKIE
from tests import browsing
from tests.acceptance.sites import SiteDesk
from tests.acceptance.test_run import Receiver
from tests.browsing import BrowserTab, playwright

pytestmark = [browsing.needs_browser, pytest.mark.timeout(300)]

expect = playwright.expect


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteDesk]:
    with Receiver().serving() as receiver:
        home = tmp_path_factory.mktemp("home")
        with SiteDesk(home, receiver).running() as opened:
            yield opened


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing.browser() as opened:
        yield opened


@pytest.fixture
def tab(browser: Any, desk: SiteDesk) -> Iterator[BrowserTab]:
    """Somebody who administers."""
    with browsing.visiting(browser, desk.url) as opened:
        opened.follow(desk.login_link("--name", "olga"))
        opened.sees("Signed in as olga")
        yield opened


def eves_link(desk: SiteDesk) -> str:
    return desk.login_link("--role", "user", "--person", "telegram:42", "--name", "eve")


def test_link_that_somebody_else_leads_to_asks_before_it_signs_in(tab: BrowserTab, desk: SiteDesk) -> None:
    link = eves_link(desk)
    tab.page.goto(link)
    tab.sees("This browser is signed in as olga. Signing in here signs them out first.")
    tab.waits_until("Sign in")
    assert "#" not in tab.page.url
    assert link.partition("#")[2] not in tab.page.content()
    tab.go("/overview")
    tab.sees("Signed in as olga")
    tab.follow(link)
    tab.sees("Signed in as eve")


def cookie_of(tab: BrowserTab) -> dict[str, str]:
    found = next(each for each in tab.context.cookies() if each["name"] == COOKIE)
    return {"cookie": f"{COOKIE}={found['value']}"}


def is_in(desk: SiteDesk, cookie: dict[str, str]) -> bool:
    answer = httpx.get(f"{desk.url}/api/v1/sessions", headers=cookie, trust_env=False)
    return answer.status_code == 200


def test_whoever_signs_in_in_somebodys_place_signs_them_out_and_a_wrong_code_does_not(
    tab: BrowserTab, desk: SiteDesk
) -> None:
    olgas = cookie_of(tab)
    tab.go("/login")
    expect(tab.page.get_by_text("signs them out first")).to_be_visible()
    expect(tab.page.get_by_text("cannot sign them out")).to_be_hidden()
    tab.page.get_by_label("token").fill("not-the-token")
    tab.press("Sign in")
    tab.sees("Nobody is known by this.")
    tab.go("/overview")
    expect(tab.page.get_by_role("button", name="Sign out")).to_be_visible()
    assert is_in(desk, olgas)
    tab.follow(eves_link(desk))
    tab.sees("Signed in as eve")
    assert not is_in(desk, olgas)


@pytest.mark.parametrize("kept", ["localStorage.clear()", "localStorage.setItem('frontdesk-proof', 'x')"])
def test_browser_that_has_lost_the_proof_says_that_somebody_stays_in(
    tab: BrowserTab, desk: SiteDesk, kept: str
) -> None:
    olgas = cookie_of(tab)
    tab.page.evaluate(kept)
    tab.page.goto(eves_link(desk))
    lost = "clear" in kept
    expect(tab.page.get_by_text("cannot sign them out")).to_be_visible(visible=lost)
    expect(tab.page.get_by_text("signs them out first")).to_be_visible(visible=not lost)
    tab.press("Sign in")
    tab.sees("Signed in as eve")
    expect(tab.page.locator("#outcome")).to_contain_text("The session of olga was not ended")
    assert is_in(desk, olgas)


def box(page: Any) -> Any:
    return page.get_by_label("Message to the agent")


def test_page_that_is_open_does_nothing_for_somebody_who_signs_in_elsewhere(
    tab: BrowserTab, desk: SiteDesk
) -> None:
    tab.go("/chat")
    box(tab.page).fill("what olga means to say")
    other = tab.open_page()
    olgas, tab.page = tab.page, other
    tab.follow(eves_link(desk))
    tab.sees("Signed in as eve")
    expect(olgas.locator("#outcome")).to_contain_text("signed in as somebody else by now")
    expect(olgas.get_by_role("button", name="Send")).to_be_disabled()
    box(olgas).press("Enter")
    expect(olgas.locator("#written")).to_contain_text("signed in as somebody else by now")
    expect(box(olgas)).to_have_value("what olga means to say")


WATCHED = """
window.streams = [];
window.EventSource = class extends EventSource {
  constructor(...given) {
    super(...given);
    window.streams.push(this);
  }
};
"""


def test_page_of_who_was_in_says_no_more_that_it_is_live_and_hears_nothing_more(
    tab: BrowserTab, desk: SiteDesk
) -> None:
    tab.page.add_init_script(WATCHED)
    tab.go("/sessions")
    expect(tab.page.locator("#connection")).to_contain_text("Live")
    other = tab.open_page()
    olgas, tab.page = tab.page, other
    tab.go("/login")
    other.evaluate("localStorage.clear()")  # so that her session goes on, and only the page can leave it
    tab.follow(eves_link(desk))
    tab.sees("Signed in as eve")
    expect(olgas.locator("#outcome")).to_contain_text("signed in as somebody else by now")
    expect(olgas.locator("#connection")).to_be_empty()
    olgas.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    olgas.wait_for_timeout(1_500)  # the sign is painted anew each second
    expect(olgas.locator("#connection")).to_be_empty()
    opened = olgas.evaluate("streams.map((each) => each.readyState !== EventSource.CLOSED)")
    assert opened
    assert not any(opened)


def test_page_that_is_not_told_who_is_in_asks_again(tab: BrowserTab) -> None:
    tab.go("/sessions")
    expect(tab.page.locator("#connection")).to_contain_text("Live")
    asked = 0

    def refuse(route: Any) -> None:
        nonlocal asked
        asked += 1
        route.fulfill(status=503) if asked == 1 else route.continue_()

    tab.page.route(tab.page.url, refuse)
    with tab.page.expect_response(lambda answer: answer.url == tab.page.url and answer.ok):
        tab.page.evaluate("""dispatchEvent(new StorageEvent("storage", {
            key: "frontdesk-proof", newValue: localStorage.getItem("frontdesk-proof") }))""")
    expect(tab.page.locator("#connection")).to_contain_text("Live")
    expect(tab.page.get_by_text("as somebody else by now")).to_have_count(0)
    (trouble,) = tab.troubles
    assert "503" in trouble
    tab.troubles.clear()


def test_draft_is_its_writers_alone_and_gone_when_they_sign_out(tab: BrowserTab, desk: SiteDesk) -> None:
    tab.go("/chat")
    box(tab.page).fill("only for olga")
    tab.page.reload()
    expect(box(tab.page)).to_have_value("only for olga")
    tab.follow(eves_link(desk))
    tab.sees("Signed in as eve")
    tab.go("/chat")
    expect(tab.page.locator("html.scripted")).to_be_attached()
    tab.page.wait_for_load_state("load")
    expect(box(tab.page)).to_have_value("")
    tab.go("/sessions")
    tab.press("Sign out")
    expect(tab.page.locator("#token")).to_be_visible()
    tab.page.wait_for_load_state("networkidle")  # its stream has ended, too: it may be loaded anew by both
    kept = tab.page.evaluate("Object.values(sessionStorage).join()")
    assert "olga" not in kept
