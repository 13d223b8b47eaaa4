"""The pages for approvers in a real browser, served by the program as a user starts it."""

import json
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk.formats import links
from frontdesk.model.confirmations import STRANGER
from frontdesk.web.visitors import COOKIE
from tests import browsing, loopback, samples
from tests.acceptance import program, test_approval
from tests.acceptance.services import serving, token_of
from tests.acceptance.test_run import Receiver, post, receiver
from tests.browsing import BrowserTab

__all__ = ["receiver"]

pytestmark = [browsing.needs_browser, pytest.mark.timeout(300)]

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\" onload='alert(3)' </pre>&amp;"
TURNED = "txt.\u202eexe\u2066\u200b"
SECRET = "aB3dE5gH7jK9mN2pQ4"
ARMED_AFTER_MILLISECONDS = 1_100


class Desk:
    """The service with its pages, an agent that asks and somebody who decides elsewhere."""

    def __init__(self, home: Path, url: str, page_url: str) -> None:
        self.home = home
        self.url = url
        self.page_url = page_url
        self.token = token_of(home)
        self._link_key = bytes.fromhex((home / ".frontdesk" / "confirm" / "link.key").read_text())
        headers = {"authorization": f"Bearer {self.token}"}
        self._agent = httpx.Client(base_url=url, trust_env=False)
        self._approver = httpx.Client(base_url=url, trust_env=False, headers=headers)

    def ask(self, action: str, **fields: Any) -> dict[str, Any]:
        body = {"action": action, "description": "Because.", "details": {"for": action}} | fields
        answer = self._agent.post("/confirm", json=body)
        assert answer.status_code in (200, 202, 403), answer.text
        return dict(answer.json())

    def decide(self, asked: dict[str, Any], verb: str, **said: str) -> None:
        self._approver.post(f"/confirm/{asked['id']}/{verb}", json=said).raise_for_status()

    def add_rule(self, **rule: Any) -> None:
        self._approver.post("/rules", json=rule).raise_for_status()

    def lift_pause(self) -> None:
        answer = self._approver.post("/pauses/lift", json={"requester": STRANGER})
        assert answer.status_code in (204, 404), answer.text

    def shown(self, asked: dict[str, Any]) -> dict[str, Any]:
        return dict(self._approver.get(f"/confirm/{asked['id']}").raise_for_status().json())

    def logged(self, asked: dict[str, Any]) -> list[str]:
        """What the log has of a request, oldest first."""
        told = self._approver.get("/audit?view=events&limit=100").raise_for_status().json()
        rows = reversed(told["entries"])
        return [row["kind"] for row in rows if row["confirmation_id"] == asked["id"]]

    def status(self, asked: dict[str, Any]) -> str:
        return str(self.shown(asked)["status"])

    def link(self, asked: dict[str, Any]) -> str:
        """A one-tap link, as the path that it leads to."""
        expires_at = datetime.fromtimestamp(asked["expires_at"], UTC)
        link = links.decision(asked["id"], asked["digest"], "token:approver", expires_at)
        return links.address("", self._link_key, link)

    def close(self) -> None:
        self._agent.close()
        self._approver.close()


@contextmanager
def alone(home: Path, page_port: int | None = None) -> Iterator[Desk]:
    options = ("--page-port", str(page_port or loopback.free_port()), "--rate-limit", "1000")
    with serving(home, *options) as service:
        found = re.search(r"at (http://[\d.:]+)/approvals", service.greeting)
        assert found
        with closing(Desk(home, service.url, found[1])) as desk:
            yield desk
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(program.PATIENCE_SECONDS) == 0, "pages that listen keep it from ending"


@contextmanager
def beside_a_gateway(home: Path) -> Iterator[Desk]:
    folder = home / ".frontdesk"
    folder.mkdir()
    settings = f'[agent]\ndriver = "scripted"\n[server]\nport = 0\n[confirm]\nport = {loopback.free_port()}\n'
    (folder / "frontdesk.toml").write_text(settings)
    with program.start(home, "run", "--log-level", "error", terminal=False) as process:
        greeting = program.read_until(process, "/approvals.")
        found = re.search(r"confirmation at (http://[\d.:]+); people decide at (http://[\d.:]+)/", greeting)
        assert found
        with closing(Desk(home, found[1], found[2])) as desk:
            yield desk
        process.send_signal(signal.SIGTERM)
        assert process.wait(program.PATIENCE_SECONDS) == 0


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing.browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with alone(tmp_path_factory.mktemp("home")) as opened:
        yield opened


