"""Confirmations on every store: asked once, decided once, carried out once."""

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from frontdesk import errors, plugins
from frontdesk.contracts.bells import Topic
from frontdesk.model.confirmations import (
    AT_ONCE_SECONDS,
    GRANT_SECONDS,
    MOST_AT_ONCE,
    MOST_LISTED_BYTES,
    MOST_PENDING,
    MUTE_SECONDS,
    Confirmation,
    Settings,
    Status,
)
from frontdesk.model.people import Person
from frontdesk.model.rules import Condition, Effect, Rule, Ruling
from frontdesk.stores.store import Store
from frontdesk.testing import SettableClock
from tests.contracts.asking import AGENT, ANN, ASK, BOB, Asker, on_terms, request, ruling
from tests.contracts.conftest import EditStore, stored

DENY, ALLOW = ruling(Effect.DENY), ruling(Effect.ALLOW)
TEN = Settings(rate_limit=10, window_seconds=3600)
TWO = on_terms(quorum=2)

OpenAsker = Callable[[], Awaitable[Asker]]


@pytest.fixture
async def open_asker(store_url: str, clock: SettableClock) -> AsyncIterator[OpenAsker]:
    """Opens the store, which is the same at every call; the one before is closed."""
    async with AsyncExitStack() as opened:
        openings = 0

        async def open_one() -> Asker:
            nonlocal openings
            openings += 1
            await opened.aclose()
            store: Store = await plugins.load_store(store_url)(store_url)
            opened.push_async_callback(store.close)
            return Asker(store, clock, name=f"n{openings}-")

        yield open_one


@pytest.fixture
async def asker(open_asker: OpenAsker) -> Asker:
    return await open_asker()


async def renewal_of(asker: Asker, asked: Confirmation) -> Confirmation:
    renewal = (await asker.redeem(asked)).renewal
    assert renewal is not None
    return renewal


# a request


async def test_request_waits_and_is_found_as_it_was_given(asker: Asker, clock: SettableClock) -> None:
    wanted = request(
        session_key="agent:main:cli:dm:me",
        on_behalf_of="telegram:7",
        turn_id="t1",
        timeout_seconds=120,
        callback_url="https://agent.example/done",
        description="Ünïcode\nand lines",
    )
    submitted = await asker.submit(wanted, on_terms(approvers=("ann",), escalate_to=("bob",)))
    asked = submitted.confirmation
    assert (submitted.repeated, submitted.automatic) == (False, False)
    assert asked.status is Status.PENDING
    assert asked.payload == wanted.payload
    assert asked.created_at == clock.now()
    assert asked.expires_at == clock.now() + timedelta(seconds=120)
    assert asked.terms.approvers == ("ann",)
    assert await asker.kept.find(asked.id) == asked


async def test_request_survives_a_restart(open_asker: OpenAsker) -> None:
    asker = await open_asker()
    waiting = await asker.ask()
    granted = await asker.approved(request("other"))
    asker = await open_asker()
    assert await asker.kept.find(waiting.id) == waiting
    assert (await asker.redeem(granted)).payload == granted.payload


async def test_description_that_a_database_refuses_is_kept_readable(asker: Asker) -> None:
    asked = await asker.ask(request(description="a\0b"))
    assert asked.description == "a b"
    assert await asker.kept.find(asked.id) == asked


async def test_unknown_confirmation_is_not_found(asker: Asker) -> None:
    assert await asker.kept.find("nothing") is None


async def test_people_are_told_of_what_waits_anew_in_the_same_transaction(asker: Asker) -> None:
    asked = await asker.ask()
    assert asker.told == [asked]
    assert await asker.store.deliveries.find(f"{asked.id}:pending:0") is not None


async def test_rules_that_hold_decide_oldest_first(asker: Asker, clock: SettableClock) -> None:
    await asker.add_rule("first")
    await asker.add_rule("second", Effect.ASK, quorum=3)
    await asker.add_rule("short", expires_at=clock.now() + timedelta(minutes=1))
    clock.advance(minutes=1)
    seen: list[str] = []

    def decide(known: Sequence[Rule]) -> Ruling:
        seen.extend(rule.id for rule in known)
        return Ruling(effect=Effect.ASK, terms=known[-1].terms)

    asked = (await asker.submit(decided=decide)).confirmation
    assert seen == ["first", "second"]
    assert asked.terms.quorum == 3


# idempotency keys


async def test_same_key_gives_the_same_confirmation(asker: Asker) -> None:
    first = await asker.ask(request(idempotency_key="k"))
    again = await asker.submit(request(idempotency_key="k"))
    assert (again.confirmation, again.repeated) == (first, True)
    assert asker.told == [first]


async def test_key_counts_after_the_decision_and_before_any_rule(asker: Asker) -> None:
    first = await asker.approved(request(idempotency_key="k"))
    again = await asker.submit(request(idempotency_key="k"), DENY)
    assert (again.confirmation, again.repeated, again.automatic) == (first, True, False)


async def test_key_of_what_a_rule_decided_says_so_again(asker: Asker) -> None:
    first = await asker.submit(request(idempotency_key="k"), ALLOW)
    again = await asker.submit(request(idempotency_key="k"))
    assert (again.confirmation, again.automatic) == (first.confirmation, True)


async def test_key_for_another_action_is_refused_and_changes_nothing(asker: Asker) -> None:
    await asker.ask(request(idempotency_key="k"))
    before = await asker.entries()
    with pytest.raises(errors.KeyReused):
        await asker.submit(request(target="other", idempotency_key="k"))
    assert await asker.kept.count_pending(asker.clock.now()) == 1
    assert await asker.entries() == before


async def test_key_belongs_to_its_requester(asker: Asker) -> None:
    first = await asker.ask(request(idempotency_key="k"))
    other = await asker.ask(request(idempotency_key="k", requester="token:other", target="more"))
    assert other.id != first.id


