"""An agent that asks until somebody gives in, under ever new names; over real HTTP, on every store."""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from frontdesk.model.confirmations import (
    DEFAULT_PROMPTS_PER_HOUR,
    MOST_DENIALS,
    MUTE_SECONDS,
    RATE_LIMIT_WINDOW,
    Mode,
)
from frontdesk.testing import SettableClock
from tests.integration.confirming import ANN, ASKED, BOT, EVE, ROB, Desk, opened, problem

TRIES = 150


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


async def ask(
    desk: Desk, number: int, headers: dict[str, str] | None = None, **fields: Any
) -> httpx.Response:
    """A request that has nothing in common with the others."""
    asked = ASKED | {"action": f"act {number}", "details": {"number": number}} | fields
    return await desk.http.post("/confirm", json=asked, headers=headers)


async def deny(desk: Desk, asked: httpx.Response) -> None:
    assert asked.status_code == 202, asked.text
    assert (await desk.http.post(asked.json()["deny_url"], headers=ANN)).status_code == 200


async def approve(desk: Desk, asked: httpx.Response) -> None:
    assert asked.status_code == 202, asked.text
    assert (await desk.http.post(asked.json()["approve_url"], headers=ANN)).status_code == 200


# the budget of prompts


@pytest.mark.parametrize("headers", [None, BOT])
async def test_new_names_do_not_get_around_the_budget(desk: Desk, headers: dict[str, str] | None) -> None:
    """Neither those of actions nor, without a token, those of requesters."""
    answers: Counter[int] = Counter()
    for number in range(TRIES):
        asked = await ask(desk, number, headers, requester=f"agent {number}")
        answers[asked.status_code] += 1
        if asked.status_code == 202:
            await approve(desk, asked)
    print(f"{TRIES} requests under new names: {dict(answers)}")
    assert answers == {202: DEFAULT_PROMPTS_PER_HOUR, 429: TRIES - DEFAULT_PROMPTS_PER_HOUR}
    refused = await ask(desk, TRIES, headers)
    told = problem(refused, 429)
    assert (told["remaining"], told["window_seconds"]) == (0, RATE_LIMIT_WINDOW)
    assert 0 < int(refused.headers["retry-after"]) <= RATE_LIMIT_WINDOW


async def test_budget_is_each_credentials_own(url: str) -> None:
    async with opened(url, prompts_per_hour=2) as desk:
        for headers in (BOT, ROB, None):
            statuses = [(await ask(desk, number, headers)).status_code for number in range(3)]
            assert statuses == [202, 202, 429]


async def test_budget_is_free_again_after_an_hour(url: str, clock: SettableClock) -> None:
    async with opened(url, clock=clock, prompts_per_hour=1) as desk:
        assert (await ask(desk, 1)).status_code == 202
        assert (await ask(desk, 2)).status_code == 429
        clock.advance(seconds=RATE_LIMIT_WINDOW)
        assert (await ask(desk, 3)).status_code == 202


async def test_rate_of_the_action_is_looked_at_before_the_budget(url: str) -> None:
    async with opened(url, prompts_per_hour=1, rate_limit=1) as desk:
        assert (await ask(desk, 1, action="send")).status_code == 202
        assert "'send'" in problem(await ask(desk, 2, action="send"), 429)["detail"]
        assert "'anybody'" in problem(await ask(desk, 3), 429)["detail"]


async def test_what_asks_nobody_uses_nothing_of_the_budget(url: str) -> None:
    async with opened(url, prompts_per_hour=2) as desk:
        rule = {"effect": "allow", "action": "read", "expires_at": "2100-01-01T00:00:00Z"}
        assert (await desk.http.post("/rules", json=rule, headers=ANN)).status_code == 201
        assert (await ask(desk, 1)).status_code == 202
        for number in range(5):
            assert (await ask(desk, 1)).json()["repeated"]
            assert (await ask(desk, number, action="read")).status_code == 200
        assert (await ask(desk, 2)).status_code == 202
        assert (await ask(desk, 3)).status_code == 429
        assert (await ask(desk, 4, action="read")).status_code == 200


# what was denied


async def test_denied_details_do_not_come_back_under_other_names(desk: Desk) -> None:
    await deny(desk, await desk.http.post("/confirm", json=ASKED))
    for number in range(20):
        again = ASKED | {"action": f"other {number}", "requester": f"agent {number}"}
        told = problem(await desk.http.post("/confirm", json=again), 403)
        assert told["confirmation_status"] == "denied"
    assert await desk.service.pending_count() == 0


async def test_denied_name_without_details_does_not_come_back_in_another_spelling(desk: Desk) -> None:
    await deny(desk, await ask(desk, 0, action="restart_all", details={}))
    for action in ("Restart-All", "restart_a1l", "restart_all"):
        problem(await ask(desk, 0, action=action, details={}), 403)
    assert (await ask(desk, 0, action="status", details={})).status_code == 202


async def test_denied_details_are_asked_for_again_after_a_while(desk: Desk, clock: SettableClock) -> None:
    await deny(desk, await desk.http.post("/confirm", json=ASKED))
    clock.advance(seconds=MUTE_SECONDS)
    again = await desk.http.post("/confirm", json=ASKED | {"action": "other"})
    assert again.status_code == 202