@pytest.fixture(autouse=True)
def forgiven(desk: Desk) -> None:
    """What was denied in the tests before pauses nobody."""
    desk.lift_pause()


@pytest.fixture
def visitor(browser: Any, desk: Desk) -> Iterator[BrowserTab]:
    with browsing.visiting(browser, desk.page_url) as opened:
        yield opened


@pytest.fixture(scope="module")
def member(browser: Any, desk: Desk) -> Iterator[BrowserTab]:
    with browsing.visiting(browser, desk.page_url) as opened:
        opened.sign_in(desk.token)
        opened.page.close()
        yield opened


@pytest.fixture
def signed_in(member: BrowserTab) -> Iterator[BrowserTab]:
    with browsing.another_page(member) as opened:
        opened.go()
        yield opened


@pytest.mark.parametrize("opened", [alone, beside_a_gateway])
def test_approver_signs_in_sees_what_waits_and_decides(
    browser: Any, tmp_path: Path, opened: Callable[[Path], Any]
) -> None:
    with opened(tmp_path) as desk, browsing.visiting(browser, desk.page_url) as visitor:
        visitor.sign_in(desk.token)
        visitor.sees("Nothing waits.")
        for action, button, status in (("send", "Approve", "approved"), ("drop", "Deny", "denied")):
            asked = desk.ask(action, details={"to": "ann@example.org", "password": SECRET})
            visitor.sees_link(action)
            visitor.page.get_by_role("link", name=action).click()
            visitor.sees('to: "ann@example.org"')
            visitor.sees("password: •••• (hidden)")
            assert SECRET not in visitor.page.content()
            visitor.give_reason("as agreed")
            if button == "Approve":
                assert not visitor.can_press("Approve")
                visitor.press("Show hidden values")
                visitor.sees(f'password: "{SECRET}"')
            visitor.press(button)
            visitor.sees(f"It is {status}")
            assert visitor.button_count(button) == 0
            shown = desk.shown(asked)
            assert (shown["status"], shown["reason"], shown["resolved_by"]) == (
                status,
                "as agreed",
                "token:approver",
            )
            visitor.page.get_by_role("link", name="Approvals", exact=True).click()
            visitor.sees("Nothing waits.")


def test_action_of_an_agent_behind_the_gateway_is_approved_with_a_click(
    browser: Any, tmp_path: Path, receiver: Receiver
) -> None:
    desk = test_approval.Desk(tmp_path, receiver)
    with desk.running() as (_, url), browsing.visiting(browser, url) as visitor:
        visitor.sign_in(token_of(tmp_path))
        assert post(url, "e1", "please remove it") == 202
        visitor.sees_link("remove_file")
        visitor.page.get_by_role("link", name="remove_file").click()
        visitor.sees('file: "a.txt"')
        visitor.press("Approve")
        visitor.sees("It is approved")
        assert "removed" in receiver.wait_for(2)
    assert desk.done.read_text() == "removed a.txt\n"


def test_wrong_token_is_told_and_nothing_is_shown(visitor: BrowserTab, desk: Desk) -> None:
    desk.ask("hidden_from_strangers")
    assert visitor.go().status == 401
    visitor.page.get_by_label("token").fill("not-the-token")
    visitor.press("Sign in")
    visitor.sees("Nobody is known by this.")
    assert "hidden_from_strangers" not in visitor.page.content()
    visitor.page.get_by_label("token").fill(desk.token)
    visitor.press("Sign in")
    visitor.sees_link("hidden_from_strangers")


def test_hostile_text_is_shown_as_text(signed_in: BrowserTab, desk: Desk) -> None:
    long = "0123456789" * 1_000
    details = {HOSTILE: HOSTILE, "name": TURNED, "long": long, "address": "https://evil.example/x"}
    asked = desk.ask(HOSTILE, description=HOSTILE, details=details, session_key=HOSTILE)
    signed_in.sees_link("alert(1)")
    signed_in.go(f"/approvals/{asked['id']}")
    shown = signed_in.page.locator("#action").inner_text()
    written = f'"{HOSTILE}"'.replace('" onload', '\\" onload')
    assert written in signed_in.page.locator("h1").inner_text()
    assert written in signed_in.page.locator(".asked").inner_text()
    assert "txt.\\u{202e}exe\\u{2066}\\u{200b}" in shown
    assert long in shown
    assert "https://evil.example/x" in shown
    assert "alert(2)" in signed_in.page.locator("blockquote").inner_text()
    assert signed_in.page.locator("main script, main img").count() == 0
    leading = signed_in.page.locator("a").evaluate_all(
        "(all) => all.map((each) => each.getAttribute('href'))"
    )
    assert {each.partition("#")[0] for each in leading} == {"", "/", "/approvals"}
    assert TURNED[4] not in signed_in.page.content()


