"""Two people and one browser: nobody acts as the other without knowing it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests import browsing
from tests.acceptance.sites import SiteDesk
from tests.acceptance.test_run import Receiver
from tests.browsing import BrowserTab

pytestmark = [browsing.needs_browser, pytest.mark.timeout(300)]


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
    return desk.login_link("--name", "eve")


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
