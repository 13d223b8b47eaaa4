"""Confirmations under contention: three nodes on PostgreSQL, many tasks on SQLite, one winner each."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast
from uuid import uuid4

import pytest

from frontdesk import errors, plugins
from frontdesk.contracts.confirmations import Redemption
from frontdesk.flow import audits
from frontdesk.model.confirmations import (
    GRANT_SECONDS,
    MOST_DENIALS,
    MOST_PENDING,
    Confirmation,
    Settings,
    Status,
    Submitted,
)
from frontdesk.model.rules import Effect
from frontdesk.stores.confirmations import Confirmations
from frontdesk.stores.store import Store
from frontdesk.testing import SettableClock
from tests import counts
from tests.contracts.asking import AGENT, ANN, BOB, Asker, on_terms, pages, request, ruling
from tests.integration.engines import opened
from tests.integration.proxy import Cut, proxied

T = TypeVar("T")

NODES = 3
AT_ONCE = 10
EXPECTED = (
    errors.AlreadyResolved,
    errors.RateLimited,
    errors.RequesterPaused,
    errors.TooManyPending,
    errors.UnknownConfirmation,
)


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture(params=["sqlite", "postgresql"])
async def nodes(
    request: pytest.FixtureRequest, tmp_path: Path, clock: SettableClock
) -> AsyncIterator[Sequence[Asker]]:
    """Three nodes of one store; a file has one owner, who is asked three times over."""
    async with AsyncExitStack() as stack:

        async def open_one(url: str) -> Store:
            store: Store = await plugins.load_store(url)(url)
            stack.push_async_callback(store.close)
            return store

        if request.param == "sqlite":
            stores = [await open_one(f"sqlite:///{tmp_path}/state.db")] * NODES
        else:
            url = f"{request.getfixturevalue('postgres_url')}?schema=test_{uuid4().hex}"
            stores = [await open_one(url) for _ in range(NODES)]
        yield [Asker(store, clock, name=f"n{number}-") for number, store in enumerate(stores)]


async def race(jobs: Sequence[Awaitable[T]]) -> tuple[list[T], list[errors.FrontdeskError]]:
    """What those gave that succeeded, and the errors of ours that the others raised."""
    outcomes = await asyncio.gather(*jobs, return_exceptions=True)
    failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    for failure in failures:
        if not isinstance(failure, EXPECTED):
            raise failure
    done = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    return done, cast("list[errors.FrontdeskError]", failures)


async def check_log(nodes: Sequence[Asker]) -> Counter[str]:
    """The log is whole and the same everywhere; how often each kind was written."""
    found = [await audits.verify(pages(node.kept)) for node in nodes]
    assert all(each.whole for each in found), found
    assert len({each.rows for each in found}) == 1
    return Counter(await nodes[0].kinds())


# decisions


async def contest(nodes: Sequence[Asker], number: int) -> bool:
    """Six people decide at once, some each way; whether exactly one of them did."""
    asked = await nodes[number % NODES].ask(request(f"action {number}", requester=f"token:{number}"))
    votes = [
        node.vote(asked, by=f"person {person}", approves=(person + number) % 2 == 0)
        for person, node in enumerate([*nodes, *nodes])
    ]
    winners, losers = await race(votes)
    found = await nodes[0].kept.find(asked.id)
    return (
        len(winners) == 1
        and found == winners[0]
        and all(vars(each) == {"confirmation_id": asked.id, "status": found.status} for each in losers)
    )


@pytest.mark.prove
async def test_contested_decisions_have_one_winner_each(nodes: Sequence[Asker]) -> None:
    rounds = counts.count(50, 1_000)
    single = 0
    for start in range(0, rounds, AT_ONCE):
        contests = (contest(nodes, number) for number in range(start, start + AT_ONCE))
        single += sum(await asyncio.gather(*contests))
    print(f"{rounds} contested decisions, {single} with exactly one winner")
    assert single == rounds
    written = await check_log(nodes)
    assert written["approved"] + written["denied"] == rounds


async def test_vote_and_timeout_at_once_have_one_winner(nodes: Sequence[Asker], clock: SettableClock) -> None:
    for number in range(10):
        asked = await nodes[0].ask(request(target=number))
        clock.set(asked.expires_at)
        late = Asker(nodes[1].store, SettableClock(asked.created_at))
        (voted, ended), refused = await race_with_timeout(asked, late, nodes)
        assert len(voted) + len(ended) == 1
        found = await nodes[0].kept.find(asked.id)
        assert [found] == [*voted, *ended]
        assert len(refused) == 1 - len(voted)


async def race_with_timeout(
    asked: Confirmation, voter: Asker, nodes: Sequence[Asker]
) -> tuple[tuple[list[Confirmation], list[Confirmation]], list[errors.FrontdeskError]]:
    """Somebody whose clock is behind votes while two nodes sweep."""
    voting = asyncio.ensure_future(race([voter.vote(asked)]))
    sweeping = asyncio.ensure_future(race([nodes[0].expire(), nodes[2].expire()]))
    (voted, refused), (swept, _) = await voting, await sweeping
    return (voted, [ended for sweep in swept for ended in sweep]), refused


async def test_one_persons_votes_at_once_count_once(nodes: Sequence[Asker]) -> None:
    asked = await nodes[0].ask(decided=on_terms(quorum=2))
    voted, _ = await race([node.vote(asked) for node in [*nodes] * 7])
    assert {(each.status, each.approvals) for each in voted} == {(Status.PENDING, (ANN,))}
    assert (await nodes[0].vote(asked, by=BOB)).status is Status.APPROVED
    assert await check_log(nodes) == {"submitted": 1, "voted": 1, "approved": 1}


async def test_quorum_at_once_is_reached_once(nodes: Sequence[Asker]) -> None:
    asked = await nodes[0].ask(decided=on_terms(quorum=5))
    votes = [nodes[n % NODES].vote(asked, by=f"person {n}") for n in range(12)]
    voted, late = await race(votes)
    assert (len(voted), len(late)) == (5, 7)
    assert [each.status for each in voted].count(Status.APPROVED) == 1
    assert await check_log(nodes) == {"submitted": 1, "voted": 4, "approved": 1}


# requests


async def test_rate_limit_holds_for_sixty_at_once(nodes: Sequence[Asker]) -> None:
    ten = Settings(rate_limit=10)
    jobs = [nodes[n % NODES].submit(request(target=n), settings=ten) for n in range(60)]
    taken, refused = await race(jobs)
    pending = await nodes[0].kept.count_pending(nodes[0].clock.now())
    print(f"60 requests against a limit of 10: {pending} wait, {len(refused)} refused")
    assert (len(taken), pending) == (10, 10)
    assert [type(error) for error in refused] == [errors.RateLimited] * 50
    assert await check_log(nodes) == {"submitted": 10}


async def test_credentials_budget_holds_for_sixty_at_once_under_new_names(nodes: Sequence[Asker]) -> None:
    ten = Settings(prompts_per_hour=10)
    jobs = [
        nodes[n % NODES].submit(request(f"action {n}", requester=f"agent {n}"), settings=ten)
        for n in range(60)
    ]
    taken, refused = await race(jobs)
    assert (len(taken), len(refused)) == (10, 50)
    assert {type(error) for error in refused} == {errors.PromptsUsedUp}


async def test_denials_at_once_pause_once(nodes: Sequence[Asker]) -> None:
    asked = [await nodes[0].ask(request(target=n)) for n in range(3 * MOST_DENIALS)]
    await race([nodes[n % NODES].deny(each) for n, each in enumerate(asked)])
    with pytest.raises(errors.RequesterPaused):
        await nodes[1].submit()
    (pause,) = await nodes[2].kept.pauses()
    assert (pause.requester, pause.denials) == (AGENT, len(asked))
    lifted, _ = await race([node.kept.lift_pause(AGENT, ANN, node.clock.now()) for node in [*nodes] * 3])
    assert lifted.count(True) == 1
    written = await check_log(nodes)
    assert (written["paused"], written["pause_lifted"]) == (1, 1)


async def test_refusals_at_once_are_one_row_and_a_count(nodes: Sequence[Asker], clock: SettableClock) -> None:
    asked = await nodes[0].ask()
    for _ in range(2):
        jobs = [
            nodes[n % NODES].kept.note_refusal(AGENT, "approve", asked.id, clock.now()) for n in range(30)
        ]
        noted, _ = await race(jobs)
        assert noted.count(True) == 1
        clock.advance(minutes=1)
    refused = [entry for entry in await nodes[0].entries() if entry.kind == "refused"]
    assert [entry.facts.get("left_out") for entry in refused] == [None, 29]
    await check_log(nodes)


async def test_bound_on_what_waits_holds_for_eighty_at_once(nodes: Sequence[Asker]) -> None:
    taken, refused = await race([nodes[n % NODES].submit(request(f"action {n}")) for n in range(80)])
    assert len(taken) == await nodes[0].kept.count_pending(nodes[0].clock.now()) == MOST_PENDING
    assert {type(error) for error in refused} == {errors.TooManyPending}


@pytest.mark.parametrize("key", [None, "key"])
async def test_same_request_at_once_waits_once(nodes: Sequence[Asker], key: str | None) -> None:
    jobs = [nodes[n % NODES].submit(request(idempotency_key=key)) for n in range(60)]
    taken, _ = await race(jobs)
    assert len({each.confirmation.id for each in taken}) == 1
    assert [each.repeated for each in taken].count(False) == 1
    assert await nodes[0].kept.count_pending(nodes[0].clock.now()) == 1


async def test_denied_while_it_is_asked_again_stays_muted(nodes: Sequence[Asker]) -> None:
    for number in range(20):
        wanted = request(target=number, requester=f"token:{number}")
        asked = await nodes[0].ask(wanted)
        denying = asyncio.ensure_future(nodes[0].deny(asked))
        submitting = asyncio.gather(*(node.submit(wanted) for node in nodes))
        await denying
        for submitted in await submitting:
            joined = submitted.confirmation.id == asked.id
            assert joined or submitted.confirmation.resolved_by == "system:muted"
        assert await nodes[0].kept.count_pending(nodes[0].clock.now()) == 0


async def test_who_joins_while_it_is_decided_is_told_there_or_then(
    nodes: Sequence[Asker], clock: SettableClock
) -> None:
    """Either the answer says what was decided, or the program that joined is called."""
    for number in range(counts.count(20, 100)):
        clock.advance(minutes=1)  # only so many are decided at once in one
        who = f"token:{number}"
        asked = await nodes[0].ask(request(target=number, requester=who))
        wanted = [
            request(target=number, requester=who, callback_url=f"https://x.example/{number}/{each}")
            for each in range(NODES)
        ]
        voting = asyncio.ensure_future(nodes[number % NODES].vote(asked, approves=False))
        joins = (node.submit(each) for node, each in zip(nodes, wanted, strict=True))
        joined = [submitted.confirmation for submitted in await asyncio.gather(*joins)]
        await voting
        now = nodes[0].clock.now()
        told = {owed.url for owed in await nodes[0].kept.claim_callbacks(now, now + timedelta(days=1), 10)}
        waited = {
            each.callback_url
            for each, found in zip(wanted, joined, strict=True)
            if found.status is Status.PENDING
        }
        assert told == waited


# grants


async def test_grant_is_used_once_by_twenty_at_once(nodes: Sequence[Asker]) -> None:
    uses = []
    for number in range(10):
        granted = await nodes[0].approved(request(target=number))
        jobs = [nodes[n % NODES].redeem(granted, by=f"agent {n}") for n in range(20)]
        redeemed, _ = await race(jobs)
        uses.append(sum(each.payload is not None for each in redeemed))
        assert Counter(each.refused for each in redeemed) == {None: 1, "redeemed": 19}
    print(f"{len(uses)} grants redeemed 20-fold: {sum(uses)} gave bytes")
    assert uses == [1] * 10
    written = await check_log(nodes)
    assert (written["redeemed"], written["redeem_refused"]) == (10, 190)


async def test_lapsed_grant_is_asked_again_once_by_twenty_at_once(
    nodes: Sequence[Asker], clock: SettableClock
) -> None:
    lapsed = await nodes[0].approved()
    clock.advance(seconds=GRANT_SECONDS)
    refused, _ = await race([nodes[n % NODES].redeem(lapsed) for n in range(20)])
    assert {each.refused for each in refused} == {"lapsed"}
    assert len({each.renewal.id for each in refused if each.renewal}) == 1
    assert await nodes[0].kept.count_pending(nodes[0].clock.now()) == 1
    assert (await check_log(nodes))["renewed"] == 1


# sweeps


async def test_each_is_expired_and_escalated_by_one_node(
    nodes: Sequence[Asker], clock: SettableClock
) -> None:
    terms = on_terms(escalate_after_seconds=60)
    asked = {(await nodes[0].ask(request(target=n), terms)).id for n in range(30)}
    clock.advance(seconds=60)
    escalated, _ = await race([node.escalate(limit=9) for node in [*nodes] * 3])
    clock.advance(hours=1)
    expired, _ = await race([node.expire(limit=9) for node in [*nodes] * 3])
    for swept in (escalated, expired):
        found = [each.id for sweep in swept for each in sweep]
        assert len(found) == len(set(found))
        assert set(found) <= asked
    escalated_ids = {each.id for sweep in escalated for each in sweep}
    left = {each.id for sweep in (await nodes[0].expire(), *expired) for each in sweep}
    assert left == asked
    written = await check_log(nodes)
    assert (written["escalated"], written["expired"]) == (len(escalated_ids), len(asked))


# everything


class Storm:
    """Everything that can happen to confirmations, from every node."""

    def __init__(self, nodes: Sequence[Asker], clock: SettableClock, seed: int) -> None:
        self._nodes = nodes
        self._clock = clock
        self._chance = random.Random(seed)
        self._known: list[Confirmation] = []
        self.used: Counter[str] = Counter()

    async def step(self, number: int) -> None:
        node = self._chance.choice(self._nodes)
        asked = self._chance.choice(self._known[-8:]) if self._known else None
        person = self._chance.choice((ANN, BOB, "token:cid"))
        match self._chance.randrange(10):
            case 0 | 1 | 2:
                wanted = request(f"action {number % 7}", target=self._chance.randrange(9))
                effect = self._chance.choice((Effect.ASK, Effect.ASK, Effect.ALLOW, Effect.DENY))
                await self._keep(node.submit(wanted, ruling(effect, quorum=self._chance.choice((1, 2)))))
            case 3 | 4 | 5 if asked:
                await node.vote(asked, by=person, approves=self._chance.random() < 0.8)
            case 6 | 7 if asked:
                await self._use(node.redeem(asked))
            case 8 if asked:
                await node.erase(asked)
            case _:
                await node.kept.lift_pause(AGENT, ANN, self._clock.now())
                self._clock.advance(seconds=self._chance.randrange(40))
                await node.expire(limit=5)
                await node.escalate(limit=5)

    async def _keep(self, submitting: Awaitable[Submitted]) -> None:
        self._known.append((await submitting).confirmation)

    async def _use(self, redeeming: Awaitable[Redemption]) -> None:
        redemption = await redeeming
        if redemption.payload is not None:
            self.used[redemption.confirmation.id] += 1


@pytest.mark.prove
async def test_storm_leaves_a_whole_log_and_no_grant_used_twice(
    nodes: Sequence[Asker], clock: SettableClock
) -> None:
    storm = Storm(nodes, clock, seed=7)
    steps = counts.count(400, 5_000)
    for start in range(0, steps, 20):
        await race([storm.step(number) for number in range(start, start + 20)])
    written = await check_log(nodes)
    assert set(storm.used.values()) == {1}
    assert written["redeemed"] == len(storm.used)
    print(f"{steps} steps at once: {sum(written.values())} rows, {len(storm.used)} grants used, none twice")


# forgetting


async def test_what_is_old_is_forgotten_once_while_others_still_use_it(
    nodes: Sequence[Asker], clock: SettableClock
) -> None:
    old = [await nodes[0].approved(request(target=number)) for number in range(30)]
    clock.advance(seconds=GRANT_SECONDS)
    jobs: list[Awaitable[object]] = [node.kept.prune(clock.now(), clock.now(), 7) for node in [*nodes] * 5]
    jobs += [nodes[number % NODES].erase(asked) for number, asked in enumerate(old)]
    jobs += [nodes[number % NODES].redeem(asked, "0" * 64) for number, asked in enumerate(old)]
    await race(jobs)
    while await nodes[0].kept.prune(clock.now(), clock.now(), 100):
        continue
    assert await nodes[0].kept.list(100) == []
    await check_log(nodes)
    entries = await nodes[0].entries()
    assert sum(entry.facts["count"] for entry in entries if entry.kind == "pruned") == len(old)


# cut connections


@pytest.mark.parametrize("cut", Cut)
async def test_cut_connection_doubles_nothing(postgres_url: str, cut: Cut, clock: SettableClock) -> None:
    url = f"{postgres_url}?schema=test_{uuid4().hex}"
    async with proxied(url) as (proxy, through), opened(f"{through}&pool=1") as engine:
        store: Any = SimpleNamespace(confirmations=Confirmations(engine))
        asker = Asker(store, clock)
        assert await asker.kept.count_pending(asker.clock.now()) == 0  # it is connected now
        proxy.plan_once(cut)
        asked = await asker.ask(request(idempotency_key="k"))
        proxy.plan_once(cut)
        voted = await asker.vote(asked)
        proxy.plan_once(cut)
        redemption = await asker.redeem(voted)
        assert proxy.cuts == 3
        assert redemption.payload == asked.payload
        assert await check_log([asker]) == {"submitted": 1, "approved": 1, "redeemed": 1}
