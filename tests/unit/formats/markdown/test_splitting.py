"""Long texts in pieces."""

import random
import re
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.formats.markdown import chat_html, elements, seams
from frontdesk.formats.markdown.elements import Element, Node
from frontdesk.formats.markdown.splitting import first_piece, split
from frontdesk.model.chats import TextUnit
from tests import counts

BOTH = pytest.mark.parametrize("is_markdown", [True, False], ids=["markdown", "plain"])


@BOTH
def test_short_text_stays_whole(is_markdown: bool) -> None:
    assert split("hello", 5, is_markdown=is_markdown) == ["hello"]
    assert split("hello" * 1000, None, is_markdown=is_markdown) == ["hello" * 1000]
    assert split(" a\r\n", 5, is_markdown=is_markdown) == [" a\r\n"]


@BOTH
def test_paragraphs_are_parted_before_lines_and_lines_before_words(is_markdown: bool) -> None:
    assert split("aa aaaa\n\nbb\nbb cc", 13, is_markdown=is_markdown) == ["aa aaaa", "bb\nbb cc"]
    assert split("aa aa\nbb b cc", 10, is_markdown=is_markdown) == ["aa aa", "bb b cc"]
    assert split("aaaa bbbb", 6, is_markdown=is_markdown) == ["aaaa", "bbbb"]


@BOTH
def test_text_without_any_place_to_part_is_cut(is_markdown: bool) -> None:
    assert split("abcdefgh", 3, is_markdown=is_markdown) == ["abc", "def", "gh"]