def test_list_follows_what_happens_elsewhere_without_a_reload(signed_in: BrowserTab, desk: Desk) -> None:
    signed_in.page.evaluate("window.kept = true")
    asked = desk.ask("arrives_later")
    signed_in.sees_link("arrives_later")
    assert signed_in.page.title().endswith(") Approvals · frontdesk")
    desk.decide(asked, "deny")
    signed_in.sees_link("arrives_later", there=False)
    assert signed_in.page.evaluate("window.kept")


def test_request_follows_a_decision_made_elsewhere(signed_in: BrowserTab, desk: Desk) -> None:
    asked = desk.ask("decided_elsewhere")
    signed_in.go(f"/approvals/{asked['id']}")
    signed_in.give_reason("half a reas")
    desk.ask("another_one")
    desk.decide(asked, "deny", denier="Ann", reason="not today")
    signed_in.sees("It is denied")
    signed_in.sees("not today")
    signed_in.sees("Nothing more can be decided.")
    assert signed_in.button_count("Approve") == 0


@pytest.mark.parametrize("linked", [False, True], ids=["signed in", "with a link"])
def test_hidden_values_are_shown_with_a_click_before_deciding(browser: Any, desk: Desk, linked: bool) -> None:
    asked = desk.ask("reveals", details={"linked": linked, "password": SECRET, "note": f"{HOSTILE}{TURNED}"})
    with browsing.visiting(browser, desk.page_url) as visitor:
        if linked:
            visitor.go(desk.link(asked))
        else:
            visitor.sign_in(desk.token)
            visitor.go(f"/approvals/{asked['id']}")
        visitor.sees("1 value is hidden: password")
        assert SECRET not in visitor.page.content()
        assert (visitor.overflow(), visitor.faint()) == (0, [])
        visitor.press("Show hidden values")
        visitor.sees(f'password: "{SECRET}"')
        visitor.sees("The log says that you looked.")
        assert "txt.\\u{202e}exe" in visitor.page.locator("#action").inner_text()
        assert visitor.page.locator("main script, main img").count() == 0
        assert visitor.button_count("Show hidden values") == 0
        assert desk.status(asked) == "pending"
        visitor.press("Deny")
        visitor.sees("It is denied")
        visitor.sees(f'password: "{SECRET}"')
    assert desk.logged(asked) == ["submitted", "revealed", "denied"]


def test_target_of_one_of_the_ten_is_typed(signed_in: BrowserTab, desk: Desk) -> None:
    asked = desk.ask("wipe_database", details={"database": "customers_prod"})
    signed_in.go(f"/approvals/{asked['id']}")
    assert not signed_in.can_press("Approve")
    target = signed_in.page.get_by_label("To approve, type")
    target.fill("customers")
    signed_in.press("Approve")
    signed_in.sees("is not approved: type the value of")
    assert desk.status(asked) == "pending"
    target.fill("customers_prod")
    signed_in.press("Approve")
    signed_in.sees("It is approved")
    assert desk.status(asked) == "approved"


def test_decision_made_elsewhere_is_told_to_who_only_hears(signed_in: BrowserTab, desk: Desk) -> None:
    asked = desk.ask("told_elsewhere")
    signed_in.go(f"/approvals/{asked['id']}")
    signed_in.waits_until("Deny")
    desk.decide(asked, "deny", denier="Bob")
    told = signed_in.page.get_by_role("status").filter(has_text='It is denied by token:approver ("Bob")')
    browsing.playwright.expect(told).to_have_count(1)


def test_session_that_ended_meanwhile_is_told(visitor: BrowserTab, desk: Desk) -> None:
    asked = desk.ask("ends_meanwhile")
    visitor.sign_in(desk.token)
    visitor.go(f"/approvals/{asked['id']}")
    visitor.waits_until("Approve")
    visitor.context.clear_cookies()
    visitor.press("Approve")
    visitor.sees("Your session has ended. Sign in, and look whether what you did was taken.")
    assert desk.status(asked) == "pending"
    visitor.page.reload()
    assert "has ended" not in visitor.page.inner_text("body")


