"""A turn that needs approval, from the message to the action, over a gateway that is killed in between."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests import loopback
from tests.acceptance import program
from tests.acceptance.test_run import SECRET, Receiver, post, receiver

__all__ = ["receiver"]

AGENT = """
import json, sys

def say(**line):
    print(json.dumps(line), flush=True)

json.loads(sys.stdin.readline())
say(type="approval", id="1", action="remove_file", description="Remove it?", details={"file": "a.txt"})
decision = json.loads(sys.stdin.readline())
if decision["type"] == "decision" and decision["approved"]:
    with open(sys.argv[1], "a") as done:
        done.write("removed a.txt\\n")
    say(type="text", text="removed")
else:
    say(type="text", text="left alone")
say(type="done")
"""
CONFIGURATION = """
[agent]
driver = "command"
command = [{python}, {agent}, {done}]

[server]
port = 0

[confirm]
port = {port}

[channels.webhook.shop]
secret_env = "SHOP_SECRET"
callback_url = "{callback}"
"""


class Desk:
    """A gateway with an agent that asks before it acts; it can be started again and again."""

    def __init__(self, home: Path, receiver: Receiver) -> None:
        self.home = home
        self.done = home / "done.txt"
        agent = home / "agent.py"
        agent.write_text(AGENT)
        folder = home / ".frontdesk"
        folder.mkdir()
        values = {"python": sys.executable, "agent": str(agent), "done": str(self.done)}
        quoted = {name: json.dumps(value) for name, value in values.items()}
        text = CONFIGURATION.format(port=loopback.free_port(), callback=receiver.url, **quoted)
        (folder / "frontdesk.toml").write_text(text)

    @contextmanager
    def running(self) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
        with program.start(self.home, "run", "--log-level", "warning", SHOP_SECRET=SECRET) as process:
            found = re.search(r"http://[\d.:]+", program.read_until(process, "agent is"))
            assert found
            program.read_until(process, "/approvals.")
            yield process, found[0]

    def ask(self, *arguments: str) -> Any:
        done = program.run(self.home, *arguments, SHOP_SECRET=SECRET)
        assert done.returncode == 0, done.stderr + done.stdout
        return json.loads(done.stdout)

    def pending(self) -> dict[str, Any]:
        deadline = time.monotonic() + program.PATIENCE_SECONDS
        while not (found := self.ask("confirm", "list", "--status", "pending", "--json")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        (asked,) = found
        return dict(asked)


def test_approved_action_is_carried_out_once_over_a_killed_gateway(
    tmp_path: Path, receiver: Receiver
) -> None:
    desk = Desk(tmp_path, receiver)
    with desk.running() as (process, url):
        assert post(url, "e1", "please remove it") == 202
        asked = desk.pending()
        assert (asked["action"], asked["details"]) == ("remove_file", {"file": "a.txt"})
        (told,) = receiver.wait_for(1)
        assert asked["id"] in told
        assert "a.txt" in told
        process.send_signal(signal.SIGKILL)
        process.wait(program.PATIENCE_SECONDS)
    assert not desk.done.exists()
    with desk.running():
        assert desk.pending()["id"] == asked["id"]
        assert desk.ask("confirm", "approve", asked["id"], "--yes", "--json")["status"] == "approved"
        assert "removed" in receiver.wait_for(2)
        assert desk.done.read_text() == "removed a.txt\n"
    verified = program.run(tmp_path, "audit", "verify", SHOP_SECRET=SECRET)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    events = program.run(tmp_path, "audit", "export", SHOP_SECRET=SECRET).stdout
    assert events.count("redeemed") == 1


def test_shutdown_lets_go_of_a_turn_that_waits_for_a_person(tmp_path: Path, receiver: Receiver) -> None:
    """It would be waited for no longer than the test may take, though turns have an hour to finish."""
    desk = Desk(tmp_path, receiver)
    file = tmp_path / ".frontdesk" / "frontdesk.toml"
    file.write_text(f"{file.read_text()}\n[gateway]\ndrain_seconds = 3600\n")
    with desk.running() as (process, url):
        assert post(url, "e1", "please remove it") == 202
        asked = desk.pending()
        process.send_signal(signal.SIGTERM)
        assert process.wait(program.PATIENCE_SECONDS) == 0
    with desk.running():
        assert desk.pending()["id"] == asked["id"]
        desk.ask("confirm", "approve", asked["id"], "--yes", "--json")
        assert "removed" in receiver.wait_for(2)
        assert desk.done.read_text() == "removed a.txt\n"


def test_denied_action_is_not_carried_out(tmp_path: Path, receiver: Receiver) -> None:
    desk = Desk(tmp_path, receiver)
    with desk.running() as (_, url):
        assert post(url, "e1", "please remove it") == 202
        asked = desk.pending()
        desk.ask("confirm", "deny", asked["id"], "--reason", "still needed", "--json")
        assert "left alone" in receiver.wait_for(2)
    assert not desk.done.exists()


def test_owner_decides_although_no_port_is_served(tmp_path: Path, receiver: Receiver) -> None:
    desk = Desk(tmp_path, receiver)
    file = tmp_path / ".frontdesk" / "frontdesk.toml"
    file.write_text(re.sub(r"\[confirm\]\nport = \d+", "[confirm]\nenabled = false", file.read_text()))
    with program.start(tmp_path, "run", "--log-level", "warning", SHOP_SECRET=SECRET) as process:
        found = re.search(r"http://[\d.:]+", program.read_until(process, "agent is"))
        assert found
        assert post(found[0], "e1", "please remove it") == 202
        asked = desk.pending()
        desk.ask("confirm", "deny", asked["id"], "--json")
        assert "left alone" in receiver.wait_for(2)
