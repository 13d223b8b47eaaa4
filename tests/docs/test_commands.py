"""The page of the chat commands."""

import re

import pytest

from frontdesk.flow.commands import Command, registry, running, switching, transcript, views
from frontdesk.flow.hearing import CLEANUP_SECONDS
from frontdesk.model import titles
from frontdesk.model.turns import Busy, TurnKind
from tests.docs import pages

PAGE = pages.ROOT / "docs" / "commands.md"
TEXT = " ".join(pages.read(PAGE).split())


def meanwhile(command: Command) -> str:
    if command.takes_in is Busy.STEER:
        return "is passed on"
    if command.kind is TurnKind.CONTROL:
        return "works"
    return "stops it first" if command.stops_turn else "waits"


@pytest.mark.parametrize("command", registry.COMMANDS, ids=lambda command: command.name)
def test_every_command_has_a_heading_and_a_true_row(command: Command) -> None:
    assert f"/{command.name}" in pages.headings(PAGE)
    form = f"/{command.name} {command.usage}".strip()
    row = rf"^\| \[`{re.escape(form)}`\]\(#{command.name}\).* \| {meanwhile(command)} \|$"
    assert re.search(row, pages.read(PAGE), re.MULTILINE)
    assert all(f"`/{alias}`" in TEXT for alias in command.aliases)


def test_every_command_on_the_page_exists() -> None:
    named = {heading for heading in pages.headings(PAGE) if heading.startswith("/")}
    assert named == {f"/{command.name}" for command in registry.COMMANDS}


@pytest.mark.parametrize(
    "bound",
    [
        f"up to {views.MAX_ARGUMENT_CHARACTERS:,} characters",
        f"the {switching.MOST_LISTED} latest conversations",
        f"up to {titles.MAX_TITLE} characters",
        f"so many, up to {transcript.MOST_UNDONE:,}",
        f"Up to {transcript.KEPT_MESSAGES} of the newest messages",
        f"fewer than {transcript.FEWEST_COMPRESSED} messages",
        f"the newest {transcript.MAX_EXPORT_CHARACTERS:,} characters",
        f"{CLEANUP_SECONDS + running.GRACE_SECONDS:.0f} seconds later",
    ],
)
def test_bounds_on_the_page_are_those_of_the_code(bound: str) -> None:
    assert bound in TEXT
