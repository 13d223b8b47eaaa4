"""A gateway that is killed while its agents work: nothing of them is left when the next attempt begins."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance import program
from tests.patience import until
from tests.processes import kill_watchdog, lives, needs_proc

AGENT = """
import json, os, subprocess, sys, time
from pathlib import Path

folder = Path({folder!r})
turn = json.loads(sys.stdin.readline())
others = [int(file.name) for file in folder.iterdir()]
child = subprocess.Popen(["sleep", "1000"])
for pid in (os.getpid(), child.pid):
    (folder / str(pid)).touch()
if turn["attempt"] == 1:
    {then}
def lives(pid):
    try:
        return Path(f"/proc/{{pid}}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
left = [pid for pid in others if lives(pid)]
print(json.dumps({{"type": "text", "text": f"{{len(others)}} before me, {{len(left)}} alive"}}))
print(json.dumps({{"type": "done"}}), flush=True)
"""
ENDINGS = {
    "that do not end with their input": "time.sleep(1000)",
    "that leave what they started": "sys.stdin.read(); sys.exit()",
}
CONFIGURATION = """
[agent]
driver = "command"
command = {command}

[server]
port = 0

[confirm]
enabled = false
"""


def configure(home: Path, then: str) -> Path:
    folder, agent = home / "pids", home / "agent.py"
    folder.mkdir()
    agent.write_text(AGENT.format(folder=str(folder), then=then))
    (home / ".frontdesk").mkdir()
    command = json.dumps([sys.executable, str(agent)])
    (home / ".frontdesk" / "frontdesk.toml").write_text(CONFIGURATION.format(command=command))
    return folder


def kill(gateway: subprocess.Popen[bytes]) -> None:
    gateway.kill()
    gateway.wait()


@needs_proc
@pytest.mark.parametrize("watched", [True, False], ids=["watched", "not watched"])
@pytest.mark.parametrize("then", ENDINGS.values(), ids=ENDINGS)
def test_no_agent_of_a_killed_gateway_is_alive_when_the_next_attempt_begins(
    tmp_path: Path, then: str, watched: bool
) -> None:
    folder = configure(tmp_path, then)
    with program.start(tmp_path, "run") as gateway:
        program.read_until(gateway, "agent is")
        with program.start(tmp_path, "chat", "-m", "hello"):
            until(lambda: len(list(folder.iterdir())) == 2)
        if not watched:
            kill_watchdog(gateway.pid)
        kill(gateway)
    old = [int(file.name) for file in folder.iterdir()]
    if watched:
        until(lambda: not any(map(lives, old)))
    with program.start(tmp_path, "run") as gateway:
        program.read_until(gateway, "agent is")
        until(lambda: "2 before me, 0 alive" in program.run(tmp_path, "chat", "-m", "/export").stdout)
    assert not any(map(lives, old))
