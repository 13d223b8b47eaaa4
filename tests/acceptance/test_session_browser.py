"""Sessions and transcripts in a real browser, over the program as a user starts it."""

import json
from base64 import b64decode
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from frontdesk.formats import webhooks
from tests import browsing
from tests.acceptance.services import token_of
from tests.acceptance.test_run import SECRET, Receiver, gateway, request
from tests.browsing import BrowserTab, playwright

pytestmark = [browsing.needs_browser, pytest.mark.timeout(300)]

HOSTILE = "</b><script>alert(1)</script>\u202e\u200b"

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


class WritingShop:
    """Somebody who writes from another channel."""

    def __init__(self, url: str, home: Path) -> None:
        self.url = url
        self.token = token_of(home)
        self._written = 0

    def write(self, text: str, chat: str, **named: str) -> None:
        self._written += 1
        event = f"e{self._written}"
        told = {"id": event, "chat_id": chat, "user_id": f"user-{chat}", "text": text} | named
        body = json.dumps(told).encode()
        headers = webhooks.signed_headers(SECRET, event, datetime.now(UTC), body)
        status, answer = request(self.url, "POST", "/channels/webhook/shop", body, dict(headers))
        assert status == 202, answer


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WritingShop]:
    home = tmp_path_factory.mktemp("home")
    with Receiver().serving() as receiver, gateway(home, receiver) as (_, url):
        yield WritingShop(url, home)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing.browser() as opened:
        yield opened


expect = playwright.expect


def open_session(visitor: BrowserTab, chat: str) -> None:
    visitor.go("/sessions?q=person:webhook@shop:user-" + chat)
    visitor.page.locator("[data-row]").first.click()
    expect(visitor.page.locator("#thread-title")).to_be_visible()


def test_answer_to_another_channel_is_seen_growing_and_then_once(browser: Any, shop: WritingShop) -> None:
    with browsing.visiting(browser, shop.url) as visitor:
        visitor.sign_in(shop.token)
        page = visitor.page
        visitor.go("/sessions")
        visitor.sees("Live")
        shop.write("!say **half** of; !hang", "live", user_name="Ann", chat_name=HOSTILE)
        row = page.locator("[data-row]", has_text="writing")
        expect(row).to_have_count(1)
        expect(row).to_contain_text("</b><script>alert(1)</script>")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_url("**/sessions/*")
        expect(page.locator("#growing strong", has_text="half")).to_be_visible()
        shop.write("/stop", "live")
        expect(page.locator("#growing")).to_have_count(0)
        expect(page.locator(".msg.out strong", has_text="half")).to_have_count(1)
        expect(page.locator(".thread .chip.work")).to_have_count(0)


def test_what_grows_stays_where_it_is_the_same_and_is_read_out_when_it_is_whole(
    browser: Any, shop: WritingShop
) -> None:
    shop.write("!say **Sums**\n\nthey are; !sleep 3; !say  added up; !hang", "growing")
    with browsing.visiting(browser, shop.url) as visitor:
        visitor.sign_in(shop.token)
        open_session(visitor, "growing")
        page = visitor.page
        said = page.locator("#growing strong", has_text="Sums").element_handle()
        expect(page.locator("#growing")).to_contain_text("added up")
        assert said.evaluate("(each) => each.isConnected"), "what somebody marks there stays marked"
        assert page.locator("[role=log] #growing").get_attribute("aria-live") == "off"
        shop.write("/stop", "growing")
        expect(page.locator("#growing")).to_have_count(0)


TOP = "(id) => document.getElementById(id).getBoundingClientRect().top"


def test_who_reads_what_was_said_before_is_not_moved_by_what_comes(browser: Any, shop: WritingShop) -> None:
    for number in range(10):
        shop.write(f"line {number}\n\nand\n\nmore", "reading")
    with browsing.visiting(browser, shop.url) as visitor:
        visitor.sign_in(shop.token)
        open_session(visitor, "reading")
        page = visitor.page
        expect(page.locator("#m20")).to_contain_text("line 9")
        page.locator("#m8").evaluate("(each) => each.scrollIntoView({ block: 'start' })")
        there = page.evaluate(TOP, "m8")
        for number in range(21, 27, 2):
            shop.write(f"number {number}\n\nand more", "reading")
            expect(page.locator(f"#m{number + 1}")).to_contain_text(f"number {number}")
            assert abs(page.evaluate(TOP, "m8") - there) <= 1


