"""The audit log on every store: only added to, and whoever changes it past the store is found out."""

import random
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import asyncpg
import pytest
from msgspec.structs import replace

from frontdesk import GatewayConfig, Platform, SessionSource, errors, plugins
from frontdesk.cli.audit import FarAuditLog
from frontdesk.confirm.client import Client
from frontdesk.flow import audits
from frontdesk.flow.audits import Anchor, Tampering, Verified
from frontdesk.flow.authorization import Authorization, owner_of_terminal
from frontdesk.flow.passes import PassBook
from frontdesk.model import codes
from frontdesk.model.access import Role
from frontdesk.model.audit import GENESIS, AuditEntry, AuditKind, Row, chain_hash, chained
from frontdesk.model.confirmations import GRANT_SECONDS, MOST_DENIALS, Settings
from frontdesk.model.deliveries import DeliveryState, Settlement
from frontdesk.model.passes import PassKind
from frontdesk.model.people import Principal
from frontdesk.model.rules import Effect
from frontdesk.stores.store import Store
from frontdesk.testing import SettableClock
from tests import counts, schemas
from tests.contracts.asking import AGENT, ANN, BOB, Asker, anybody, on_terms, pages, request, ruling
from tests.integration.confirming import ANN as APPROVER
from tests.integration.confirming import TOKENS
from tests.integration.confirming import opened as served

OF_TURNS = {AuditKind.TURN_RETRIED, AuditKind.TURN_GIVEN_UP}
"""Written with turns that were set aside, which is tried with these."""
NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


@asynccontextmanager
async def opened(store_url: str, clock: SettableClock) -> AsyncIterator[Asker]:
    async with AsyncExitStack() as stack:
        store: Store = await plugins.load_store(store_url)(store_url)
        stack.push_async_callback(store.close)
        yield Asker(store, clock)


@pytest.fixture
async def asker(store_url: str, clock: SettableClock) -> AsyncIterator[Asker]:
    async with opened(store_url, clock) as one:
        yield one


async def everything_happens(asker: Asker, clock: SettableClock) -> None:
    """Each kind of entry is written at least once."""
    asked = await asker.ask(request(), on_terms(quorum=2, escalate_after_seconds=60))
    await asker.submit(request())
    await asker.vote(asked, reason="well")
    clock.advance(seconds=60)
    await asker.escalate()
    await asker.vote(asked, by=BOB)
    await asker.redeem(asked, "0" * 64)
    await asker.redeem(asked)
    await asker.kept.reveal(asked.id, anybody, ANN, clock.now())
    await asker.erase(asked)
    await asker.ask(request("auto"), ruling(Effect.ALLOW))
    await asker.ask(request("never"), ruling(Effect.DENY))
    await asker.deny(await asker.ask(request("no")))
    await asker.ask(request("no"))
    lapsed = await asker.approved(request("late"))
    clock.advance(seconds=GRANT_SECONDS)
    await asker.redeem(lapsed)
    clock.advance(seconds=lapsed.timeout_seconds)
    await asker.expire()
    await asker.ask(request("stopped", turn_id="t1"))
    await asker.kept.withdraw("t1", clock.now(), tell=asker.tell)
    await asker.add_rule()
    await asker.kept.revoke_rule("r1", ANN, clock.now())
    for number in range(MOST_DENIALS):
        await asker.deny(await asker.ask(request(target=number, requester="token:pest")))
    await asker.kept.lift_pause("token:pest", ANN, clock.now())
    await asker.kept.note_refusal("token:pest", "approve: no", None, clock.now())
    await asker.kept.prune(clock.now(), clock.now(), 1)
    await give_up_a_delivery(asker.store, clock)
    await access_changes(asker.store, clock)
    for kind in (AuditKind.RESTORE_BEGUN, AuditKind.RESTORED):
        await asker.kept.note(AuditEntry(kind=kind, at=clock.now(), actor=ANN, facts={}))