async def test_key_of_a_joined_request_finds_what_it_joined(asker: Asker) -> None:
    first = await asker.ask(request())
    await asker.submit(request(idempotency_key="k"))
    await asker.vote(first)
    again = await asker.submit(request(idempotency_key="k"))
    assert (again.confirmation.id, again.repeated) == (first.id, True)


async def test_key_of_a_refused_request_is_free(asker: Asker) -> None:
    with pytest.raises(errors.RateLimited):
        await asker.submit(request(idempotency_key="k"), settings=Settings(rate_limit=0))
    assert not (await asker.submit(request(idempotency_key="k"))).repeated


async def test_key_is_stored_as_its_hash(asker: Asker, store_url: str) -> None:
    await asker.ask(request(idempotency_key="very secret"))
    await asker.store.close()
    ((key,),) = await stored(store_url, "SELECT key FROM confirmation_keys")
    assert key == hashlib.sha256(b"very secret").digest()


# rules that decide


async def test_rule_that_denies_leaves_a_denied_row(asker: Asker) -> None:
    submitted = await asker.submit(decided=DENY)
    denied = submitted.confirmation
    assert (denied.status, denied.resolved_by, submitted.automatic) == (Status.DENIED, "rule:r1", True)
    assert denied.resolved_at == denied.created_at
    assert await asker.kept.find(denied.id) == denied
    assert asker.told == []


async def test_rule_that_denies_comes_before_one_that_waits(asker: Asker) -> None:
    waiting = await asker.ask()
    denied = await asker.ask(decided=DENY)
    assert denied.id != waiting.id
    assert denied.status is Status.DENIED


async def test_rule_that_allows_leaves_a_grant_for_one_use(asker: Asker) -> None:
    submitted = await asker.submit(decided=ALLOW)
    granted = submitted.confirmation
    assert (granted.status, granted.resolved_by, submitted.automatic) == (Status.APPROVED, "rule:r1", True)
    assert asker.told == []
    assert (await asker.redeem(granted)).payload == granted.payload
    assert (await asker.redeem(granted)).refused == "redeemed"


async def test_what_waits_comes_before_a_rule_that_allows(asker: Asker) -> None:
    waiting = await asker.ask()
    again = await asker.submit(decided=ALLOW)
    assert (again.confirmation, again.repeated) == (waiting, True)


# a denied action is muted


async def test_denied_action_stays_denied_for_a_while(asker: Asker, clock: SettableClock) -> None:
    await asker.deny(await asker.ask())
    clock.advance(seconds=MUTE_SECONDS - 1)
    muted = await asker.submit()
    assert (muted.confirmation.status, muted.confirmation.resolved_by) == (Status.DENIED, "system:muted")
    assert (muted.repeated, muted.automatic) == (False, False)
    assert len(asker.told) == 2  # asked, and denied
    clock.advance(seconds=1)
    assert (await asker.ask()).status is Status.PENDING


async def test_mute_holds_in_every_conversation_and_before_an_allowing_rule(asker: Asker) -> None:
    await asker.deny(await asker.ask(request(session_key="one")))
    assert (await asker.ask(request(session_key="two"), ALLOW)).resolved_by == "system:muted"


async def test_mute_holds_before_another_one_that_waits(asker: Asker) -> None:
    one = await asker.ask(request(session_key="one"))
    await asker.ask(request(session_key="two"))
    await asker.deny(one)
    assert (await asker.ask(request(session_key="two"))).resolved_by == "system:muted"


async def test_other_requesters_and_other_arguments_are_not_muted(asker: Asker) -> None:
    await asker.deny(await asker.ask())
    assert (await asker.ask(request(requester="token:other"))).status is Status.PENDING
    assert (await asker.ask(request(target="other"))).status is Status.PENDING


async def test_rules_and_timeouts_mute_nothing(asker: Asker, clock: SettableClock) -> None:
    await asker.ask(decided=DENY)
    waiting = await asker.ask()
    assert waiting.status is Status.PENDING
    clock.advance(seconds=waiting.timeout_seconds)
    await asker.expire()
    assert (await asker.ask()).status is Status.PENDING


async def test_muted_requests_do_not_mute_longer(asker: Asker, clock: SettableClock) -> None:
    await asker.deny(await asker.ask())
    for _ in range(3):
        clock.advance(seconds=MUTE_SECONDS / 3 - 1)
        assert (await asker.ask()).resolved_by == "system:muted"
    clock.advance(seconds=3)
    assert (await asker.ask()).status is Status.PENDING


# the same request is asked once


async def test_same_request_joins_the_one_that_waits(asker: Asker) -> None:
    first = await asker.ask(request(session_key="s"))
    again = await asker.submit(request(session_key="s", description="other words"))
    assert (again.confirmation, again.repeated) == (first, True)
    assert asker.told == [first]
    assert await asker.kinds() == ["submitted", "coalesced"]


@pytest.mark.parametrize(
    "other",
    [
        {"session_key": "other"},
        {"session_key": None},
        {"requester": "token:other"},
        {"target": 1},
        {"turn_id": "t2"},
        {"turn_id": None},
    ],
)
async def test_another_request_waits_by_itself(asker: Asker, other: dict[str, Any]) -> None:
    first = await asker.ask(request(session_key="s", turn_id="t1"))
    second = await asker.submit(request(**{"session_key": "s", "turn_id": "t1"} | other))
    assert not second.repeated
    assert second.confirmation.id != first.id


async def test_who_joins_leaves_the_words_and_the_end_of_the_first(asker: Asker) -> None:
    first = await asker.ask(request(description="first", timeout_seconds=60))
    joined = await asker.ask(request(description="second", timeout_seconds=3600))
    assert joined == first == await asker.kept.find(first.id)


async def test_nothing_joins_what_is_decided_or_over(asker: Asker, clock: SettableClock) -> None:
    first = await asker.approved()
    second = await asker.submit()
    assert not second.repeated
    clock.advance(seconds=second.confirmation.timeout_seconds)
    third = await asker.submit()
    assert not third.repeated
    assert len({first.id, second.confirmation.id, third.confirmation.id}) == 3


