"""Pages when something is not as it usually is: no mouse, a login that is over, a line that is cut."""

from typing import Any

import pytest

from tests import browsing, samples
from tests.acceptance.sites import SiteDesk, browser, desk, enter, receiver
from tests.browsing import BrowserTab, playwright

__all__ = ["browser", "desk", "receiver"]

pytestmark = [browsing.needs_browser, pytest.mark.timeout(300)]

expect = playwright.expect
OVER = "your login has ended, or this browser has lost it. Sign in again"
PLACES = ("/sessions", "/overview", "/turns", "/deliveries", "/usage", "/people", "/audit", "/settings")


def box(tab: BrowserTab) -> Any:
    return tab.page.get_by_label("Message to the agent")


def sign_in_again(tab: BrowserTab, desk: SiteDesk) -> None:
    """On the page itself."""
    tab.page.get_by_label("your token").fill(desk.token)
    with tab.page.expect_navigation():
        tab.page.get_by_role("button", name="Sign in", exact=True).click()


def test_first_tap_of_a_finger_counts(browser: Any, desk: SiteDesk) -> None:
    options = {"viewport": samples.SIZES["phone"]} | samples.KINDS["phone"]
    with browsing.visiting(browser, desk.url, **options) as tab:
        tab.page.goto(desk.login_link())
        tab.page.get_by_role("button", name="Sign in", exact=True).tap()  # once it can be pressed
        expect(tab.page.locator("body")).to_contain_text("Signed in as")


def test_login_that_ends_is_told_where_somebody_writes_and_the_draft_stays(
    browser: Any, desk: SiteDesk
) -> None:
    with browsing.visiting(browser, desk.url) as tab:
        enter(tab, desk)
        tab.go("/chat")
        box(tab).fill("what took ten minutes to write")
        for each in desk.ask("token", "list"):
            if each["kind"] == "page" and each["revoked_at"] is None:
                desk.ask("token", "revoke", each["id"])
        tab.page.get_by_role("button", name="Send").click()
        tab.sees(OVER)
        sign_in_again(tab, desk)
        expect(box(tab)).to_have_value("what took ten minutes to write")
        tab.page.get_by_role("button", name="Send").click()
        tab.sees("echo: what took ten minutes to write")


def test_browser_that_has_lost_its_proof_is_told_so_on_every_page(browser: Any, desk: SiteDesk) -> None:
    with browsing.visiting(browser, desk.url) as tab:
        enter(tab, desk)
        desk.say("first words", "unproven", chat_name="room of the unproven")
        tab.go("/sessions")
        tab.page.locator("[data-row]", has_text="room of the unproven").click()
        tab.sees("echo: first words")
        tab.page.evaluate("localStorage.clear()")
        for path in (tab.page.url.removeprefix(tab.url), *PLACES):
            tab.go(path)
            expect(tab.page.get_by_role("alert")).to_contain_text(OVER)
            expect(tab.page.get_by_label("your token")).to_be_visible()
            assert tab.overflow() <= 0
        sign_in_again(tab, desk)
        expect(tab.page.get_by_role("alert")).to_have_count(0)
        expect(tab.page.get_by_role("button", name="Sign out")).to_be_visible()