async def access_changes(store: Store, clock: SettableClock) -> None:
    book, people = PassBook(store, clock), Authorization(store, GatewayConfig(), clock=clock)
    owner, day = owner_of_terminal(), timedelta(days=1)
    _, secret = await book.issue(PassKind.LINK, "login", Role.USER, "telegram:1", day, by=ANN)
    begun = await book.redeem(secret)
    assert begun
    assert await book.revoke(begun.held.id, by=ANN)
    one, other = (
        SessionSource(platform=platform, chat_id="1", user_id="1")
        for platform in (Platform.TELEGRAM, Platform.SLACK)
    )
    for name in ("telegram:1", "slack:1"):
        await people.grant(Principal.read(name), Role.USER, owner)
    await people.link(await people.begin_link(one, await people.look(one)), await people.look(other))
    assert await people.unlink(await people.look(other))
    assert await people.revoke("telegram:1", owner)
    waits = codes.Pairing(
        kind=codes.CodeKind.PAIR,
        principal="telegram:2",
        platform="telegram",
        created_at=clock.now(),
        expires_at=clock.now() + day,
    )
    assert await store.people.begin_pairing(waits, codes.seal(codes.new_code()), clock.now())
    assert await people.refuse("telegram:2", owner)


async def give_up_a_delivery(store: Store, clock: SettableClock) -> None:
    (taken,) = await store.deliveries.claim(1, 1, clock.now())
    await store.deliveries.settle(taken, Settlement(state=DeliveryState.DEAD), clock.now())
    assert await store.deliveries.discard(taken.delivery.id, ANN, clock.now())


async def verified(asker: Asker, anchor: Anchor | None = None) -> Verified:
    return await audits.verify(pages(asker.kept, size=7), anchor)


# what is written


async def test_every_change_is_written_down(asker: Asker, clock: SettableClock) -> None:
    await everything_happens(asker, clock)
    assert set(await asker.kinds()) == set(AuditKind) - OF_TURNS
    assert (await verified(asker)).whole


async def test_entries_say_who_did_what(asker: Asker, clock: SettableClock) -> None:
    asked = await asker.ask(decided=on_terms(quorum=2))
    await asker.vote(asked, reason="because")
    clock.advance(seconds=5)
    await asker.deny(asked, by=BOB)
    submitted, voted, denied = await asker.entries()
    assert (submitted.actor, voted.actor, denied.actor) == (AGENT, ANN, BOB)
    assert {entry.confirmation_id for entry in (submitted, voted, denied)} == {asked.id}
    assert {entry.digest for entry in (submitted, voted, denied)} == {asked.digest}
    assert denied.at == clock.now()
    assert submitted.facts["action"] == "deploy"
    assert (voted.facts["approvals"], voted.facts["quorum"]) == (1, 2)
    assert len(voted.facts["reason_digest"]) == 64
    assert denied.facts["status"] == "denied"


async def test_entries_of_automatic_decisions_name_the_rule(asker: Asker) -> None:
    await asker.ask(request("auto"), ruling(Effect.ALLOW, "trust"))
    await asker.ask(request("never"), ruling(Effect.DENY, "ban"))
    assert [entry.actor for entry in await asker.entries()] == ["rule:trust", "rule:ban"]
    assert {entry.facts["requester"] for entry in await asker.entries()} == {AGENT}


async def test_log_holds_nothing_of_payloads_descriptions_and_reasons(
    asker: Asker, clock: SettableClock
) -> None:
    asked = await asker.ask(request(target="s3cret", description="d3scription"))
    await asker.vote(asked, reason="r3ason")
    clock.advance(seconds=GRANT_SECONDS)
    await asker.redeem(asked, "s3cret digest")
    await asker.redeem(asked)
    await asker.add_rule(conditions=())
    bodies = b"".join(row.body for row in await asker.kept.audit_rows(0, 100))
    assert not [word for word in (b"s3cret", b"d3scription", b"r3ason") if word in bodies]


async def test_numbers_have_no_gaps_and_rows_are_read_in_order(asker: Asker, clock: SettableClock) -> None:
    await everything_happens(asker, clock)
    with pytest.raises(errors.RateLimited):
        await asker.submit(request("limited"), settings=Settings(rate_limit=0))
    await asker.ask(request("after"))
    rows = await asker.kept.audit_rows(0, 100)
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    assert rows[0].previous == GENESIS
    assert await asker.kept.audit_rows(3, 2) == rows[3:5]
    assert await asker.kept.audit_rows(len(rows), 10) == []
    assert await asker.kept.audit_newest(2) == [rows[-1], rows[-2]]


async def test_erasing_keeps_the_chain_whole(asker: Asker, clock: SettableClock) -> None:
    asked = [await asker.approved(request(target=number)) for number in range(5)]
    before = await verified(asker)
    for each in asked:
        assert await asker.erase(each)
    after = await verified(asker, before.anchor)
    assert (after.whole, after.rows) == (True, before.rows + 5)