def test_what_is_dangerous_has_its_place_in_the_list(signed_in: BrowserTab, desk: Desk) -> None:
    desk.ask("run", details={"command": "rm -rf /srv/listed"})
    desk.ask("look_around")
    signed_in.go()
    for heading, name in (("Dangerous", "rm -rf /srv/listed"), ("Others", "look_around")):
        section = signed_in.page.locator("section").filter(
            has=signed_in.page.get_by_role("heading", name=heading)
        )
        browsing.playwright.expect(section.get_by_role("link", name=name)).to_have_count(1)


def test_digest_that_is_typed_can_be_seen(signed_in: BrowserTab, desk: Desk) -> None:
    asked = desk.ask("rotate_keys", details={})
    signed_in.go(f"/approvals/{asked['id']}")
    signed_in.page.get_by_role("link", name="Where it stands").click()
    shown = signed_in.page.locator("#digest")
    browsing.playwright.expect(shown).to_be_in_viewport()
    signed_in.page.get_by_label("digest").fill(shown.inner_text()[-6:])
    signed_in.press("Approve")
    signed_in.sees("It is approved")


def test_buttons_hold_their_words_when_text_is_twice_as_large(browser: Any, desk: Desk) -> None:
    asked = desk.ask("delete_data", details={"table": "large"})
    with browsing.visiting(browser, desk.page_url, viewport=browsing.PHONE, bypass_csp=True) as visitor:
        visitor.sign_in(desk.token)
        visitor.go(f"/approvals/{asked['id']}")
        visitor.page.add_style_tag(content="html { font-size: 200% }")
        for button in visitor.page.locator(".choice button").all():
            assert button.evaluate("each => each.scrollWidth <= each.clientWidth")
        assert visitor.overflow() <= 0


def test_rest_of_a_long_line_keeps_its_indent(browser: Any, desk: Desk) -> None:
    asked = desk.ask("wraps", details={"a": {"b": {"c": "word " * 200}}})
    with browsing.visiting(browser, desk.page_url, viewport={"width": 390, "height": 844}) as visitor:
        visitor.go(desk.link(asked))
        visitor.sees("word word")
        # Every piece of the line begins further right than the lines that nothing is above.
        lefts = visitor.page.evaluate(
            """() => {
                const [first, ...others] = document.querySelectorAll("#action p");
                const pieces = (line) => {
                    const range = document.createRange();
                    range.selectNodeContents(line);
                    return [...range.getClientRects()].map((each) => each.left);
                };
                return [pieces(first)[0], pieces(others.at(-1))];
            }"""
        )
        assert len(lefts[1]) > 5
        assert min(lefts[1]) > lefts[0]
        assert visitor.overflow() == 0


def test_decision_that_comes_too_late_is_told(browser: Any, desk: Desk) -> None:
    asked = desk.ask("decided_before")
    # Without events the page learns of it only by its own attempt.
    with browsing.visiting(browser, desk.page_url) as visitor:
        visitor.context.route("**/events*", lambda _: None)
        visitor.go(desk.link(asked))
        desk.decide(asked, "deny")
        visitor.press("Approve")
        visitor.sees("It is denied")
        assert "denied" in visitor.page.locator("#outcome").inner_text()
    assert desk.status(asked) == "denied"


def test_opening_a_link_changes_nothing_and_its_button_decides(visitor: BrowserTab, desk: Desk) -> None:
    asked = desk.ask("linked")
    for _ in range(3):
        assert visitor.go(desk.link(asked)).status == 200
    visitor.sees("This link is for token:approver.")
    assert desk.status(asked) == "pending"
    visitor.press("Approve")
    visitor.sees("It is approved")
    assert desk.status(asked) == "approved"
    visitor.go(desk.link(asked))
    visitor.sees("Nothing more can be decided.")
    assert visitor.button_count("Approve") == 0


def test_link_to_another_request_is_refused(visitor: BrowserTab, desk: Desk) -> None:
    asked, other = desk.ask("linked_first"), desk.ask("linked_second")
    token = desk.link(other).partition("?")[2]
    assert visitor.go(f"/approvals/{asked['id']}?{token}").status == 403
    visitor.sees("This link cannot be used")
    assert "linked_first" not in visitor.page.content()


