"""The one working directory: where the agent works, what is checkpointed, what `config show` says."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.acceptance import program

AGENT = """
import json, os, sys
json.loads(sys.stdin.readline())
open("made by the agent", "w").close()
print(json.dumps({"type": "text", "text": os.getcwd()}))
print(json.dumps({"type": "done"}), flush=True)
"""
CONFIGURATION = """
[agent]
driver = "command"
command = {command}
{cwd}

[server]
port = 0

[confirm]
enabled = false

[checkpoints]
enabled = true
{working_dir}
"""


def configure(home: Path, *, cwd: str = "", working_dir: str = "") -> None:
    (home / ".frontdesk").mkdir()
    text = CONFIGURATION.format(
        command=json.dumps([sys.executable, "-c", AGENT]),
        cwd=f"cwd = {json.dumps(cwd)}" if cwd else "",
        working_dir=f"working_dir = {json.dumps(working_dir)}" if working_dir else "",
    )
    (home / ".frontdesk" / "frontdesk.toml").write_text(text)


def shown(home: Path) -> Path:
    values = json.loads(program.run(home, "config", "show", "--json").stdout)["values"]
    value = next(each["value"] for each in values if each["name"] == "checkpoints.working_dir")
    return Path(value.replace("~", str(home), 1))


@pytest.mark.skipif(shutil.which("git") is None, reason="checkpoints need git")
@pytest.mark.parametrize(
    "settings",
    [{"cwd": "~/work"}, {"working_dir": "~/work"}, {"cwd": "~/work", "working_dir": "~/other/../work"}],
    ids=["agent.cwd", "checkpoints.working_dir", "both"],
)
def test_agent_works_in_the_folder_that_is_shown_and_checkpointed(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    configure(tmp_path, **settings)
    with program.start(tmp_path, "run") as gateway:
        program.read_until(gateway, "agent is")
        assert program.run(tmp_path, "chat", "-m", "where?").stdout.strip() == str(work)
        kept = program.run(tmp_path, "chat", "-m", "/checkpoint").stdout
    assert "1 file" in kept
    assert shown(tmp_path).resolve() == work


def test_two_folders_are_refused(tmp_path: Path) -> None:
    configure(tmp_path, cwd="/srv/one", working_dir="/srv/two")
    for command in (("run",), ("config", "check"), ("config", "show")):
        done = program.run(tmp_path, *command)
        assert done.returncode != 0
        assert "agent.cwd" in done.stderr
        assert "checkpoints.working_dir" in done.stderr
