"""A platform that can be searched gets each answer once, whatever breaks, whenever the gateway is killed."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import counts
from tests.acceptance.seeker import read_taken

ROOT = Path(__file__).parents[2]
DEADLINE_SECONDS = 60
CHATS = ("ann", "bob", "cid")
MOMENTS = (
    ("after:channel.send", "before:deliveries.settle"),
    ("before:channel.send", "after:deliveries.claim"),
    ("after:turns.finish", "after:channel.send"),
)
"""Two deaths each: a turn that was running at three would be given up."""
EACH = 2
"""Messages of each chat for every life of the gateway."""

pytestmark = pytest.mark.prove


@pytest.mark.parametrize("series", range(counts.count(1, 30)))
def test_killed_gateway_sends_each_answer_once_to_a_platform_that_breaks_off(
    tmp_path: Path, series: int
) -> None:
    (tmp_path / "in").mkdir()
    start = [sys.executable, "-m", "tests.acceptance.seeker", str(tmp_path)]
    expected: dict[str, list[str]] = {chat: [] for chat in CHATS}
    for life, moment in enumerate((*MOMENTS[series % len(MOMENTS)], None)):
        for number in range(EACH):
            for chat in CHATS:
                text = f"message {life}-{number} and some more words"
                (tmp_path / "in" / f"{chat}-{life}-{number}").write_text(text)
                expected[chat].append(f"echo: {text}")
        if moment:
            order = f"{moment}:{random.randint(2, 5)}"
            dead = subprocess.run([*start, order], cwd=ROOT, timeout=DEADLINE_SECONDS, check=False)
            assert dead.returncode == -signal.SIGKILL
    with subprocess.Popen(start, cwd=ROOT) as living:
        try:
            wait_until_said(tmp_path, expected)
        finally:
            living.kill()
    taken = read_taken(tmp_path)
    assert len({each.delivery for each in taken}) == len(taken)
    by_chat = {chat: " ".join(each.text for each in taken if each.chat == chat) for chat in CHATS}
    assert by_chat == {chat: " ".join(texts) for chat, texts in expected.items()}


def wait_until_said(folder: Path, expected: dict[str, list[str]]) -> None:
    """Until as many words have arrived as were said."""
    words = sum(len(text.split()) for texts in expected.values() for text in texts)
    end = time.monotonic() + DEADLINE_SECONDS
    while sum(len(each.text.split()) for each in read_taken(folder)) < words:
        assert time.monotonic() < end, "not everything was said"
        time.sleep(0.1)
    time.sleep(0.5)  # whatever would come twice has the time to
