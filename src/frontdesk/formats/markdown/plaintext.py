"""Markdown as text without marks."""

from frontdesk.formats.markdown.flat import FlatDialect

PLAIN = FlatDialect()


def render(text: str) -> str:
    return PLAIN.render(text)
