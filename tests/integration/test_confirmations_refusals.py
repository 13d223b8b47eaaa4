"""Whoever is refused what takes another credential leaves an event and a row of the audit log."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from frontdesk.flow import audits
from frontdesk.model.audit import ECHO_SECONDS, AuditEntry
from frontdesk.model.confirmations import Mode
from frontdesk.testing import SettableClock
from tests.contracts.asking import pages
from tests.integration.confirming import (
    ANN,
    BOT,
    EVE,
    ROB,
    STRICTER,
    TOKENS,
    Desk,
    opened,
    opened_pages,
    problem,
)

REFUSED = "refused"
TRIES = 30
APPROVERS_MATTERS = [
    ("GET", "/confirm"),
    ("GET", "/audit"),
    ("GET", "/events"),
    ("GET", "/rules"),
    ("POST", "/rules"),
    ("DELETE", "/rules/r_1"),
    ("GET", "/pauses"),
    ("POST", "/pauses/lift"),
]


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/state.db"
    return f"{request.getfixturevalue('postgres_url')}?schema=test_{uuid4().hex}"


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture
async def desk(url: str, clock: SettableClock) -> AsyncIterator[Desk]:
    async with opened(url, clock=clock) as opened_desk:
        yield opened_desk


async def refusals(desk: Desk) -> list[AuditEntry]:
    """Oldest first."""
    rows = [row.entry for row in await desk.service.audit_newest(500)]
    return [entry for entry in reversed(rows) if entry.kind == REFUSED]


@pytest.mark.parametrize("verb", ["approve", "deny", "reveal", "erase"])
async def test_agents_token_that_tries_to_decide_leaves_one_row_and_a_count(
    desk: Desk, clock: SettableClock, verb: str
) -> None:
    asked = await desk.ask(BOT)
    path = f"/confirm/{asked['id']}/{verb}"
    for _ in range(TRIES):
        problem(await desk.http.post(path, headers=BOT), 403)
    (first,) = await refusals(desk)
    assert (first.actor, first.confirmation_id) == ("token:bot", asked["id"])
    assert first.digest == asked["digest"]
    assert first.facts["why"].startswith(f"{verb}: ")
    clock.advance(seconds=ECHO_SECONDS)
    problem(await desk.http.post(path, headers=BOT), 403)
    counted = [entry.facts.get("left_out") for entry in await refusals(desk)]
    # With the next row, or with one of its own when the service looked after what it counts in between.
    assert counted in ([None, TRIES - 1], [None, TRIES - 1, None])
    assert await desk.status(asked["id"]) == "pending"


@pytest.mark.parametrize("mode", Mode)
async def test_every_matter_of_approvers_leaves_a_row(url: str, mode: Mode) -> None:
    async with opened(url, mode=mode) as desk:
        for method, path in APPROVERS_MATTERS:
            for _ in range(3):
                problem(await desk.http.request(method, path, headers=BOT), 403)
        found = await refusals(desk)
        assert len(found) == len({entry.facts["why"] for entry in found}) == len(APPROVERS_MATTERS)
        assert {(entry.actor, entry.confirmation_id) for entry in found} == {("token:bot", None)}


async def test_ids_that_do_not_exist_fill_no_log(desk: Desk) -> None:
    for number in range(TRIES):
        problem(await desk.http.post(f"/confirm/c_{number}/approve", headers=BOT), 403)
    for odd in ("%00", "%ff", "%F0%9F%98%80", "a" * 3000):
        assert (await desk.http.post(f"/confirm/{odd}/approve", headers=BOT)).status_code in (403, 404)
    (only,) = await refusals(desk)
    assert only.confirmation_id is None


async def test_count_is_written_down_when_nothing_more_comes(desk: Desk, clock: SettableClock) -> None:
    asked = await desk.ask(BOT)
    for _ in range(TRIES):
        await desk.http.post(asked["approve_url"], headers=ROB)
        await desk.http.get("/rules", headers=ROB)
    for _ in range(3):
        clock.advance(seconds=ECHO_SECONDS)
        await desk.service.tidy()
    summed = [(entry.confirmation_id, entry.facts.get("left_out")) for entry in await refusals(desk)]
    assert sorted(summed, key=str) == sorted(
        [(asked["id"], None), (None, None), (asked["id"], TRIES - 1), (None, TRIES - 1)], key=str
    )
    assert desk.store is not None
    assert (await audits.verify(pages(desk.store.confirmations))).whole


async def test_another_agents_grant_that_is_wanted_leaves_a_row(desk: Desk) -> None:
    asked = await desk.approved(BOT)
    body = {"digest": asked["digest"]}
    for headers in (ROB, None):
        for _ in range(3):
            problem(await desk.http.post(f"/confirm/{asked['id']}/redeem", json=body, headers=headers), 404)
    assert [entry.actor for entry in await refusals(desk)] == ["token:rob", "anybody"]


async def test_approver_who_may_not_decide_leaves_a_row(url: str) -> None:
    async with opened(url, mode=Mode.TEAM) as desk:
        rule = {"effect": "ask", "action": "send_mail", "approvers": ["token:eve"]}
        assert (await desk.http.post("/rules", json=rule, headers=EVE)).status_code == 201
        asked = await desk.ask(BOT)
        for verb in ("approve", "deny", "reveal"):
            for _ in range(3):
                problem(await desk.http.post(f"/confirm/{asked['id']}/{verb}", headers=ANN), 403)
        found = await refusals(desk)
        assert [entry.facts["why"].partition(":")[0] for entry in found] == ["approve", "deny", "reveal"]
        assert {(entry.actor, entry.confirmation_id) for entry in found} == {("token:ann", asked["id"])}


@pytest.mark.parametrize("mode", STRICTER)
async def test_approvers_token_that_asks_leaves_a_row(url: str, mode: Mode) -> None:
    async with opened(url, mode=mode) as desk:
        problem(await desk.http.post("/confirm", json={}, headers=ANN), 403)
        (only,) = await refusals(desk)
        assert only.actor == "token:ann"


async def test_agents_token_that_signs_in_to_the_page_leaves_a_row(desk: Desk) -> None:
    async with opened_pages(service=desk.service) as shown:
        own = {"x-frontdesk-page": "1", "origin": str(shown.http.base_url).rstrip("/")}
        for _ in range(3):
            answer = await shown.http.post("/login", json={"token": TOKENS["bot"]}, headers=own)
            problem(answer, 401)
    (only,) = await refusals(desk)
    assert only.actor == "token:bot"


async def test_refusal_is_an_event_of_the_stream_and_of_the_log(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    asked = await desk.ask(BOT)
    for _ in range(3):
        await desk.http.post(asked["approve_url"], headers=BOT)
    seen: list[Any] = []
    async with desk.http.stream("GET", "/events", headers=ANN | {"last-event-id": "0"}) as events:
        async for line in events.aiter_lines():
            if line.startswith("event:"):
                seen.append(line.partition(":")[2].strip())
            if len(seen) == 2:
                break
    assert seen == ["submitted", "refused"]
    assert caplog.text.count("attempt_refused") == 1
