"""Requests and rules in the store that are not as the audit log has them, and rows of it that cannot be true,
on every store and over HTTP."""

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from frontdesk.app.auditlog import AuditLog, verify_all
from frontdesk.cli.audit import FarAuditLog
from frontdesk.confirm.client import Client
from frontdesk.flow import audits
from frontdesk.flow.audits import Tampering
from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.model.audit import AuditEntry, AuditKind, Row, chained
from frontdesk.model.confirmations import Settings
from frontdesk.model.rules import Effect
from frontdesk.testing import SettableClock
from tests import schemas
from tests.contracts.asking import AGENT, ANN, BOB, on_terms, request
from tests.contracts.test_audit import everything_happens, opened
from tests.integration.confirming import TOKENS
from tests.integration.confirming import opened as served


async def write(store_url: str, *statements: str) -> None:
    """Change the database past the store."""
    if store_url.startswith("sqlite"):
        with closing(sqlite3.connect(store_url.removeprefix("sqlite:///"))) as file, file:
            for sql in statements:
                file.execute(sql)
        return
    async with schemas.connected(store_url) as connection:
        for sql in statements:
            await connection.execute(sql)


async def found_in(store_url: str, clock: SettableClock) -> dict[str, str]:
    """What contradicts the log, told by the store and by a service that runs: both tell the same."""
    async with opened(store_url, clock) as asker:
        service = ConfirmationService(asker.store, Settings(), clock=clock)
        near = await verify_all(AuditLog(service))
    async with served(store_url, clock=clock) as desk:
        far = await verify_all(FarAuditLog(Client(str(desk.http.base_url), TOKENS["ann"])))
    assert (near.fault, far.fault) == (None, None)
    assert near.contradictions == far.contradictions
    assert near.whole == (not near.contradictions)
    return {each.id: each.why for each in near.contradictions}


async def test_store_that_only_we_wrote_is_as_the_log_says(store_url: str, clock: SettableClock) -> None:
    async with opened(store_url, clock) as asker:
        await everything_happens(asker, clock)
        for number in range(60):
            await asker.approved(request(target=number))
        await asker.add_rule("r2", Effect.ALLOW, expires_at=clock.now())
    assert await found_in(store_url, clock) == {}


APPROVES = "UPDATE confirmations SET status = 'approved', resolved_by = 'token:ann', resolved_at = created_at"
CASES = {
    "approved": (f"{APPROVES} WHERE id = 'n1'", "status"),
    "used again": (
        "UPDATE confirmations SET redeemed_at = NULL, redeemed_by = NULL WHERE id = 'n2'",
        "redeemed",
    ),
    "decided later": (
        "UPDATE confirmations SET resolved_at = resolved_at + 60000000 WHERE id = 'n2'",
        "resolved_at",
    ),
    "another digest": ("UPDATE confirmations SET digest = '00' WHERE id = 'n1'", "digest"),
    "another requester": ("UPDATE confirmations SET requester = 'token:eve' WHERE id = 'n1'", "requester"),
    "another action": ("UPDATE confirmations SET action = 'harmless' WHERE id = 'n1'", "action"),
    "pending again": ("UPDATE confirmations SET status = 'pending' WHERE id = 'n3'", "status"),
    "gone": ("DELETE FROM confirmations WHERE id = 'n4'", "gone"),
    "another payload": (
        "UPDATE confirmation_payloads SET payload = '{}' WHERE confirmation_id = 'n1'",
        "payload",
    ),
    "no payload": ("DELETE FROM confirmation_payloads WHERE confirmation_id = 'n1'", "payload"),
    "a vote": ("UPDATE confirmations SET approvals = '[\"token:bob\"]' WHERE id = 'n1'", "token:bob"),
    "senseless": ("UPDATE confirmations SET terms = 'none' WHERE id = 'n1'", "no sense"),
    "invented": (
        "INSERT INTO confirmations (id, action, digest, requester, status, asked, terms, timeout_seconds,"
        " created_at, expires_at, approvals)"
        " VALUES ('n9', 'a', '00', 'x', 'approved', 1, '{}', 30, 1, 2, '[]')",
        "does not know",
    ),
    "rule changed": ("UPDATE rules SET body = '{}' WHERE id = 'r1'", "added"),
    "rule ended": ("UPDATE rules SET expires_at = 1 WHERE id = 'r1'", "added"),
    "rule revoked": ("UPDATE rules SET revoked_at = 1 WHERE id = 'r1'", "nobody revoked"),
    "rule back": ("UPDATE rules SET revoked_at = NULL WHERE id = 'r2'", "revoked"),
    "rule gone": ("DELETE FROM rules WHERE id = 'r1'", "gone"),
    "rule invented": ("INSERT INTO rules (id, body) VALUES ('r9', '{}')", "does not know"),
}
"""What somebody writes who can write to the database, and what is told of it."""


