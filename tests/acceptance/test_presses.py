"""Whenever a gateway is killed: a press does what its button was made for, once, and its message says so."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import counts
from tests.acceptance.presser import Given, read

ROOT = Path(__file__).parents[2]
DEADLINE_SECONDS = 60
ENDS = {"Chosen: Red", "was approved by", "echo: Red", "approved: remove_file"}
MOMENTS = [
    "after:buttons.choose",
    "after:confirmations.vote",
    "before:buttons.choose",
    "before:confirmations.vote",
    "after:turns.accept:3",
    "after:turns.claim:3",
    "before:turns.finish:2",
    "after:channel.send:3",
    "before:deliveries.settle:4",
]


def wait_until_all_is_said(sent: Path) -> list[Given]:
    end = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < end:
        given = read(sent)
        if all(any(text in each.text for each in given) for text in ENDS):
            return given
        time.sleep(0.05)
    raise AssertionError(f"not everything was said: {read(sent)}")


@pytest.mark.parametrize("moment", MOMENTS[: counts.count(2, len(MOMENTS))])
def test_killed_gateway_heeds_each_press_once(tmp_path: Path, moment: str) -> None:
    start = [sys.executable, "-m", "tests.acceptance.presser", str(tmp_path)]
    dead = subprocess.run([*start, moment], cwd=ROOT, timeout=DEADLINE_SECONDS, check=False)
    assert dead.returncode == -signal.SIGKILL
    with subprocess.Popen(start, cwd=ROOT) as living:
        try:
            given = wait_until_all_is_said(tmp_path / "sent")
            time.sleep(0.5)
            given = read(tmp_path / "sent")
        finally:
            living.kill()
    last = {each.message: each.text for each in given}
    assert len(last) == 4  # a choice, a card, and an answer to each
    for text in ENDS:
        assert len([each for each in last.values() if text in each]) == 1
