"""When messages were written, as an agent is told."""

from datetime import UTC
from typing import Any
from zoneinfo import ZoneInfo

from frontdesk.flow import times
from frontdesk.model.messages import Plain

BERLIN = ZoneInfo("Europe/Berlin")


def user(content: Any, at: str | None) -> Plain:
    return {"role": "user", "content": content} | ({"sent_at": at} if at else {})


ROWS = [
    user("hello", "2026-03-28T22:59:00+00:00"),
    {"role": "assistant", "content": "hi"},
    user("soon after", "2026-03-29T00:59:00+00:00"),
    user("in summer", "2026-03-29T07:29:00+00:00"),
    user([{"type": "text", "text": "much later"}], "2026-04-02T07:29:59+00:00"),
    user("unknown", None),
]


def test_each_message_is_told_with_its_time_and_long_gaps() -> None:
    told, given = times.tell(ROWS, ROWS[-2], BERLIN)
    assert [row["content"] for row in told] == [
        "[Sat 2026-03-28 23:59 +01:00] hello",
        "hi",
        "[Sun 2026-03-29 01:59 +01:00] soon after",
        "[Sun 2026-03-29 09:29 +02:00, 6h 30m later] in summer",
        [{"type": "text", "text": "[Thu 2026-04-02 09:29 +02:00, 4 days later]"}, *ROWS[4]["content"]],
        "unknown",
    ]
    assert given is told[-2]


def test_what_is_told_of_a_message_does_not_change_with_what_follows() -> None:
    whole, _ = times.tell(ROWS, ROWS[-1], BERLIN)
    for end in range(1, len(ROWS)):
        told, given = times.tell(ROWS[:end], ROWS[end - 1], BERLIN)
        assert told == whole[:end]
        assert given == told[-1]


def test_message_that_is_not_among_the_rows_has_its_time() -> None:
    _, given = times.tell([], ROWS[0], UTC)
    assert given["content"] == "[Sat 2026-03-28 22:59 +00:00] hello"


def test_rows_without_times_stay_as_they_are() -> None:
    rows = [user("hello", None), user("strange", "yesterday"), user("naive", "2026-01-01T00:00:00")]
    assert times.tell(rows, rows[0], UTC) == (rows, rows[0])
