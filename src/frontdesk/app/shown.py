"""What people are shown of a turn while it runs, as plain data."""

from collections.abc import Sequence

from msgspec.structs import replace

from frontdesk.app.office.plain import Plain, picked
from frontdesk.model import events, messages, turns

SHOWN: dict[type, tuple[str, ...]] = {
    events.Text: ("text",),
    events.Call: ("id", "name", "arguments"),
    events.Result: ("id", "name", "content", "is_error"),
    events.Approval: ("id", "action", "description"),
    events.Asked: ("id", "text"),
    events.Failed: ("message", "retryable"),
    events.Restarted: (),
    events.Missed: (),
}
"""What people are shown of each kind of event; of the others, nothing."""


def plain_events(step: events.Event | turns.Turn) -> list[Plain]:
    """What people are shown of a step."""
    several: Sequence[object] = step.calls if isinstance(step, events.Calls) else [step]
    if isinstance(step, events.Result):
        several = [replace(step, content=messages.text_of({"content": step.content}))]
    return [
        {"type": type(each).__name__.lower()} | picked(each, *SHOWN[type(each)])
        for each in several
        if type(each) in SHOWN
    ]
