"""Markdown as a terminal shows it. No character of an answer commands the terminal, and none is hidden."""

import itertools
from typing import ClassVar, TextIO

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich import markdown
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment, Segments
from rich.theme import Theme

from frontdesk.cli import output

MAX_BLOCK_CHARACTERS = 20_000
"""A block that is longer is shown in pieces: drawing takes longer the longer it is."""
CODE_THEME = "ansi_dark"
TAB_COLUMNS = 4

# HTML, pictures and the addresses of links would be left out: they are shown as they are written.
_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
_PARSER.disable(["image", "reference"])


class _Heading(markdown.Heading):
    """On the left, and without a frame."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Markdown(markdown.Markdown):
    elements: ClassVar[dict[str, type[markdown.MarkdownElement]]] = {
        **markdown.Markdown.elements,
        "heading_open": _Heading,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", code_theme=CODE_THEME, hyperlinks=False)
        self.parsed = _PARSER.parse(text)
        for token in self.parsed:
            _keep_lines(token)


def _keep_lines(token: Token) -> None:
    """Lines end where they were ended."""
    for child in token.children or ():
        if child.type == "softbreak":
            child.type = "hardbreak"


class Painter:
    """Gives text the form in which the terminal shows it."""

    def __init__(self, file: TextIO, *, colours: bool) -> None:
        self._console = Console(
            file=file,
            force_terminal=True,
            color_system="standard" if colours else None,
            legacy_windows=False,
            markup=False,
            emoji=False,
            highlight=False,
            theme=Theme({"markdown.code": "cyan", "markdown.table.border": "dim"}),
        )

    def paint(self, text: str, width: int) -> str:
        """Markdown, ending with a line end."""
        shown = output.printable(text.replace("\r\n", "\n").expandtabs(TAB_COLUMNS))
        options = self._console.options.update(width=max(width, 1), height=None)
        # What Markdown writes in other ways than plainly, such as &#x202e;, is only seen now.
        segments = (
            Segment(output.printable(written), style)
            for written, style, control in self._console.render(_Markdown(shown), options)
            if not control
        )
        lines = [_trimmed(line) for line in Segment.split_lines(segments)]
        drawn_lines = [[*line, Segment.line()] for line in _between_empty(lines)]
        with self._console.capture() as capture:
            self._console.print(Segments(itertools.chain(*drawn_lines)), end="", soft_wrap=True)
        return capture.get()


def _trimmed(line: list[Segment]) -> list[Segment]:
    """Without the spaces that fill it up."""
    while line and not line[-1].text.strip():
        line = line[:-1]
    return [*line[:-1], Segment(line[-1].text.rstrip(), line[-1].style)] if line else []


def _between_empty(lines: list[list[Segment]]) -> list[list[Segment]]:
    full = [number for number, line in enumerate(lines) if line]
    return lines[full[0] : full[-1] + 1] if full else []


def split_finished(text: str) -> tuple[list[str], str]:
    """The blocks that nothing written later can change, and the rest."""
    lines = text.splitlines(keepends=True)
    starts = [token.map[0] for token in _PARSER.parse(text) if token.level == 0 and token.map]
    blocks = ["".join(lines[one:other]) for one, other in itertools.pairwise(starts)]
    rest = "".join(lines[starts[-1] :]) if starts else text
    if len(rest) > MAX_BLOCK_CHARACTERS:
        cut = max(rest.rfind(end, 0, MAX_BLOCK_CHARACTERS) for end in "\n ") + 1 or MAX_BLOCK_CHARACTERS
        return [*blocks, rest[:cut]], rest[cut:]
    return blocks, rest