async def test_chain_goes_on_after_a_restart_and_a_clock_set_back(
    store_url: str, clock: SettableClock
) -> None:
    async with opened(store_url, clock) as asker:
        await everything_happens(asker, clock)
        before = await verified(asker)
    clock.advance(days=-3)
    async with opened(store_url, clock) as asker:
        await asker.add_rule("r2")
        after = await verified(asker, before.anchor)
    assert (after.whole, after.rows) == (True, before.rows + 1)


# the database refuses changes


COLUMNS = "number, body, previous, hash"
CHANGES = [
    "UPDATE audit SET body = body",
    "UPDATE audit SET number = number + 100 WHERE number = 2",
    "DELETE FROM audit",
    "DELETE FROM audit WHERE number = (SELECT MAX(number) FROM audit)",
    f"INSERT INTO audit SELECT {COLUMNS} FROM audit WHERE number = 2"
    " ON CONFLICT (number) DO UPDATE SET body = excluded.body",
]
SQLITE_CHANGES = [
    f"INSERT OR REPLACE INTO audit SELECT 2, {COLUMNS[8:]} FROM audit WHERE number = 3",
    f"REPLACE INTO audit SELECT {COLUMNS} FROM audit",
    f"INSERT INTO audit SELECT number + 1000, {COLUMNS[8:]} FROM audit WHERE number = 1",
    "UPDATE OR REPLACE audit SET number = 1 WHERE number = 2",
]


class Database:
    """The database past the store."""

    def __init__(self, run: Callable[[str], Awaitable[Any]], is_sqlite: bool) -> None:
        self.run = run
        self.is_sqlite = is_sqlite

    async def rows(self) -> list[Row]:
        found = await self.run(f"SELECT {COLUMNS} FROM audit ORDER BY number")
        return [
            Row(number=number, body=bytes(body), previous=bytes(previous).hex(), hash=bytes(own).hex())
            for number, body, previous, own in found
        ]

    async def put(self, row: Row) -> None:
        """Write a row anew."""
        await self.run(f"DELETE FROM audit WHERE number = {row.number}")
        begins = "x'" if self.is_sqlite else r"'\x"
        blobs = ", ".join(f"{begins}{cell}'" for cell in (row.body.hex(), row.previous, row.hash))
        await self.run(f"INSERT INTO audit VALUES ({row.number}, {blobs})")


@asynccontextmanager
async def behind(store_url: str) -> AsyncIterator[Database]:
    """Changes the database that nobody has open; each statement is committed."""
    if store_url.startswith("sqlite"):
        path = store_url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, isolation_level=None)) as file:

            async def run_sqlite(sql: str) -> Any:
                return file.execute(sql).fetchall()

            yield Database(run_sqlite, is_sqlite=True)
        return
    async with schemas.connected(store_url) as connection:
        yield Database(connection.fetch, is_sqlite=False)


async def test_database_refuses_to_change_the_log(store_url: str, clock: SettableClock) -> None:
    async with opened(store_url, clock) as asker:
        await everything_happens(asker, clock)
        before = await asker.kept.audit_rows(0, 100)
    async with behind(store_url) as database:
        extra = SQLITE_CHANGES if database.is_sqlite else ["TRUNCATE audit"]
        if database.is_sqlite:
            assert await database.run("PRAGMA recursive_triggers") == [(0,)]
        for change in (*CHANGES, *extra):
            with pytest.raises((sqlite3.IntegrityError, asyncpg.RaiseError), match="only added to"):
                await database.run(change)
            assert await database.rows() == before, change


# tampering is found


class Case(NamedTuple):
    """A log that was changed, and what should be found."""

    rows: list[Row]
    number: int
    change: Tampering
    needs_anchor: bool = False


def rewritten(row: Row, previous: str | None = None) -> Row:
    """A row with another body, or another row before it, that fits its hash."""
    body = row.body if previous else row.body.replace(b"token:", b"tokem:", 1) + b" "
    previous = previous or row.previous
    return replace(row, body=body, previous=previous, hash=chain_hash(row.number, previous, body))


def edit(rows: list[Row], chance: random.Random) -> Case:
    """Change one cell of a row."""
    index = chance.randrange(len(rows))
    row = rows[index]
    place = chance.randrange(len(row.body))
    body = bytearray(row.body)
    body[place] ^= 1 << chance.randrange(8)
    cells = ({"body": bytes(body)}, {"hash": "0" * 64}, {"previous": "f" * 64}, {"hash": ""}, {"body": b""})
    rows[index] = replace(row, **chance.choice(cells))
    return Case(rows, row.number, Tampering.EDITED)


