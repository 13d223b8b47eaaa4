"""Talking to the agent on the page, in a real browser: once, whatever happens to the connection."""

from pathlib import Path
from typing import Any

import pytest

from tests import browsing
from tests.acceptance.sites import SiteDesk, browser, desk, enter, member, receiver, tab
from tests.acceptance.test_run import Receiver
from tests.browsing import BrowserTab, playwright

__all__ = ["browser", "desk", "member", "receiver", "tab"]

pytestmark = [browsing.needs_browser, pytest.mark.timeout(300)]

PATIENCE = browsing.PATIENCE_MILLISECONDS
LATE_MILLISECONDS = 1500
HEARD = """(url) => new Promise((heard) => {
    const stream = new EventSource(url);
    stream.addEventListener("end", () => { stream.close(); heard(); });
})"""
"""To the end, as the page itself has by then."""


def box(tab: BrowserTab) -> Any:
    return tab.page.get_by_label("Message to the agent")


def send(tab: BrowserTab) -> Any:
    return tab.page.get_by_role("button", name="Send")


def begin(tab: BrowserTab, text: str) -> None:
    """A chat of one's own, with its first answer."""
    tab.go("/sessions")
    tab.page.get_by_role("link", name="New chat").first.click()
    box(tab).fill(text)
    send(tab).click()
    tab.page.wait_for_url("**/sessions/*", timeout=PATIENCE)
    answers(tab, f"echo: {text}")


def answers(tab: BrowserTab, text: str, count: int = 1) -> None:
    """So many of the agent's messages are exactly this, and no more."""
    found = tab.page.locator("article.out", has_text=text)
    playwright.expect(found).to_have_count(count, timeout=PATIENCE)


def test_chat_is_begun_and_goes_on_on_the_page(tab: BrowserTab) -> None:
    begin(tab, "hello from the page")
    box(tab).fill("!stream 30; and that is all")
    send(tab).click()
    answers(tab, "and that is all")
    playwright.expect(box(tab)).to_have_value("", timeout=PATIENCE)
    assert tab.overflow() == 0


def test_enter_sends_and_shift_enter_begins_a_line(browser: Any, desk: SiteDesk) -> None:
    with browsing.visiting(browser, desk.url) as tab:
        enter(tab, desk)
        begin(tab, "keys")
        box(tab).focus()
        tab.page.keyboard.type("first line")
        tab.page.keyboard.press("Shift+Enter")
        tab.page.keyboard.type("second line")
        playwright.expect(box(tab)).to_have_value("first line\nsecond line", timeout=PATIENCE)
        tab.page.keyboard.press("Enter")
        answers(tab, "second line")


def test_what_a_command_says_is_shown_and_the_page_goes_along(tab: BrowserTab) -> None:
    begin(tab, "orders")
    first, outcome = tab.page.url, tab.page.locator("#outcome")
    for command, told in {"/help": "These commands are for me", "/hlep": "Did you mean /help?"}.items():
        box(tab).fill(command)
        send(tab).click()
        playwright.expect(outcome).to_contain_text(told, timeout=PATIENCE)
    box(tab).fill("/new")
    send(tab).click()
    tab.page.wait_for_url(lambda url: url.partition("#")[0] != first, timeout=PATIENCE)
    playwright.expect(outcome).to_contain_text("This is a new conversation", timeout=PATIENCE)
    box(tab).fill("/etc is a folder, not an order")
    send(tab).click()
    answers(tab, "echo: /etc is a folder")
    playwright.expect(outcome).to_be_empty()
    tab.go("/chat")
    box(tab).fill("/status")
    send(tab).click()
    tab.page.wait_for_url("**/sessions/*", timeout=PATIENCE)
    playwright.expect(outcome).to_contain_text("Now: nothing is running", timeout=PATIENCE)


@pytest.mark.parametrize("slow", ["**/messages", "**/api/v1/turns/*/events"])
def test_page_goes_along_though_what_changes_is_heard_of_before_the_order_is_answered(
    tab: BrowserTab, slow: str
) -> None:
    begin(tab, "slow answers")
    first = tab.page.url
    asked: list[str] = []

    def answer_late(route: Any) -> None:
        """The first time. The route stays: with the last one the browser's requests are held up no more, and
        one that is under way just then may never get anywhere."""
        asked.append(route.request.url)
        if len(asked) > 1:
            route.continue_()
            return
        answer = route.fetch()
        tab.page.wait_for_timeout(LATE_MILLISECONDS)
        route.fulfill(response=answer)

    tab.page.route(slow, answer_late)
    box(tab).fill("/new")
    send(tab).click()
    tab.page.wait_for_url(lambda url: url.partition("#")[0] != first, timeout=PATIENCE)
    told = playwright.expect(tab.page.locator("#outcome"))
    told.to_contain_text("This is a new conversation", timeout=PATIENCE)


def test_answer_that_is_asked_for_again_is_shown_once_however_fast_it_comes(tab: BrowserTab) -> None:
    begin(tab, "again")
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    tab.page.route("**/api/v1/turns/*/events", hold, times=1)
    box(tab).fill("/retry")
    send(tab).click()
    answers(tab, "echo: again", 2)
    held[0].continue_()
    tab.page.evaluate(HEARD, held[0].request.url)
    playwright.expect(tab.page.locator("#outcome")).to_be_empty()


