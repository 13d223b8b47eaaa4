"""``frontdesk checkpoints`` as people use it: with and without a gateway, with a preview before a restore."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.acceptance import program

FILE = """
[agent]
driver = "scripted"
[server]
port = 0
[confirm]
enabled = false
[checkpoints]
enabled = {enabled}
working_dir = "{work}"
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "plan.md").write_text("1. Ask\n")
    configure(tmp_path, enabled=True)
    return tmp_path


def configure(home: Path, *, enabled: bool) -> None:
    (home / ".frontdesk").mkdir(mode=0o700, exist_ok=True)
    text = FILE.format(enabled=str(enabled).lower(), work=home / "work")
    (home / ".frontdesk" / "frontdesk.toml").write_text(text)


@contextmanager
def gateway(home: Path) -> Iterator[None]:
    with program.start(home, "run") as process:
        program.read_until(process, "frontdesk is running")
        yield


PROFILE = """
[[routes]]
platform = "local"
chat = "garden"
profile = "green"
[profiles.green]
working_dir = "{garden}"
"""


def said(home: Path, *arguments: str, code: int = 0) -> str:
    done = program.run(home, "checkpoints", *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def take(home: Path, label: str) -> None:
    with gateway(home):
        assert "made" in program.run(home, "chat", "-m", f"/checkpoint {label}").stdout


def spoil(home: Path) -> None:
    (home / "work" / "plan.md").write_text("1. Guess\n")
    (home / "work" / "new.md").write_text("!\n")


def test_checkpoints_are_listed_shown_compared_and_restored_after_a_preview(home: Path) -> None:
    assert "no checkpoints yet" in said(home, "list")
    take(home, "before the rewrite")
    assert "before the rewrite" in said(home, "list")
    assert "plan.md" not in said(home, "diff", "1")
    assert str(home / "work") in said(home, "show", "1")
    spoil(home)
    compared = said(home, "diff", "1", code=1)
    assert "added       new.md" in compared
    assert "-1. Ask\n+1. Guess" in compared
    told = said(home, "restore", "1", "--yes")
    assert "new.md is removed" in told
    assert "plan.md gets its contents back" in told
    assert "frontdesk checkpoints restore 2" in told
    assert (home / "work" / "plan.md").read_text() == "1. Ask\n"
    assert not (home / "work" / "new.md").exists()
    assert "dropped: 0" in said(home, "prune")


def test_profile_has_checkpoints_of_its_own_directory(home: Path) -> None:
    garden, file = home / "garden", home / ".frontdesk" / "frontdesk.toml"
    garden.mkdir()
    (garden / "bed.md").write_text("Tulips\n")
    file.write_text(file.read_text() + PROFILE.format(garden=garden))
    with gateway(home):
        made = program.run(home, "chat", "--chat", "garden", "-m", "/checkpoint spring").stdout
        assert "1 file" in made
        assert "spring" in said(home, "list", "--profile", "green")
    assert "no checkpoints yet" in said(home, "list")
    (garden / "bed.md").write_text("Weeds\n")
    assert "bed.md" in said(home, "diff", "1", "--profile", "green", code=1)
    assert "restore 2 --profile green" in said(home, "restore", "1", "--profile", "green", "--yes")
    assert (garden / "bed.md").read_text() == "Tulips\n"
    assert "no profile 'blue'" in program.run(home, "checkpoints", "list", "--profile", "blue").stderr


def test_nothing_is_restored_unasked(home: Path) -> None:
    take(home, "x")
    spoil(home)
    done = program.run(home, "checkpoints", "restore", "1")
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert "plan.md gets its contents back" in done.stdout
    assert (home / "work" / "plan.md").read_text() == "1. Guess\n"
    with program.start(home, "checkpoints", "restore", "1", terminal=True) as asked:
        program.read_until(asked, "Restore it? [y/N]:")
        program.write(asked, "y\n")
        assert "is restored" in program.finish(asked)[1]
    assert (home / "work" / "plan.md").read_text() == "1. Ask\n"


def test_running_gateway_is_asked_and_one_path_can_be_restored(home: Path) -> None:
    take(home, "x")
    spoil(home)
    with gateway(home):
        (kept,) = json.loads(said(home, "list", "--json"))
        assert (kept["number"], kept["label"]) == (1, "x")
        done = json.loads(said(home, "restore", kept["id"], "plan.md", "--yes", "--json"))
        assert (done["written"], done["removed"]) == (["plan.md"], [])
        assert json.loads(said(home, "diff", "1", "--json", code=1))["changes"] == [
            {"path": "new.md", "kind": "added"}
        ]
        refused = program.run(home, "checkpoints", "show", "99")
    assert refused.returncode == 1
    assert "no checkpoint '99'" in refused.stderr


def test_checkpoints_that_are_switched_off_say_how_to_switch_them_on(home: Path) -> None:
    configure(home, enabled=False)
    done = program.run(home, "checkpoints", "list")
    assert done.returncode == 1
    assert "checkpoints.enabled" in done.stderr
