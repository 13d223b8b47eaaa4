"""What forked processes find out is told as if tests had been run one after the other."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ARGUMENTS = (
    *("-p", "tests.at_once", "--at-once", "2", "-p", "no:cacheprovider", "-p", "no:schemathesis"),
    *("-o", "asyncio_default_fixture_loop_scope=function"),
)
FILES = {
    "conftest.py": """
import os, pathlib, pytest

NOTES = pathlib.Path(__file__).with_name("notes")

def note(*words):
    with NOTES.open("a") as file:
        print(*words, file=file)

@pytest.fixture(scope="session", autouse=True)
def opened():
    note("opened", os.getpid())
    yield
    note("closed", os.getpid())

@pytest.fixture(autouse=True)
def noted(request):
    note(request.path.stem, os.getpid())
""",
    "test_good.py": """
import pytest

@pytest.mark.parametrize("number", range(3))
def test_number(number):
    pass
""",
    "test_bad.py": """
import pytest

def test_fails(tmp_path):
    print("some words")
    assert not tmp_path.exists()

def test_is_left_out():
    pytest.skip("no need")

def test_follows():
    pass
""",
    "test_worse.py": """
import os

def test_dies():
    os._exit(3)

def test_goes_on():
    pass
""",
}


def run(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "pytest", *ARGUMENTS, *more],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_everything_is_told_and_what_was_opened_is_closed(tmp_path: Path) -> None:
    done = run(tmp_path, "-rfE")
    assert done.returncode == 1, done.stderr
    assert re.search(r"\n=+ 2 failed, 5 passed, 1 skipped in ", done.stdout), done.stdout
    assert "test_worse.py::test_dies - the process that ran it died: 3\n" in done.stdout
    assert "test_bad.py::test_fails - " in done.stdout
    assert done.stdout.count("some words") == 2, "in the source and in what was written"
    noted = [line.split() for line in (tmp_path / "notes").read_text().splitlines()]
    pids = {what: {pid for each, pid in noted if each == what} for what, _ in noted}
    assert len(pids["test_good"]) == len(pids["test_bad"]) == 1
    (dead,) = pids["opened"] - pids["closed"]
    assert dead in pids["test_worse"]
    assert len(pids["test_worse"]) == 2


def test_first_failure_ends_it_where_that_is_asked_for(tmp_path: Path) -> None:
    done = run(tmp_path, "-x", "test_bad.py", "test_good.py")
    assert done.returncode == 1
    assert "stopping after 1 failures" in done.stdout
    assert "test_follows" not in done.stdout


@pytest.mark.parametrize("option", ["--at-once=0", "--collect-only"])
def test_nothing_is_forked_where_there_is_no_need(option: str, tmp_path: Path) -> None:
    done = run(tmp_path, option, "-q", "test_good.py", "test_bad.py")
    assert "passed" in done.stdout or "tests collected" in done.stdout
    if option == "--at-once=0":
        noted = [line.split() for line in (tmp_path / "notes").read_text().splitlines()]
        assert len({pid for _, pid in noted}) == 1
