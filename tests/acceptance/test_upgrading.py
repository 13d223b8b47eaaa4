"""An older database as its owner meets it: asked about, it stays; `run` upgrades it with a copy."""

import asyncio
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from tests.acceptance import program
from tests.contracts.versions import at_version

OLD = 4
FILE = """
[agent]
driver = "scripted"
[server]
port = 0
[confirm]
port = 0
"""
LOOKING = (
    ("sessions", "list"),
    ("sessions", "search", "word"),
    ("status",),
    ("people", "list"),
    ("deliveries", "list"),
    ("explain", "--platform", "telegram", "--chat-id", "42"),
    ("audit", "verify"),
    ("doctor",),
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / ".frontdesk"
    folder.mkdir(mode=0o700)
    (folder / "frontdesk.toml").write_text(FILE)
    asyncio.run(at_version(f"sqlite:///{folder}/state.db", OLD))
    return tmp_path


def version_of(file: Path) -> int:
    with closing(apsw.Connection(str(file))) as opened:
        return int(opened.pragma("user_version"))


@pytest.mark.parametrize("arguments", LOOKING, ids=" ".join)
def test_command_that_looks_says_that_the_database_is_older(home: Path, arguments: tuple[str, ...]) -> None:
    done = program.run(home, *arguments)
    assert "was written by an older frontdesk" in done.stdout + done.stderr
    assert "frontdesk run" in done.stdout + done.stderr
    assert version_of(home / ".frontdesk" / "state.db") == OLD
    assert not list((home / ".frontdesk").glob("*.version-*"))


def test_doctor_finds_nothing_broken_in_an_older_database(home: Path) -> None:
    done = program.run(home, "doctor")
    assert done.returncode == 0, done.stdout
    assert [line for line in done.stdout.splitlines() if line.startswith("failed")] == []


def test_run_upgrades_and_says_where_the_copy_is(home: Path) -> None:
    copy = home / ".frontdesk" / f"state.db.version-{OLD}"
    with program.start(home, "run") as gateway:
        said = program.read_until(gateway, "frontdesk is running")
    assert f"The database was of schema {OLD}" in said
    assert str(copy) in said
    assert version_of(copy) == OLD
    assert version_of(home / ".frontdesk" / "state.db") > OLD
