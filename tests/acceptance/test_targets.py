"""Modules of one's own: found where frontdesk is started, and where its configuration file is."""

import shutil
from pathlib import Path

import pytest

from tests.acceptance import program

MINE = """
async def answer(turn, line):
    return "mine"

async def look():
    return "seen"

TOOLS = {"look": ({"description": "Look.", "parameters": {}}, look)}

def make():
    from pydantic_ai import Agent
    return Agent("test")
"""
AGENTS = {
    "python": 'driver = "python"\ntarget = "mine_alone:answer"',
    "pydantic_ai": 'driver = "pydantic_ai"\ntarget = "mine_alone:make"',
    "tools": 'driver = "openai"\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\ntools = "mine_alone:TOOLS"',
}


def check(home: Path, options: str) -> str:
    file = home / "settings" / "frontdesk.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"[agent]\n{options}\n")
    done = program.run(home, "--config", str(file), "config", "check")
    return done.stdout + done.stderr


@pytest.mark.parametrize("options", AGENTS.values(), ids=AGENTS)
def test_target_is_found_where_frontdesk_is_started(tmp_path: Path, options: str) -> None:
    (tmp_path / "mine_alone.py").write_text(MINE)
    assert "no errors" in check(tmp_path, options)


@pytest.mark.parametrize("options", AGENTS.values(), ids=AGENTS)
def test_target_is_found_beside_the_configuration_file(tmp_path: Path, options: str) -> None:
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "mine_alone.py").write_text(MINE)
    assert "no errors" in check(tmp_path, options)


def test_target_that_is_nowhere_is_an_error(tmp_path: Path) -> None:
    assert "cannot be imported" in check(tmp_path, AGENTS["python"])


def test_file_does_not_take_the_place_of_what_is_installed(tmp_path: Path) -> None:
    (tmp_path / "mine_alone.py").write_text(MINE)
    (tmp_path / "uuid.py").write_text("raise SystemExit('taken for the real one')")
    (tmp_path / "msgspec.py").write_text("raise SystemExit('taken for the real one')")
    assert "no errors" in check(tmp_path, AGENTS["python"])
    shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
