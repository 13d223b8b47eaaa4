"""The quickstart's service, `shop.py`, taken from the page and run as it says."""

import re
import subprocess
import sys
from pathlib import Path

from tests import loopback
from tests.acceptance import program
from tests.docs import pages

PAGE = pages.ROOT / "docs" / "quickstart.md"
SECRET = "whsec_bm90IGEgc2VjcmV0IGF0IGFsbCwgcmVhbGx5"
FILE = """
[agent]
driver = "scripted"
[server]
port = {port}
[confirm]
enabled = false
[channels.webhook.shop]
secret_env = "SHOP_WEBHOOK_SECRET"
callback_url = "http://127.0.0.1:{answers}/answers"
"""


def run_shop(home: Path, port: int, answers: int) -> str:
    (text,) = re.findall(r"```text\n(import json.*?)```", pages.read(PAGE), re.DOTALL)
    assert "8642" in text
    assert "9000" in text
    (home / "shop.py").write_text(text.replace("8642", str(port)).replace("9000", str(answers)))
    done = subprocess.run(
        [sys.executable, "shop.py"],
        cwd=home,
        env=program.environment(home, SHOP_WEBHOOK_SECRET=SECRET),
        capture_output=True,
        text=True,
        check=False,
        timeout=50,  # its own patience is 60 seconds
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_shop_is_answered_and_does_not_wait_for_a_second_answer(tmp_path: Path) -> None:
    port, answers = loopback.free_port(), loopback.free_port()
    (tmp_path / "frontdesk.toml").write_text(FILE.format(port=port, answers=answers))
    arguments = ("--config", str(tmp_path / "frontdesk.toml"), "run")
    with program.start(tmp_path, *arguments, SHOP_WEBHOOK_SECRET=SECRET) as gateway:
        program.read_until(gateway, "frontdesk is running")
        first, second = (run_shop(tmp_path, port, answers) for _ in range(2))
    assert first.startswith("202")
    assert "answer: echo: Hello" in first
    assert second.startswith("200")
    assert "'repeated'" in second