@BOTH
@given(st.text(max_size=400), st.integers(min_value=1, max_value=50), st.sampled_from(TextUnit))
def test_nothing_but_white_space_is_lost_and_no_piece_is_too_long(
    is_markdown: bool, text: str, limit: int, unit: TextUnit
) -> None:
    text, limit = text.replace("`", "'").replace("~", "-").replace("|", "!").replace(">", ")"), max(limit, 4)
    pieces = split(text, limit, unit, is_markdown=is_markdown)
    assert all(unit.length(piece) <= limit for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


@BOTH
def test_what_people_see_as_one_character_is_not_parted(is_markdown: bool) -> None:
    family, flag, accent = "👨‍👩‍👧‍👦", "🇩🇪", "e\u0301"
    text = f"{family}{flag}{accent}" * 40
    for unit in TextUnit:
        pieces = split(text, 60, unit, is_markdown=is_markdown)
        assert all(unit.length(piece) <= 60 for piece in pieces)
        assert "".join(pieces) == text
        assert re.fullmatch(f"({family}|{flag}|{accent}| )+", " ".join(pieces))


def test_units_are_those_of_the_platform() -> None:
    text = ("😀é " * 10).strip()
    lengths = {unit: [unit.length(piece) for piece in split(text, 12, unit)] for unit in TextUnit}
    assert lengths == {
        TextUnit.CHARACTERS: [11, 11, 5],
        TextUnit.UTF16: [11, 11, 11, 3],
        TextUnit.BYTES: [6] * 10,
    }


def test_block_of_code_that_fits_into_a_piece_is_not_parted() -> None:
    code = "```py\n" + "x = 1\n" * 10 + "```"
    assert split(f"Look here:\n\n{code}\n\nThat was it.", 75) == ["Look here:", code, "That was it."]


def test_longer_one_is_closed_and_opened_again_as_it_began() -> None:
    code = "".join(f"    line {number}\n" for number in range(10))
    pieces = split(f"Look:\n\n````py title\n{code}````\nEnd.", 80)
    assert (
        pieces[0] == "Look:\n\n````py title\n    line 0\n    line 1\n    line 2\n    line 3\n    line 4\n````"
    )
    assert pieces[1].startswith("````py title\n    line 5\n")
    assert pieces[-1].endswith("line 9\n````\nEnd.")
    assert all(piece.count("````") == 2 for piece in pieces)


@pytest.mark.parametrize("lead", ["- ", "1. ", "> "])
def test_code_in_lists_and_quotes_stays_code(lead: str) -> None:
    after = lead if ">" in lead else " " * len(lead)
    lines = [f"{lead}```", *[f"{after}*line {number}*" for number in range(12)], f"{after}```", f"{lead}end"]
    pieces = split("\n".join(lines), 70)
    assert len(pieces) > 2
    seen = [line for piece in pieces for line in code_lines(elements.parse(piece))]
    assert seen == [f"*line {number}*" for number in range(12)]


def test_line_of_code_without_any_space_stays_code() -> None:
    pieces = split(f"```\n{'x' * 200}\n```", 50)
    assert "".join(line for piece in pieces for line in code_lines(elements.parse(piece))) == "x" * 200
    assert all(re.fullmatch(r"```\nx+\n```", piece) for piece in pieces)


def test_head_of_a_table_is_repeated() -> None:
    rows = "".join(f"| {number} | some value |\n" for number in range(9))
    pieces = split(f"| a | b |\n|---|---|\n{rows}", 80)
    assert len(pieces) > 2
    assert all(piece.startswith("| a | b |\n|---|---|\n| ") for piece in pieces)


def test_link_and_code_in_a_line_are_in_one_piece() -> None:
    for place in range(30, 60):
        text = (
            "word " * (place // 5)
            + "[a name with spaces](https://example.com/path) `code with spaces` "
            + "end " * 9
        )
        pieces = split(text, 60)
        assert sum("[a name with spaces](https://example.com/path)" in piece for piece in pieces) == 1
        assert sum("`code with spaces`" in piece for piece in pieces) == 1


def test_code_in_a_line_begins_where_its_signs_do() -> None:
    """Whoever looks behind each of many signs looks for a minute."""
    for text, code in (
        ("``x`", []),
        ("\\``x`", ["`x`"]),
        ("``x` y``", ["``x` y``"]),
        ("`a` ``b``", ["`a`", "``b``"]),
    ):
        assert [found["whole"] for found in seams.UNBROKEN.finditer(text) if found["whole"]] == code


def test_heading_stays_with_what_is_under_it() -> None:
    assert split(f"{'a ' * 20}\n\n## Title\n\n{'b ' * 20}", 60) == [
        ("a " * 20).strip(),
        f"## Title\n\n{'b ' * 20}",
    ]


def test_part_of_a_list_is_no_code_because_it_was_indented() -> None:
    items = "\n".join(f"        - inner *{number}*" for number in range(9))
    pieces = split(f"- a\n    - b\n{items}\n    - c", 70)
    assert len(pieces) > 2
    assert not any("<pre>" in chat_html.render(piece) for piece in pieces)


def test_first_piece_is_the_one_that_the_whole_text_begins_with() -> None:
    text = "# Title\n\n" + "Some *words* and [a link](https://a.b/c).\n" * 9 + "```\n" + "code\n" * 99
    assert first_piece(text, 100) == split(text, 100)[0] == first_piece(text[:450], 100)


def code_lines(node: Node) -> Iterator[str]:
    if node.element is Element.CODE_BLOCK:
        yield from (line for line in node.text.split("\n") if line.strip())
    for child in node.children:
        yield from code_lines(child)


def links(node: Node) -> Iterator[tuple[str, str]]:
    if node.element is Element.LINK:
        yield elements.text_of(node), node.address
    for child in node.children:
        yield from links(child)


def words(node: Node) -> str:
    """All that is said outside of blocks of code."""
    if node.element is Element.CODE_BLOCK:
        return ""
    return node.text + "".join(map(words, node.children))


class Author:
    """Writes texts as agents do."""

    def __init__(self, chance: random.Random) -> None:
        self._chance, self._number = chance, 0

    def word(self) -> str:
        self._number += 1
        return self._chance.choice(
            (f"w{self._number}", "and", f"é{self._number}", f"😀{self._number}", "שלום", "漢字")
        )

    def some(self, most: int, make: Callable[[], str], between: str) -> str:
        return between.join(make() for _ in range(self._chance.randrange(1, most + 1)))

    def phrase(self) -> str:
        said = self.some(4, self.word, " ")
        return self._chance.choice(
            (
                said,
                said,
                said,
                f"**{said}**",
                f"*{said}*",
                f"`{said}`",
                f"[{said}](https://a.b/{self._number})",
            )
        )

    def line(self) -> str:
        return self.some(6, self.phrase, " ")

    def code(self) -> str:
        lines = self.some(12, lambda: " " * self._chance.randrange(6) + "c*_`[" + self.word(), "\n")
        return f"```{self._chance.choice(('', 'py', 'c++ x'))}\n{lines}\n```"

    def table(self) -> str:
        rows = self.some(6, lambda: f"| {self.word()} | {self.word()} |", "\n")
        return f"| a | b |\n|---|---|\n{rows}"

    def held(self, lead: str) -> str:
        after = lead if ">" in lead else " " * len(lead)
        inner = self._chance.choice((self.line, self.line, self.code))()
        return lead + inner.replace("\n", f"\n{after}")

    def block(self) -> str:
        lead = self._chance.choice(("- ", "1. ", "> "))
        return self._chance.choice(
            (
                self.line,
                lambda: self.some(4, self.line, "\n"),
                lambda: "## " + self.some(4, self.word, " "),
                self.code,
                self.table,
                lambda: self.some(4, lambda: self.held(lead), "\n"),
            )
        )()

    def text(self) -> str:
        return self.some(8, self.block, "\n\n")


@pytest.mark.prove
def test_pieces_say_what_the_text_says(tell: counts.Tell) -> None:
    """Code is code in the pieces, links lead where they led, and no word is added or lost but table heads."""
    tries = counts.count(300, 100_000)
    for seed in range(tries):
        chance = random.Random(seed)
        text, unit = Author(chance).text(), chance.choice(list(TextUnit))
        limit = chance.randrange(150, 400)
        pieces = split(text, limit, unit)
        assert all(unit.length(piece) <= limit for piece in pieces), seed
        whole, parts = elements.parse(text), [elements.parse(piece) for piece in pieces]
        assert [each for part in parts for each in links(part)] == list(links(whole)), seed
        assert [each for part in parts for each in code_lines(part)] == list(code_lines(whole)), seed
        said = "".join("".join(map(words, parts)).split())
        assert re.sub("[ab*]", "", said) == re.sub("[ab*]", "", "".join(words(whole).split())), seed
        assert first_piece(text, limit, unit) == pieces[0]
    tell(counts.TRIED, tries)
