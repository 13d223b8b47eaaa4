"""The pages on work in a real browser: they follow what happens, and buttons do what they say."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from frontdesk.model.deliveries import NotSent
from frontdesk.model.visitors import Visitor
from frontdesk.web.pages import rendering
from tests import browsing, siting
from tests.flow.harness import House, open_house
from tests.siting import ServedSite

pytestmark = [browsing.needs_browser, pytest.mark.timeout(300)]

MEMORY = "sqlite:///:memory:"
WIDER = "document.documentElement.scrollWidth - innerWidth"
TABS_HIDE = "[...document.querySelectorAll('.tabs')].some((each) => each.scrollWidth > each.clientWidth)"
SPANS = [0, 59, 3_599, 7_265, 172_799, 172_800, 700_000, 5_000_000, 31_532_400, 400 * 86_400, 10**9]
CUT_WORDS = """(tables) => tables.flatMap((table) => {
    const words = [...table.querySelectorAll("bdi")].flatMap((each) => {
        const text = each.firstChild;
        return [...text.data.matchAll(/[^\\s-]+/g)].map(({ 0: word, index }) => {
            const range = new Range();
            range.setStart(text, index);
            range.setEnd(text, index + word.length);
            return [word, range.getClientRects().length];
        });
    });
    const { scrollWidth, clientWidth } = table.parentElement;
    return [...words, [scrollWidth, scrollWidth > clientWidth ? 2 : 1]].filter(([, lines]) => lines > 1);
})"""
"""The words that are on two lines, and tables of which not all is seen."""
TELL_SPANS = """async (seconds) => {
    const { span } = await import(document.querySelector("script[src]").src.replace("site.js", "page.js"));
    return seconds.map(span);
}"""
PATHS = ("/overview", "/deliveries", "/turns", "/usage")


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with open_house(MEMORY) as opened:
        yield opened


@pytest.fixture
async def served(house: House) -> AsyncIterator[ServedSite]:
    async with siting.serving_site(house) as opened:
        yield opened


class Looking:
    """Somebody who is in, with a browser; what goes wrong in it is noted."""

    def __init__(self, page: Any, served: ServedSite) -> None:
        self.page, self._served = page, served
        self.troubles: list[str] = []
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("console", self._hear)

    def _hear(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.troubles.append(message.text)

    async def come_in(self, who: Visitor = siting.OPS) -> None:
        cookie = {"name": "who", "value": who.name.lower(), "url": self._served.url}
        await self.page.context.add_cookies([cookie])
        await self.page.context.add_init_script("localStorage.setItem('frontdesk-proof', 'shown')")

    async def go(self, path: str) -> None:
        await self.page.goto(self._served.url + path)
        await self.sees("#connection", "Live")

    async def sees(self, where: str, text: str) -> None:
        expected = browsing.async_api.expect(self.page.locator(where))
        await expected.to_contain_text(text, timeout=browsing.PATIENCE_MILLISECONDS)

    async def press(self, name: str) -> None:
        """Move to a button, wait until it can be pressed, and press it."""
        button = self.page.get_by_role("button", name=name).first
        await button.hover(force=True)
        await browsing.async_api.expect(button).to_be_enabled(timeout=browsing.PATIENCE_MILLISECONDS)
        await button.click()


@pytest.fixture
async def looking(served: ServedSite) -> AsyncIterator[Looking]:
    async with browsing.page(served.url) as page:
        visitor = Looking(page, served)
        await visitor.come_in()
        yield visitor
        assert visitor.troubles == []


async def test_lost_answer_appears_by_itself_and_is_gone_when_it_was_resent(
    house: House, looking: Looking
) -> None:
    await looking.go("/overview")
    await looking.sees("#troubles", "Everything works.")
    house.notebook.outcomes.append(NotSent(why="mailbox full", hopeless=True))
    await house.say("hello")
    await looking.sees("#troubles", "matrix: one answer did not arrive")
    await looking.sees("#troubles", "mailbox full")
    await looking.press("Resend")
    assert await house.notebook.wait_for(1) == ["echo: hello"]
    await looking.sees("#troubles", "Everything works.")


async def test_script_tells_how_long_something_is_as_the_server_does(looking: Looking) -> None:
    await looking.go("/turns")
    assert await looking.page.evaluate(TELL_SPANS, SPANS) == [rendering.span(each) for each in SPANS]


async def test_discarding_asks_first_and_then_the_answer_is_listed_no_more(
    house: House, looking: Looking
) -> None:
    house.notebook.outcomes.append(NotSent(why="mailbox full", hopeless=True))
    await house.say("hello")
    await house.troubled()
    await looking.go("/deliveries")
    asked: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def agree(dialog: Any) -> None:
        asked.set_result(dialog.message)
        await dialog.accept()

    looking.page.once("dialog", agree)
    await looking.press("Discard")
    assert "will not be sent any more" in await asked
    await looking.sees("#answer", "Every answer has arrived")
    await looking.sees("#list", "What a platform refuses stands here")
    # Somebody else is faster.
    house.notebook.outcomes.append(NotSent(why="mailbox full", hopeless=True))
    await house.say("hello again")
    (lost,) = await house.troubled()

    async def come_late(dialog: Any) -> None:
        await house.store.deliveries.discard(lost.id, "ben", house.gateway.parts.clock.now())
        await dialog.accept()

    looking.page.once("dialog", come_late)
    await looking.press("Discard")
    await looking.sees("#outcome", "It is discarded: only what is dead or unknown is sent again or given up.")


async def test_usage_is_drawn_and_follows_what_is_spent(house: House, looking: Looking) -> None:
    await house.ask("!tokens 1000 200 0.25; !tool look; !toolerror look; !say done")
    await looking.go("/usage")
    await looking.sees("#answer", "$0.250")
    plots = browsing.async_api.expect(looking.page.locator(".plot canvas"))
    await plots.to_have_count(5, timeout=browsing.PATIENCE_MILLISECONDS)
    await house.ask("!tokens 1000 200 0.5; !say done", "ben")
    await looking.sees("#answer", "$0.750")
    await plots.to_have_count(5, timeout=browsing.PATIENCE_MILLISECONDS)


async def test_names_of_what_was_used_are_not_cut_in_the_middle(house: House, looking: Looking) -> None:
    await house.ask("!tokens 123400 20000 12.25; !say done")
    await looking.page.set_viewport_size(browsing.DESKTOP)
    await looking.go("/usage")
    tables = looking.page.locator("#parts table")
    assert await tables.count() == 3
    assert await tables.evaluate_all(CUT_WORDS) == []


async def test_bar_of_a_phone_marks_where_one_is(looking: Looking) -> None:
    await looking.page.set_viewport_size(browsing.PHONE)
    marked = looking.page.locator(".rail [aria-current]:visible")
    for path, name in (("/overview", "Overview"), ("/usage", "More"), ("/turns", "More")):
        await looking.go(path)
        assert await marked.all_inner_texts() == [name], path
    await looking.page.locator("#more").click()
    assert await marked.all_inner_texts() == ["More", "Turns"]


async def test_pages_fit_a_phone_and_answer_without_scrolling(house: House, looking: Looking) -> None:
    for number in range(3):
        house.notebook.outcomes.append(NotSent(why="x" * 500, hopeless=True))
        receipt = await house.say("w" * 500, f"user{number}")
        await house.finished(receipt.turn_id)
    await looking.page.set_viewport_size(browsing.DESKTOP)
    await looking.go("/sessions")
    assert not await looking.page.evaluate(TABS_HIDE)
    await looking.page.set_viewport_size(browsing.PHONE)
    for path in PATHS:
        await looking.go(path)
        assert await looking.page.evaluate(WIDER) <= 0, path
        assert not await looking.page.evaluate(TABS_HIDE), path
        answer = "#troubles" if path == "/overview" else "#answer"
        box = await looking.page.locator(f"{answer} > *").first.bounding_box()
        assert box["y"] + box["height"] <= browsing.PHONE["height"], path
