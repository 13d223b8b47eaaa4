"""Markdown as HTML with all that a text has; for readers who show pages, as in rooms and in mail."""

import html
from collections.abc import Sequence

from frontdesk.formats.markdown import elements
from frontdesk.formats.markdown.elements import MARKS, Element, Node
from frontdesk.formats.markdown.flat import NOTHING, Inside

TAGS = {
    Element.STRONG: "strong",
    Element.EMPHASIS: "em",
    Element.STRIKE: "del",
    Element.QUOTE: "blockquote",
    Element.BULLETS: "ul",
    Element.ITEM: "li",
    Element.ROW: "tr",
    Element.HEADER_CELL: "th",
    Element.CELL: "td",
}


def render(text: str) -> str:
    """The text, in tags that readers of untrusted pages let through: no styles, no pictures, and of the
    attributes only `href`, `start` and the language of code."""
    return _all(elements.parse(text).children, NOTHING)


def _all(nodes: Sequence[Node], inside: Inside) -> str:
    return "".join(_one(node, inside) for node in nodes)


def _one(node: Node, inside: Inside) -> str:
    if node.element in MARKS:
        inner = _all(node.children, inside | {node.element})
        return inner if node.element in inside else _marked(node, inner)
    match node.element:
        case Element.TEXT:
            return html.escape(node.text, quote=False)
        case Element.BREAK:
            return "<br>"
        case Element.RULE:
            return "<hr>"
        case Element.CODE:
            return f"<code>{html.escape(node.text, quote=False)}</code>"
        case Element.CODE_BLOCK:
            language = f' class="language-{html.escape(node.language)}"' if node.language else ""
            return f"<pre><code{language}>{html.escape(node.text, quote=False)}</code></pre>"
    return _block(node, _all(node.children, inside))


def _marked(node: Node, inner: str) -> str:
    if node.element is Element.LINK:
        return f'<a href="{html.escape(node.address)}">{inner}</a>'
    return f"<{TAGS[node.element]}>{inner}</{TAGS[node.element]}>"


def _block(node: Node, inner: str) -> str:
    match node.element:
        case Element.PARAGRAPH:
            return inner if node.is_tight else f"<p>{inner}</p>"
        case Element.HEADING:
            return f"<h{node.number}>{inner}</h{node.number}>"
        case Element.NUMBERS:
            start = f' start="{node.number}"' if node.number != 1 else ""
            return f"<ol{start}>{inner}</ol>"
        case Element.TABLE:
            return f"<table><tbody>{inner}</tbody></table>"
    return f"<{TAGS[node.element]}>{inner}</{TAGS[node.element]}>"
