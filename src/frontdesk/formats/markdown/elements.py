"""The tree of a Markdown text."""

import re
from enum import StrEnum
from functools import cache
from typing import cast
from urllib.parse import urlsplit

import msgspec
from markdown_it import MarkdownIt
from markdown_it.token import Token

MOST_NESTING = 40
"""Of blocks. What is nested deeper is taken as text: the parser would leave it out."""
MOST_INLINE_NESTING = 16
"""Of marks inside a line; those within are left out."""
MOST_COLUMNS = 60
"""A line with more cells than these begins no table."""
MOST_FILLED = 2_000
"""Cells of tables beyond one for each character of the text: the parser fills up rows that are too short."""
ADDRESS_CHARACTERS = 120
"""Of an address as it is shown behind a link, unless its host has more."""
SCHEMES = re.compile(r"(?:https?://|mailto:)[^\s/]", re.I)
ADDRESS = re.compile(r"(?:https?://)?([\w-]+(?:\.[\w-]+)+)(?:[^\w.-].*)?", re.I | re.S)
"""What a reader takes for an address."""
LINE_END = re.compile(r"\r\n?|\n")
TABLE_RULE = re.compile(r"[ \t>|:]*-[ \t>|:-]*")
"""What can stand below the head of a table."""
CELL_END = re.compile(r"(?<!\\)\|")
LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,40}")


class Element(StrEnum):
    """What a part of a text is."""

    DOCUMENT = "document"
    PARAGRAPH = "paragraph"
    HEADING = "heading"
    QUOTE = "blockquote"
    BULLETS = "bullet_list"
    NUMBERS = "ordered_list"
    ITEM = "list_item"
    CODE_BLOCK = "fence"
    RULE = "hr"
    TABLE = "table"
    ROW = "tr"
    HEADER_CELL = "th"
    CELL = "td"
    TEXT = "text"
    CODE = "code_inline"
    STRONG = "strong"
    EMPHASIS = "em"
    STRIKE = "s"
    LINK = "link"
    BREAK = "softbreak"


MARKS = frozenset({Element.STRONG, Element.EMPHASIS, Element.STRIKE, Element.LINK})
_SAME = {
    "code_block": Element.CODE_BLOCK,
    "hardbreak": Element.BREAK,
    "image": Element.LINK,
}
WEIGHTS = {"text": 0, "link_open": 4, "image": 4}
"""How many elements each is counted as: a link is shown with its address."""
_WITHOUT = frozenset({"thead", "tbody"})


class Node(msgspec.Struct, frozen=True, kw_only=True):
    element: Element
    children: "tuple[Node, ...]" = ()
    text: str = ""
    """Of text and code."""
    address: str = ""
    """Of a link."""
    language: str = ""
    """Of a block of code; empty when it says none, or nothing that can be one."""
    number: int = 0
    """A heading's level, or a list's first number."""
    is_tight: bool = False
    """Of a paragraph or list: no empty line is around it."""

    @property
    def hides_its_host(self) -> bool:
        """Whether something else stands in the address before the host, and can be taken for it."""
        return not _is_mail(self.address) and "@" in urlsplit(self.address).netloc

    @property
    def destination(self) -> str:
        """Where a link leads: the host that is asked, whole, and as much of the rest as there is room for."""
        if _is_mail(self.address):
            half = ADDRESS_CHARACTERS // 2
            whole = len(self.address) <= ADDRESS_CHARACTERS
            return self.address if whole else f"{self.address[:half]}…{self.address[-half:]}"
        found = urlsplit(self.address)
        head = f"{found.scheme}://{found.netloc.rpartition('@')[2]}"
        rest = found._replace(scheme="", netloc="").geturl()
        room = max(0, ADDRESS_CHARACTERS - len(head))
        return head + (rest if len(rest) <= room else f"{rest[:room]}…")


def _is_mail(address: str) -> bool:
    return address.lower().startswith("mailto:")


class _Parser(MarkdownIt):
    def validateLink(self, url: str) -> bool:
        try:
            return SCHEMES.match(url) is not None and urlsplit(url).hostname != ""
        except ValueError:  # what stands for the host can be none
            return False


def parse(text: str) -> Node:
    """The tree of any text."""
    text = cleaned(text)
    return _tree_of(text, _tokens(text))


def parse_within(text: str, most: int) -> tuple[Node | None, int]:
    """The tree, and how many elements it has besides text; no tree when there are more than so many."""
    text = cleaned(text)
    cells = _most_cells(LINE_END.split(text))
    if cells > most:
        return None, cells
    tokens = _tokens(text)
    count = max(
        sum(WEIGHTS.get(token.type, 1) for token in _flattened(tokens) if token.nesting >= 0),
        text.count("\n") if _is_too_deep(tokens) else 0,
    )
    return (_tree_of(text, tokens) if count <= most else None), count


def _tokens(text: str) -> list[Token]:
    tokens = parser(tables=may_have_tables(text)).parse(text)
    return parser(tables=False).parse(text) if _loses_cells(text, tokens) else tokens


def _is_too_deep(tokens: list[Token]) -> bool:
    return any(token.level >= MOST_NESTING - 1 for token in tokens)


def _tree_of(text: str, tokens: list[Token]) -> Node:
    if _is_too_deep(tokens):
        return Node(element=Element.DOCUMENT, children=(_lines(text),))
    return _tree(tokens)