async def test_denied_to_one_agent_is_asked_for_another(desk: Desk) -> None:
    await deny(desk, await desk.http.post("/confirm", json=ASKED, headers=BOT))
    assert (await desk.http.post("/confirm", json=ASKED, headers=ROB)).status_code == 202


async def test_rule_allows_other_names_of_denied_details_but_not_the_denied_action(desk: Desk) -> None:
    for action in ("read", "send_mail"):
        rule = {"effect": "allow", "action": action, "expires_at": "2100-01-01T00:00:00Z"}
        if action == "send_mail":
            await deny(desk, await desk.http.post("/confirm", json=ASKED))
        assert (await desk.http.post("/rules", json=rule, headers=ANN)).status_code == 201
    problem(await desk.http.post("/confirm", json=ASKED), 403)
    assert (await desk.http.post("/confirm", json=ASKED | {"action": "read"})).status_code == 200


# the pause


async def paused(desk: Desk, headers: dict[str, str] | None = None) -> None:
    for number in range(MOST_DENIALS):
        await deny(desk, await ask(desk, number, headers, requester=f"agent {number}"))


@pytest.mark.parametrize(("headers", "who"), [(None, "anybody"), (BOT, "token:bot")])
async def test_five_denials_in_a_row_pause_until_a_person_lifts_it(
    desk: Desk, clock: SettableClock, headers: dict[str, str] | None, who: str
) -> None:
    await paused(desk, headers)
    clock.advance(days=2)
    told = problem(await ask(desk, 10, headers, requester="new"), 403)
    assert who in told["detail"]
    assert await desk.service.pending_count() == 0
    found = (await desk.http.get("/pauses", headers=ANN)).json()
    assert [(each["requester"], each["denials"]) for each in found["pauses"]] == [(who, MOST_DENIALS)]
    for stranger in (BOT, ROB):
        problem(await desk.http.post("/pauses/lift", json={"requester": who}, headers=stranger), 403)
    problem(await desk.http.post("/pauses/lift", json={"requester": who}), 401)
    problem(await ask(desk, 11, headers), 403)
    assert (await desk.http.post("/pauses/lift", json={"requester": who}, headers=EVE)).status_code == 204
    problem(await desk.http.post("/pauses/lift", json={"requester": who}, headers=EVE), 404)
    assert (await ask(desk, 12, headers)).status_code == 202
    kinds = [str(row.entry.kind) for row in await desk.service.audit_newest(100)]
    assert (kinds.count("paused"), kinds.count("pause_lifted")) == (1, 1)


async def test_whoever_denies_is_told_of_the_pause_that_it_began(desk: Desk) -> None:
    asked = [await ask(desk, number, BOT) for number in range(MOST_DENIALS + 2)]
    told = [
        (await desk.http.post(each.json()["deny_url"], headers=ANN)).json()["pause"] for each in asked[:-1]
    ]
    assert told[: MOST_DENIALS - 1] == [None] * (MOST_DENIALS - 1)
    for number, pause in enumerate(told[MOST_DENIALS - 1 :], MOST_DENIALS):
        assert (pause["requester"], pause["denials"]) == ("token:bot", number)
    approved = await desk.http.post(asked[-1].json()["approve_url"], headers=ANN)
    assert approved.json()["pause"] is None
    lifted = await desk.http.post(pause["lift_url"], json={"requester": pause["requester"]}, headers=ANN)
    assert lifted.status_code == 204


async def test_pause_is_one_agents_own(desk: Desk) -> None:
    await paused(desk, BOT)
    assert (await ask(desk, 10, ROB)).status_code == 202
    assert (await ask(desk, 11)).status_code == 202


async def test_denials_are_in_a_row_when_no_approval_is_between(desk: Desk) -> None:
    for number in range(3 * MOST_DENIALS):
        asked = await ask(desk, number)
        await (approve if number % MOST_DENIALS == 0 else deny)(desk, asked)
    assert (await desk.http.get("/pauses", headers=ANN)).json()["count"] == 0


async def test_yes_to_what_still_waits_lifts_no_pause(desk: Desk) -> None:
    """Else a harmless request, put in line before, would end it."""
    waiting = await ask(desk, 100)
    await paused(desk)
    await approve(desk, waiting)
    problem(await ask(desk, 101), 403)


async def test_what_asks_nobody_goes_on_in_a_pause(desk: Desk) -> None:
    rule = {"effect": "allow", "action": "read", "expires_at": "2100-01-01T00:00:00Z"}
    assert (await desk.http.post("/rules", json=rule, headers=ANN)).status_code == 201
    waiting = await ask(desk, 100)
    await paused(desk)
    assert (await ask(desk, 100)).json()["id"] == waiting.json()["id"]
    assert (await ask(desk, 101, action="read")).status_code == 200


@pytest.mark.parametrize("mode", Mode)
async def test_lapsed_grant_is_not_asked_again_in_a_pause(url: str, clock: SettableClock, mode: Mode) -> None:
    async with opened(url, clock=clock, mode=mode) as desk:
        granted = await ask(desk, 100, BOT)
        await approve(desk, granted)
        await paused(desk, BOT)
        clock.advance(minutes=2)
        body = {"digest": granted.json()["digest"]}
        late = await desk.http.post(f"/confirm/{granted.json()['id']}/redeem", json=body, headers=BOT)
        assert problem(late, 410)["renewal"] is None
        assert await desk.service.pending_count() == 0
