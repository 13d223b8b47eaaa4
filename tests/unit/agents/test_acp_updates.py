"""What an ACP agent reports, as events."""

from typing import Any

import pytest

from frontdesk.agents.acp.turns import Scribe
from frontdesk.model import events
from frontdesk.testing.agents import assignment

CHUNK = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hi"}}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, events.Background()),
        ({"name": "build", "seconds": 60}, events.Background(name="build", seconds=60)),
        ({"name": "build", "running": False}, events.Background(name="build", running=False)),
    ],
)
def test_update_may_tell_of_background_work_beside_what_it_reports(
    told: dict[str, Any], expected: events.Background
) -> None:
    update = CHUNK | {"_meta": {"frontdesk/background": told}}
    assert Scribe(assignment("hello")).take(update) == [events.Text(text="hi"), expected]


def test_update_may_offer_a_choice() -> None:
    told = {"text": "Which?", "options": ["Red", "Blue"]}
    found = Scribe(assignment("hello")).take(CHUNK | {"_meta": {"frontdesk/choice": told}})
    assert found == [events.Text(text="hi"), events.Choice(text="Which?", options=("Red", "Blue"))]


@pytest.mark.parametrize(
    "told", [{}, {"options": []}, {"options": ["a", "a"]}, {"options": [7]}, ["a"], "a", 7]
)
def test_choice_that_is_none_is_left_out(told: object) -> None:
    update = CHUNK | {"_meta": {"frontdesk/choice": told}}
    assert Scribe(assignment("hello")).take(update) == [events.Text(text="hi")]


def test_update_may_name_a_file_of_the_working_directory() -> None:
    told = {"path": "out/plot.png", "name": "Plot.png", "kind": 7}
    found = Scribe(assignment("hello")).take(CHUNK | {"_meta": {"frontdesk/file": told}})
    assert found == [events.Text(text="hi"), events.File(path="out/plot.png", name="Plot.png")]


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (
            {"type": "image", "data": "aGk=", "mimeType": "image/png", "uri": "file:///srv/a.png"},
            events.File(data=b"hi", kind="image/png", name="a.png"),
        ),
        (
            {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
            events.File(data=b"hi", kind="audio/wav"),
        ),
        (
            {"type": "resource", "resource": {"uri": "mem://notes.bin", "blob": "aGk="}},
            events.File(data=b"hi", name="notes.bin"),
        ),
        ({"type": "image", "data": "not base64!"}, events.Text(text="[image]")),
        ({"type": "resource", "resource": {"uri": "mem://x", "text": "plain"}}, events.Text(text="plain")),
        ({"type": "resource_link", "uri": "file:///etc/passwd"}, events.Text(text="file:///etc/passwd")),
    ],
)
def test_bytes_in_the_agents_message_are_a_file(block: dict[str, Any], expected: events.Event) -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": block}
    assert Scribe(assignment("hello")).take(update) == [expected]


@pytest.mark.parametrize(
    "meta",
    [
        None,
        {"frontdesk/file": "x"},
        {"frontdesk/file": {"path": 7}},
        "x",
        {},
        {"frontdesk/background": "yes"},
    ],
)
def test_other_notes_of_an_update_tell_nothing(meta: Any) -> None:
    assert Scribe(assignment("hello")).take(CHUNK | {"_meta": meta}) == [events.Text(text="hi")]
