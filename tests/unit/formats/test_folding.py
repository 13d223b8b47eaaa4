"""Lines that repeat are folded, and never so that two texts look alike."""

from hypothesis import given
from hypothesis import strategies as st

from frontdesk.formats import canonical, cards, folding
from frontdesk.formats.cards import Card


def card(script: object) -> Card:
    return cards.make(canonical.payload("run", {"script": script}), "", "bot")


def shown(script: object) -> list[str]:
    return [*map(str, card(script).lines)]


def test_empty_lines_are_counted() -> None:
    assert shown("a\n" + "\n" * 2_999 + "rm -rf /") == [
        "details:",
        "  script:",
        '    "a\\n"',
        "    [2,999 empty lines]",
        '    "rm -rf /"',
    ]


def test_line_that_repeats_is_shown_once_with_how_often() -> None:
    assert shown("a\n" * 40)[2:] == ['    "a\\n"', "    [the line above stands here 40 times]"]


def test_spaces_that_push_the_rest_out_of_sight_are_counted() -> None:
    line = f"echo hi;{' ' * 5_000}rm -rf /"
    assert shown(line)[1] == '  script: "echo hi;␣⟦5,000 times⟧rm -rf /"'
    assert shown("a" + "\u200b" * 300 + "b")[1] == '  script: "a\\u{200b}⟦300 times⟧b"'
    assert shown(" " * 5)[1] == '  script: "␣␣␣␣␣"'
    assert shown("␣⟦5,000 times⟧")[1] == '  script: "\\u{2423}\\u{27e6}5,000 times\\u{27e7}"'


def test_few_lines_are_not_folded() -> None:
    assert len(shown("a\n" * 3)) == 5


def test_text_like_ours_is_in_quotes() -> None:
    assert shown("[2,999 empty lines]\n\nx")[2] == '    "[2,999 empty lines]\\n"'
    assert not any(line.is_ours for line in card("[2,999 empty lines]\n" * 3).lines)


def test_content_that_is_folded_to_a_few_lines_is_not_long() -> None:
    assert not card("\n" * 3_000).is_long
    assert card("".join(f"{number}\n" for number in range(40))).is_long
    assert card("x" * 5_000).is_long
    assert not card("x").is_long


@given(
    st.lists(st.sampled_from(["", "a", " "]), max_size=12),
    st.lists(st.sampled_from(["", "a", " "]), max_size=12),
)
def test_texts_that_differ_are_folded_differently(one: list[str], other: list[str]) -> None:
    texts = ["\n".join(each) for each in (one, other)]
    assert (shown(texts[0]) == shown(texts[1])) == (texts[0] == texts[1])
    assert (shown(one) == shown(other)) == (one == other)


@given(st.lists(st.sampled_from(["  x", '    "\\n"', '    "a\\n"']), max_size=30))
def test_folded_lines_can_be_unfolded(lines: list[str]) -> None:
    unfolded: list[str] = []
    for line in folding.fold(lines):
        if not line.is_ours:
            unfolded.append(str(line))
        elif line.text.endswith("empty lines]"):
            unfolded += ['    "\\n"'] * int(line.text[1:].split()[0].replace(",", ""))
        else:
            unfolded += [unfolded[-1]] * (int(line.text.split()[-2].replace(",", "")) - 1)
    assert unfolded == lines
