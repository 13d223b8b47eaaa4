"""Forgetting on every store: what was decided goes, by a person's wish or in time; the log stays whole."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from hashlib import sha256

import pytest

from frontdesk import errors, plugins
from frontdesk.flow import audits, clockwatch, rounds
from frontdesk.flow.clockwatch import Elapsed
from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.model import deliveries, lanes
from frontdesk.model.audit import AuditKind
from frontdesk.model.confirmations import KEY_SECONDS, Confirmation, Settings
from frontdesk.model.deliveries import Delivery, DeliveryState, Settlement
from frontdesk.model.rules import Effect
from frontdesk.stores.columns import to_micros
from frontdesk.stores.store import Store
from frontdesk.testing import SettableClock
from tests.contracts.asking import ANN, BOB, CHAT, Asker, on_terms, pages, request, ruling
from tests.contracts.conftest import stored
from tests.contracts.versions import at_version

KEPT = 90
LONG_AFTER = timedelta(days=KEPT, seconds=1)
TABLES = (
    "confirmations",
    "confirmation_payloads",
    "confirmation_votes",
    "confirmation_keys",
    "confirmation_callbacks",
    "confirmation_echoes",
)
SECRET = "s3cret"


class Talker(Asker):
    """Tells people what is asked, in all its words."""

    def tell(self, asked: Confirmation, _: Sequence[Delivery] = ()) -> Sequence[Delivery]:
        payload = (asked.payload or b"").decode()
        return [
            Delivery(
                id=f"{asked.id}:{asked.status}:{len(asked.approvals)}",
                lane=lanes.chat_lane(CHAT),
                to=CHAT,
                text=f"{asked.description} {payload}",
                extra={deliveries.CONFIRMATION: asked.id, "digest": asked.digest},
                created_at=self.clock.now(),
            )
        ]


@pytest.fixture
async def asker(store_url: str, clock: SettableClock) -> AsyncIterator[Talker]:
    store: Store = await plugins.load_store(store_url)(store_url)
    yield Talker(store, clock)
    await store.close()


@pytest.fixture
async def service(asker: Talker, clock: SettableClock) -> ConfirmationService:
    return await settled(asker.store, clock, elapsed=lambda: clock.now().timestamp())


async def settled(store: Store, clock: SettableClock, elapsed: Elapsed) -> ConfirmationService:
    """The service, after it has run long enough to forget something."""
    service = ConfirmationService(store, Settings(keep_days=KEPT), clock=clock, elapsed=elapsed)
    await service.tidy()
    clock.advance(seconds=clockwatch.FIRST_SECONDS)
    return service


async def tidy_up(service: ConfirmationService) -> None:
    while await service.tidy():
        continue


async def send_all(asker: Asker) -> list[Delivery]:
    """Every message that waits has arrived."""
    node = await asker.store.nodes.join("n", asker.clock.now())
    sent = []
    while claims := await asker.store.deliveries.claim(node, 1, asker.clock.now()):
        await asker.store.deliveries.settle(
            claims[0], Settlement(state=DeliveryState.SENT), asker.clock.now()
        )
        sent.append(claims[0].delivery)
    return sent


async def is_whole(asker: Asker) -> bool:
    return (await audits.verify(pages(asker.kept))).whole


# erasing


async def test_erased_text_is_gone_from_messages_that_were_sent(asker: Talker, store_url: str) -> None:
    asked = await asker.ask(request(target=SECRET, description="d3scription"))
    (sent,) = await send_all(asker)
    assert SECRET in sent.text
    await asker.vote(asked)
    assert await asker.erase(asked)
    found = await asker.store.deliveries.find(sent.id)
    assert found
    assert (found.text, found.extra, found.state) == (deliveries.ERASED, {}, DeliveryState.SENT)
    await asker.store.close()
    bodies = [bytes(body) for (body,) in await stored(store_url, "SELECT body FROM deliveries")]
    assert len(bodies) == 2
    assert not [body for body in bodies if SECRET.encode() in body or b"d3scription" in body]


async def test_erased_text_is_not_sent_by_a_message_that_still_waits(asker: Talker) -> None:
    asked = await asker.ask(request(target=SECRET))
    await asker.deny(asked)
    await asker.erase(asked)
    assert [sent.text for sent in await send_all(asker)] == [deliveries.ERASED] * 2


async def test_messages_of_other_requests_stay_when_one_is_erased(asker: Talker) -> None:
    other = await asker.ask(request(target="kept"))
    asked = await asker.ask(request(target=SECRET))
    await asker.deny(asked)
    await asker.erase(asked)
    found = await asker.store.deliveries.find(f"{other.id}:pending:0")
    assert found
    assert "kept" in found.text


# retention


async def test_what_was_decided_long_ago_is_forgotten_with_all_that_belongs_to_it(
    asker: Talker, service: ConfirmationService, clock: SettableClock, store_url: str
) -> None:
    asked = await asker.ask(
        request(target=SECRET, idempotency_key="k", callback_url="https://x.example/"), on_terms(quorum=2)
    )
    for person in (ANN, BOB):
        await asker.vote(asked, by=person, reason=SECRET)
    await asker.redeem(asked, digest="0" * 64)
    clock.advance(LONG_AFTER)
    await tidy_up(service)
    with pytest.raises(errors.UnknownConfirmation):
        await service.find(asked.id)
    assert await asker.kept.list(10) == []
    await asker.store.close()
    assert [await stored(store_url, f"SELECT * FROM {table}") for table in TABLES] == [[]] * len(TABLES)
    bodies = [bytes(body) for (body,) in await stored(store_url, "SELECT body FROM deliveries")]
    assert bodies
    assert not [body for body in bodies if SECRET.encode() in body]


async def test_log_of_what_was_forgotten_stays_whole_and_says_so(
    asker: Talker, service: ConfirmationService, clock: SettableClock
) -> None:
    asked = [await asker.ask(request(target=number)) for number in range(3)]
    for each in asked:
        await asker.deny(each)
    before = await asker.kept.audit_rows(0, 100)
    clock.advance(LONG_AFTER)
    await tidy_up(service)
    after = await asker.kept.audit_rows(0, 100)
    assert after[: len(before)] == before
    (told,) = after[len(before) :]
    assert (told.entry.kind, told.entry.facts["count"]) == (AuditKind.PRUNED, 3)
    assert await is_whole(asker)


async def test_what_waits_is_not_forgotten_however_old(
    asker: Talker, service: ConfirmationService, clock: SettableClock
) -> None:
    asked = await asker.ask()
    clock.advance(2 * LONG_AFTER)
    await tidy_up(service)
    assert await service.find(asked.id) == asked


async def test_what_was_decided_lately_is_not_forgotten(
    asker: Talker, service: ConfirmationService, clock: SettableClock
) -> None:
    old = await asker.approved(request(target="old"))
    clock.advance(days=1)
    late = await asker.approved(request(target="late"))
    clock.advance(timedelta(days=KEPT - 1, seconds=1))
    await tidy_up(service)
    assert [each.id for each in await asker.kept.list(10)] == [late.id]
    assert await asker.kept.find(old.id) is None


async def test_many_are_forgotten_some_at_a_time(
    asker: Talker, service: ConfirmationService, clock: SettableClock
) -> None:
    for number in range(rounds.TIDIED_AT_ONCE + 1):
        await asker.ask(request(target=number, requester=f"token:{number}"), ruling(Effect.DENY))
    clock.advance(LONG_AFTER)
    assert await service.tidy()
    assert len(await asker.kept.list(10)) == 1
    assert not await service.tidy()
    assert await asker.kept.list(10) == []


async def test_nobody_looks_again_for_what_is_old_before_a_while(
    asker: Talker, service: ConfirmationService, clock: SettableClock
) -> None:
    asked = await asker.approved()
    clock.advance(LONG_AFTER - 2 * timedelta(seconds=1))
    assert not await service.tidy()
    clock.advance(seconds=2)
    assert not await service.tidy()
    assert await asker.kept.find(asked.id)
    clock.advance(rounds.TIDY_EVERY)
    assert not await service.tidy()
    assert await asker.kept.find(asked.id) is None


async def test_idempotency_key_is_known_for_a_day(
    asker: Talker, service: ConfirmationService, clock: SettableClock
) -> None:
    keyed = request(idempotency_key="k")
    first = await asker.approved(keyed)
    clock.advance(seconds=KEY_SECONDS)
    await tidy_up(service)
    assert (await asker.submit(keyed)).confirmation.id == first.id
    clock.advance(rounds.TIDY_EVERY)
    await tidy_up(service)
    assert (await asker.submit(keyed)).confirmation.id != first.id
    assert await asker.kept.find(first.id)


# a clock that jumps


class Uptime:
    """Goes on with the clock, except where that is set to another time."""

    def __init__(self, clock: SettableClock) -> None:
        self._clock = clock
        self._jumped = 0.0

    def __call__(self) -> float:
        return self._clock.now().timestamp() - self._jumped

    def jump(self, by: timedelta) -> None:
        self._clock.advance(by)
        self._jumped += by.total_seconds()


async def test_clock_that_jumps_ahead_forgets_nothing(asker: Talker, clock: SettableClock) -> None:
    uptime = Uptime(clock)
    service = await settled(asker.store, clock, uptime)
    keyed = request(idempotency_key="k")
    asked = await asker.approved(keyed)
    uptime.jump(LONG_AFTER)
    for _ in range(20):
        await tidy_up(service)
        clock.advance(hours=1)
    uptime.jump(-LONG_AFTER)
    for _ in range(3):
        await tidy_up(service)
        clock.advance(hours=1)
    assert await asker.kept.find(asked.id)
    assert (await asker.submit(keyed)).confirmation.id == asked.id


@pytest.mark.parametrize("by", [LONG_AFTER, -timedelta(days=1)])
async def test_clock_that_jumped_is_trusted_again_after_a_day(
    asker: Talker, clock: SettableClock, by: timedelta
) -> None:
    uptime = Uptime(clock)
    service = await settled(asker.store, clock, uptime)
    asked = await asker.approved()
    uptime.jump(by)
    await tidy_up(service)
    assert await asker.kept.find(asked.id)
    clock.advance(2 * LONG_AFTER)
    await tidy_up(service)
    assert await asker.kept.find(asked.id) is None


async def test_clock_that_is_put_right_a_little_is_trusted(asker: Talker, clock: SettableClock) -> None:
    uptime = Uptime(clock)
    service = await settled(asker.store, clock, uptime)
    asked = await asker.approved()
    clock.advance(LONG_AFTER)
    uptime.jump(clockwatch.TOLERANCE)
    await tidy_up(service)
    assert await asker.kept.find(asked.id) is None


async def test_service_forgets_nothing_when_it_has_just_started(asker: Talker, clock: SettableClock) -> None:
    """The clock may have been wrong from the beginning, and be put right soon."""
    asked = await asker.approved()
    clock.advance(LONG_AFTER)
    service = ConfirmationService(asker.store, Settings(keep_days=KEPT), clock=clock, elapsed=Uptime(clock))
    await tidy_up(service)
    assert await asker.kept.find(asked.id)
    clock.advance(seconds=clockwatch.FIRST_SECONDS)
    await tidy_up(service)
    assert await asker.kept.find(asked.id) is None


# stores of the version before


OLD_REQUEST = """
INSERT INTO confirmations (id, action, digest, requester, status, asked, terms, timeout_seconds, created_at,
    expires_at, resolved_at, resolved_by, approvals)
