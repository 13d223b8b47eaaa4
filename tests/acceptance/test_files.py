"""Whenever a gateway is killed: each file reaches the agent, and comes back, once."""

import hashlib
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from tests import counts
from tests.acceptance.filer import Copy

ROOT = Path(__file__).parents[2]
DEADLINE_SECONDS = 60
MOMENTS = [
    "after:shelf.place",
    "after:agent.run",
    "before:turns.finish",
    "before:shelf.place",
    "before:files.keep",
    "after:files.keep",
    "after:turns.begin",
    "after:files.keep:2",
    "after:turns.finish",
    "before:channel.send",
]


def wait_until_there(sent: Path, lines: int) -> list[Copy]:
    end = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < end:
        found = sent.read_bytes().splitlines() if sent.exists() else []
        if len(found) >= lines:
            return [msgspec.json.decode(each, type=Copy) for each in found]
        time.sleep(0.05)
    raise AssertionError("not everything was sent")


@pytest.mark.parametrize("moment", MOMENTS[: counts.count(3, len(MOMENTS))])
def test_killed_gateway_loses_no_file_and_brings_none_twice(tmp_path: Path, moment: str) -> None:
    for name in ("in", "blobs"):
        (tmp_path / name).mkdir()
    (tmp_path / "blobs" / "ann").write_text("ann's own")
    (tmp_path / "in" / "ann").write_text("!file back.txt for ann; !say here")
    start = [sys.executable, "-m", "tests.acceptance.filer", str(tmp_path)]
    dead = subprocess.run([*start, moment], cwd=ROOT, timeout=DEADLINE_SECONDS, check=False)
    assert dead.returncode == -signal.SIGKILL
    with subprocess.Popen(start, cwd=ROOT) as living:
        try:
            # Of a send that was cut off nobody knows whether it arrived: it is not repeated here.
            unsure = moment in ("after:turns.finish", "before:channel.send")
            copies = wait_until_there(tmp_path / "sent", 1 if unsure else 2)
        finally:
            living.kill()
    back = hashlib.sha256(b"for ann").hexdigest()
    assert [copy.digests for copy in copies if copy.digests] == [[back]]
    said = [copy.text for copy in copies if copy.text]
    assert len(said) == (0 if unsure else 1)
    assert all("ann's own" in text for text in said)
    kept = {each.read_bytes() for each in (tmp_path / "files").glob("??/*")}
    assert kept == {b"ann's own", b"for ann"}
