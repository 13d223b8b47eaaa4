"""Markdown as mrkdwn: marks of one character, around whole words; `&`, `<` and `>` escaped."""

from collections.abc import Sequence

from frontdesk.formats.markdown.elements import Element, Node
from frontdesk.formats.markdown.flat import FlatDialect, Inside

GAP = "\u200b"
"""Has no width: a mark right beside a letter is none, and three marks in code would end it."""
SIGNS = {Element.STRONG: "*", Element.EMPHASIS: "_", Element.STRIKE: "~"}
ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
SIGNED = frozenset({*SIGNS, Element.CODE})


class Mrkdwn(FlatDialect):
    bullet = "• "

    def text(self, text: str) -> str:
        return "".join(ESCAPED.get(character, character) for character in text)

    def mark(self, element: Element, inner: str, inside: Inside, /) -> str:
        if element is Element.STRONG and Element.HEADING in inside:
            return inner
        return "\n".join(_marked(SIGNS[element], line) for line in inner.split("\n"))

    def code(self, text: str) -> str:
        return self.text(text) if "`" in text else f"`{self.text(text)}`"

    def code_block(self, text: str, _language: str, /) -> str:
        return f"```\n{self.text(text).replace('```', GAP.join('```'))}\n```"

    def link(self, inner: str, address: str) -> str:
        shown = inner.replace("|", "¦").replace("\n", " ")
        return f"<{self.text(address)}|{shown}>"

    def heading(self, inner: str, _level: int, /) -> str:
        return self.mark(Element.STRONG, inner, frozenset())

    def quote(self, inner: str) -> str:
        return "\n".join(f"> {line}" for line in inner.split("\n"))

    def _line(self, nodes: Sequence[Node], inside: Inside) -> str:
        said, ends_signed = "", False
        for node in nodes:
            made, is_signed = self._inline(node, inside), node.element in SIGNED
            beside = (is_signed and said[-1:].isalnum()) or (ends_signed and made[:1].isalnum())
            said, ends_signed = f"{said}{GAP}{made}" if beside else said + made, is_signed
        return said


def _marked(sign: str, line: str) -> str:
    inner = line.strip()
    if not inner:
        return line
    before, _, after = line.partition(inner)
    return f"{before}{sign}{inner}{sign}{after}"


MRKDWN = Mrkdwn()


def render(text: str, limit: int | None = None) -> str:
    """The text in at most ``limit`` characters, if there are no more of it when it is escaped."""
    return MRKDWN.render(text, limit)
