"""Where a text can be parted, above all one in Markdown."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import cast

import msgspec
from markdown_it.token import Token
from msgspec.structs import replace
from wcwidth import grapheme_boundary_before

from frontdesk.formats.markdown import elements
from frontdesk.model.chats import TextUnit

LEAST_PART = 2
"""A place to part at is looked for in the last half of a piece."""
BEYOND = 200
"""How many characters are looked at besides two pieces: whether what begins in the first ends in time."""
MOST_REPEATED_CHARACTERS = 200
"""The longest beginning of a block that is repeated."""
TABLE_HEAD_LINES = 2
MOST_TRIED = 20
"""Of places of one kind, the last ones."""
BLANK_LINES = re.compile(r"(?:[ \t]*\n)+")
QUOTE_SIGNS = re.compile(r"(?:[ \t]{0,3}>[ \t]?)+")
INDENT = re.compile(r"[ \t]*")
NO_SPACE = re.compile(r"\S")
NO_QUOTE_SIGN = re.compile(r"[^>\s]")
SPACE = re.compile(r"\s")
UNBROKEN = re.compile(
    r"""
    \\. | (?P<whole>
        (?<!(?<!\\)`)(?P<ticks>`++).+?(?<!`)(?P=ticks)(?!`)
        | <[a-z][a-z0-9+.-]*+:[^<>\s]*+>
        | !?\[(?:\\.|`[^`\n]*+`|[^\[\]\\]|\[(?:\\.|[^\[\]\\])*+\](?:\([^()\s]*+\))?)*+\]
          \((?:[^()\n]|\([^()\n]*+\))*+\)
        | https?://[^\s<>]++
    )
    """,
    re.X | re.S | re.I,
)
"""Code in a line, links and addresses."""
MOST_EMPHASISED = 200
EMPHASISED = re.compile(
    rf"(?<![\\\w*_~])(\*{{1,3}}|_{{1,3}}|~~)(?=[^\s*_~]).{{1,{MOST_EMPHASISED}}}?(?<=\S)\1(?![\w*_~])"
)
"""In one line, and not too long."""

Fits = Callable[[str], bool]


class Seam(msgspec.Struct, frozen=True, kw_only=True):
    """A place where a text is parted, and what is added there."""

    end: int
    """How much of the text is in the piece."""
    closing: str = ""
    """What ends the piece."""
    opening: str = ""
    """What the rest begins with."""
    indent: str = ""
    """What the lines of the rest begin with and lose."""
    is_code: bool = False
    """The spaces at the beginning of the rest mean something."""

    def part(self, text: str) -> tuple[str, str]:
        piece, rest = text[: self.end].rstrip() + self.closing, text[self.end :]
        if self.is_code:
            rest = rest.removeprefix("\n")
        elif self.indent:
            rest = BLANK_LINES.sub("", rest, count=1) if BLANK_LINES.match(rest) else rest
        else:
            rest = rest.lstrip()
        if not rest.strip():
            return piece, ""
        return piece, self.opening + (_dedented(rest, self.indent) if self.indent else rest)


def _dedented(text: str, indent: str) -> str:
    """Without the indent of the lines that have it, up to the first that has less."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if line.startswith(indent):
            lines[number] = line[len(indent) :]
        elif line.strip() and number:
            break
    return "\n".join(lines)


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a text that is better not parted."""

    start: int
    end: int
    seam: Seam | None = None
    """How it is parted, behind that place, if it has to be. None: not at all."""


def part(text: str, limit: int, unit: TextUnit, *, is_markdown: bool) -> tuple[str, str]:
    """The first piece and the rest."""
    room = _room(text, limit, unit)
    least = room // LEAST_PART
    if is_markdown:
        for seam in _find(text[: 2 * room + BEYOND], room, least, lambda each: unit.fits(each, limit)):
            piece, left = seam.part(text)
            if unit.fits(piece, limit) and len(left) < len(text):
                return piece, left
    return Seam(end=_plain_end(text, room, least)).part(text)


def _room(text: str, limit: int, unit: TextUnit) -> int:
    """How many characters of a text that is too long fit; one at least."""
    fitting, too_many = 1, min(len(text), limit) + 1
    while too_many - fitting > 1:
        middle = (fitting + too_many) // 2
        if unit.length(text[:middle]) <= limit:
            fitting = middle
        else:
            too_many = middle
    return fitting


def _plain_end(text: str, room: int, least: int) -> int:
    """A paragraph's end, else a line's, else a word's, not too early; else wherever the room ends, if
    possible not inside what people see as one character."""
    for separator in ("\n\n", "\n", " "):
        found = text.rfind(separator, least, room + 1)
        if found > 0:
            return found
    return grapheme_boundary_before(text[: room + 1], room + 1) or room


def _find(text: str, room: int, least: int, fits: Fits) -> Iterator[Seam]:
    """The places to part a text at whose first ``room`` characters fit, the best first: before a block, else
    at the end of a line, else of a word; rather earlier than ``least`` than inside what is one thing."""
    return _Page(text, room, fits).seams(least)


class _Page:
    def __init__(self, text: str, room: int, fits: Fits) -> None:
        self._text, self._room = text, room
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        tables = elements.may_have_tables(text)
        self._tokens = elements.parser(tables=tables, blocks_alone=True).parse(text)
        self._code_lines = {
            line
            for token in self._tokens
            if token.type == "code_block" and token.map
            for line in range(*token.map)
        }
        self._blocks = list(self._find_blocks(fits))
        self._block_starts = [block.start for block in self._blocks]

    def _find_blocks(self, fits: Fits) -> Iterator[Block]:
        """In their order."""
        table_end = 0
        for token in self._tokens:
            if token.map is None or token.nesting < 0:
                continue
            start, end = (self._starts[line] for line in token.map)
            if token.type in MAKERS:
                seam = None if fits(self._text[start : end - 1]) else MAKERS[token.type](self, token)
                yield Block(start=start, end=end - 1, seam=seam)
                table_end = end if token.type == "table_open" else table_end
            elif token.type == "inline" and start >= table_end:
                for found in UNBROKEN.finditer(self._text, start, end):
                    if found["whole"] and fits(found.group()):
                        yield Block(start=found.start(), end=found.end())

    def fence(self, token: Token) -> Seam:
        """Closed, and opened again with what it began with."""
        first = cast("list[int]", token.map)[0]
        line, signs = self._lines[first], token.markup
        lead, opener = line[: line.find(signs)], line[line.find(signs) :]
        if len(opener) > MOST_REPEATED_CHARACTERS:
            opener = signs
        quoted = NO_QUOTE_SIGN.sub(" ", lead) if ">" in lead else ""
        indent = "" if quoted else NO_SPACE.sub(" ", lead)
        return Seam(
            end=self._starts[first + 1] - 1,
            closing=f"\n{quoted or indent}{signs}",
            opening=f"{quoted}{opener}\n",
            indent=indent,
            is_code=True,
        )

    def indented_code(self, token: Token) -> Seam:
        return Seam(end=self._starts[cast("list[int]", token.map)[0]], is_code=True)

    def table(self, token: Token) -> Seam:
        """With its head again."""
        first = cast("list[int]", token.map)[0]
        head = "\n".join(self._lines[first : first + TABLE_HEAD_LINES])
        short = len(head) <= MOST_REPEATED_CHARACTERS
        return Seam(end=self._starts[first] + len(head), opening=f"{head}\n" if short else "")

    def seams(self, least: int) -> Iterator[Seam]:
        for earliest in (max(least, 1), 1):
            for places in (
                self._beginnings,
                self._line_ends,
                self._plain_spaces,
                self._spaces,
                self._characters,
            ):
                yield from self._seams_at(places(), earliest)

    def _seams_at(self, places: Sequence[int], earliest: int) -> Iterator[Seam]:
        fitting = sorted({place for place in places if earliest <= place <= self._room}, reverse=True)
        yield from islice(filter(None, map(self._seam, fitting)), MOST_TRIED)

    def _line_ends(self) -> list[int]:
        return [start - 1 for start in self._starts[1:]]

    def _spaces(self) -> list[int]:
        return [found.start() for found in SPACE.finditer(self._text, 0, self._room + 1)]

    def _plain_spaces(self) -> list[int]:
        """Those where nothing is emphasised."""
        marked = [found.span() for found in EMPHASISED.finditer(self._text, 0, self._room + MOST_EMPHASISED)]
        return [place for place in self._spaces() if not _is_inside(marked, place)]

    def _characters(self) -> list[int]:
        """The last places that are not inside of what people see as one character."""
        places: list[int] = []
        place = self._room + 1
        while place > 1 and len(places) < MOST_TRIED:
            place = grapheme_boundary_before(self._text[: self._room + 1], place)
            places.append(place)
        return places

    def _beginnings(self) -> list[int]:
        """Where blocks begin, but for what stands right under a heading."""
        found, under_heading = [], False
        for token in self._tokens:
            if token.nesting >= 0 and token.map and token.type != "inline":
                if not under_heading:
                    found.append(self._starts[token.map[0]])
                under_heading = token.type == "heading_open"
        return found

    def _seam(self, place: int) -> Seam | None:
        number = bisect_left(self._block_starts, place) - 1
        if number >= 0 and place < self._blocks[number].end:
            return self._inside(self._blocks[number].seam, place)
        line = bisect_right(self._starts, place) - 1
        if self._text[place : place + 1] != "\n" and place != self._starts[line]:
            signs = QUOTE_SIGNS.match(self._lines[line])
            return Seam(end=place, opening=signs.group() if signs else "")
        blank = BLANK_LINES.match(self._text, place)
        start = blank.end() if blank else place
        if bisect_right(self._starts, start) - 1 in self._code_lines:
            return Seam(end=start, is_code=True)
        indent = INDENT.match(self._text, start)
        return Seam(end=place, indent=indent.group() if indent else "")

    def _inside(self, seam: Seam | None, place: int) -> Seam | None:
        """Parting a block there."""
        if seam is None or place <= seam.end:
            return None
        if self._text[place : place + 1] == "\n":
            return replace(seam, end=place)
        if not seam.is_code:
            return None
        line = self._lines[bisect_right(self._starts, place) - 1]
        lead = QUOTE_SIGNS.match(line) or (None if seam.closing else INDENT.match(line))
        return replace(seam, end=place, opening=seam.opening + (lead.group() if lead else ""), indent="")


MAKERS: dict[str, Callable[[_Page, Token], Seam]] = {
    "fence": _Page.fence,
    "code_block": _Page.indented_code,
    "table_open": _Page.table,
}


def _is_inside(spans: Sequence[tuple[int, int]], place: int) -> bool:
    number = bisect_left(spans, (place, 0)) - 1
    return number >= 0 and place < spans[number][1]
