"""What authors of agents and channels see when a suite of ours fails: what was compared, not a bare error."""

import subprocess
import sys
from pathlib import Path

MINE = """
import pytest
from frontdesk.agents import scripted
from frontdesk.testing.agents import AgentContract

class TestMine(AgentContract):
    def expected(self, text):
        return "another answer"

    @pytest.fixture
    async def agent(self):
        driver = scripted.Driver(scripted.Options())
        yield driver
        await driver.close()
"""


def test_failure_of_a_contract_shows_what_was_compared(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(MINE)
    arguments = [
        "-q",
        "-o",
        "asyncio_mode=auto",
        "-p",
        "no:cacheprovider",
        "-k",
        "unchanged",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments, "test_mine.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "1 failed" in done.stdout
    assert "- another answer" in done.stdout