def test_double_click_sends_once(browser: Any, desk: SiteDesk) -> None:
    with browsing.visiting(browser, desk.url) as tab:
        enter(tab, desk)
        begin(tab, "clicks")
        box(tab).fill("only once")
        send(tab).dblclick()
        answers(tab, "echo: only once")
        box(tab).fill("the next")
        send(tab).click()
        answers(tab, "echo: the next")
        answers(tab, "echo: only once")


def test_session_is_renamed_undone_and_started_afresh_on_the_page(tab: BrowserTab) -> None:
    begin(tab, "to be named")
    first = tab.page.url
    open_actions(tab)
    tab.page.get_by_label("Title").fill(f"Plans of {id(tab)}")
    tab.page.get_by_role("button", name="Rename").click()
    tab.sees(f"Plans of {id(tab)}")
    open_actions(tab)
    tab.press("↶ Undo the last turn")
    tab.sees("Took back 1 turn")
    open_actions(tab)
    tab.press("Start afresh")
    tab.page.wait_for_url(lambda url: url != first and "/sessions/" in url, timeout=PATIENCE)
    playwright.expect(tab.page.locator(".boundary")).to_contain_text("A fresh start")
    open_actions(tab)
    tab.press("Redo")
    told = tab.page.locator("dialog#actions [role=status]")
    playwright.expect(told).to_contain_text("There is nothing to bring back")
    tab.page.keyboard.press("Escape")
    playwright.expect(tab.page.get_by_role("button", name="Actions")).to_be_focused()
    playwright.expect(tab.page.locator("#outcome")).to_contain_text("There is nothing to bring back")


def test_order_behind_a_running_turn_is_told_of_twice(browser: Any, desk: SiteDesk) -> None:
    with browsing.visiting(browser, desk.url) as tab:
        enter(tab, desk)
        begin(tab, "first")
        box(tab).fill("!tool look; !tool read; !say half; !hang")
        send(tab).click()
        playwright.expect(tab.page.locator("#grown")).to_contain_text("half")
        tab.page.evaluate("document.getElementById('m1').isKept = true")
        group = tab.page.locator("details.tool", has_text="2 tool calls")
        group.locator("summary").first.click()
        open_actions(tab)
        tab.page.get_by_label("Title").fill("Named afterwards")
        tab.page.get_by_role("button", name="Rename").click()
        playwright.expect(tab.page.locator("#outcome")).to_contain_text("after the running turn")
        desk.ask("sessions", "stop", tab.page.url.rpartition("/")[2])
        playwright.expect(tab.page.locator("#outcome")).to_contain_text("This conversation is called")
        playwright.expect(tab.page.locator(".msg.end")).to_contain_text("Stopped")
        playwright.expect(tab.page.locator(".msg.end")).to_contain_text("by the owner")
        playwright.expect(group.locator("details").first).to_be_visible()
        assert tab.page.evaluate("document.getElementById('m1').isKept"), "what is as it was is left alone"
        open_actions(tab)
        tab.press("Make a checkpoint")
        tab.sees("Checkpoint 1 made")


def test_page_goes_on_in_the_session_that_continues_it_with_what_was_being_written(
    browser: Any, desk: SiteDesk
) -> None:
    with browsing.visiting(browser, desk.url) as tab:
        enter(tab, desk)
        begin(tab, "number 0")
        first = tab.page.url
        for number in range(1, 9):
            box(tab).fill(f"number {number}")
            send(tab).click()
            answers(tab, f"echo: number {number}")
        box(tab).fill("not sent yet")
        desk.ask("sessions", "compress", first.rpartition("/")[2])
        tab.page.wait_for_url(lambda url: url != first, timeout=PATIENCE)
        playwright.expect(tab.page.locator(".boundary")).to_contain_text("Compressed")
        playwright.expect(box(tab)).to_have_value("not sent yet")
        send(tab).click()
        answers(tab, "echo: not sent yet")


def test_chat_goes_on_on_the_page_past_a_limit(browser: Any, tmp_path: Path, receiver: Receiver) -> None:
    desk = SiteDesk(tmp_path, receiver, "\n[session_reset]\nmax_messages = 4\n")
    with desk.running(), browsing.visiting(browser, desk.url) as tab:
        enter(tab, desk)
        begin(tab, "number 0")
        first = tab.page.url
        box(tab).fill("number 1")
        send(tab).click()
        tab.page.wait_for_url(lambda url: url.partition("#")[0] != first, timeout=PATIENCE)
        playwright.expect(tab.page.locator(".boundary")).to_contain_text("message limit")
        playwright.expect(box(tab)).to_be_focused()
        box(tab).fill("number 2")
        send(tab).click()
        answers(tab, "echo: number 2")
        tab.page.goto(first)
        tab.sees_link("To where the conversation goes on")


