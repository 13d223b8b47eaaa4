"""The site in a real browser, served by the program as a user starts it: from the login to the last event."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT

from frontdesk.web.pages.frame import PLACES
from tests import browsing, patience, schemas
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


class TwoNodes:
    """Two processes on one PostgreSQL, and somebody with a browser at each."""

    def __init__(self, store: str, desks: list[SiteDesk], tabs: list[BrowserTab]) -> None:
        self._store, self.desks, self.tabs = store, desks, tabs

    def runner_of(self, text: str) -> int:
        """Which of the two works on a message, as soon as one does."""
        found: list[int] = []

        def look() -> bool:
            # The browser's driver has an event loop on this thread.
            with ThreadPoolExecutor(1) as thread:
                found.extend(thread.submit(asyncio.run, self._holders(text)).result())
            return bool(found)

        patience.until(look)
        return found[0] - 1  # they are numbered in the order in which they came

    async def _holders(self, text: str) -> list[int]:
        query = """SELECT l.holder FROM turns t JOIN lanes l ON l.name = t.lane
            WHERE t.state IN ('running', 'waiting') AND l.holder IS NOT NULL AND position($1 in t.body) > 0"""
        async with schemas.connected(self._store) as connection:
            return [row["holder"] for row in await connection.fetch(query, text.encode())]

    def look_at(self, node: int, chat: str) -> BrowserTab:
        """The session of a chat, on the page of one of the two."""
        tab = self.tabs[node]
        tab.go("/sessions")
        row(tab, chat).click()
        playwright.expect(tab.page.locator("#thread-title")).to_be_visible(timeout=PATIENCE)
        return tab


@pytest.fixture
def nodes(browser: Any, tmp_path: Path, receiver: Receiver, postgres_url: str) -> Iterator[TwoNodes]:
    desks, tabs, store = [], [], schemas.fresh_schema(postgres_url)
    with ExitStack() as opened:
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
            desk = SiteDesk(tmp_path / name, receiver, f'\n[store]\nurl = "{store}"\n')
            desks.append(opened.enter_context(desk.running()))
            tabs.append(opened.enter_context(browsing.visiting(browser, desk.url)))
            enter(tabs[-1], desk)
        yield TwoNodes(store, desks, tabs)


def test_page_of_another_node_shows_stops_decides_and_outlives(nodes: TwoNodes, receiver: Receiver) -> None:
    first = nodes.tabs[0]
    first.go("/chat")
    first.page.get_by_label("Message to the agent").fill("!say words that grow; !hang")
    first.page.get_by_role("button", name="Send").click()
    other = 1 - nodes.runner_of("words that grow")
    tab = nodes.look_at(other, "words that grow")
    playwright.expect(tab.page.locator("#growing", has_text="words that grow")).to_be_visible(
        timeout=PATIENCE
    )
    tab.press("Stop")
    playwright.expect(tab.page.locator("#growing")).to_have_count(0, timeout=PATIENCE)
    playwright.expect(tab.page.locator("#stop-shown button")).to_have_count(0, timeout=PATIENCE)

    nodes.desks[0].say(
        '!approve remove_file {"file": "a.txt"}; !decision remove_file', "c1", chat_name="asked"
    )
    other = 1 - nodes.runner_of("!approve remove_file")
    tab = nodes.tabs[other]
    tab.go("/approvals")
    tab.page.get_by_role("link", name="remove_file").click()
    tab.sees('file: "a.txt"')
    tab.press("Approve")
    tab.sees("It is approved")
    nodes.look_at(other, "asked").sees("approved: remove_file")

    nodes.desks[0].say("!say before the end; !hang 1; !say and after it", "c2", chat_name="outlived")
    other = 1 - nodes.runner_of("before the end")
    tab = nodes.look_at(other, "outlived")
    playwright.expect(tab.page.locator("#growing", has_text="before the end")).to_be_visible(timeout=PATIENCE)
    nodes.tabs[1 - other].page.goto("about:blank")  # or its browser would complain, now and later
    nodes.desks[1 - other].kill()
    said = tab.page.locator(".msg.out:not(#growing)", has_text="and after it")
    playwright.expect(said).to_have_count(1, timeout=PATIENCE)
    playwright.expect(tab.page.locator("#growing")).to_have_count(0, timeout=PATIENCE)
    patience.until(lambda: any("and after it" in each["text"] for each in receiver.got))
    assert sum("and after it" in each["text"] for each in receiver.got) == 1


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