def edit_with_hash(rows: list[Row], chance: random.Random) -> Case:
    """Change a row and its hash: the next one gives it away, or the anchor."""
    index = chance.randrange(len(rows))
    rows[index] = rewritten(rows[index])
    is_last = index == len(rows) - 1
    return Case(rows, index + (1 if is_last else 2), Tampering.EDITED, needs_anchor=is_last)


def edit_all_after(rows: list[Row], chance: random.Random) -> Case:
    """Change a row and write all that follow anew: only the anchor gives it away."""
    index = chance.randrange(len(rows))
    rows[index] = rewritten(rows[index])
    for place in range(index + 1, len(rows)):
        rows[place] = rewritten(rows[place], rows[place - 1].hash)
    return Case(rows, len(rows), Tampering.EDITED, needs_anchor=True)


def drop(rows: list[Row], chance: random.Random) -> Case:
    first = chance.randrange(len(rows) - 1)
    last = chance.randrange(first + 1, len(rows))
    del rows[first:last]
    return Case(rows, first + 1, Tampering.MISSING)


def drop_and_close_up(rows: list[Row], chance: random.Random) -> Case:
    """Take a row away and give its number to the next one, and so on."""
    first = chance.randrange(len(rows) - 1)
    del rows[first]
    moved = [replace(row, number=number) for number, row in enumerate(rows[first:], first + 1)]
    return Case(rows[:first] + moved, first + 1, Tampering.SWAPPED)


def swap(rows: list[Row], chance: random.Random) -> Case:
    first, second = sorted(chance.sample(range(len(rows)), 2))
    one, other = rows[first], rows[second]
    rows[first], rows[second] = replace(other, number=one.number), replace(one, number=other.number)
    return Case(rows, one.number, Tampering.SWAPPED)


def truncate(rows: list[Row], chance: random.Random) -> Case:
    kept = chance.randrange(len(rows))
    return Case(rows[:kept], kept + 1, Tampering.TRUNCATED, needs_anchor=True)


TAMPERINGS = (edit, edit_with_hash, edit_all_after, drop, drop_and_close_up, swap, truncate)


async def write_instead(database: Database, before: Sequence[Row], after: Sequence[Row]) -> None:
    known = {row.number: row for row in before}
    for number in known.keys() - {row.number for row in after}:
        await database.run(f"DELETE FROM audit WHERE number = {number}")
    for row in after:
        if known.get(row.number) != row:
            await database.put(row)


async def drop_triggers(database: Database) -> None:
    names = ("audit_unchanged", "audit_kept", "audit_added") if database.is_sqlite else ("audit_kept",)
    for name in names:
        await database.run(f"DROP TRIGGER {name}{'' if database.is_sqlite else ' ON audit'}")


@pytest.mark.prove
async def test_tampering_is_found_named_and_located(store_url: str, clock: SettableClock) -> None:
    async with opened(store_url, clock) as asker:
        await everything_happens(asker, clock)
        rows = list(await asker.kept.audit_rows(0, 100))
        anchor = (await verified(asker)).anchor
    async with behind(store_url) as database:
        await drop_triggers(database)
    chance = random.Random(4)
    cases, undetected = counts.count(3 * len(TAMPERINGS), 300), []
    for number in range(cases):
        case = TAMPERINGS[number % len(TAMPERINGS)](list(rows), chance)
        async with behind(store_url) as database:
            await write_instead(database, rows, case.rows)
        async with opened(store_url, clock) as asker:
            found = await verified(asker, anchor)
            alone = await verified(asker)
        if found.whole or (alone.whole and not case.needs_anchor):
            undetected.append(case)
        assert found.fault is not None
        assert (found.fault.number, found.fault.change) == (case.number, case.change), number
        async with behind(store_url) as database:
            await write_instead(database, case.rows, rows)
    async with opened(store_url, clock) as asker:
        assert (await verified(asker, anchor)).whole
    print(f"tampered with {cases} times, {len(undetected)} undetected")
    assert not undetected


BROKEN_BODIES = [b"not JSON", b"{}", b'{"kind": "invented"}', b"\xff\xfe", b"[" * 100_000]