def test_required_reason_is_asked_for(signed_in: BrowserTab, desk: Desk) -> None:
    desk.add_rule(effect="ask", action="needs_words", needs_reason=True)
    asked = desk.ask("needs_words")
    signed_in.go(f"/approvals/{asked['id']}")
    signed_in.press("Approve")
    assert signed_in.page.evaluate("document.activeElement.id") == "reason"
    assert desk.status(asked) == "pending"
    signed_in.give_reason("   ")
    signed_in.press("Approve")
    signed_in.sees("reason")
    assert desk.status(asked) == "pending"
    signed_in.give_reason("it was agreed")
    signed_in.press("Approve")
    signed_in.sees("It is approved")


def test_yes_of_one_of_two_is_told_and_waits(signed_in: BrowserTab, desk: Desk) -> None:
    desk.add_rule(effect="ask", action="takes_two", quorum=2)
    asked = desk.ask("takes_two")
    signed_in.go(f"/approvals/{asked['id']}")
    signed_in.give_reason("mine")
    signed_in.press("Approve")
    signed_in.sees("Your yes counts: 1 of 2 so far.")
    assert desk.status(asked) == "pending"
    assert signed_in.button_count("Deny") == 1, "a no is still possible"


def test_keyboard_alone_signs_in_and_decides(visitor: BrowserTab, desk: Desk) -> None:
    asked = desk.ask("by_keyboard")
    visitor.go(f"/approvals/{asked['id']}")
    visitor.tab_to("token")
    visitor.page.keyboard.type(desk.token)
    visitor.page.keyboard.press("Enter")
    visitor.sees("by_keyboard")
    visitor.tab_to("Add a reason")
    visitor.page.keyboard.press("Enter")
    visitor.tab_to("reason")
    visitor.page.keyboard.type("typed")
    visitor.page.keyboard.press("Enter")
    assert desk.status(asked) == "pending", "Enter in a field decides nothing"
    visitor.page.keyboard.press("Tab")
    assert visitor.unlisted_keys() == []
    visitor.page.keyboard.press("a")
    assert visitor.focused() == "Approve"
    visitor.page.keyboard.press("d")
    assert visitor.focused() == "Deny"
    visitor.waits_until("Deny")
    visitor.page.keyboard.press("Enter")
    visitor.sees("It is denied")
    assert desk.shown(asked)["reason"] == "typed"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [browsing.DESKTOP, browsing.PHONE], ids=["desktop", "phone"])
def test_every_page_fits_its_window_and_can_be_read(
    browser: Any, desk: Desk, scheme: str, size: dict[str, int]
) -> None:
    wide = {"one_word": "x" * 10_000, "lines": ["y" * 300] * 3}
    fields = {"details": wide, "description": "z" * 500, "session_key": "k" * 300}
    asked = desk.ask("delete_data" if scheme == "dark" else "w" * 150, **fields)
    decided = [desk.ask("fits", details={"in": [scheme, size], "no": verb}) for verb in ("approve", "deny")]
    desk.decide(decided[0], "approve", reason="r" * 300)
    desk.decide(decided[1], "deny")
    with browsing.visiting(browser, desk.page_url, viewport=size, color_scheme=scheme) as visitor:
        paths = ["/approvals", f"/approvals/{asked['id']}?t=forged", desk.link(asked)]
        for path in paths:
            visitor.go(path)
            assert (visitor.overflow(), visitor.faint()) == (0, []), path
        visitor.sign_in(desk.token)
        paths = ["/approvals", "/approvals/c_0", *(f"/approvals/{each['id']}" for each in (asked, *decided))]
        for path in paths:
            visitor.go(path)
            assert (visitor.overflow(), visitor.faint()) == (0, []), path


def test_click_meant_for_another_window_decides_nothing(signed_in: BrowserTab, desk: Desk) -> None:
    asked = desk.ask("for_another_window")
    page = signed_in.page
    page.clock.install(time=0)  # it stands still from here on, but for the second that buttons wait
    page.clock.pause_at(1_000)
    signed_in.go(f"/approvals/{asked['id']}")
    assert not signed_in.can_press("Deny"), "the page has just been shown"
    page.clock.run_for(ARMED_AFTER_MILLISECONDS)
    signed_in.waits_until("Approve")
    box = page.get_by_role("button", name="Approve", exact=True).bounding_box()
    place = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    # The window above is gone with the first of two clicks: the pointer is suddenly here, and clicks.
    page.mouse.click(*place)
    signed_in.sees("Not yet")
    for event in (
        "window.dispatchEvent(new Event('focus'))",
        "document.dispatchEvent(new Event('visibilitychange'))",
    ):
        page.clock.run_for(ARMED_AFTER_MILLISECONDS)
        signed_in.waits_until("Approve")
        page.evaluate(event)
        page.mouse.click(*place)
        assert not signed_in.can_press("Approve")
    # Begun before the second was over, and ended after it.
    page.mouse.down()
    page.clock.run_for(ARMED_AFTER_MILLISECONDS)
    signed_in.waits_until("Approve")
    page.mouse.up()
    page.evaluate("window.dispatchEvent(new Event('focus'))")
    page.keyboard.press("a")
    page.keyboard.down("Enter")
    page.clock.run_for(ARMED_AFTER_MILLISECONDS)
    signed_in.waits_until("Approve")
    page.keyboard.down("Enter")  # held down, it repeats
    page.keyboard.up("Enter")
    page.evaluate("document.hasFocus = () => false")
    page.mouse.click(*place)
    assert desk.logged(asked) == ["submitted"]
    page.evaluate("delete document.hasFocus")
    page.clock.resume()
    signed_in.press("Approve")
    signed_in.sees("It is approved")


