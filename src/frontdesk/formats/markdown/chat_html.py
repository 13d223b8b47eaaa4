"""Markdown as HTML of the few tags that a chat takes: lines are lines, and nothing else is a block."""

import html
import re

from frontdesk.formats.markdown.elements import Element
from frontdesk.formats.markdown.flat import FlatDialect, Inside
from frontdesk.model.chats import TextUnit

TAG = re.compile(r"<[^>]*>")
TAGS = {Element.STRONG: "b", Element.EMPHASIS: "i", Element.STRIKE: "s"}


class ChatHtml(FlatDialect):
    """With `b`, `i`, `s`, `code`, `pre`, `a` and `blockquote`, the latter never in one another.

    Of its text the platform counts what is seen, in UTF-16 units.
    """

    bullet = "• "

    def visible(self, made: str) -> str:
        return html.unescape(TAG.sub("", made))

    def length(self, made: str) -> int:
        return TextUnit.UTF16.length(self.visible(made))

    def text(self, text: str) -> str:
        return html.escape(text, quote=False)

    def mark(self, element: Element, inner: str, inside: Inside, /) -> str:
        if element is Element.STRONG and Element.HEADING in inside:
            return inner
        return f"<{TAGS[element]}>{inner}</{TAGS[element]}>"

    def code(self, text: str) -> str:
        return f"<code>{self.text(text)}</code>"

    def code_block(self, text: str, language: str, /) -> str:
        if not language:
            return f"<pre>{self.text(text)}</pre>"
        return f'<pre><code class="language-{html.escape(language)}">{self.text(text)}</code></pre>'

    def link(self, inner: str, address: str) -> str:
        return f'<a href="{html.escape(address)}">{inner}</a>'

    def heading(self, inner: str, _level: int, /) -> str:
        return f"<b>{inner}</b>"

    def quote(self, inner: str) -> str:
        return f"<blockquote>{inner}</blockquote>"


CHAT_HTML = ChatHtml()


def render(text: str, limit: int | None = None) -> str:
    """The text, of which a reader sees no more than ``limit`` UTF-16 units if it has no more itself."""
    return CHAT_HTML.render(text, limit)


def visible(markup: str) -> str:
    """What a reader sees of it: what is sent where the platform refuses the markup."""
    return CHAT_HTML.visible(markup)
