"""The page about agents has every option, limit, event, line and directive."""

import re

import msgspec
import pytest

from frontdesk.agents import bounds, command, python, scripted
from frontdesk.agents.command import protocol
from frontdesk.model import events
from tests.docs import pages

PAGE = pages.read(pages.ROOT / "docs" / "agents.md")
WITHIN = {"echo", "decision"}


def shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,.0f}" if isinstance(value, float | int) and value >= 10_000 else f"{value:g}"


@pytest.mark.parametrize("record", [bounds.Limits, command.Options, python.Options])
def test_every_option_has_a_row_with_its_default(record: type[msgspec.Struct]) -> None:
    for field in msgspec.structs.fields(record):
        rows = re.findall(rf"^\| `{field.name}` \| ([^|]+) \|", PAGE, re.MULTILINE)
        assert rows, field.name
        if isinstance(field.default, bool | int | float):
            assert shown(field.default) in rows, field.name


def test_every_option_of_the_scripted_agent_is_named() -> None:
    assert all(f"`{name}` (" in PAGE for name in scripted.Options.__struct_fields__)


def test_every_directive_has_a_row() -> None:
    named = set(re.findall(r"^\| `!([a-z]+)", PAGE, re.MULTILINE))
    assert named == {name[3:] for name in dir(scripted.Performance) if name.startswith("do_")} - WITHIN
    assert all(f"``!{name}" in (scripted.__doc__ or "") for name in named)


@pytest.mark.parametrize("name", events.Assignment.__struct_fields__)
def test_every_field_of_the_turn_is_explained(name: str) -> None:
    assert f"`{name}`" in PAGE


@pytest.mark.parametrize("event", events.Event.__subclasses__())
def test_every_event_has_a_row(event: type[events.Event]) -> None:
    assert f"\n| `{event.__name__}` |" in PAGE


@pytest.mark.parametrize("line", protocol.AgentLine.__subclasses__())
def test_every_line_of_the_protocol_has_a_row_with_its_fields(line: type[protocol.AgentLine]) -> None:
    (row,) = re.findall(rf"^\| `{line.__struct_config__.tag}` \| (.*)$", PAGE, re.MULTILINE)
    assert all(f"`{name}`" in row for name in line.__struct_fields__)


@pytest.mark.parametrize("name", command.Options.passed)
def test_every_variable_that_is_passed_is_named(name: str) -> None:
    assert f"`{name}`" in PAGE