def cleaned(text: str) -> str:
    """Without halves of characters, which no platform takes."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def may_have_tables(text: str) -> bool:
    lines = LINE_END.split(text)
    if any(line.count("|") > MOST_COLUMNS for line in lines):
        return False
    return _most_cells(lines) <= len(text) + MOST_FILLED


def _most_cells(lines: list[str]) -> int:
    """No table's rows times its columns, all of them together, are more than that."""
    cells = columns = 0
    for line in lines:
        if not line.strip(" \t"):
            columns = 0
        elif TABLE_RULE.fullmatch(line):
            columns = max(columns, line.count("|") + 1)
        cells += columns
    return cells


def _loses_cells(text: str, tokens: list[Token]) -> bool:
    """Whether a row has more cells than its table's head: the parser leaves them out."""
    lines, columns = LINE_END.split(text), 0
    for token in tokens:
        match token.type:
            case "table_open":
                columns = 0
            case "th_open":
                columns += 1
            case "tr_open" if columns and token.map:
                cells = CELL_END.split(lines[token.map[0]].strip("> \t"))
                if len(cells) - (not cells[0]) - (not cells[-1]) > columns:
                    return True
    return False


@cache
def parser(*, tables: bool, blocks_alone: bool = False) -> MarkdownIt:
    """Definitions of links stay visible, for they may stand in another message than what they define."""
    made = _Parser("commonmark", {"html": False, "maxNesting": MOST_NESTING})
    made.enable(["strikethrough", "table"] if tables else ["strikethrough"]).disable(["reference"])
    if blocks_alone:
        made.disable(["inline", "text_join"])
    return made


def _lines(text: str) -> Node:
    nodes = []
    for line in text.strip().split("\n"):
        nodes += [Node(element=Element.BREAK), Node(element=Element.TEXT, text=line)]
    return Node(element=Element.PARAGRAPH, children=tuple(nodes[1:]))


def _tree(tokens: list[Token]) -> Node:
    """Made without recursion: how deep marks are nested is up to whoever wrote the text."""
    open_nodes: list[tuple[Token | None, list[Node]]] = [(None, [])]
    depth = 0
    for token in _flattened(tokens):
        if token.nesting == 1:
            open_nodes.append((token, []))
            depth += token.type.removesuffix("_open") in MARKS
        elif token.nesting == 0:
            if token.type != "text" or token.content:
                open_nodes[-1][1].append(_leaf(token))
        else:
            opened, children = open_nodes.pop()
            element = _element(cast("Token", opened))
            above = open_nodes[-1][1]
            if element is None or (element in MARKS and depth > MOST_INLINE_NESTING):
                above += children
            else:
                above += _inner(cast("Token", opened), element, children)
            depth -= element in MARKS
    return Node(element=Element.DOCUMENT, children=tuple(open_nodes[0][1]))


def _flattened(tokens: list[Token]) -> list[Token]:
    flat = []
    for token in tokens:
        flat += token.children or [] if token.type == "inline" else [token]
    return flat


def _element(token: Token) -> Element | None:
    name = token.type.removesuffix("_open")
    return None if name in _WITHOUT else Element(name)


def _leaf(token: Token) -> Node:
    element = _SAME.get(token.type)
    match element or Element(token.type):
        case Element.CODE_BLOCK:
            language = (token.info.split() or [""])[0]
            known = language if LANGUAGE.fullmatch(language) else ""
            return Node(element=Element.CODE_BLOCK, text=token.content, language=known)
        case Element.LINK:  # a picture
            address = str(token.attrs.get("src") or "")
            shown = Node(element=Element.TEXT, text=plain_text(token.children or ()) or address)
            return Node(element=Element.LINK, children=(shown,), address=address) if address else shown
        case other:
            return Node(element=other, text=token.content)


def plain_text(tokens: "list[Token] | tuple[()]") -> str:
    return "".join(token.content or "\n" * token.type.endswith("break") for token in tokens)


def _inner(token: Token, element: Element, children: list[Node]) -> list[Node]:
    nodes = tuple(children)
    match element:
        case Element.LINK:
            address = str(token.attrs.get("href") or "")
            return _honest(Node(element=element, children=nodes, address=address)) if address else children
        case Element.HEADING:
            return [Node(element=element, children=nodes, number=int(token.tag[1:]))]
        case Element.PARAGRAPH:
            return [Node(element=element, children=nodes, is_tight=token.hidden)]
        case Element.BULLETS | Element.NUMBERS:
            first = int(token.attrs.get("start", 1)) if element is Element.NUMBERS else 0
            tight = all(
                each.is_tight for item in nodes for each in item.children if each.element is Element.PARAGRAPH
            )
            return [Node(element=element, children=nodes, number=first, is_tight=tight)]
    return [Node(element=element, children=nodes)]


def _honest(link: Node) -> list[Node]:
    """The link; where its text looks like another address, with the one that it leads to behind it."""
    shown = text_of(link).strip()
    looks_like = ADDRESS.fullmatch(shown)
    host = urlsplit(link.address).hostname if not _is_mail(link.address) else None
    if looks_like is None or host == looks_like.group(1).lower():
        return [link]
    address = Node(element=Element.TEXT, text=link.address)
    return [
        *link.children,
        Node(element=Element.TEXT, text=" ("),
        Node(element=Element.LINK, children=(address,), address=link.address),
        Node(element=Element.TEXT, text=")"),
    ]


def text_of(node: Node) -> str:
    """What a reader sees of a part of a line, without marks."""
    if node.element is Element.BREAK:
        return "\n"
    return node.text + "".join(map(text_of, node.children))