@pytest.mark.parametrize("number", [3, None])
@pytest.mark.parametrize("body", BROKEN_BODIES, ids=lambda body: repr(body[:12]))
async def test_running_service_names_a_row_that_cannot_be_read(
    store_url: str, clock: SettableClock, body: bytes, number: int | None
) -> None:
    async with opened(store_url, clock) as asker:
        await everything_happens(asker, clock)
    async with behind(store_url) as database:
        await drop_triggers(database)
        rows = await database.rows()
        broken = rows[number - 1 if number else -1]
        await database.put(replace(broken, body=body))
    async with served(store_url, clock=clock) as desk:
        told = (await desk.http.get("/audit?view=events&limit=500", headers=APPROVER)).json()
        far = FarAuditLog(Client(str(desk.http.base_url), TOKENS["ann"]))
        found = await audits.verify(far.pages())
    assert [each["number"] for each in told["entries"] if each["kind"] == "unreadable"] == [broken.number]
    assert told["count"] == len(rows)
    assert found.fault is not None
    assert (found.fault.number, found.fault.change) == (broken.number, Tampering.EDITED)


# verifying


def log_of(length: int) -> list[Row]:
    rows: list[Row] = []
    for number in range(length):
        entry = AuditEntry(kind=AuditKind.SUBMITTED, at=NOW, actor=f"agent {number}")
        rows.append(chained(entry, rows[-1] if rows else None))
    return rows


async def check(rows: Sequence[Row], anchor: Anchor | None = None, size: int = 3) -> Verified:
    async def batches() -> AsyncIterator[Sequence[Row]]:
        for start in range(0, len(rows), size):
            yield rows[start : start + size]

    return await audits.verify(batches(), anchor)


async def test_empty_log_is_whole_unless_an_anchor_knows_better() -> None:
    assert await check([]) == Verified(rows=0)
    found = await check([], audits.anchor_of(log_of(1)))
    assert found.fault is not None
    assert (found.fault.number, found.fault.change) == (1, Tampering.TRUNCATED)


async def test_whole_log_gives_its_last_row_as_anchor() -> None:
    rows = log_of(10)
    found = await check(rows)
    assert found == Verified(rows=10, anchor=Anchor(number=10, hash=rows[-1].hash, at=NOW))
    assert (await check([*rows, chained(rows[0].entry, rows[-1])], found.anchor)).whole


async def test_rows_before_the_fault_hold() -> None:
    rows = log_of(10)
    rows[6] = replace(rows[6], body=b"{}")
    found = await check(rows)
    assert found.rows == 6
    assert found.anchor == Anchor(number=6, hash=rows[5].hash, at=NOW)


@pytest.mark.parametrize("size", [1, 4, 100])
async def test_rows_that_come_in_another_order_are_swapped(size: int) -> None:
    rows = log_of(10)
    rows[3], rows[8] = rows[8], rows[3]
    found = await check(rows, size=size)
    assert found.fault is not None
    assert (found.fault.number, found.fault.change) == (4, Tampering.SWAPPED)


async def test_row_that_comes_twice_is_found() -> None:
    rows = log_of(5)
    found = await check([*rows[:3], rows[2], *rows[3:]])
    assert found.fault is not None
    assert found.fault.number == 4


async def test_last_row_that_cannot_be_read_is_found_although_it_fits_its_hash() -> None:
    rows = log_of(3)
    body = b"not JSON"
    odd = Row(number=4, body=body, previous=rows[-1].hash, hash=chain_hash(4, rows[-1].hash, body))
    found = await check([*rows, odd])
    assert found.fault is not None
    assert (found.fault.number, found.fault.change) == (4, Tampering.EDITED)


def test_anchor_is_a_line_and_back() -> None:
    anchor = audits.anchor_of(log_of(3)[::-1])
    assert anchor is not None
    assert anchor.number == 3
    assert Anchor.read(f"{anchor.line}\n") == anchor
    assert audits.anchor_of([]) is None


@pytest.mark.parametrize(
    "line",
    [
        "",
        "3",
        f"00 {GENESIS} {NOW.isoformat()}",
        f"-1 {GENESIS} {NOW.isoformat()}",
        f"x {GENESIS} {NOW.isoformat()}",
        f"3 {GENESIS[1:]} {NOW.isoformat()}",
        f"3 {GENESIS} yesterday",
        f"3 {GENESIS} 2026-99-99",
        f"3 {GENESIS} {NOW.isoformat()} more",
        f"٣ {GENESIS} {NOW.isoformat()}",
    ],
)
def test_line_that_is_no_anchor_is_refused(line: str) -> None:
    with pytest.raises(errors.InvalidInput, match="anchor"):
        Anchor.read(line)