WATCH = """() => {
    const clicked = (window.clicked = []);
    new MutationObserver((_, observer) => {
        observer.disconnect();
        document.querySelectorAll("[data-approves], #deny-picked").forEach((button) => {
            clicked.push(button.getAttribute("aria-disabled"));
            button.click();
        });
    }).observe(document.querySelector("main"), { attributes: true, attributeFilter: ["data-state"] });
}"""
"""Click as soon as the page is about to show something else."""


def test_click_on_what_has_just_changed_decides_nothing(signed_in: BrowserTab, desk: Desk) -> None:
    desk.add_rule(effect="ask", action="changes_below", quorum=2)
    asked = desk.ask("changes_below")
    signed_in.go(f"/approvals/{asked['id']}")
    signed_in.waits_until("Approve")
    signed_in.page.evaluate(WATCH)
    desk.decide(asked, "approve")
    signed_in.sees("1 of 2")
    assert set(signed_in.page.evaluate("window.clicked")) == {"true"}
    assert desk.logged(asked) == ["submitted", "voted"]
    signed_in.press("Deny")
    signed_in.sees("It is denied")


def test_several_are_denied_together_and_none_that_was_not_picked(signed_in: BrowserTab, desk: Desk) -> None:
    names = ("together_one", "together_two", "together_left")
    one, two, left = (desk.ask(name, details={"path": f"/srv/{name}"}) for name in names)
    page = signed_in.page
    signed_in.sees_link("together_left")
    for each in (one, two):
        box = page.locator(f"#pick-{each['id']}")
        box.hover(force=True)
        browsing.playwright.expect(box).to_be_enabled()
        box.check()
    assert signed_in.can_press("Deny 2 selected")
    page.evaluate(WATCH)
    late = desk.ask("together_late")
    signed_in.sees_link("together_late")
    assert set(page.evaluate("window.clicked")) == {"true"}, "the list has just changed"
    assert {desk.status(each) for each in (one, two, left, late)} == {"pending"}
    signed_in.press("Deny 2 selected")
    signed_in.sees("2 denied.")
    signed_in.sees_link("together_one", there=False)
    assert [desk.status(each) for each in (one, two, left, late)] == [
        "denied",
        "denied",
        "pending",
        "pending",
    ]
    # Wherever a row is clicked, it opens; keys do, too.
    row = page.locator("li", has=page.get_by_role("link", name="together_left"))
    size = row.evaluate("row => ({width: row.clientWidth, height: row.clientHeight})")
    row.click(position={"x": size["width"] - 20, "y": size["height"] - 10})
    signed_in.sees("/srv/together_left")
    signed_in.go()
    assert signed_in.unlisted_keys() == []
    page.keyboard.press("j")
    page.keyboard.press("x")
    assert page.evaluate("document.activeElement.type") == "checkbox"
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    signed_in.sees("Allow this?")


def test_end_of_what_is_long_is_seen_before_it_is_approved(signed_in: BrowserTab, desk: Desk) -> None:
    script = "\n".join(f"echo {number}" for number in range(200))
    page = signed_in.page
    for way in ("link", "wheel"):
        asked = desk.ask("is_long", details={"script": f"{script}\necho {way}"})
        signed_in.go(f"/approvals/{asked['id']}")
        signed_in.waits_until("Deny")
        assert not signed_in.can_press("Approve")
        if way == "link":
            page.get_by_role("link", name="To the end", exact=True).click()
        else:
            page.mouse.move(300, 300)
            page.mouse.wheel(0, 2000)
            page.wait_for_timeout(300)
            assert not signed_in.can_press("Approve"), "it is not the end yet"
            page.mouse.wheel(0, 100_000)
        signed_in.press("Approve")
        signed_in.sees("It is approved")
        assert page.locator("#end").is_visible()


