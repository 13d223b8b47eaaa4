"""Words from right to left on a screen: a browser turns nothing around outside of their marks."""

import html
from collections.abc import Iterator
from typing import Any

import pytest

from frontdesk.formats import actions
from tests import browsing

PAIRS = [
    ("\u05d0\u05d1 12", "12 \u05d0\u05d1"),
    ("\u05d0\u05d1/12", "12/\u05d0\u05d1"),
    ("/srv/\u05d0\u05d1/7/\u05d2", "/srv/\u05d2/7/\u05d0\u05d1"),
    ("\u0633 - 5", "5 - \u0633"),
    ("\u0662-\u0633", "\u0633-\u0662"),
]
LISTS = [(["\u05d0", "12"], ["12", "\u05d0"])]


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    with browsing.browser() as opened:
        page = opened.new_page()
        yield page
        page.close()


def picture(page: Any, text: str) -> bytes:
    page.set_content(f'<p style="font: 20px monospace; margin: 0">{html.escape(text)}</p>')
    shot: bytes = page.locator("p").screenshot()
    return shot


def line(value: Any) -> str:
    return " ".join(each.strip() for each in actions.lines_of(value))


@browsing.needs_browser
def test_texts_that_a_browser_turns_into_each_other_look_different(page: Any) -> None:
    same = [picture(page, one) == picture(page, other) for one, other in PAIRS]
    assert any(same), "without marks some of them look the same"
    for one, other in (*PAIRS, *LISTS):
        assert picture(page, line(one)) != picture(page, line(other)), (one, other)
        assert picture(page, line(one)) == picture(page, line(one))