@pytest.mark.parametrize("name", CASES)
async def test_store_that_contradicts_the_log_is_told(
    store_url: str, clock: SettableClock, name: str
) -> None:
    async with opened(store_url, clock) as asker:
        await asker.ask(decided=on_terms(quorum=2))  # n1
        await asker.redeem(await asker.approved(request(target=2)))  # n2
        await asker.deny(await asker.ask(request(target=3)))  # n3
        denied = await asker.ask(request("never"), on_terms())  # n4
        await asker.deny(denied)
        await asker.erase(denied)
        await asker.add_rule("r1")
        await asker.add_rule("r2")
        await asker.kept.revoke_rule("r2", ANN, clock.now())
    sql, told = CASES[name]
    is_sqlite = store_url.startswith("sqlite")
    for blob in ("{}", "[]", "none", '["token:bob"]'):
        sql = sql.replace(f"'{blob}'", f"x'{blob.encode().hex()}'" if is_sqlite else f"'{blob}'::bytea")
    before = [] if name != "gone" else ["DELETE FROM confirmation_votes WHERE confirmation_id = 'n4'"]
    assert await found_in(store_url, clock) == {}
    await write(store_url, *before, sql)
    contradictions = await found_in(store_url, clock)
    assert len(contradictions) == 1
    assert told in next(iter(contradictions.values()))


async def test_what_was_forgotten_by_the_log_is_not_missed(store_url: str, clock: SettableClock) -> None:
    async with opened(store_url, clock) as asker:
        await asker.deny(await asker.ask(request(target=1)))
        clock.advance(days=1)
        await asker.kept.prune(clock.now(), clock.now(), 10)
        await asker.deny(await asker.ask(request(target=2)))
    assert await found_in(store_url, clock) == {}
    await write(
        store_url,
        "DELETE FROM confirmation_votes",
        "DELETE FROM confirmation_payloads",
        "DELETE FROM confirmations",
    )
    assert list(await found_in(store_url, clock)) == ["n2"]


async def test_what_happens_meanwhile_is_no_contradiction(store_url: str, clock: SettableClock) -> None:
    async with opened(store_url, clock) as asker:
        waiting = await asker.ask(request(target=1))
        service = ConfirmationService(asker.store, Settings(), clock=clock)

        class Busy(AuditLog):
            async def pages(self) -> AsyncIterator[Sequence[Row]]:  # type: ignore[override]
                async for batch in super().pages():
                    yield batch
                await asker.redeem(await asker.vote(waiting))
                await asker.ask(request(target=2))

        assert (await verify_all(Busy(service))).whole
        assert (await verify_all(AuditLog(service))).whole


# rows that cannot be true


def entry(kind: AuditKind, clock: SettableClock, **fields: Any) -> AuditEntry:
    about: dict[str, Any] = {"at": clock.now(), "actor": ANN, "confirmation_id": "c1", "digest": "d"} | fields
    return AuditEntry(kind=kind, **about)


