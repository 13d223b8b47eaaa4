"""Triggers of the audit log: where one is missing, switched off or another one, nothing opens the store."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from frontdesk import SessionStore, errors
from frontdesk.app.auditlog import glance, verify_all
from frontdesk.app.opening import open_store
from frontdesk.cli.audit import FarAuditLog
from frontdesk.confirm.client import Client
from frontdesk.testing import SettableClock
from tests.acceptance import program
from tests.acceptance.services import serving
from tests.contracts.test_audit import behind, everything_happens, opened
from tests.contracts.test_audit_standings import write
from tests.integration.confirming import TOKENS
from tests.integration.confirming import opened as served

HOLLOW = "CREATE TRIGGER {name} BEFORE {event} ON audit BEGIN SELECT 'the audit log is only added to'; END"
SQLITE = {
    **{name: [f"DROP TRIGGER {name}"] for name in ("audit_unchanged", "audit_kept", "audit_added")},
    "hollow": ["DROP TRIGGER audit_kept", HOLLOW.format(name="audit_kept", event="DELETE")],
    "elsewhere": [
        "DROP TRIGGER audit_kept",
        HOLLOW.format(name="audit_kept", event="DELETE").replace("audit B", "feed B"),
    ],
}
POSTGRES = {
    "dropped": ["DROP TRIGGER audit_kept ON audit"],
    "switched off": ["ALTER TABLE audit DISABLE TRIGGER audit_kept"],
    "all switched off": ["ALTER TABLE audit DISABLE TRIGGER ALL"],
    "for replicas": ["ALTER TABLE audit ENABLE REPLICA TRIGGER audit_kept"],
    "hollow": [
        "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN RETURN NULL; END'"
    ],
    "less": [
        "DROP TRIGGER audit_kept ON audit",
        "CREATE TRIGGER audit_kept BEFORE UPDATE ON audit"
        " FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()",
    ],
    "never": [
        "DROP TRIGGER audit_kept ON audit",
        "CREATE TRIGGER audit_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON audit"
        " FOR EACH STATEMENT WHEN (false) EXECUTE FUNCTION refuse_change()",
    ],
}
CHANGES = {**SQLITE, **{f"postgresql {name}": sql for name, sql in POSTGRES.items()}}


@pytest.mark.parametrize("name", CHANGES)
async def test_store_whose_log_anybody_can_change_is_not_opened_until_it_is_put_right(
    store_url: str, clock: SettableClock, name: str
) -> None:
    if store_url.startswith("sqlite") != (name in SQLITE):
        return
    async with opened(store_url, clock) as asker:
        await everything_happens(asker, clock)
    await write(store_url, *CHANGES[name])
    with pytest.raises(errors.AuditUnguarded, match="audit guard"):
        await SessionStore.open(store_url)
    async with served(store_url, clock=clock) as desk:  # one that had it open when it was done
        far = FarAuditLog(Client(str(desk.http.base_url), TOKENS["ann"]))
        with pytest.raises(errors.AuditUnguarded):
            await glance(far, None)
        found = await verify_all(far)
    assert (found.fault, len(found.contradictions), found.whole) == (None, 1, False)
    async with await open_store(store_url, guarded=False) as store:
        assert len(await store.confirmations.guard()) == 1
        assert await store.confirmations.guard() == ()
    async with await SessionStore.open(store_url):
        pass
    async with behind(store_url) as database:
        rows = await database.rows()
        with pytest.raises(Exception, match="only added to"):
            await database.run("DELETE FROM audit")
        assert await database.rows() == rows


def test_doctor_and_the_service_say_so_and_guard_puts_it_right(tmp_path: Path) -> None:
    with serving(tmp_path):
        pass
    (file,) = tmp_path.rglob("*.db")
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("DROP TRIGGER audit_kept")
    started = program.run(tmp_path, "confirm", "serve", "--port", "0")
    assert started.returncode == 1
    assert "audit_kept is missing" in started.stderr
    doctor = program.run(tmp_path, "doctor")
    assert doctor.returncode == 1
    failed = [line for line in doctor.stdout.splitlines() if line.startswith("failed")]
    assert [line.split()[1] for line in failed if "audit_kept" in line] == ["store", "audit"]
    verified = program.run(tmp_path, "audit", "verify")
    assert (verified.returncode, "audit_kept" in verified.stdout) == (1, True)
    assert "audit_kept" in program.run(tmp_path, "audit", "guard").stdout
    assert program.run(tmp_path, "audit", "verify").returncode == 0
    with serving(tmp_path):
        pass
