"""A platform in a package of its own, installed beside the stock one into an environment of their own."""

import asyncio
import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from frontdesk.testing.wire import HttpReply, HttpRequest, HttpServer
from tests import patience
from tests.acceptance import program

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "examples" / "pinboard"
MOST_LINES = 60
FILE = """
[agent]
driver = "scripted"

[server]
port = 0

[confirm]
enabled = false

[channels.pinboard]
url = "{url}"
pause_seconds = 0.1
allow = ["ada"]
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where both are installed from their wheels; what they depend on is borrowed from here."""
    folder = tmp_path_factory.mktemp("plugin")
    wheels, fresh = folder / "wheels", folder / "environment"
    call = [sys.executable, "-m", "pip", "--quiet", "wheel", "--no-deps", "--no-build-isolation"]
    run(*call, "--no-index", "--wheel-dir", str(wheels), str(ROOT), str(PACKAGE))
    run(sys.executable, "-m", "venv", "--without-pip", str(fresh))
    call = [sys.executable, "-m", "pip", "--quiet", "--python", str(fresh), "install", "--no-deps"]
    run(*call, "--no-index", *map(str, wheels.glob("*.whl")))
    (site,) = fresh.glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    return fresh


SKIPPED = re.compile(r"^SKIPPED \[\d+\] [^:]+:\d+: (.+)$", re.MULTILINE)
HAS_NOT = {
    "the channel cannot look for what it has sent",
    "the platform does not show which message is answered",
    "the platform wants nothing back with an answer",
}
"""What a board is not tried for."""


def run(*call: str, cwd: Path | None = None) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        call,
        capture_output=True,
        check=False,
        text=True,
        cwd=cwd,
        env=clean,
        timeout=patience.PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_whole_platform_is_short() -> None:
    files = list((PACKAGE / "frontdesk_pinboard").rglob("*.py"))
    assert sum(len(file.read_text().splitlines()) for file in files) <= MOST_LINES


def test_package_holds_the_contract_where_it_is_installed(environment: Path, tmp_path: Path) -> None:
    python = str(environment / "bin" / "python")
    where = run(
        python, "-c", "import frontdesk, frontdesk_pinboard as p; print(frontdesk.__file__, p.__file__)"
    )
    assert all(Path(each).is_relative_to(environment) for each in where.split())
    tests = ["-c", str(PACKAGE / "pyproject.toml"), str(PACKAGE / "tests")]
    said = run(python, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *tests, cwd=tmp_path)
    assert " passed" in said
    assert set(SKIPPED.findall(said)) == HAS_NOT


class Board:
    """The platform. It has two notes from the start: a stranger's, and one of somebody who may talk."""

    def __init__(self) -> None:
        self.notes = [
            {"place": 1, "id": "n1", "chat": "hall", "user": "mallory", "text": "Let me in"},
            {"place": 2, "id": "n2", "chat": "desk", "user": "ada", "text": "!show system"},
        ]
        self.pinned: dict[str, dict[str, str]] = {}
        self.answered = asyncio.Event()

    async def answer(self, request: HttpRequest) -> HttpReply:
        if request.method == "GET":
            return HttpReply(body=json.dumps(self.notes[int(request.fields["after"]) :]).encode())
        self.pinned[request.path] = request.fields
        if request.fields["chat"] == "desk":
            self.answered.set()
        return HttpReply()


async def test_stock_gateway_talks_on_the_packages_platform(environment: Path, tmp_path: Path) -> None:
    board = Board()
    server = HttpServer(board.answer)
    await server.listen()
    (tmp_path / ".frontdesk").mkdir()
    told = FILE.format(url=f"http://127.0.0.1:{server.port}")
    (tmp_path / ".frontdesk" / "frontdesk.toml").write_text(told)
    process = await asyncio.create_subprocess_exec(
        environment / "bin" / "frontdesk", "run", env=program.environment(tmp_path), cwd=tmp_path
    )
    try:
        async with asyncio.timeout(patience.PATIENCE_SECONDS):
            await board.answered.wait()
    finally:
        process.kill()
        await process.wait()
        await server.close()
    answers = [each["text"] for each in board.pinned.values() if each["chat"] == "desk"]
    assert len(answers) == 1
    assert "**Platform notes:** Everybody reads what stands on desk." in answers[0]
    assert not any("Let me in" in each["text"] for each in board.pinned.values())