SUBMITTED, VOTED, APPROVED, DENIED, REDEEMED = (
    AuditKind.SUBMITTED,
    AuditKind.VOTED,
    AuditKind.APPROVED,
    AuditKind.DENIED,
    AuditKind.REDEEMED,
)
QUORUM: dict[str, Any] = {"facts": {"quorum": 2}}
IMPOSSIBLE: dict[str, list[tuple[AuditKind, dict[str, Any]]]] = {
    "redeemed without anything": [(REDEEMED, {})],
    "redeemed while it waits": [(SUBMITTED, {}), (REDEEMED, {})],
    "redeemed after a denial": [(SUBMITTED, {}), (DENIED, {}), (REDEEMED, {})],
    "redeemed twice": [(SUBMITTED, {}), (APPROVED, {}), (REDEEMED, {}), (REDEEMED, {})],
    "redeemed with another digest": [(SUBMITTED, {}), (APPROVED, {}), (REDEEMED, {"digest": "e"})],
    "another one redeemed": [(SUBMITTED, {}), (APPROVED, {}), (REDEEMED, {"confirmation_id": "c2"})],
    "approved without being asked": [(APPROVED, {})],
    "approved after a denial": [(SUBMITTED, {}), (DENIED, {}), (APPROVED, {})],
    "approved with another digest": [(SUBMITTED, {}), (APPROVED, {"digest": "e"})],
    "approved by too few": [(SUBMITTED, {}), (APPROVED, QUORUM)],
    "voted after the end": [(SUBMITTED, {}), (APPROVED, {}), (VOTED, {})],
    "quorum that is no number": [(SUBMITTED, {}), (APPROVED, {"facts": {"quorum": "many"}})],
    "forgotten before no time": [(AuditKind.PRUNED, {"confirmation_id": None})],
    "at no time": [(SUBMITTED, {"at": datetime(2026, 1, 5)})],  # noqa: DTZ001 - that is the point
    "asked twice": [(SUBMITTED, {}), (SUBMITTED, {})],
    "allowed after it was asked": [(SUBMITTED, {}), (AuditKind.AUTO_APPROVED, {})],
}


async def verified(entries: Sequence[AuditEntry]) -> audits.Verified:
    rows: list[Row] = []
    for each in entries:
        rows.append(chained(each, rows[-1] if rows else None))

    async def batches() -> AsyncIterator[Sequence[Row]]:
        yield rows

    return await audits.verify(batches())


@pytest.mark.parametrize("name", IMPOSSIBLE)
async def test_row_that_cannot_be_true_is_forged_although_the_chain_holds(
    clock: SettableClock, name: str
) -> None:
    entries = [entry(kind, clock, **fields) for kind, fields in IMPOSSIBLE[name]]
    found = await verified(entries)
    assert found.fault is not None
    assert (found.fault.number, found.fault.change) == (len(entries), Tampering.FORGED)
    assert found.rows == len(entries) - 1
    assert (await verified(entries[:-1])).whole


async def test_quorum_that_was_reached_is_true(clock: SettableClock) -> None:
    votes = [entry(VOTED, clock, **QUORUM), entry(APPROVED, clock, actor=BOB, **QUORUM)]
    assert (await verified([entry(SUBMITTED, clock), *votes, entry(REDEEMED, clock, actor=AGENT)])).whole


async def test_redemption_written_behind_our_back_is_found(store_url: str, clock: SettableClock) -> None:
    async with opened(store_url, clock) as asker:
        asked = await asker.ask()
        rows = await asker.kept.audit_rows(0, 10)
        forged = chained(replace(rows[0].entry, kind=REDEEMED), rows[-1])
    begins, ends = ("x'", "'") if store_url.startswith("sqlite") else (r"'\x", "'::bytea")
    cells = ", ".join(begins + cell + ends for cell in (forged.body.hex(), forged.previous, forged.hash))
    await write(
        store_url,
        f"INSERT INTO audit VALUES ({forged.number}, {cells})",
        f"{APPROVES}, redeemed_at = created_at, redeemed_by = '{AGENT}' WHERE id = '{asked.id}'",
    )
    async with opened(store_url, clock) as asker:
        found = await verify_all(AuditLog(ConfirmationService(asker.store, Settings(), clock=clock)))
    assert found.fault is not None
    assert (found.fault.number, found.fault.change) == (2, Tampering.FORGED)
    assert asked.id in found.fault.why
