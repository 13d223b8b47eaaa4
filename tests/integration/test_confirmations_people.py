"""Over HTTP, one person with several tokens and accounts has one vote."""

from datetime import datetime
from functools import partial
from typing import Any

import pytest

from frontdesk.contracts.secrets import Secret
from frontdesk.model.confirmations import Caller, CallerKind
from frontdesk.model.rules import Effect, Rule
from frontdesk.stores.store import Store
from frontdesk.web.confirmations import Credentials
from tests.integration.confirming import ANN, BOT, EVE, TOKENS, Desk, credentials, opened, problem

PHONE, LID = "4915112345678", "987654321098765"
NOW = datetime.fromisoformat("2026-01-01T00:00:00Z")
OWNER = Caller(id="token:owner", kind=CallerKind.APPROVER)


def holding(people: dict[str, list[str]], **secrets: str) -> Credentials:
    known = credentials()
    more: dict[str, Secret] = {name: partial(str, text) for name, text in secrets.items()}
    approvers = {**known.approvers, **more}
    return Credentials(approvers=approvers, agents=known.agents, people=people)


def persons_of(people: dict[str, list[str]]) -> tuple[frozenset[str], ...]:
    return tuple(frozenset({f"token:{name}", *accounts}) for name, accounts in people.items())


async def learn(store: Store | None) -> None:
    assert store is not None
    assert await store.aliases.learn(LID, PHONE, _nothing_moves, lambda *_: None, NOW)


def _nothing_moves(*_: Any) -> tuple[str, str, str]:
    raise AssertionError("nobody has a session here")


async def votes(desk: Desk, asked: dict[str, Any], headers: dict[str, str]) -> tuple[str, int]:
    answer = await desk.http.post(asked["approve_url"], headers=headers)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    return told["status"], len((await desk.service.find(asked["id"])).approvals)


@pytest.mark.parametrize("learned_after", [0, 1])
async def test_tokens_of_two_names_of_one_person_are_one_vote(store_url: str, learned_after: int) -> None:
    people = {"ann": [f"whatsapp:{LID}@lid"], "eve": [f"whatsapp@shop:+{PHONE}"]}
    known = holding(people, zoe="zoe-token-0123456789abcdef")
    async with opened(store_url, known=known, persons=persons_of(people)) as desk:
        await desk.service.add_rule(Rule(id="two", effect=Effect.ASK, quorum=2), OWNER)
        asked = await desk.ask(BOT)
        for number, headers in enumerate((ANN, EVE)):
            if number == learned_after:
                await learn(desk.store)
            assert await votes(desk, asked, headers) == ("pending", 1)
        zoe = {"authorization": "Bearer zoe-token-0123456789abcdef"}
        assert await votes(desk, asked, zoe) == ("approved", 2)


async def test_agents_token_that_is_an_approvers_too_asks_for_that_person(store_url: str) -> None:
    """Whoever the settings call one person does not decide about what their own agent's token asks."""
    people = {"ann": [f"whatsapp:{LID}"], "eve": ["token:bot", f"whatsapp:{PHONE}"]}
    async with opened(store_url, known=holding(people), persons=persons_of(people)) as desk:
        await learn(desk.store)
        asked = await desk.ask(BOT)
        for headers in (EVE, ANN):
            refused = problem(await desk.http.post(asked["approve_url"], headers=headers), 403)
            assert "what they asked for" in refused["error"]
        assert await desk.status(asked["id"]) == "pending"


@pytest.mark.parametrize("names", [("ann", "twin"), ("twin", "ann")], ids=str)
async def test_names_of_one_token_are_one_person(store_url: str, names: tuple[str, str]) -> None:
    """A link names one of them, the token always the first."""
    known = holding({}, twin=TOKENS["ann"])
    async with opened(store_url, known=known) as desk:
        await desk.service.add_rule(Rule(id="two", effect=Effect.ASK, quorum=2), OWNER)
        asked = await desk.ask(BOT)
        for name in names:
            caller = known.approver(f"token:{name}")
            assert caller is not None
            found = await desk.service.approve(asked["id"], caller)
            assert (str(found.status), found.approvals) == ("pending", (f"token:{names[0]}",))
        assert await votes(desk, asked, ANN) == ("pending", 1)
        assert await votes(desk, asked, EVE) == ("approved", 2)
