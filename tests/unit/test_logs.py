"""Log lines."""

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.logs import get_logger, render, request_id


def test_event_and_fields_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        get_logger("frontdesk.test").info("session_started", session="s1", replaces=None, ended=False)
    assert [record.getMessage() for record in caplog.records] == [
        "event=session_started session=s1 ended=False"
    ]


def test_request_that_is_served_is_named(caplog: pytest.LogCaptureFixture) -> None:
    before = request_id.set("r1")
    with caplog.at_level(logging.INFO):
        get_logger("frontdesk.test").info("message_accepted", turn="t1")
        get_logger("frontdesk.test").info("request_served", request="r2", status=200)
    request_id.reset(before)
    assert caplog.messages == [
        "event=message_accepted turn=t1 request=r1",
        "event=request_served request=r2 status=200",
    ]


def test_what_nobody_listens_to_is_not_written(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        get_logger("frontdesk.test").info("session_started")
    assert not caplog.records


def test_exception_carries_its_trace(caplog: pytest.LogCaptureFixture) -> None:
    try:
        json.loads("{")
    except ValueError:
        get_logger("frontdesk.test").exception("it_failed")
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None


@given(st.text(st.characters(), max_size=40))
def test_no_value_makes_a_second_line_or_a_second_field(value: str) -> None:
    line = render({"event": "seen", "name": value})
    shown = line.removeprefix("event=seen name=")
    assert len(line.splitlines()) == 1
    assert shown == value or json.loads(shown) == value