# limits


async def test_action_is_asked_for_so_often_in_a_window(asker: Asker, clock: SettableClock) -> None:
    for number in range(10):
        await asker.submit(request(target=number), settings=TEN)
        clock.advance(minutes=1)
    before = await asker.entries()
    with pytest.raises(errors.RateLimited) as refused:
        await asker.submit(request(target="more"), settings=TEN)
    facts = {"action": "deploy", "limit": 10, "window_seconds": 3600}
    assert vars(refused.value) == facts | {"retry_after_seconds": 50 * 60}
    assert await asker.entries() == before
    assert (await asker.submit(request("other"), settings=TEN)).confirmation.status is Status.PENDING
    clock.advance(minutes=50)
    assert (await asker.submit(request(target="more"), settings=TEN)).confirmation.status is Status.PENDING
    with pytest.raises(errors.RateLimited):
        await asker.submit(request(target="and more"), settings=TEN)


@pytest.mark.parametrize(
    "action",
    [
        "Flood",
        "fl-ood",
        "f1ood",
        "fl ood",
        "FLOOD",
        "ｆｌｏｏｄ",
        "fl\N{CYRILLIC SMALL LETTER O}od",
        "flo_0d",
    ],
)
async def test_rate_of_an_action_counts_however_it_is_written(asker: Asker, action: str) -> None:
    for number in range(10):
        await asker.submit(request("flood", target=number), settings=TEN)
    with pytest.raises(errors.RateLimited):
        await asker.submit(request(action), settings=TEN)


async def test_what_does_not_wait_anew_uses_no_allowance(asker: Asker) -> None:
    one = Settings(rate_limit=2)
    first = (await asker.submit(request(), settings=one)).confirmation
    for decided in (ASK, ALLOW, DENY):
        await asker.submit(request(), decided, one)
    for number in range(3):
        await asker.submit(request(target=number), ALLOW, one)
    await asker.deny(first)
    assert (await asker.submit(request(), settings=one)).confirmation.resolved_by == "system:muted"
    assert (await asker.submit(request(target="x"), settings=one)).confirmation.status is Status.PENDING
    with pytest.raises(errors.RateLimited):
        await asker.submit(request(target="y"), settings=one)


async def test_no_more_wait_than_people_can_look_at(asker: Asker, clock: SettableClock) -> None:
    asked = [await asker.ask(request(target=number)) for number in range(MOST_PENDING)]
    with pytest.raises(errors.TooManyPending) as refused:
        await asker.submit(request(target="more"))
    assert vars(refused.value) == {
        "pending": MOST_PENDING,
        "window_seconds": 3600,
        "retry_after_seconds": asked[0].timeout_seconds,
    }
    assert (await asker.submit(request(target=0))).repeated
    assert (await asker.ask(request(target="allowed"), ALLOW)).status is Status.APPROVED
    await asker.vote(asked[0])
    assert (await asker.ask(request(target="more"))).status is Status.PENDING
    clock.advance(seconds=asked[1].timeout_seconds)
    assert (await asker.ask(request(target="later"))).status is Status.PENDING


async def test_rate_is_looked_at_before_the_budget(asker: Asker) -> None:
    for number in range(MOST_PENDING):
        await asker.ask(request(target=number))
    with pytest.raises(errors.RateLimited):
        await asker.submit(request(target="more"), settings=TEN)