def test_panel_covers_nothing_and_escape_leaves_it(tab: BrowserTab) -> None:
    begin(tab, "facts")
    page, link = tab.page, tab.page.locator(".to-facts")
    link.click()
    playwright.expect(page.locator("#facts")).to_be_focused()
    phone = page.viewport_size["width"] < 704
    playwright.expect(page.locator("#facts")).to_be_in_viewport(ratio=0.99 if phone else 0.5)
    if not phone:
        send(tab).click(trial=True)
    page.keyboard.press("Escape")
    playwright.expect(page.locator("#facts")).to_be_hidden()
    playwright.expect(link).to_be_focused()


def test_what_is_to_become_of_messages_stays_chosen_and_the_focus_near(tab: BrowserTab) -> None:
    begin(tab, "choices")
    busy = tab.page.get_by_label("While it works")
    for is_first in (True, False):
        box(tab).fill("!sleep 2; slept")
        send(tab).click()
        playwright.expect(busy).to_be_visible(timeout=PATIENCE)
        busy.focus()
        if is_first:
            busy.select_option("interrupt")
        playwright.expect(busy).to_have_value("interrupt")
        playwright.expect(busy).to_have_count(0, timeout=PATIENCE)
        playwright.expect(box(tab)).to_be_focused()


def test_what_is_done_in_another_tab_changes_what_can_be_done_here(browser: Any, desk: SiteDesk) -> None:
    with browsing.visiting(browser, desk.url) as tab:
        enter(tab, desk)
        begin(tab, "two tabs")
        first = tab.page.url
        session = first.rpartition("/")[2]
        desk.ask("sessions", "reset", session)
        tab.sees_link("To where the conversation goes on")
        playwright.expect(box(tab)).to_have_count(0)
        desk.ask("sessions", "resume", session)
        playwright.expect(box(tab)).to_be_visible()
        playwright.expect(tab.page.locator(".boundary")).to_contain_text("Resumed")
        tab.agrees = True
        open_actions(tab)
        tab.press("Forget")
        tab.sees("Ended: forgotten.")
        tab.sees("Forgotten. This conversation can never be resumed")
        playwright.expect(box(tab)).to_have_count(0)
        gone = first.replace(session, "20200101_000000_00000000")
        tab.page.route(first, lambda route: route.continue_(url=gone))
        desk.say("something happens", chat="elsewhere")
        tab.sees("is not here any more")


def open_actions(tab: BrowserTab) -> None:
    tab.page.get_by_role("button", name="Actions").click()
    playwright.expect(tab.page.locator("dialog#actions")).to_be_visible(timeout=PATIENCE)


def test_message_is_kept_while_the_connection_is_lost_and_sent_once(browser: Any, desk: SiteDesk) -> None:
    with browsing.visiting(browser, desk.url) as tab:
        enter(tab, desk)
        begin(tab, "connection")
        lost = 0

        def cut(route: Any) -> None:
            """The first request arrives, and its answer does not; the second never arrives."""
            nonlocal lost
            lost += 1
            if lost == 1:
                route.fetch()
            if lost <= 2:
                route.abort()
            else:
                route.continue_()

        tab.page.route("**/messages", cut)
        box(tab).fill("through the storm")
        send(tab).click()
        tab.sees("Not sent yet")
        answers(tab, "echo: through the storm")
        playwright.expect(box(tab)).to_have_value("", timeout=PATIENCE)
        tab.page.unroute("**/messages")
        box(tab).fill("calm again")
        send(tab).click()
        answers(tab, "echo: calm again")
        answers(tab, "echo: through the storm")
        assert lost >= 3
        tab.troubles.clear()  # the browser complains about the connection that was cut


def test_message_is_answered_once_though_the_gateway_is_killed(
    browser: Any, tmp_path: Any, receiver: Receiver
) -> None:
    desk = SiteDesk(tmp_path, receiver)
    with browsing.visiting(browser, desk.url) as tab:
        with desk.running():
            enter(tab, desk)
            begin(tab, "before")
            box(tab).fill("!hang 1; !say survived")
            send(tab).click()
            playwright.expect(box(tab)).to_have_value("", timeout=PATIENCE)
            playwright.expect(tab.page.locator("#growing")).to_be_attached(timeout=PATIENCE)
            desk.kill()
            box(tab).fill("written while it was away")
            send(tab).click()
            tab.sees("Not sent yet")
        with desk.running():
            answers(tab, "survived")
            answers(tab, "echo: written while it was away")
            tab.troubles.clear()


def test_owner_acts_on_a_session_from_the_command_line(browser: Any, desk: SiteDesk) -> None:
    with browsing.visiting(browser, desk.url) as tab:
        enter(tab, desk)
        begin(tab, "from the terminal")
        session = tab.page.url.rpartition("/")[2]
        named = desk.ask("sessions", "rename", session, "Named by the owner")
        assert named["refused"] is None
        tab.sees("Named by the owner")
        undone = desk.ask("sessions", "undo", session)
        assert "Took back 1 turn" in undone["message"]
        answers(tab, "echo: from the terminal", count=1)
        playwright.expect(tab.page.locator("article.undone").first).to_be_attached(timeout=PATIENCE)
