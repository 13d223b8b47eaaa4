"""The examples of the documentation do what the pages say."""

import re
import shlex
import subprocess
import sys
import uuid
from pathlib import Path

import click
import pytest

from frontdesk import config
from frontdesk.cli import main
from tests.docs import pages

RUNNER = Path(__file__).with_name("runner.py")
POSTGRES_URL = "postgresql://frontdesk@db.example/frontdesk"
"""The address of the pages, which stands for the server of the tests."""

PAGES = pages.all_pages()
WITH_PYTHON = [page for page in PAGES if pages.blocks(page, "python")]
WITH_TOML = [page for page in PAGES if pages.blocks(page, "toml")]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=pages.name_of)
def test_python_of_a_page_prints_what_the_page_shows(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    text = pages.script_of(page)
    if POSTGRES_URL in text:
        server = request.getfixturevalue("postgres_url")
        text = text.replace(POSTGRES_URL, f"{server}?schema=docs_{uuid.uuid4().hex}")
    if "postgres.running(" in text:
        request.getfixturevalue("postgres_url")  # skips where there are no binaries
    script = tmp_path / "script.py"
    script.write_text(text, encoding="utf-8")
    assert run_script(page, script) == pages.shown_output(page)


def run_script(page: Path, script: Path) -> list[str]:
    command = [sys.executable, "-X", "utf8", "-W", "error", str(RUNNER), pages.name_of(page), str(script)]
    done = subprocess.run(
        command, cwd=script.parent, capture_output=True, check=False, encoding="utf-8", timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("page", WITH_TOML, ids=pages.name_of)
def test_toml_of_a_page_is_a_valid_file(page: Path, tmp_path: Path) -> None:
    for number, block in enumerate(pages.blocks(page, "toml")):
        file = tmp_path / f"{number}.toml"
        file.write_text(block.text, encoding="utf-8")
        loaded = config.load(file, environ={"HOME": str(tmp_path)})
        assert any(value.origin == "file" for value in loaded.values)


def commands() -> list[str]:
    shown = [block.text for page in PAGES for block in pages.blocks(page, "console")]
    return [line[2:] for text in shown for line in text.splitlines() if line.startswith("$ ")]


@pytest.mark.parametrize("line", commands())
def test_commands_on_the_pages_exist(line: str) -> None:
    program, *words = shlex.split(line)
    assert program in ("frontdesk", "make")
    if program == "make":
        assert words[0] in make_targets()
        return
    command, options = find_command(words)
    assert not isinstance(command, click.Group), f"{line}: which command?"
    assert {word for word in words if word.startswith("--")} <= options


def make_targets() -> set[str]:
    return set(re.findall(r"^(\w+):", (pages.ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def find_command(words: list[str]) -> tuple[click.Command, set[str]]:
    """The command that the words lead to, and the options on the way."""
    command: click.Command = main
    options = options_of(command)
    for word in words:
        if not isinstance(command, click.Group):
            break
        found = command.get_command(click.Context(command), word)
        assert found, f"no command {word!r}"
        command = found
        options |= options_of(command)
    return command, options


def options_of(command: click.Command) -> set[str]:
    return {option for parameter in command.params for option in parameter.opts}


def test_make_targets_in_the_text_exist() -> None:
    named = {target for page in PAGES for target in re.findall(r"`make ([a-z]+)", pages.read(page))}
    assert {"run", "test"} <= named <= make_targets()
