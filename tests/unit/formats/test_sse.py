"""Server-sent events, however they are cut into pieces."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import errors
from frontdesk.formats import sse

LINES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=20)
EVENTS = st.lists(st.lists(LINES, min_size=1, max_size=3), max_size=5)


def read(*pieces: bytes, **bounds: int) -> list[str]:
    reader = sse.SseReader("the endpoint", **bounds)
    return [data for piece in pieces for data in reader.feed(piece)]


@given(events=EVENTS, end=st.sampled_from(["\n", "\r", "\r\n"]), cuts=st.lists(st.integers(0, 400)))
def test_data_is_the_same_wherever_the_stream_is_cut(
    events: list[list[str]], end: str, cuts: list[int]
) -> None:
    written = "".join("".join(f"data: {line}{end}" for line in lines) + end for lines in events).encode()
    places = [0, *sorted(min(cut, len(written)) for cut in cuts), len(written)]
    pieces = [written[start:stop] for start, stop in itertools.pairwise(places)]
    assert read(*pieces) == ["\n".join(lines) for lines in events]


def test_other_fields_and_comments_are_passed_over() -> None:
    assert read(b": ping\n\nevent: x\nid: 7\nretry: 9\ndata\n\ndata:a\ndata: b\n\nother\n\n") == ["", "a\nb"]


def test_byte_order_mark_is_no_part_of_the_first_line() -> None:
    assert read(b"\xef\xbb\xbfdata: a\n\n") == ["a"]


def test_event_that_the_stream_ends_in_is_not_given() -> None:
    assert read(b"data: a\n\ndata: b\n") == ["a"]


def test_long_line_is_refused_before_its_end_has_come() -> None:
    with pytest.raises(errors.BrokenStream, match="a line is longer than 10 bytes"):
        read(b"data: ", b"12345", max_line_bytes=10)


def test_long_stream_is_refused() -> None:
    with pytest.raises(errors.BrokenStream, match="longer than 20 bytes"):
        read(*[b"data: a\n\n"] * 3, max_stream_bytes=20)


def test_text_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(errors.BrokenStream, match="UTF-8"):
        read(b"data: \xff\n\n")
