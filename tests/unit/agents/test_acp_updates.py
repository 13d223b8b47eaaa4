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


@pytest.mark.parametrize("meta", [None, "x", {}, {"frontdesk/background": "yes"}])
def test_other_notes_of_an_update_tell_nothing(meta: Any) -> None:
    assert Scribe(assignment("hello")).take(CHUNK | {"_meta": meta}) == [events.Text(text="hi")]
