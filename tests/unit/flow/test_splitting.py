"""Long texts in pieces."""

from hypothesis import given
from hypothesis import strategies as st

from frontdesk.flow.parts import split_text


def test_short_text_stays_whole() -> None:
    assert split_text("hello", 5) == ["hello"]
    assert split_text("hello" * 1000, None) == ["hello" * 1000]


def test_paragraphs_are_parted_before_lines_and_lines_before_words() -> None:
    assert split_text("aa aa\n\nbb bb\ncc", 12) == ["aa aa", "bb bb\ncc"]
    assert split_text("aa aa\nbb bb cc", 10) == ["aa aa", "bb bb cc"]
    assert split_text("aaaa bbbb", 6) == ["aaaa", "bbbb"]


def test_text_without_any_place_to_part_is_cut() -> None:
    assert split_text("abcdefgh", 3) == ["abc", "def", "gh"]


@given(st.text(max_size=400), st.integers(min_value=1, max_value=50))
def test_nothing_but_white_space_is_lost_and_no_piece_is_too_long(text: str, limit: int) -> None:
    pieces = split_text(text, limit)
    assert all(len(piece) <= limit for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())
