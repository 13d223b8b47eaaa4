"""The pages for approvers in a real browser, beside a service whose clock can be set."""

from frontdesk.formats import links
from frontdesk.model.confirmations import GRANT_SECONDS, MIN_TIMEOUT_SECONDS, Caller, CallerKind, Confirmation
from frontdesk.testing import SettableClock
from tests import browsing
from tests.integration.confirming import LINK_KEY, TOKENS, Desk, opened_pages

pytestmark = browsing.needs_browser

AGENT = Caller(id="token:bot", kind=CallerKind.AGENT)
ANN = Caller(id="token:ann", kind=CallerKind.APPROVER)


async def submitted(desk: Desk, action: str) -> Confirmation:
    data = {"action": action, "description": "Because.", "timeout_seconds": MIN_TIMEOUT_SECONDS}
    return (await desk.service.submit(data, AGENT)).confirmation


async def test_page_of_a_request_follows_until_nothing_can_become_of_it_any_more() -> None:
    clock = SettableClock()
    async with (
        opened_pages(clock=clock, quiet_seconds=0.5) as desk,
        browsing.page(str(desk.http.base_url)) as page,
    ):
        approve = page.get_by_role("button", name="Approve")
        late = await submitted(desk, "late")
        await page.goto(f"/approvals/{late.id}")
        await page.get_by_label("token").fill(TOKENS["ann"])
        await page.keyboard.press("Enter")
        await approve.wait_for()
        clock.advance(seconds=late.timeout_seconds + 1)
        await desk.service.sweep()
        await page.get_by_text("It has expired").first.wait_for()
        assert await approve.count() == 0

        used = await submitted(desk, "use")
        await page.goto(f"/approvals/{used.id}")
        await approve.wait_for()
        await desk.service.approve(used.id, ANN)
        await page.get_by_text("It can be used once").wait_for()
        await desk.service.redeem(used.id, AGENT, used.digest)
        await page.get_by_text("It was used at").wait_for()
        await page.locator("main:not([data-events])").wait_for()

        # That nobody uses it is in no row of the log, and the link's own time is over before.
        left = await submitted(desk, "leave")
        link = links.decision(left.id, left.digest, "token:ann", left.expires_at)
        await page.goto(links.address("", LINK_KEY, link))
        await approve.wait_for()
        await desk.service.approve(left.id, ANN)
        await page.get_by_text("It can be used once").wait_for()
        clock.advance(seconds=GRANT_SECONDS + 1)
        await page.get_by_text("It was not used in time.").wait_for()
        await page.locator("main:not([data-events])").wait_for()
