"""Pages when something is not as it usually is: no mouse, a login that is over, a line that is cut."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests import browsing, samples
from tests.acceptance.sites import SiteDesk, browser, desk, enter, receiver
from tests.acceptance.test_run import SECRET, Receiver
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


class Relay:
    """Between a browser and the server. Once it stalls, nothing more goes through the streams that are open,
    of which neither side is told; whatever else is open is closed."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._open: list[tuple[socket.socket, socket.socket, list[bytes]]] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def stall(self) -> None:
        for *ends, asked in self._open:
            if b"/events" in asked[-1]:
                asked.append(b"")
            else:
                _end(*ends)

    def close(self) -> None:
        _end(self._listening)
        for *ends, _ in self._open:
            _end(*ends)
        for thread in self._threads:
            thread.join()
        for each in (self._listening, *(end for *ends, _ in self._open for end in ends)):
            each.close()

    def _start(self, work: Callable[..., None], *given: Any) -> None:
        self._threads.append(threading.Thread(target=work, args=given, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        with suppress(OSError):  # it is closed
            while True:
                near, _ = self._listening.accept()
                far, asked = socket.create_connection(("127.0.0.1", self._port)), [b"-"]
                self._open.append((near, far, asked))
                self._start(self._pass, near, far, asked, True)
                self._start(self._pass, far, near, asked, False)

    def _pass(self, one: socket.socket, other: socket.socket, asked: list[bytes], is_asking: bool) -> None:
        with suppress(OSError):  # one of the two is gone
            while piece := one.recv(65_536):
                if is_asking:
                    asked.append(piece)
                if asked[-1]:
                    other.sendall(piece)
            other.shutdown(socket.SHUT_WR)


def _end(*ends: socket.socket) -> None:
    for each in ends:
        with suppress(OSError):  # it is gone
            each.shutdown(socket.SHUT_RDWR)


@contextmanager
def relaying(port: int) -> Iterator[Relay]:
    relay = Relay(port)
    try:
        yield relay
    finally:
        relay.close()


def is_live(tab: BrowserTab, sign: str = "●") -> None:
    expect(tab.page.locator("#connection")).to_contain_text(sign)


def test_connection_that_says_nothing_any_more_is_made_anew(browser: Any, desk: SiteDesk) -> None:
    with relaying(desk.port) as relay, browsing.visiting(browser, relay.url) as tab:
        tab.follow(desk.login_link().replace(desk.url, relay.url))
        tab.sees("Signed in as")
        tab.page.clock.install()
        tab.go("/sessions")
        is_live(tab)
        relay.stall()
        desk.say("fire in the data centre", "fire", chat_name="room of fire")
        tab.page.clock.fast_forward(63_000)
        tab.sees("room of fire")
        is_live(tab)


def test_browser_without_a_network_says_so_and_comes_back(browser: Any, desk: SiteDesk) -> None:
    with browsing.visiting(browser, desk.url) as tab:
        enter(tab, desk)
        tab.go("/sessions")
        is_live(tab)
        tab.context.set_offline(True)
        is_live(tab, "◔")
        tab.context.set_offline(False)
        is_live(tab)
        tab.troubles.clear()  # the browser complains about what it could not load


def test_look_that_failed_is_tried_again(browser: Any, desk: SiteDesk) -> None:
    with browsing.visiting(browser, desk.url) as tab:
        enter(tab, desk)
        tab.go("/sessions")
        is_live(tab)
        looks: list[str] = []

        def refuse_at_first(route: Any) -> None:
            looks.append(route.request.url)
            if len(looks) > 2:
                route.continue_()
            else:
                route.fulfill(status=503, body="busy")

        tab.page.route(f"{desk.url}/sessions", refuse_at_first)
        desk.say("one event, and no other", "again", chat_name="room of patience")
        tab.sees("echo: one event, and no other")
        is_live(tab)
        assert len(looks) > 2
        tab.troubles.clear()  # the browser complains about what was refused


def test_overview_tells_by_itself_that_a_channel_fails_and_works_again(
    browser: Any, tmp_path: Path, receiver: Receiver
) -> None:
    desk, secret = SiteDesk(tmp_path, receiver), tmp_path / "secret"
    secret.write_text(SECRET)
    settings = tmp_path / ".frontdesk" / "frontdesk.toml"
    told = settings.read_text().replace('secret_env = "SHOP_SECRET"', f'secret_file = "{secret}"')
    settings.write_text(told)
    with desk.running(), browsing.visiting(browser, desk.url) as tab:
        enter(tab, desk)
        tab.go("/overview")
        tab.sees("Everything works.")
        is_live(tab)
        secret.rename(tmp_path / "elsewhere")
        tab.sees("webhook takes no messages: There is no secret in")
        tab.sees("One thing needs you")
        (tmp_path / "elsewhere").rename(secret)
        tab.sees("Everything works.")