def test_session_is_found_and_opened_by_keyboard_alone(browser: Any, shop: WritingShop) -> None:
    shop.write("!say the purple elephant", "keys")
    with browsing.visiting(browser, shop.url) as visitor:
        visitor.sign_in(shop.token)
        page = visitor.page
        visitor.go("/sessions")
        expect(page.locator("[data-row]", has_text="purple elephant")).to_have_count(1)
        visitor.sees("Live")
        page.keyboard.press("/")
        page.keyboard.type("purple elephant")
        page.keyboard.press("Enter")
        page.wait_for_url("**q=purple*")
        expect(page.locator("[data-row]")).to_have_count(1)
        visitor.sees("Live")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        expect(page.locator(".log")).to_contain_text("the purple elephant")
        visitor.sees("Live")
        page.keyboard.press("i")
        expect(page.locator("#facts")).to_contain_text("webhook@shop:user-keys")
        page.keyboard.press("?")
        expect(page.locator("#keys")).to_contain_text("Facts")


def test_phone_shows_one_pane_in_which_everything_can_be_read(browser: Any, shop: WritingShop) -> None:
    long = "| a | b |\n|---|---|\n| " + "x" * 300 + " | y |\n\n`" + "z" * 300 + "`"
    shop.write(long, "phone", chat_name="n" * 300)
    with browsing.visiting(browser, shop.url, viewport=browsing.PHONE, has_touch=True) as visitor:
        visitor.sign_in(shop.token)
        page = visitor.page
        open_session(visitor, "phone")
        expect(page.locator(".list")).to_be_hidden()
        expect(page.locator(".msg.out")).to_contain_text("xxx")
        check_legible(visitor)
        page.get_by_role("link", name="Back to sessions").click()
        expect(page.locator(".list")).to_be_visible()
        expect(page.locator(".thread")).to_be_hidden()
        check_legible(visitor)


def check_legible(visitor: BrowserTab) -> None:
    """Nothing is wider than the screen, or too faint, in the light and in the dark."""
    for scheme in ("light", "dark"):
        visitor.page.emulate_media(color_scheme=scheme)
        assert visitor.overflow() <= 0
        assert visitor.faint() == []


def test_files_are_attached_removed_and_sent_and_those_of_the_agent_are_saved(
    browser: Any, shop: WritingShop
) -> None:
    picture = {"name": "dot\u202egnp.png", "mimeType": "image/png", "buffer": b64decode(DOT)}
    script = {"name": "x.svg", "mimeType": "image/svg+xml", "buffer": SVG}
    large = {"name": "large.bin", "mimeType": "application/zip", "buffer": bytes(21 * 1024 * 1024)}
    phone: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
    with browsing.visiting(browser, shop.url, accept_downloads=True, **phone) as visitor:
        visitor.sign_in(shop.token)
        page = visitor.page
        visitor.go("/chat")
        attached = page.locator("#attached li")
        page.locator("#files").set_input_files([picture, script, large])
        expect(attached).to_have_count(3)
        expect(attached.nth(2)).to_contain_text("It is larger than")
        expect(page.locator("#attached progress")).to_have_count(0)
        expect(attached.nth(0)).to_contain_text("70 byte")
        assert page.evaluate("document.documentElement.scrollWidth") <= phone["viewport"]["width"]
        page.locator("#say").fill("!file back.txt for you; !say here")
        page.get_by_role("button", name="Send").click()
        visitor.sees("Not sent: a file is not here")
        page.get_by_role("button", name="Remove large.bin").click()
        expect(attached).to_have_count(2)
        visitor.go("/chat")
        expect(attached).to_have_count(2)
        page.get_by_role("button", name="Send").click()
        page.wait_for_url("**/sessions/*")
        shown = page.locator(".msg.in img.preview")
        expect(shown).to_have_count(1)
        shown.scroll_into_view_if_needed()
        page.wait_for_function("document.querySelector('.msg.in img.preview').naturalWidth === 1")
        expect(page.locator("#attached li")).to_have_count(0)
        given = page.get_by_role("link", name="Save back.txt")
        with page.expect_download() as downloading:
            given.click()
        assert downloading.value.suggested_filename == "back.txt"
        assert Path(downloading.value.path()).read_text() == "for you"
