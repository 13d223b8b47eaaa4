"""The site in a real browser, served by the program as a user starts it: from the login to the last event."""

from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT

from frontdesk.web.pages.frame import PLACES
from tests import browsing
from tests.acceptance.sites import SiteDesk, browser, desk, enter, member, receiver, tab
from tests.acceptance.test_run import Receiver
from tests.browsing import BrowserTab, playwright

__all__ = ["browser", "desk", "member", "receiver", "tab"]

pytestmark = [browsing.needs_browser, pytest.mark.timeout(300)]

SERIOUS = ("moderate", "serious", "critical")
OF_COLOURS = ["color-contrast", "link-in-text-block"]
PATIENCE = browsing.PATIENCE_MILLISECONDS


def row(tab: BrowserTab, text: str) -> Any:
    return tab.page.locator("[data-row]", has_text=text)


def test_message_from_a_chat_appears_by_itself_and_its_answer_too(tab: BrowserTab, desk: SiteDesk) -> None:
    chat = f"live-{id(tab)}"
    tab.go("/sessions")
    playwright.expect(tab.page.locator("#connection")).to_contain_text("Live", timeout=PATIENCE)
    desk.say("good morning to all", chat, chat_name=chat)
    playwright.expect(row(tab, chat)).to_be_visible(timeout=PATIENCE)
    row(tab, chat).click()
    tab.sees("echo: good morning to all")
    desk.say("and a good night", chat, chat_name=chat)
    tab.sees("echo: and a good night")


def test_words_are_found_and_keys_lead_to_what_was_found(tab: BrowserTab, desk: SiteDesk) -> None:
    word = f"needle{id(tab)}"
    desk.say(f"look for the {word} here", word, chat_name=f"room of {word}")
    tab.go("/sessions")
    tab.sees(f"room of {word}")
    tab.page.keyboard.press("/")
    tab.page.keyboard.type(word)
    tab.page.keyboard.press("Enter")
    playwright.expect(tab.page.locator("[data-row]")).to_have_count(1, timeout=PATIENCE)
    tab.page.locator("h2").first.click()
    tab.page.keyboard.press("j")
    tab.page.keyboard.press("Enter")
    tab.sees(f"echo: look for the {word} here")


def test_page_goes_on_after_the_server_was_killed_without_losing_an_event(
    browser: Any, tmp_path: Any, receiver: Receiver
) -> None:
    desk = SiteDesk(tmp_path, receiver)
    with browsing.visiting(browser, desk.url) as tab:
        with desk.running():
            enter(tab, desk)
            tab.go("/sessions")
            desk.say("before", chat_name="room of before")
            tab.sees("room of before")
            desk.kill()
            playwright.expect(tab.page.locator("#connection")).to_contain_text("◔", timeout=PATIENCE)
        tab.troubles.clear()  # the browser complains about the connection that was cut
        with desk.running():
            desk.say("after", "c2", chat_name="room of after")
            tab.sees("room of after")
            playwright.expect(tab.page.locator("#connection")).to_contain_text("●", timeout=PATIENCE)
            tab.troubles.clear()


def test_keys_are_shown_and_lead_to_every_place(tab: BrowserTab) -> None:
    tab.go("/sessions")
    tab.page.keyboard.press("?")
    dialog = tab.page.locator("dialog#keys")
    playwright.expect(dialog).to_be_visible(timeout=PATIENCE)
    places = tab.page.eval_on_selector_all(
        "[data-go]", "all => all.map(each => [each.dataset.go, each.pathname])"
    )
    tab.page.keyboard.press("Escape")
    assert len(places) > 5
    for key, path in places:
        playwright.expect(tab.page.locator("html.scripted")).to_be_attached(timeout=PATIENCE)
        with tab.page.expect_navigation(url=f"**{path}", timeout=PATIENCE) as leading:
            tab.page.keyboard.press("g")
            tab.page.keyboard.press(key)
        assert leading.value.ok, path
        assert (path, tab.unlisted_keys()) == (path, [])


def test_address_that_leads_nowhere_is_told_on_a_page_with_a_way_back(tab: BrowserTab) -> None:
    assert tab.go("/nowhere").status == 404
    tab.sees("Not Found")
    tab.page.get_by_role("link").first.click()
    playwright.expect(tab.page.locator(".rail nav")).to_be_visible(timeout=PATIENCE)


def assert_nothing_serious(tab: BrowserTab, where: str) -> None:
    """In light, and in the dark, which is other colours and nothing else."""
    for scheme, limits in (("light", {}), ("dark", {"runOnly": OF_COLOURS})):
        tab.page.emulate_media(color_scheme=scheme)
        options = {"resultTypes": ["violations"], **limits}
        found = tab.page.evaluate("options => axe.run(options)", options)["violations"]
        told = [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in SERIOUS]
        assert told == [], (where, scheme)


def test_axe_finds_nothing_serious_on_any_page(tab: BrowserTab, desk: SiteDesk) -> None:
    room = f"room for axe {id(tab)}"
    desk.say("!tool look {}; !say **bold** words", room, chat_name=room)
    tab.page.add_init_script(AXE_SCRIPT)
    for path in (*(place.path for place in PLACES), "/chat", "/nowhere"):
        tab.go(path)
        assert_nothing_serious(tab, path)
    tab.go("/sessions")
    row(tab, room).first.click()
    playwright.expect(tab.page.locator(".log")).to_be_visible(timeout=PATIENCE)
    assert_nothing_serious(tab, "a session")