def test_times_are_those_of_whoever_looks(browser: Any, desk: Desk) -> None:
    asked = desk.ask("in_tokyo")
    with browsing.visiting(browser, desk.page_url, timezone_id="Asia/Tokyo", locale="de-DE") as visitor:
        visitor.go(desk.link(asked))
        ends = datetime.fromtimestamp(asked["expires_at"], UTC) + timedelta(hours=9)
        visitor.sees(f"denied at {ends:%H:%M}")
        visitor.sees("denied in 4 min")


@pytest.mark.parametrize("size", samples.SIZES)
def test_verb_target_and_both_buttons_are_seen_without_scrolling(browser: Any, desk: Desk, size: str) -> None:
    options = {"viewport": samples.SIZES[size]} | samples.KINDS[size]
    with browsing.visiting(browser, desk.page_url, **options) as visitor:
        for name, fields in samples.REQUESTS.items():
            asked = desk.ask(**fields | {"timeout_seconds": 3600})
            visitor.go(desk.link(asked))
            visitor.sees("Live")
            height = samples.SIZES[size]["height"]
            bar = visitor.page.locator(".bar").bounding_box()
            marks = [each.bounding_box() for each in visitor.page.locator("h1 mark").all()]
            assert marks, name
            assert all(each["y"] >= 0 and each["y"] + each["height"] <= bar["y"] for each in marks), name
            for button in ("Approve", "Deny"):
                seen = visitor.page.get_by_role("button", name=button, exact=True).bounding_box()
                assert seen["y"] + seen["height"] <= height, (name, button)
            sizes = [
                (each["width"], each["height"])
                for each in (button.bounding_box() for button in visitor.page.locator(".choice button").all())
            ]
            assert sizes[0] == pytest.approx(sizes[1]), "neither weighs more"
            assert (visitor.overflow(), visitor.faint()) == (0, []), name


def test_agent_that_was_denied_too_often_is_let_ask_again(browser: Any, tmp_path: Path) -> None:
    with alone(tmp_path) as desk, browsing.visiting(browser, desk.page_url) as visitor:
        visitor.sign_in(desk.token)
        for number in range(5):
            desk.decide(desk.ask("again_and_again", details={"n": number}), "deny")
        visitor.sees("Paused: programs without a token. 5 requests in a row were denied.")
        visitor.press("Let it ask again")
        visitor.sees("It can ask again.")
        desk.ask("asked_once_more")
        visitor.sees_link("asked_once_more")


def test_page_without_javascript_says_what_is_missing_and_decides_nothing(browser: Any, desk: Desk) -> None:
    asked = desk.ask("without_script")
    with browsing.visiting(browser, desk.page_url, java_script_enabled=False) as visitor:
        visitor.go()
        visitor.sees("Signing in takes JavaScript")
        visitor.go(desk.link(asked))
        visitor.sees("without_script")
        visitor.sees("Deciding takes JavaScript")
        assert (visitor.can_press("Approve"), visitor.can_press("Deny")) == (False, False)
    assert desk.status(asked) == "pending"


def test_signing_out_ends_the_session_wherever_its_cookie_is(browser: Any, tmp_path: Path) -> None:
    port = loopback.free_port()
    with alone(tmp_path, port) as desk, browsing.visiting(browser, desk.page_url) as other:
        other.sign_in(desk.token)
        with browsing.visiting(browser, desk.page_url) as visitor:
            visitor.sign_in(desk.token)
            desk.ask("seen_before")
            visitor.sees_link("seen_before")
            (cookie,) = visitor.context.cookies(f"{desk.page_url}/approvals")
            assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == (COOKIE, True, "Lax")
            visitor.page.get_by_role("link", name="seen_before").click()
            visitor.sees("Allow this?")
            with visitor.page.expect_navigation():
                visitor.press("Sign out")
            visitor.sees("The code of a link, or your token")
            with visitor.page.expect_navigation():
                visitor.page.evaluate("history.back()")
            visitor.sees("The code of a link, or your token")
            assert "seen_before" not in visitor.page.content()
            visitor.context.add_cookies([cookie])
            assert visitor.go().status == 401
        other.go()
        other.sees_link("seen_before")
        (kept,) = other.context.cookies(f"{desk.page_url}/approvals")
    with alone(tmp_path, port) as desk, browsing.visiting(browser, desk.page_url) as visitor:
        visitor.context.add_cookies([cookie])
        assert visitor.go().status == 401, "a restart remembers it"
        visitor.context.add_cookies([kept])
        assert visitor.go().status == 200, "and the other session goes on"


