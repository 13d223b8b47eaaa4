"""Markdown where a message is lines: what the dialects without blocks have in common."""

from collections.abc import Sequence

from wcwidth import wcswidth

from frontdesk.formats.markdown import elements
from frontdesk.formats.markdown.elements import Element, Node

WIDEST_TABLE = 80
"""In columns; the cells of a wider one are not put below each other."""

Inside = frozenset[Element]
"""What a part of a text is inside of."""
NOTHING: Inside = frozenset()


class Fixed(str):
    """Lines that stand at the left in a list, too: code would be copied with the spaces before it."""

    __slots__ = ()


class FlatDialect:
    """Text without marks; a dialect says what it writes otherwise."""

    bullet = "- "
    rule = "———"

    def render(self, text: str, limit: int | None = None) -> str:
        """The text in this dialect. It is written as it came where the reader would see nothing of it else,
        or more than ``limit`` of the dialect's units."""
        made = "\n".join(self._blocks(elements.parse(text).children, NOTHING))
        if not self.visible(made).strip() or (limit is not None and self.length(made) > limit):
            return self.text(elements.cleaned(text))
        return made

    def visible(self, made: str) -> str:
        """What a reader sees of it."""
        return made

    def length(self, made: str) -> int:
        """As the platform counts it."""
        return len(self.visible(made))

    def text(self, text: str) -> str:
        return text

    def line_start(self, text: str) -> str:
        """A paragraph, none of whose lines begins like something else."""
        return text

    def mark(self, _element: Element, inner: str, _inside: Inside, /) -> str:
        """Strong, emphasis or strike; not within the same."""
        return inner

    def code(self, text: str) -> str:
        return self.text(text)

    def code_block(self, text: str, _language: str, /) -> str:
        return self.text(text)

    def link(self, inner: str, address: str) -> str:
        shown = self.text(address)
        return inner if shown in (inner, f"mailto:{inner}") else f"{inner} ({shown})"

    def heading(self, inner: str, _level: int, /) -> str:
        return inner

    def quote(self, inner: str) -> str:
        return self.quote_within(inner)

    def quote_within(self, inner: str) -> str:
        """A quote in a quote, or where there are none."""
        return "\n".join(f"{self.text('>')} {line}" for line in inner.split("\n"))

    def table(self, rows: Sequence[Sequence[str]]) -> str:
        return self.code_block(draw_table(rows), "")

    def _blocks(self, nodes: Sequence[Node], inside: Inside) -> list[str]:
        said: list[str] = []
        before = None
        for node in nodes:
            made = self._block(node, inside)
            if not made:
                continue
            if before is not None and not (before.element is Element.PARAGRAPH and before.is_tight):
                said.append("")
            said, before = [*said, *made], node
        return said

    def _block(self, node: Node, inside: Inside) -> list[str]:
        """Its lines."""
        match node.element:
            case Element.PARAGRAPH:
                said = self.line_start(self._line(node.children, inside).strip())
                return said.split("\n") if said else []
            case Element.HEADING:
                title = self._line(node.children, inside | {Element.HEADING}).strip()
                return self.heading(title, node.number).split("\n") if title else []
            case Element.QUOTE:
                inner = "\n".join(self._blocks(node.children, inside | {Element.QUOTE}))
                quote = self.quote_within if Element.QUOTE in inside else self.quote
                return [Fixed(quote(inner))] if inner else []
            case Element.CODE_BLOCK if node.text.strip():
                return [Fixed(self.code_block(node.text.rstrip("\n"), node.language))]
            case Element.TABLE:
                cells = [[_cell(cell) for cell in row.children] for row in node.children]
                return [Fixed(self.table(cells))] if any(map(any, cells)) else []
            case Element.BULLETS | Element.NUMBERS:
                return self._list(node, inside)
            case Element.RULE:
                return [self.rule]
        return []

    def _list(self, node: Node, inside: Inside) -> list[str]:
        said: list[str] = []
        for number, item in enumerate(node.children, node.number):
            sign = self.bullet if node.element is Element.BULLETS else f"{number}. "
            lines = self._blocks(item.children, inside | {Element.ITEM}) or [""]
            if isinstance(lines[0], Fixed):
                lines.insert(0, "")
            if said and not node.is_tight:
                said.append("")
            said.append((sign + lines[0]).rstrip())
            said += [_indented(line, len(sign)) for line in lines[1:]]
        return said

    def _line(self, nodes: Sequence[Node], inside: Inside) -> str:
        return "".join(self._inline(node, inside) for node in nodes)

    def _inline(self, node: Node, inside: Inside) -> str:
        match node.element:
            case Element.TEXT:
                return self.text(node.text)
            case Element.BREAK:
                return "\n"
            case Element.CODE:
                return self.code(node.text)
            case element if element in inside:
                return self._line(node.children, inside)
            case Element.LINK:
                inner = self._line(node.children, inside | {Element.LINK})
                return self.link(inner, node.address) if inner.strip() else self.text(node.address)
            case element:
                inner = self._line(node.children, inside | {element})
                return self.mark(element, inner, inside) if inner.strip() else inner


def _indented(line: str, columns: int) -> str:
    return line if isinstance(line, Fixed) or not line else " " * columns + line


def _cell(cell: Node) -> str:
    return " ".join("".join(map(_cell_text, cell.children)).split())


def _cell_text(node: Node) -> str:
    shown = elements.text_of(node)
    named = node.element is Element.LINK and shown != node.address
    return f"{shown} ({node.address})" if named else shown


def draw_table(rows: Sequence[Sequence[str]]) -> str:
    """The rows as lines, their cells below each other unless that gets too wide."""
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    if sum(widths) + 3 * len(widths) > WIDEST_TABLE:
        return "\n".join(" | ".join(row) for row in rows)
    lines = [
        " | ".join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    lines.insert(1, "-+-".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)


def _width(text: str) -> int:
    width = wcswidth(text)
    return width if width >= 0 else len(text)
