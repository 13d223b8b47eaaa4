"""Titles: what can be one, and when two are the same."""

import unicodedata
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from frontdesk import errors
from frontdesk.model.titles import MAX_TITLE, clean_title, title_key


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [("Trip to Rome", "Trip to Rome"), ("  a \t b\n", "a b"), ("\u3000旅行\u3000", "旅行"), ("é", "é")],
)
def test_white_space_is_unified(raw: str, cleaned: str) -> None:
    assert clean_title(raw) == cleaned


@pytest.mark.parametrize(
    "bad", ["", " \n", "a" * (MAX_TITLE + 1), "a\x00b", "a\x1bb", "\ud800", None, 5, b"a"]
)
def test_what_cannot_be_a_title_is_refused(bad: Any) -> None:
    with pytest.raises(errors.InvalidTitle):
        clean_title(bad)


def test_longest_title_is_allowed() -> None:
    assert clean_title("a" * MAX_TITLE) == "a" * MAX_TITLE


@given(st.text(st.characters(), min_size=1, max_size=120))
def test_cleaned_title_can_be_stored_and_cleaned_again(text: str) -> None:
    try:
        cleaned = clean_title(text)
    except errors.InvalidTitle:
        return
    cleaned.encode()
    assert "\x00" not in cleaned
    assert clean_title(cleaned) == cleaned


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('"Rome"', "rome"),
        ("“Rome”", "'ROME'"),
        ("\u202eRo\u200bme\ufe0f", "rome"),
        ("Rome", "rome"),
        ("STRASSE", "straße"),
        ("ﬁle", "file"),
        ("e\u0301", "é"),
        ("a  b", "A b"),
        ("ǅ", "ǆ"),
    ],
)
def test_titles_that_look_alike_are_the_same(one: str, other: str) -> None:
    assert title_key(one) == title_key(other)


def test_different_titles_are_different() -> None:
    assert len({title_key(title) for title in ("rome", "roma", "rome 2", "r ome")}) == 4


@given(st.text())
@example("\u03d3")
@example("\u1fa3\u031e\u0308")
def test_key_is_stable_and_does_not_depend_on_the_normal_form(text: str) -> None:
    key = title_key(text)
    assert title_key(key) == key
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert title_key(unicodedata.normalize(form, text)) == key