def test_list_comes_back_after_a_restart(browser: Any, tmp_path: Path) -> None:
    port = loopback.free_port()
    with closing(browser.new_context()) as context:
        with alone(tmp_path, port) as desk:
            visitor = BrowserTab(context, desk.page_url)
            visitor.sign_in(desk.token)
            visitor.sees("Live")
        visitor.sees("Reconnecting")
        with alone(tmp_path, port) as desk:
            visitor.sees("Live")
            desk.ask("asked_after_the_restart")
            visitor.sees_link("asked_after_the_restart")


ELSEWHERE = """<!doctype html><title>Elsewhere</title>
<iframe name="hole"></iframe><iframe id="framed"></iframe>
<script>
const { page, service, id, digest, link } = JSON.parse(PLACES);
const said = JSON.stringify({ approves: true, digest });
const decision = `${page}/approvals/${id}/decision`;
const attempts = {
  simple: () => fetch(decision, { method: "POST", mode: "no-cors", credentials: "include", body: said }),
  json: () => fetch(decision, { method: "POST", credentials: "include", body: said,
    headers: { "content-type": "application/json", "x-frontdesk-page": "1" } }),
  link: () => fetch(link, { credentials: "include" }),
  list: () => fetch(`${page}/approvals`, { credentials: "include" }),
  approve: () => fetch(`${service}/confirm/${id}/approve`, { method: "POST", mode: "no-cors" }),
  ask: () => fetch(`${service}/confirm`, { method: "POST", headers: { "content-type": "application/json" },
    body: JSON.stringify({ action: "from_elsewhere", description: "x" }) }),
  events: () => new Promise((heard, failed) => {
    const stream = new EventSource(`${page}/approvals/events`, { withCredentials: true });
    stream.onopen = heard;
    stream.onerror = () => { stream.close(); failed(new Error("refused")); };
  }),
  leave: () => fetch(`${page}/login/end`,
    { method: "POST", mode: "no-cors", credentials: "include" }),
};
function post(action, type) {
  const form = document.createElement("form");
  Object.assign(form, { method: "POST", action, enctype: type, target: "hole" });
  const field = document.createElement("input");
  Object.assign(field, { name: said.slice(0, -1) + ', "x": "', value: '"}' });
  form.append(field);
  document.body.append(form);
  form.submit();
}
window.run = async () => {
  const got = {};
  for (const [name, attempt] of Object.entries(attempts)) {
    got[name] = await attempt().then((answer) => answer.type || "heard", () => "refused");
  }
  for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
    post(decision, type);
    post(`${service}/confirm/${id}/approve`, type);
    await new Promise((then) => setTimeout(then, 200));
  }
  const framed = document.getElementById("framed");
  await new Promise((then) => { framed.onload = then; framed.src = link; });
  return got;
};
</script>"""


@contextmanager
def another_origin(body: str) -> Iterator[str]:
    """A page of somebody else, on another port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_page_of_another_origin_changes_and_learns_nothing(signed_in: BrowserTab, desk: Desk) -> None:
    asked = desk.ask("wanted_elsewhere")
    places = {"page": desk.page_url, "service": desk.url, "id": asked["id"], "digest": asked["digest"]}
    places["link"] = desk.page_url + desk.link(asked)
    with another_origin(ELSEWHERE.replace("PLACES", json.dumps(json.dumps(places)))) as url:
        page = signed_in.context.new_page()
        answers: dict[str, int] = {}
        page.on("response", lambda answer: answers.setdefault(answer.url, answer.status))
        page.goto(url)
        got = page.evaluate("run()")
        # The cookie goes along, since ports are one site: only what the server checks stands in the way.
        assert {name for name, what in got.items() if what != "refused"} <= {"simple", "approve", "leave"}
        assert all(what in ("refused", "opaque") for what in got.values()), got
        assert {status for where, status in answers.items() if not where.startswith(url)} <= {401, 403, 415}
        assert all(
            "wanted_elsewhere" not in frame.content() for frame in page.frames if frame.url != url + "/"
        )
        page.close()
    assert desk.status(asked) == "pending"
    signed_in.go()
    signed_in.sees_link("wanted_elsewhere")
    signed_in.sees_link("from_elsewhere", there=False)
