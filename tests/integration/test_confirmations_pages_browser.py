"""The pages for approvers in a real browser, beside a service whose clock can be set."""

from frontdesk.model.confirmations import Caller, CallerKind
from frontdesk.testing import SettableClock
from tests import browsing
from tests.integration.confirming import TOKENS, opened_pages

pytestmark = browsing.needs_browser


async def test_request_that_ends_while_somebody_looks_is_told() -> None:
    clock = SettableClock()
    async with opened_pages(clock=clock) as desk, browsing.page(str(desk.http.base_url)) as page:
        agent = Caller(id="token:bot", kind=CallerKind.AGENT)
        asked = (await desk.service.submit({"action": "late", "description": "Because."}, agent)).confirmation
        await page.goto(f"/approvals/{asked.id}")
        await page.get_by_label("token").fill(TOKENS["ann"])
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Approve").wait_for()
        clock.advance(seconds=asked.timeout_seconds + 1)
        await desk.service.sweep()
        await page.get_by_text("It has expired").first.wait_for()
        assert await page.get_by_role("button", name="Approve").count() == 0
