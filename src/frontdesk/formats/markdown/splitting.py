"""A text in pieces: each is a message that a platform takes, and that reads well alone."""

from collections.abc import Iterator

from frontdesk.model.chats import TextUnit


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
    from frontdesk.formats.markdown import elements, seams  # noqa: PLC0415 - slow to load, for long texts

    rest = elements.LINE_END.sub("\n", text) if is_markdown else text
    while not unit.fits(rest, limit):
        piece, left = seams.part(rest, limit, unit, is_markdown=is_markdown)
        if piece:
            yield piece
        rest = left
    if rest:
        yield rest
