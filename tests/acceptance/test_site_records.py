"""People, checkpoints and the audit log in a real browser, on a desktop and on a phone."""

import asyncio
import json
import re
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

import pytest

from frontdesk import Platform, SessionSource, SessionStore, config
from frontdesk.app import build
from frontdesk.flow.authorization import Authorization
from tests import browsing, samples
from tests.acceptance.sites import SiteDesk, enter
from tests.acceptance.test_run import Receiver, request
from tests.browsing import BrowserTab, playwright

pytestmark = [browsing.needs_browser, pytest.mark.timeout(300)]

T = TypeVar("T")

PATIENCE = browsing.PATIENCE_MILLISECONDS
HOSTILE = "<img src=x onerror=alert(1)>\u202etxt"
PAIRING = """
[channels.telegram]
token_env = "NO_TOKEN"
strangers = "pair"
"""
PAGES = ("/people", "/checkpoints", "/audit", "/settings?all=1", "/approvals", "/turns", "/deliveries")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing.browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def codes() -> dict[str, str]:
    """What strangers were shown, by their id."""
    return {}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, codes: dict[str, str]) -> Iterator[SiteDesk]:
    with Receiver().serving() as receiver:
        made = SiteDesk(tmp_path_factory.mktemp("home"), receiver, PAIRING)
        (made.work / "notes.txt").write_text("first\n")
        codes |= run_apart(meet_strangers(made.home))
        with made.running() as opened:
            yield opened


