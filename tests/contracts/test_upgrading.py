"""A store of an older version: brought up to date by those who mean it, left alone by those who look."""

import os
from pathlib import Path

import apsw
import pytest

from frontdesk import SessionStore, errors
from frontdesk.stores.sql import load_migrations
from tests.contracts.versions import at_version

OLD = 4


def files_in(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


PRESENT = len(load_migrations("sqlite"))


async def test_older_store_is_refused_by_who_only_looks_and_left_as_it_is(store_url: str) -> None:
    await at_version(store_url, OLD)
    for _ in range(2):
        with pytest.raises(errors.OlderDatabase, match=rf"schema {OLD}, this version writes {PRESENT}"):
            await SessionStore.open(store_url, upgrade=False)


async def test_older_store_is_brought_up_to_date_and_that_is_told(store_url: str) -> None:
    await at_version(store_url, OLD)
    async with await SessionStore.open(store_url) as sessions:
        upgraded = sessions.store.upgraded
        assert upgraded
        assert (upgraded.found, upgraded.known) == (OLD, PRESENT)
    async with await SessionStore.open(store_url, upgrade=False) as sessions:
        assert sessions.store.upgraded is None


async def test_new_store_is_no_upgrade(store_url: str) -> None:
    async with await SessionStore.open(store_url) as sessions:
        assert sessions.store.upgraded is None


async def test_file_is_copied_as_it_was_before_it_is_upgraded(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/state.db"
    await at_version(url, OLD)
    async with await SessionStore.open(url) as sessions:
        upgraded = sessions.store.upgraded
    assert upgraded
    assert upgraded.copy == f"{tmp_path}/state.db.version-{OLD}"
    assert os.stat(upgraded.copy).st_mode & 0o777 == 0o600
    with apsw.Connection(upgraded.copy) as kept:
        assert kept.pragma("user_version") == OLD
        assert kept.pragma("integrity_check") == "ok"
    assert files_in(tmp_path) == {"state.db", "state.db.lock", f"state.db.version-{OLD}"}


async def test_copy_holds_what_stood_only_in_the_log(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/state.db"
    await at_version(url, OLD)
    name, value = "late", "in the log alone"
    writer = apsw.Connection(str(tmp_path / "state.db"))
    writer.pragma("journal_mode", "wal")
    writer.execute("CREATE TABLE mine (name, value)")
    writer.execute("INSERT INTO mine VALUES (?, ?)", (name, value))
    async with await SessionStore.open(url) as sessions:
        upgraded = sessions.store.upgraded
    writer.close()
    assert upgraded
    assert upgraded.copy
    with apsw.Connection(upgraded.copy) as kept:
        assert kept.execute("SELECT * FROM mine").fetchall() == [(name, value)]


async def test_without_room_for_the_copy_nothing_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/state.db"
    await at_version(url, OLD)
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 0}))
    with pytest.raises(errors.NoRoomForCopy, match="1 MiB"):
        await SessionStore.open(url)
    with apsw.Connection(str(tmp_path / "state.db")) as file:
        assert file.pragma("user_version") == OLD
    assert files_in(tmp_path) == {"state.db", "state.db.lock"}