async def test_what_is_decided_at_once_is_bounded_for_each_requester(
    asker: Asker, clock: SettableClock
) -> None:
    await asker.deny(await asker.ask())
    for decided in (ASK, ALLOW, DENY):
        for number in range(MOST_AT_ONCE // 3):
            at_once = await asker.ask(request(target=None if decided is ASK else number), decided)
            assert at_once.resolved_at == at_once.created_at
        clock.advance(seconds=1)
    before = await asker.entries()
    for decided in (ASK, ALLOW, DENY):
        with pytest.raises(errors.RateLimited) as refused:
            await asker.submit(decided=decided)
        facts = {"action": "deploy", "limit": MOST_AT_ONCE, "window_seconds": AT_ONCE_SECONDS}
        assert vars(refused.value) == facts | {"retry_after_seconds": AT_ONCE_SECONDS - 3}
    assert await asker.entries() == before
    assert (await asker.ask(request(target="new"))).status is Status.PENDING
    assert (await asker.ask(request(requester="token:other"), DENY)).status is Status.DENIED
    clock.advance(seconds=AT_ONCE_SECONDS - 3)
    assert (await asker.ask(decided=DENY)).status is Status.DENIED


async def test_what_is_decided_at_once_is_bounded_for_all_without_a_credential_together(
    asker: Asker, clock: SettableClock
) -> None:
    for number in range(MOST_AT_ONCE):
        await asker.ask(request(requester=f"agent {number}"), DENY)
    with pytest.raises(errors.RateLimited):
        await asker.submit(request(requester="another name"), DENY)
    assert (await asker.ask(request(requester=AGENT), DENY)).status is Status.DENIED
    clock.advance(seconds=AT_ONCE_SECONDS)
    assert (await asker.ask(request(requester="another name"), DENY)).status is Status.DENIED


async def test_what_is_denied_at_once_takes_no_space(asker: Asker, store_url: str) -> None:
    long = "x" * 100_000
    wanted = request(target=long, callback_url="https://agent.example/done")
    await asker.deny(await asker.ask(wanted))
    for denied in [await asker.ask(wanted), await asker.ask(request("never", target=long), DENY)]:
        assert (denied.status, denied.payload, denied.description) == (Status.DENIED, None, "")
        found = await asker.kept.find(denied.id)
        assert found == denied
        assert found.digest in {entry.digest for entry in await asker.entries()}
        assert (await asker.redeem(denied)).refused == "denied"
        assert not await asker.erase(denied)
    await asker.store.close()
    assert await stored(store_url, "SELECT COUNT(*) FROM confirmation_payloads") == [(1,)]
    assert await stored(store_url, "SELECT COUNT(*) FROM confirmations") == [(3,)]


# lists


@pytest.mark.parametrize("status", [None, Status.PENDING])
async def test_list_leaves_long_payloads_out_and_says_so(asker: Asker, status: Status | None) -> None:
    fits = request(target="x" * (MOST_LISTED_BYTES - len(request(target="").payload)))
    assert len(fits.payload) == MOST_LISTED_BYTES
    short = await asker.ask(fits)
    long = await asker.ask(request(target="x" * MOST_LISTED_BYTES))
    assert await asker.kept.list(10, status) == [replace(long, payload=None, left_out=True), short]
    assert await asker.kept.find(long.id) == long


async def test_list_tells_what_was_erased_from_what_it_leaves_out(asker: Asker) -> None:
    asked = await asker.approved(request(target="x" * MOST_LISTED_BYTES))
    await asker.erase(asked)
    (found,) = await asker.kept.list(10)
    assert (found.payload, found.left_out) == (None, False)


async def test_status_is_known_without_the_rest(asker: Asker) -> None:
    asked = await asker.ask()
    assert await asker.kept.status(asked.id) is Status.PENDING
    await asker.vote(asked)
    assert await asker.kept.status(asked.id) is Status.APPROVED
    assert await asker.kept.status("nothing") is None


async def test_what_is_overdue_waits_no_longer(asker: Asker, clock: SettableClock) -> None:
    asked = await asker.ask()
    clock.set(asked.expires_at - timedelta(seconds=1))
    assert await asker.kept.count_pending(clock.now()) == 1
    clock.set(asked.expires_at)
    assert await asker.kept.count_pending(clock.now()) == 0


# votes


async def test_one_approval_decides(asker: Asker, clock: SettableClock) -> None:
    asked = await asker.ask()
    clock.advance(seconds=5)
    voted = await asker.vote(asked, name="Ann A.", reason="looks fine", digest=asked.digest)
    assert (voted.status, voted.resolved_by, voted.resolved_at) == (Status.APPROVED, ANN, clock.now())
    assert (voted.resolved_as, voted.reason, voted.approvals) == ("Ann A.", "looks fine", (ANN,))
    assert await asker.kept.find(asked.id) == voted
    assert asker.told == [asked, voted]


async def test_one_denial_decides(asker: Asker) -> None:
    voted = await asker.deny(await asker.ask(decided=TWO), reason="no")
    assert (voted.status, voted.resolved_by, voted.reason) == (Status.DENIED, ANN, "no")
    assert await asker.kept.find(voted.id) == voted


async def test_unknown_confirmation_cannot_be_decided(asker: Asker) -> None:
    with pytest.raises(errors.UnknownConfirmation):
        await asker.vote("nothing")


@pytest.mark.parametrize("approves", [True, False])
async def test_second_decision_is_refused_with_the_first_ones_status(asker: Asker, approves: bool) -> None:
    first = await asker.vote(await asker.ask(), approves=approves)
    before = await asker.entries()
    for again in (True, False):
        with pytest.raises(errors.AlreadyResolved) as refused:
            await asker.vote(first, by=BOB, approves=again)
        assert refused.value.status == first.status  # type: ignore[attr-defined]
    assert await asker.kept.find(first.id) == first
    assert await asker.entries() == before


async def test_late_vote_finds_it_expired_and_that_is_written_down(
    asker: Asker, clock: SettableClock
) -> None:
    asked = await asker.ask()
    clock.set(asked.expires_at)
    with pytest.raises(errors.AlreadyResolved) as refused:
        await asker.vote(asked)
    assert refused.value.status == "expired"  # type: ignore[attr-defined]
    found = await asker.kept.find(asked.id)
    assert found is not None
    assert (found.status, found.resolved_by, found.approvals) == (Status.EXPIRED, "system:timeout", ())
    assert found.resolved_at == clock.now()
    assert await asker.kinds() == ["submitted", "expired"]
    assert asker.told == [asked, found]
    assert await asker.expire() == []


async def test_whoever_may_not_decide_changes_nothing(asker: Asker) -> None:
    asked = await asker.ask()

    def refuse(seen: Confirmation, _: Person) -> None:
        assert seen == asked
        raise errors.NotAllowed(who="x", rule="y")

    with pytest.raises(errors.NotAllowed):
        await asker.vote(asked, check=refuse, digest="wrong")
    assert await asker.kept.find(asked.id) == asked
    assert await asker.kinds() == ["submitted"]


async def test_resolved_one_is_told_before_anybody_is_checked(asker: Asker) -> None:
    asked = await asker.approved()

    def refuse(_: Confirmation, __: Person) -> None:
        raise errors.NotAllowed(who="x", rule="y")

    with pytest.raises(errors.AlreadyResolved):
        await asker.vote(asked, check=refuse)


@pytest.mark.parametrize("digest", ["", "0" * 64, "ÿ", "\ud800", request(target="webb").digest])
async def test_vote_on_another_action_is_refused(asker: Asker, digest: str) -> None:
    asked = await asker.ask()
    with pytest.raises(errors.DigestMismatch):
        await asker.vote(asked, digest=digest)
    assert await asker.kept.find(asked.id) == asked


@pytest.mark.parametrize("approves", [True, False])
async def test_reason_is_needed_where_a_rule_says_so(asker: Asker, approves: bool) -> None:
    asked = await asker.ask(decided=on_terms(needs_reason=True))
    for reason in (None, "", " \n"):
        with pytest.raises(errors.ReasonMissing):
            await asker.vote(asked, approves=approves, reason=reason)
    voted = await asker.vote(asked, approves=approves, reason="because")
    assert voted.reason == "because"


async def test_several_people_must_approve(asker: Asker) -> None:
    asked = await asker.ask(decided=TWO)
    first = await asker.vote(asked, reason="mine")
    assert (first.status, first.approvals, first.reason) == (Status.PENDING, (ANN,), None)
    assert await asker.kept.find(asked.id) == first
    second = await asker.vote(asked, by=BOB, reason="his")
    assert (second.status, second.approvals, second.resolved_by) == (Status.APPROVED, (ANN, BOB), BOB)
    assert second.reason == "his"
    assert await asker.kinds() == ["submitted", "voted", "approved"]
    assert asker.told == [asked, first, second]


async def test_voting_twice_counts_once(asker: Asker) -> None:
    asked = await asker.ask(decided=TWO)
    first = await asker.vote(asked)
    assert await asker.vote(asked, reason="again") == first
    assert await asker.kinds() == ["submitted", "voted"]
    assert asker.told == [asked, first]


async def test_person_of_several_names_counts_once(asker: Asker) -> None:
    asked = await asker.ask(decided=TWO)
    first = await asker.vote(asked)
    again = await asker.vote(asked, by="telegram:7", persons=[frozenset({ANN, "telegram:7"})])
    assert again == first
    assert (
        await asker.vote(asked, by=BOB, persons=[frozenset({BOB, "discord:8"})])
    ).status is Status.APPROVED


async def test_who_approved_may_still_deny(asker: Asker) -> None:
    asked = await asker.ask(decided=TWO)
    await asker.vote(asked)
    denied = await asker.deny(asked, reason="changed my mind")
    assert (denied.status, denied.approvals) == (Status.DENIED, ())
    assert await asker.kept.find(asked.id) == denied


# grants


async def test_grant_gives_the_approved_bytes_once(asker: Asker, clock: SettableClock) -> None:
    wanted = request(target="exactly\tthis ")
    granted = await asker.approved(wanted)
    clock.advance(seconds=GRANT_SECONDS - 1)
    redemption = await asker.redeem(granted)
    assert (redemption.payload, redemption.refused, redemption.renewal) == (wanted.payload, None, None)
    assert (redemption.confirmation.redeemed_at, redemption.confirmation.redeemed_by) == (clock.now(), AGENT)
    assert await asker.kept.find(granted.id) == redemption.confirmation
    again = await asker.redeem(granted)
    assert (again.payload, again.refused, again.renewal) == (None, "redeemed", None)
    assert again.confirmation == redemption.confirmation


async def test_unknown_confirmation_cannot_be_redeemed(asker: Asker) -> None:
    asked = replace(await asker.ask(), id="nothing")
    with pytest.raises(errors.UnknownConfirmation):
        await asker.redeem(asked)


@pytest.mark.parametrize("digest", ["", "0" * 64, "ÿ", "\ud800", request(target="web ").digest])
async def test_grant_for_another_action_is_refused_and_stays(asker: Asker, digest: str) -> None:
    granted = await asker.approved()
    refused = await asker.redeem(granted, digest)
    assert (refused.payload, refused.refused) == (None, "digest")
    assert (await asker.redeem(granted)).payload == granted.payload


async def test_what_was_not_approved_cannot_be_redeemed(asker: Asker, clock: SettableClock) -> None:
    waiting = await asker.ask()
    assert (await asker.redeem(waiting)).refused == "pending"
    denied = await asker.deny(await asker.ask(request(target="bad")))
    assert (await asker.redeem(denied)).refused == "denied"
    clock.set(waiting.expires_at)
    late = await asker.redeem(waiting)
    assert (late.refused, late.confirmation.status) == ("expired", Status.EXPIRED)
    assert (await asker.redeem(waiting)).refused == "expired"
    assert await asker.kept.find(waiting.id) == late.confirmation


async def test_every_refusal_is_written_down(asker: Asker) -> None:
    asked = await asker.ask()
    await asker.redeem(asked)
    await asker.vote(asked)
    await asker.redeem(asked, "0" * 64, by="token:thief")
    await asker.redeem(asked, "no digest")
    await asker.redeem(asked)
    await asker.redeem(asked)
    refusals = [entry for entry in await asker.entries() if entry.kind == "redeem_refused"]
    assert [(entry.facts["why"], entry.actor) for entry in refusals] == [
        ("pending", AGENT),
        ("digest", "token:thief"),
        ("digest", AGENT),
        ("redeemed", AGENT),
    ]
    assert [entry.facts.get("given") for entry in refusals] == [asked.digest, "0" * 64, None, asked.digest]


async def test_lapsed_grant_is_asked_again_once(asker: Asker, clock: SettableClock) -> None:
    wanted = request(session_key="s", turn_id="t", callback_url="https://x.example", timeout_seconds=200)
    lapsed = await asker.vote(await asker.ask(wanted, on_terms(approvers=(ANN,))), reason="go", name="A")
    clock.advance(seconds=GRANT_SECONDS)
    refused = await asker.redeem(lapsed)
    renewal = refused.renewal
    assert (refused.payload, refused.refused, refused.confirmation) == (None, "lapsed", lapsed)
    assert renewal is not None
    assert renewal == replace(
        lapsed,
        id=renewal.id,
        status=Status.PENDING,
        created_at=clock.now(),
        expires_at=clock.now() + timedelta(seconds=200),
        resolved_at=None,
        resolved_by=None,
        resolved_as=None,
        reason=None,
        approvals=(),
        renewal_of=lapsed.id,
    )
    assert await asker.kept.find(renewal.id) == renewal
    assert asker.told[-1] == renewal
    assert (await asker.kinds())[-2:] == ["redeem_refused", "renewed"]
    again = await asker.redeem(lapsed)
    assert (again.refused, again.renewal) == ("lapsed", renewal)
    assert await asker.kept.count_pending(asker.clock.now()) == 1


async def test_renewal_gives_the_same_bytes_and_is_not_renewed(asker: Asker, clock: SettableClock) -> None:
    lapsed = await asker.approved()
    clock.advance(seconds=GRANT_SECONDS)
    renewal = await renewal_of(asker, lapsed)
    await asker.vote(renewal)
    assert (await asker.redeem(renewal)).payload == lapsed.payload
    other = await asker.approved(request(target="other"))
    clock.advance(seconds=GRANT_SECONDS)
    second = await asker.vote(await renewal_of(asker, other))
    clock.advance(seconds=GRANT_SECONDS)
    refused = await asker.redeem(second)
    assert (refused.refused, refused.renewal) == ("lapsed", None)
    assert await asker.kept.count_pending(asker.clock.now()) == 0


async def test_lapsed_grant_joins_the_same_request_that_waits(asker: Asker, clock: SettableClock) -> None:
    lapsed = await asker.approved()
    clock.advance(seconds=GRANT_SECONDS)
    waiting = await asker.ask()
    refused = await asker.redeem(lapsed)
    assert (refused.refused, refused.renewal) == ("lapsed", waiting)
    assert await asker.kept.count_pending(asker.clock.now()) == 1


async def test_lapsed_grant_is_not_asked_again_past_a_denial(asker: Asker, clock: SettableClock) -> None:
    lapsed = await asker.approved()
    clock.advance(seconds=GRANT_SECONDS)
    await asker.deny(await asker.ask())
    refused = await asker.redeem(lapsed)
    assert (refused.refused, refused.renewal) == ("lapsed", None)


async def test_wrong_digest_renews_nothing(asker: Asker, clock: SettableClock) -> None:
    lapsed = await asker.approved()
    clock.advance(seconds=GRANT_SECONDS)
    assert (await asker.redeem(lapsed, "0" * 64)).renewal is None
    assert await asker.kept.count_pending(asker.clock.now()) == 0


async def test_renewal_uses_an_allowance(asker: Asker, clock: SettableClock) -> None:
    two = Settings(rate_limit=2)
    lapsed = await asker.approved()
    clock.advance(seconds=GRANT_SECONDS)
    await asker.redeem(lapsed)
    with pytest.raises(errors.RateLimited):
        await asker.submit(request(target="other"), settings=two)


# by the clock


async def test_what_waited_for_its_time_ends_oldest_first(asker: Asker, clock: SettableClock) -> None:
    asked = [await asker.ask(request(target=n, timeout_seconds=s)) for n, s in enumerate((90, 30, 60, 300))]
    assert await asker.kept.next_due() == asked[1].expires_at
    assert await asker.expire() == []
    clock.advance(seconds=90)
    assert [ended.id for ended in await asker.expire(limit=2)] == [asked[1].id, asked[2].id]
    (last,) = await asker.expire()
    assert (last.id, last.status, last.resolved_by) == (asked[0].id, Status.EXPIRED, "system:timeout")
    assert last.resolved_at == clock.now()
    assert await asker.kept.find(last.id) == last
    assert await asker.expire() == []
    assert await asker.kept.next_due() == asked[3].expires_at
    assert [told.status for told in asker.told[4:]] == [Status.EXPIRED] * 3
    assert (await asker.kinds())[4:] == ["expired"] * 3


async def test_partial_approvals_stay_when_the_time_is_over(asker: Asker, clock: SettableClock) -> None:
    asked = await asker.vote(await asker.ask(decided=TWO))
    clock.set(asked.expires_at)
    (ended,) = await asker.expire()
    assert ended.approvals == (ANN,)
    assert await asker.kept.find(asked.id) == ended


async def test_nothing_is_due_when_nothing_waits(asker: Asker) -> None:
    assert await asker.kept.next_due() is None
    await asker.redeem(await asker.approved())
    assert await asker.kept.next_due() is None


async def test_escalation_comes_once(asker: Asker, clock: SettableClock) -> None:
    asked = await asker.ask(decided=on_terms(escalate_after_seconds=60))
    assert await asker.kept.next_due() == clock.now() + timedelta(seconds=60)
    assert await asker.escalate() == []
    clock.advance(seconds=60)
    assert await asker.escalate() == [asked]
    assert await asker.escalate() == []
    assert await asker.kept.next_due() == asked.expires_at
    assert asker.told == [asked, asked]
    assert await asker.kinds() == ["submitted", "escalated"]


async def test_escalation_has_a_limit_and_an_order(asker: Asker, clock: SettableClock) -> None:
    asked = [
        await asker.ask(request(target=seconds), on_terms(escalate_after_seconds=seconds))
        for seconds in (3, 1, 2)
    ]
    clock.advance(seconds=10)
    assert await asker.escalate(limit=2) == [asked[1], asked[2]]
    assert await asker.escalate() == [asked[0]]


async def test_what_is_decided_or_over_is_not_escalated(asker: Asker, clock: SettableClock) -> None:
    decided = await asker.ask(decided=on_terms(escalate_after_seconds=60))
    await asker.vote(decided)
    over = await asker.ask(request(target="over"), on_terms(escalate_after_seconds=60))
    never = await asker.ask(request(target="never"), on_terms(escalate_after_seconds=10**12))
    assert never.status is Status.PENDING
    clock.set(over.expires_at)
    assert await asker.escalate() == []
    assert len(await asker.expire()) == 2
    assert await asker.kept.lapse(clock.now(), 10) == 1
    assert await asker.kept.next_due() is None


# a clock that is set back


async def test_clock_that_is_set_back_breaks_nothing(asker: Asker, clock: SettableClock) -> None:
    waiting = await asker.ask(request("wait"))
    granted = await asker.approved(request("grant"))
    await asker.deny(await asker.ask(request("mute")))
    clock.advance(days=-1)
    assert await asker.kept.count_pending(clock.now()) == 0
    assert [ended.id for ended in await asker.expire()] == [waiting.id]
    assert (await asker.redeem(granted)).refused == "lapsed"
    assert (await asker.ask(request("mute"))).status is Status.PENDING
    clock.advance(days=2)
    assert len(await asker.expire()) == 2


async def test_nobody_decides_about_what_is_from_later_than_now(asker: Asker, clock: SettableClock) -> None:
    """How long it has waited cannot be known: a request of 30 seconds would wait for a day, and be used."""
    waiting = await asker.ask(request(timeout_seconds=30))
    clock.advance(days=-1)
    joined = await asker.submit(request(timeout_seconds=30))
    assert not joined.repeated
    with pytest.raises(errors.AlreadyResolved):
        await asker.vote(waiting)
    assert (await asker.redeem(waiting)).refused == "expired"
    assert (await asker.vote(joined.confirmation)).status is Status.APPROVED


async def test_small_step_back_changes_nothing(asker: Asker, clock: SettableClock) -> None:
    granted = await asker.approved()
    await asker.deny(await asker.ask(request("mute")))
    waiting = await asker.ask(request("limit"))
    clock.advance(seconds=-5)
    assert await asker.expire() == []
    assert (await asker.submit(request("limit"))).repeated
    assert (await asker.vote(waiting)).status is Status.APPROVED
    assert (await asker.redeem(granted)).payload == granted.payload
    assert (await asker.ask(request("mute"))).resolved_by == "system:muted"
    with pytest.raises(errors.RateLimited):
        await asker.submit(request("limit", target="other"), settings=Settings(rate_limit=1))


async def test_requests_of_a_wrong_future_do_not_block_an_action(asker: Asker, clock: SettableClock) -> None:
    clock.advance(days=365)
    await asker.ask()
    clock.advance(days=-365)
    one = Settings(rate_limit=1)
    assert (await asker.submit(request(target="now"), settings=one)).confirmation.status is Status.PENDING


# looking


async def test_lists_are_newest_first_and_have_a_limit(asker: Asker) -> None:
    asked = [await asker.ask(request(target=number)) for number in range(4)]
    approved = await asker.vote(asked[1])
    assert await asker.kept.list(10) == [asked[3], asked[2], approved, asked[0]]
    assert await asker.kept.list(2) == [asked[3], asked[2]]
    assert await asker.kept.list(10, Status.PENDING) == [asked[3], asked[2], asked[0]]
    assert await asker.kept.list(1, Status.PENDING) == [asked[3]]
    assert await asker.kept.list(10, Status.APPROVED) == [approved]
    assert await asker.kept.list(10, Status.EXPIRED) == []
    assert await asker.kept.count_pending(asker.clock.now()) == 3
    first = await asker.kept.page(Status.PENDING, 2)
    assert first.items == [asked[3], asked[2]]
    await asker.vote(asked[2])  # where the page ended is where the next begins, whatever becomes of it
    later = await asker.ask(request(target="later"))
    second = await asker.kept.page(Status.PENDING, 2, first.next)
    assert (second.items, second.next) == ([asked[0]], None)
    assert (await asker.kept.page(Status.PENDING, 1)).items == [later]
    with pytest.raises(errors.InvalidInput):
        await asker.kept.page(Status.PENDING, 2, "nonsense")


async def test_newest_request_of_a_turn_is_found(asker: Asker, clock: SettableClock) -> None:
    wanted = request(turn_id="t1")
    lapsed = await asker.approved(wanted)
    assert await asker.kept.of_turn("t1", wanted.digest) == lapsed
    clock.advance(seconds=GRANT_SECONDS)
    renewal = await renewal_of(asker, lapsed)
    assert await asker.kept.of_turn("t1", wanted.digest) == renewal
    assert await asker.kept.of_turn("t1", "0" * 64) is None
    assert await asker.kept.of_turn("t2", wanted.digest) is None


# erasing


async def test_erased_request_keeps_its_digest_and_decision(asker: Asker) -> None:
    asked = await asker.ask(request(callback_url="https://x.example/token"))
    voted = await asker.vote(asked, reason="personal", name="Ann")
    assert await asker.erase(asked)
    found = await asker.kept.find(asked.id)
    assert found == replace(voted, payload=None, description="", callbacks=(), reason=None)
    assert await asker.kept.list(10) == [found]


async def test_erased_texts_are_gone_from_the_tables(asker: Asker, store_url: str) -> None:
    asked = await asker.ask(request(target="s3cret", description="d3scription"), TWO)
    await asker.vote(asked, reason="r3ason")
    await asker.vote(asked, by=BOB, reason="r3ason, too")
    await asker.erase(asked)
    await asker.store.close()
    tables = ("confirmations", "confirmation_payloads", "confirmation_votes", "audit")
    found = [
        cell for table in tables for row in await stored(store_url, f"SELECT * FROM {table}") for cell in row
    ]
    assert not [cell for cell in found if any(word in str(cell) for word in ("s3cret", "d3scr", "r3ason"))]


async def test_only_what_was_resolved_is_erased_and_once(asker: Asker) -> None:
    asked = await asker.ask()
    assert not await asker.erase(asked)
    assert not await asker.erase(replace(asked, id="nothing"))
    assert await asker.kept.find(asked.id) == asked
    await asker.deny(asked)
    assert await asker.erase(asked)
    assert not await asker.erase(asked)
    assert await asker.kinds() == ["submitted", "denied", "payload_erased"]


async def test_revealing_gives_the_payload_and_is_in_the_log_each_time(asker: Asker) -> None:
    asked = await asker.ask()
    for _ in range(2):
        assert await asker.reveal(asked) == asked
    assert await asker.kinds() == ["submitted", "revealed", "revealed"]
    entry = (await asker.entries())[-1]
    assert (entry.actor, entry.confirmation_id, entry.digest) == (ANN, asked.id, asked.digest)
    with pytest.raises(errors.UnknownConfirmation):
        await asker.reveal(replace(asked, id="nothing"))


async def test_whoever_may_not_decide_reveals_nothing(asker: Asker) -> None:
    asked = await asker.ask()

    def refuse(_: Confirmation, __: Person) -> None:
        raise errors.NotAllowed(who="eve", rule="no")

    with pytest.raises(errors.NotAllowed):
        await asker.reveal(asked, refuse)
    await asker.deny(asked)
    await asker.erase(asked)
    assert (await asker.reveal(asked)).payload is None
    assert await asker.kinds() == ["submitted", "denied", "payload_erased"]


async def test_erased_grant_cannot_be_used_or_renewed(asker: Asker, clock: SettableClock) -> None:
    granted = await asker.approved()
    await asker.erase(granted)
    assert (await asker.redeem(granted)).refused == "erased"
    clock.advance(seconds=GRANT_SECONDS)
    refused = await asker.redeem(granted)
    assert (refused.refused, refused.renewal) == ("erased", None)


# rules


async def test_rules_come_back_as_they_were_made(asker: Asker, clock: SettableClock) -> None:
    condition = Condition(argument="target.path", value=1.0)
    made = await asker.add_rule(
        "big",
        Effect.ASK,
        action="deploy*",
        conditions=(condition,),
        session_key="s",
        quorum=2,
        approvers=("ann", "bob"),
        needs_reason=True,
        escalate_after_seconds=60,
        escalate_to=("root",),
        expires_at=clock.now() + timedelta(days=1),
    )
    (found,) = await asker.rules()
    assert found == made
    assert isinstance(found.conditions[0].value, float)


async def test_rule_without_a_time_was_made_now(asker: Asker, clock: SettableClock) -> None:
    await asker.kept.add_rule(Rule(id="r", effect=Effect.DENY), clock.now())
    assert [rule.created_at for rule in await asker.rules()] == [clock.now()]


async def test_rules_end_when_they_expire_or_are_revoked(asker: Asker, clock: SettableClock) -> None:
    await asker.add_rule("lasting")
    await asker.add_rule("short", expires_at=clock.now() + timedelta(minutes=1))
    await asker.add_rule("revoked")
    assert [rule.id for rule in await asker.rules()] == ["lasting", "short", "revoked"]
    assert await asker.kept.revoke_rule("revoked", ANN, clock.now())
    assert not await asker.kept.revoke_rule("revoked", ANN, clock.now())
    assert not await asker.kept.revoke_rule("nothing", ANN, clock.now())
    clock.advance(minutes=1)
    assert [rule.id for rule in await asker.rules()] == ["lasting"]
    assert await asker.kinds() == ["rule_added"] * 3 + ["rule_revoked"]


async def test_id_of_a_rule_is_not_used_twice(asker: Asker, clock: SettableClock) -> None:
    await asker.add_rule("r", action="one")
    with pytest.raises(errors.InvalidInput):
        await asker.add_rule("r", action="two")
    await asker.kept.revoke_rule("r", ANN, clock.now())
    with pytest.raises(errors.InvalidInput):
        await asker.add_rule("r", action="three")
    assert await asker.kinds() == ["rule_added", "rule_revoked"]


# damage


async def test_damaged_rule_has_everything_asked(open_asker: OpenAsker, edit_store: EditStore) -> None:
    asker = await open_asker()
    await asker.add_rule("r")
    await asker.store.close()
    await edit_store("UPDATE rules SET body = x'00'", postgresql=r"UPDATE rules SET body = '\x00'")
    asker = await open_asker()
    assert await asker.rules() == [Rule(id="r", effect=Effect.ASK)]


async def test_damaged_request_stands_in_nobodys_way(
    open_asker: OpenAsker, edit_store: EditStore, clock: SettableClock
) -> None:
    asker = await open_asker()
    damaged, whole = await asker.ask(), await asker.ask(request(target="whole"))
    await asker.store.close()
    edit = f"UPDATE confirmations SET terms = {{}} WHERE id = '{damaged.id}'"
    await edit_store(edit.format("x'00'"), postgresql=edit.format(r"'\x00'"))
    asker = await open_asker()
    assert await asker.kept.list(10) == [whole]
    with pytest.raises(errors.UnknownConfirmation):
        await asker.vote(damaged)
    clock.set(whole.expires_at)
    assert [ended.id for ended in await asker.expire()] == [whole.id]
    assert await asker.kept.next_due() is None
    assert await asker.kinds() == ["submitted"] * 2 + ["expired"] * 2


@pytest.mark.parametrize("seconds", [0, GRANT_SECONDS])
async def test_bytes_that_were_changed_past_the_store_are_not_given_out(
    open_asker: OpenAsker, edit_store: EditStore, clock: SettableClock, seconds: int
) -> None:
    asker = await open_asker()
    granted = await asker.approved()
    await asker.store.close()
    edit = "UPDATE confirmation_payloads SET payload = {}"
    await edit_store(edit.format("x'7b7d'"), postgresql=edit.format(r"'\x7b7d'"))
    asker = await open_asker()
    clock.advance(seconds=seconds)
    refused = await asker.redeem(granted)
    assert (refused.payload, refused.refused, refused.renewal) == (None, "digest", None)


# bells


async def test_bell_rings_at_each_change(asker: Asker, clock: SettableClock) -> None:
    bell = asker.store.bells.listen(Topic.CONFIRMATIONS)
    asked = await asker.ask(request(timeout_seconds=120), TWO)
    steps: list[Callable[[], Awaitable[object]]] = [
        lambda: asker.ask(request("other", timeout_seconds=60)),
        lambda: asker.vote(asked),
        lambda: asker.deny(asked, by=BOB),
        lambda: asker.redeem(asked),
        lambda: asker.erase(asked),
        asker.add_rule,
        lambda: asker.kept.revoke_rule("r1", ANN, clock.now()),
        asker.expire,
    ]
    assert await bell.wait(1)
    for step in steps:
        clock.advance(seconds=10)
        await step()
        assert await bell.wait(1), step
