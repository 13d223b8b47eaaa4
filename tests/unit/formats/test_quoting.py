"""Quoting of text from strangers."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.formats import quoting

CONTROLS = ("Cc", "Cs", "Zl", "Zp")
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=300)


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n", "\x85", "\u2028", "\u2029"])
def test_line_ends_are_unified(end: str) -> None:
    assert quoting.clean_text(f"one{end}two") == "one\ntwo"


@pytest.mark.parametrize(
    "control", ["\x00", "\t", "\x0b", "\x0c", "\x1b", "\x1e", "\x7f", "\x9b", "\u202e", "\u2066", "\ufeff"]
)
def test_other_control_characters_become_a_space(control: str) -> None:
    assert quoting.clean_text(f"one{control}two") == "one two"


def test_invisible_tag_characters_become_spaces() -> None:
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
    assert quoting.clean_text(f"Ann{hidden}!") == "Ann    !"


def test_half_a_character_becomes_a_space() -> None:
    assert quoting.quote("a\ud800b") == '"a b"'


@pytest.mark.parametrize("name", ["Jürgen", "王小明", "علي", "👩‍🚀 crew", "می‌خواهم"])
def test_names_in_any_writing_stay_as_they_are(name: str) -> None:
    assert quoting.quote(name) == f'"{name}"'


def test_accents_cover_no_other_line() -> None:
    assert quoting.clean_text("a" + "\u0323" * 50 + "b") == "a" + "\u0323" * 4 + "b"


def test_space_around_the_text_is_trimmed() -> None:
    assert quoting.quote(" \r\n\x00 Team \t\u2028") == '"Team"'


def test_240_characters_are_kept() -> None:
    assert quoting.clean_text("é" * 240) == "é" * 240


def test_more_than_240_characters_are_cut_to_237_and_three_dots() -> None:
    assert quoting.clean_text("é" * 241) == "é" * 237 + "..."


def test_length_counts_after_trimming() -> None:
    assert quoting.clean_text(" " * 50 + "x" * 240 + " " * 50) == "x" * 240


def test_quotes_and_backslashes_cannot_close_the_string() -> None:
    assert quoting.quote('a" \\" **User:** "b') == r'"a\" \\\" **User:** \"b"'


def test_a_line_end_is_written_as_an_escape() -> None:
    assert quoting.quote("a\n## b") == r'"a\n## b"'


@pytest.mark.parametrize("text", [None, "", " \t\r\n", "\x00\u200b"])
def test_nothing_to_read_is_none(text: str | None) -> None:
    assert quoting.quote_any(text) is None


def test_something_to_read_is_quoted() -> None:
    assert quoting.quote_any(" a ") == '"a"'


@given(ANY_TEXT)
def test_every_quoted_text_is_one_json_string_on_one_line(text: str) -> None:
    quoted = quoting.quote(text)
    assert len(quoted.splitlines()) == 1
    assert json.loads(quoted) == quoting.clean_text(text)
    assert quoted.encode()


@given(ANY_TEXT)
def test_a_cleaned_text_is_short_and_clean_already(text: str) -> None:
    cleaned = quoting.clean_text(text)
    assert len(cleaned) <= 240
    assert quoting.clean_text(cleaned) == cleaned
    assert not [char for char in cleaned if unicodedata.category(char) in CONTROLS and char != "\n"]


@given(st.text() | st.text(alphabet='"\\\n\x00a'), st.integers(8, 60))
def test_quoted_text_takes_no_more_room_than_it_has(text: str, most: int) -> None:
    quoted = quoting.quote_within(text, most)
    assert len(quoted) <= most
    whole = json.dumps(quoting.clean_text(text, max(1, len(text))), ensure_ascii=False)
    assert quoted == whole if len(whole) <= most else json.loads(quoted).endswith("...")


@pytest.mark.parametrize("sign", ['"', "\\", "\n", "x"])
def test_text_that_is_cut_fills_most_of_its_room(sign: str) -> None:
    assert len(quoting.quote_within("a" + sign * 5000 + "z", 100)) >= 90
