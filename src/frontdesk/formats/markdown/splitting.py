"""A text in pieces: each is a message that a platform takes, and that reads well alone."""

from collections.abc import Iterator

from wcwidth import grapheme_boundary_before

from frontdesk.formats.markdown import elements, seams
from frontdesk.formats.markdown.seams import Seam
from frontdesk.model.chats import TextUnit

LEAST_PART = 2
"""A place to part at is looked for in the last half of a piece."""
BEYOND = 200
"""How many characters are looked at besides two pieces: whether what begins in the first ends in time."""


def split(
    text: str, limit: int | None, unit: TextUnit = TextUnit.CHARACTERS, *, is_markdown: bool = True
) -> list[str]:
    """Pieces that are at most ``limit`` long, parted at the best place there is.

    Of Markdown, a block of code that is too long for one piece is closed and opened again in the next, and
    the head of a table is repeated; a shorter block, a link and code in a line are never parted. Only white
    space between two pieces is lost.
    """
    if limit is None or unit.fits(text, limit):
        return [text]
    return list(pieces(text, limit, unit, is_markdown=is_markdown))


def first_piece(text: str, limit: int | None, unit: TextUnit = TextUnit.CHARACTERS) -> str:
    """The first of a Markdown text's pieces; as soon as there are three, it no longer changes."""
    return next(pieces(text, limit, unit, is_markdown=True))


def pieces(text: str, limit: int | None, unit: TextUnit, *, is_markdown: bool) -> Iterator[str]:
    """Each takes a time that does not grow with the text."""
    if limit is None or unit.fits(text, limit):
        yield text
        return
    rest = elements.LINE_END.sub("\n", text) if is_markdown else text
    while not unit.fits(rest, limit):
        piece, left = _part(rest, limit, unit, is_markdown=is_markdown)
        if piece:
            yield piece
        rest = left
    if rest:
        yield rest


def _part(text: str, limit: int, unit: TextUnit, *, is_markdown: bool) -> tuple[str, str]:
    """The first piece and the rest."""
    room = _room(text, limit, unit)
    least = room // LEAST_PART
    if is_markdown:
        for seam in seams.find(text[: 2 * room + BEYOND], room, least, lambda part: unit.fits(part, limit)):
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
