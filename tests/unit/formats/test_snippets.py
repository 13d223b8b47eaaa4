"""The part of a text that is shown for a hit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.formats import words
from frontdesk.formats.snippets import (
    CLOSE,
    CUT,
    OPEN,
    WIDTH_CHARACTERS,
    WORD_CHARACTERS,
    find_matches,
    snippet,
)
from frontdesk.model.searches import Term

WORDS = st.lists(
    st.sampled_from(["foo", "Bar", "café", "天气预报", "👍", "foobar", "x—y", "(z)"]), min_size=1
)


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("Hello big world", "world", "Hello big «world»"),
        ("Hello big world", "hello WORLD", "«Hello» big «world»"),
        ("Hello big world", '"big world"', "Hello «big world»"),
        ("Hello big,\n\nworld", '"big world"', "Hello «big, world»"),
        ("concatenate the cat", "cat", "concatenate the «cat»"),
        ("concatenate the cat", "con*", "«concatenate» the cat"),
        ("Le Café du café", "cafe", "Le «Café» du «café»"),
        ("Le cafe\u0301", "café", "Le «caf\u00e9»"),
        ("今天天气很好", "天气很", "今天«天气很»好"),
        ("今天天气很好", "气", "今天天«气»很好"),
        ("well 👍🏽 done", "👍", "well «👍🏽» done"),
        ("don’t stop", "don't", "«don’t» stop"),
        ("İstanbul ve Ankara", "ankara", "İstanbul ve «Ankara»"),
        ("nothing here", "absent", "nothing here"),
        ("", "absent", ""),
    ],
)
def test_matches_are_marked(text: str, query: str, expected: str) -> None:
    assert snippet(text, words.parse(query)) == expected


def test_long_text_is_cut_around_the_first_match() -> None:
    text = "before " * 100 + "needle " + "after " * 100
    shown = snippet(text, words.parse("needle"))
    assert shown.startswith(f"{CUT}before ")
    assert "before «needle» after" in shown
    assert shown.endswith(f"after{CUT}")


def test_match_at_the_end_of_a_long_unspaced_text_is_shown() -> None:
    shown = snippet("很" * 1_000 + "天气", words.parse("天气"))
    assert shown.endswith("很«天气»")


@given(st.text(), WORDS)
def test_snippet_is_short(text: str, query: list[str]) -> None:
    shown = snippet(text * 50, words.parse(" ".join(query)))
    marks = shown.count(OPEN) + shown.count(CLOSE)
    assert len(shown) - marks <= WIDTH_CHARACTERS + 2 * WORD_CHARACTERS + 2


@given(WORDS, st.data())
def test_word_of_a_text_is_marked_in_its_snippet(parts: list[str], data: st.DataObject) -> None:
    text = " ".join(parts * 3)
    wanted = data.draw(st.sampled_from([part for part in parts if words.split(part)]))
    shown = snippet(text, words.parse(wanted))
    assert OPEN in shown
    assert shown.count(OPEN) == shown.count(CLOSE)


@given(WORDS, WORDS)
def test_places_in_ascii_texts_are_those_of_their_spans(parts: list[str], query: list[str]) -> None:
    text = " ".join(parts).encode("ascii", "replace").decode()
    terms = [term for term in words.parse(" ".join(query)) if len(term.words) == 1]
    placed = [
        (start, end) for word, start, end in words.spans(text) if (word,) in {term.words for term in terms}
    ]
    assert find_matches(text, [Term(term.words) for term in terms]) == placed