def run_apart(work: Coroutine[Any, Any, T]) -> T:
    """On a thread of its own: the browser has the loop of this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


async def keep_state(desk: SiteDesk) -> None:
    """A checkpoint, as a rotation makes one."""
    snapshots, _ = build.workplace(loaded_in(desk.home))
    assert snapshots
    await snapshots.create_checkpoint(desk.work, HOSTILE)


def loaded_in(home: Path) -> config.Config:
    return config.load(home / ".frontdesk" / "frontdesk.toml", {"HOME": str(home)})


async def meet_strangers(home: Path) -> dict[str, str]:
    """Two people write to us before the gateway runs; each is shown a code."""
    loaded = loaded_in(home)
    shown = {}
    async with await SessionStore.open(loaded.store_url, loaded.gateway) as sessions:
        people = Authorization(sessions.store, sessions.config)
        for user in samples.SIZES:
            source = SessionSource(
                platform=Platform.TELEGRAM, chat_id=user, user_id=user, user_name=f"{user} {HOSTILE}"
            )
            answer = await people.answer_stranger(source, await people.check(source))
            found = re.search(r"[A-Z2-9]{4}-[A-Z2-9]{4}", answer or "")
            assert found
            shown[user] = found[0]
    return shown


@pytest.fixture(scope="module", params=samples.SIZES)
def size(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def member(size: str, browser: Any, desk: SiteDesk) -> Iterator[BrowserTab]:
    options = {"viewport": samples.SIZES[size]} | samples.KINDS[size]
    with browsing.visiting(browser, desk.url, **options) as opened:
        enter(opened, desk)
        opened.page.close()
        yield opened


@pytest.fixture
def tab(member: BrowserTab) -> Iterator[BrowserTab]:
    with browsing.another_page(member) as opened:
        yield opened


def test_somebody_who_waits_is_let_in_by_their_code_and_what_happens_elsewhere_is_seen(
    tab: BrowserTab, desk: SiteDesk, size: str, codes: dict[str, str]
) -> None:
    tab.go("/people")
    waiting = tab.page.locator("#waiting-people")
    playwright.expect(waiting).to_contain_text(f"telegram:{size}", timeout=PATIENCE)
    tab.page.get_by_label("Code", exact=True).fill(codes[size])
    tab.page.locator("#code-role").select_option("approver")
    tab.waits_until("Let in")
    tab.press("Let in")
    tab.sees(f"telegram:{size} is let in as approver.")
    playwright.expect(waiting).not_to_contain_text(f"telegram:{size}", timeout=PATIENCE)
    known = tab.page.locator("#known-people")
    playwright.expect(known).to_contain_text(f"telegram:{size}", timeout=PATIENCE)
    desk.ask("people", "revoke", f"telegram:{size}")
    playwright.expect(known).not_to_contain_text(f"telegram:{size}", timeout=PATIENCE)


def let_in(desk: SiteDesk, principal: str) -> None:
    headers = {"authorization": f"Bearer {desk.token}", "content-type": "application/json"}
    body = json.dumps({"principal": principal, "role": "user"}).encode()
    status, answer = request(desk.url, "POST", "/api/v1/people/allow", body, headers)
    assert status == HTTPStatus.OK, answer


def test_role_that_is_chosen_stays_chosen_while_the_list_changes(
    tab: BrowserTab, desk: SiteDesk, size: str
) -> None:
    let_in(desk, f"matrix:{size}-chosen")
    tab.go("/people")
    person = tab.page.locator(".person", has_text=f"matrix:{size}-chosen")
    person.locator("select").select_option("approver")
    let_in(desk, f"matrix:{size}-added")
    tab.sees(f"matrix:{size}-added")
    playwright.expect(person.locator("select")).to_have_value("approver", timeout=PATIENCE)
    for each in ("chosen", "added"):
        desk.ask("people", "revoke", f"matrix:{size}-{each}")


def test_checkpoint_is_restored_and_that_is_undone(tab: BrowserTab, desk: SiteDesk) -> None:
    file = desk.work / "notes.txt"
    file.write_text("first\n")
    run_apart(keep_state(desk))
    tab.go("/checkpoints")
    playwright.expect(tab.page.locator(".kept").first).to_be_visible(timeout=PATIENCE)
    file.write_text("second\n")
    tab.page.get_by_role("link", name=re.compile("^Compare checkpoint")).first.click()
    tab.sees("+second")
    tab.waits_until("Restore all of it")
    with tab.page.expect_event("dialog", timeout=PATIENCE):
        tab.page.keyboard.press("r")
    assert "What is there now is kept first." in tab.troubles.pop()
    assert file.read_text() == "second\n", "nobody agreed"
    tab.agrees = True
    tab.waits_until("Restore all of it")
    tab.press("Restore all of it")
    tab.sees("was restored.")
    assert file.read_text() == "first\n"
    tab.waits_until("Undo the restore")
    with tab.page.expect_navigation(timeout=PATIENCE):
        tab.press("Undo the restore")
    assert file.read_text() == "second\n"
    # What was there before is the newest checkpoint already, and none is made of it.
    run_apart(keep_state(desk))
    tab.go("/checkpoints")
    tab.page.get_by_role("link", name=re.compile("^Compare checkpoint")).last.click()
    tab.sees("+second")
    tab.waits_until("Restore all of it")
    tab.press("Restore all of it")
    tab.sees("restore that one to undo this")
    tab.sees("Nothing has changed since")
    assert file.read_text() == "first\n"
    assert tab.button_count("Restore all of it") == 0
    # What somebody else restores is seen by itself.
    tab.go("/checkpoints")
    playwright.expect(tab.page.locator("#connection")).to_contain_text("Live", timeout=PATIENCE)
    kept = tab.page.locator(".kept").count()
    file.write_text("third\n")
    desk.ask("checkpoints", "restore", "1", "--yes")
    playwright.expect(tab.page.locator(".kept")).to_have_count(kept + 1, timeout=PATIENCE)


def test_log_begins_within_the_smallest_screen(tab: BrowserTab) -> None:
    tab.page.set_viewport_size({"width": 320, "height": 568})
    tab.go("/audit")
    rows = tab.page.locator("#rows").bounding_box()
    bar = tab.page.locator(".rail").bounding_box()
    assert rows["y"] + 60 < bar["y"], "above the bar at the bottom"


def test_log_is_verified_on_the_page(tab: BrowserTab) -> None:
    tab.go("/audit")
    tab.waits_until("Verify the log")
    tab.press("Verify the log")
    playwright.expect(tab.page.locator("#verdict")).to_contain_text(
        re.compile("rows hold|The log is empty"), timeout=PATIENCE
    )


def test_pages_fit_the_screen_are_readable_and_show_hostile_names_as_text(tab: BrowserTab) -> None:
    for path in PAGES:
        tab.go(path)
        assert (path, tab.overflow(), tab.faint()) == (path, 0, [])
        assert tab.page.locator("main img").count() == 0
        # The answer stands on the first screen.
        assert tab.page.locator("h1").first.is_visible()