VALUES ('c1', 'deploy', '{digest}', 'token:agent', 'denied', 1, CAST('{{}}' AS {bytes}), 300, {at}, {at},
    {at}, 'token:ann', CAST('[]' AS {bytes}))
"""
OLD_KEY = "INSERT INTO confirmation_keys VALUES ('token:agent', {key}, 'c1')"
OLD_CALLBACK = """
INSERT INTO confirmation_payloads VALUES ('c1', CAST('{{}}' AS {bytes}), 'please', 'https://x.example/');
INSERT INTO confirmation_callbacks VALUES ('c1', {at}, 3)
"""


def old_values(store_url: str, clock: SettableClock) -> dict[str, object]:
    kind = "BLOB" if store_url.startswith("sqlite") else "bytea"
    return {"digest": request().digest, "bytes": kind, "at": to_micros(clock.now())}


async def test_requests_and_keys_of_an_older_store_are_kept_for_their_time(
    store_url: str, clock: SettableClock
) -> None:
    keyed = request(idempotency_key="k")
    key, values = sha256(b"k").hexdigest(), old_values(store_url, clock)
    literal = f"X'{key}'" if store_url.startswith("sqlite") else f"'\\x{key}'::bytea"
    await at_version(store_url, 4, OLD_REQUEST.format(**values), OLD_KEY.format(key=literal))
    store: Store = await plugins.load_store(store_url)(store_url)
    asker = Talker(store, clock)
    service = await settled(store, clock, elapsed=lambda: clock.now().timestamp())
    await tidy_up(service)
    assert (await asker.submit(keyed)).confirmation.id == "c1"
    clock.advance(LONG_AFTER)
    await tidy_up(service)
    assert (await asker.submit(keyed)).confirmation.id != "c1"
    await store.close()


async def test_programs_of_an_older_store_are_still_told(store_url: str, clock: SettableClock) -> None:
    values = old_values(store_url, clock)
    await at_version(store_url, 4, *(each.format(**values) for each in (OLD_REQUEST, OLD_CALLBACK)))
    store: Store = await plugins.load_store(store_url)(store_url)
    (owed,) = await store.confirmations.claim_callbacks(clock.now(), clock.now() + timedelta(minutes=1), 10)
    assert (owed.confirmation.id, owed.url, owed.attempts) == ("c1", "https://x.example/", 4)
    await store.close()


OLD_ECHO = "INSERT INTO confirmation_echoes VALUES ('c1', 'redeem_refused', 'denied', 'token:agent', {at}, 7)"


async def test_denials_prompts_and_echoes_of_an_older_store_still_count(
    store_url: str, clock: SettableClock
) -> None:
    strangers = OLD_REQUEST.replace("'c1'", "'c2'").replace("token:agent", "bot")
    values = old_values(store_url, clock)
    await at_version(store_url, 8, *(each.format(**values) for each in (OLD_REQUEST, strangers, OLD_ECHO)))
    store: Store = await plugins.load_store(store_url)(store_url)
    asker = Talker(store, clock)
    for who in ("token:agent", "another"):
        assert (await asker.ask(request(requester=who))).resolved_by == "system:muted"
        with pytest.raises(errors.PromptsUsedUp):
            await asker.submit(request("new", requester=who), settings=Settings(prompts_per_hour=1))
    clock.advance(minutes=1)
    await asker.kept.close_echoes(clock.now(), 10)
    assert (await asker.entries())[-1].facts == {"why": "denied", "left_out": 7}
    await store.close()
