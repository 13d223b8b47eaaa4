"""Markdown with the marks that a chat knows, everything else escaped."""

import re

from frontdesk.formats.markdown.elements import Element
from frontdesk.formats.markdown.flat import FlatDialect, Inside

DEEPEST_HEADING = 3
SIGNS = {Element.STRONG: "**", Element.STRIKE: "~~"}
SPECIAL = re.compile(r"(https?://[^\s<>]+)|([\\*_~`|<>\[\]]|@(?=everyone|here))")
"""Addresses are left as they are: a chat makes links of them."""
BLOCK_SIGN = re.compile(r"^(\s*)(?:(#{1,3}|[-+])|(\d+)([.)]))(?=[\s#]|$)", re.M)
"""What makes a line an item of a list, or small."""


class ChatMarkdown(FlatDialect):
    """With strong, emphasis, strike, code, links, three levels of headings, lists and quotes; no tables."""

    rule = r"\---"

    def text(self, text: str) -> str:
        return SPECIAL.sub(lambda found: found.group(1) or rf"\{found.group(2)}", text)

    def line_start(self, text: str) -> str:
        return BLOCK_SIGN.sub(_escaped, text)

    def mark(self, element: Element, inner: str, inside: Inside, /) -> str:
        within = inner.strip()
        sign = SIGNS.get(element) or ("_" if Element.STRONG in inside or "**" in within else "*")
        before, _, after = inner.partition(within)
        return f"{before}{sign}{within}{sign}{after}"

    def code(self, text: str) -> str:
        fence = "``" if "`" in text else "`"
        if fence in text or "``" in text:
            return self.text(text)
        room = " " if text.startswith("`") or text.endswith("`") else ""
        return f"{fence}{room}{text}{room}{fence}"

    def code_block(self, text: str, language: str, /) -> str:
        inner = text.replace("```", "`\u200b``")  # without width: it would end here
        return f"```{language}\n{inner}\n```"

    def link(self, inner: str, address: str) -> str:
        shown = inner.replace("\n", " ")
        if address in (inner, f"mailto:{inner}"):
            return f"<{address}>"
        return f"[{shown}](<{address}>)"

    def heading(self, inner: str, level: int, /) -> str:
        title = inner.replace("\n", " ")
        return f"{'#' * level} {title}" if level <= DEEPEST_HEADING else f"**{title}**"

    def quote(self, inner: str) -> str:
        return "\n".join(f"> {line}" for line in inner.split("\n"))


def _escaped(found: re.Match[str]) -> str:
    space, sign, number, dot = found.groups(default="")
    return rf"{space}\{sign}" if sign else rf"{space}{number}\{dot}"


CHAT_MARKDOWN = ChatMarkdown()


def render(text: str, limit: int | None = None) -> str:
    """The text; as it was written where it would get longer than ``limit`` characters."""
    return CHAT_MARKDOWN.render(text, limit)
