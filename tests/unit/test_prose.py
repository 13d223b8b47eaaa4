"""Markdown on pages: whatever somebody writes becomes a few tags that load and do nothing."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.web.site import prose

TAGS = {
    "p", "br", "code", "strong", "em", "del", "a", "span", "pre", "blockquote", "ul", "ol", "li", "div",
    "table", "tr", "th", "td", "hr",
}  # fmt: skip
ATTRIBUTES = {"class", "dir", "href", "rel", "target", "tabindex", "start"}
PIECES = [
    "<script>", "<img src=x onerror=alert(1)>", "javascript:alert(1)", "](", "[", "![", ")", "`", "```\n",
    "**", "_", "~~", "> ", "- ", "1. ", "| a | b |\n|---|---|\n", "\n", "\n\n", "https://example.org/\"'<>",
    "&lt;",
    "<https://a.example>", "mailto:a@b.example", "\\", "#", "\u202e", "\u200b", "\ud800", "data:text/html,x",
    "a", " ", "vbscript:x", "//evil.example", '"', "'",
]  # fmt: skip


class TagReader(HTMLParser):
    """Reads markup as a browser would."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.addresses += [value or "" for name, value in attrs if name == "href"]


def read(text: str) -> TagReader:
    reader = TagReader()
    reader.feed(str(prose.render_prose(text)))
    return reader


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_any_text_becomes_a_few_tags(text: str) -> None:
    found = read(text)
    assert found.tags <= TAGS
    assert found.attributes <= ATTRIBUTES
    assert all(re.match(r"(?i)https?://|mailto:", address) for address in found.addresses)


def test_link_shows_where_it_leads() -> None:
    made = prose.render_prose("[your bank](https://evil.example/x) and <https://plain.example>")
    assert 'your bank</a> <span class="soft">(https://evil.example/x)</span>' in made
    assert made.count("(https://plain.example)") == 0
    assert 'rel="noreferrer noopener nofollow"' in made


def test_picture_is_an_address_to_follow() -> None:
    made = prose.render_prose("![a chart](https://tracker.example/c.png)")
    assert "<img" not in made
    assert "a chart</a>" in made
    assert "(https://tracker.example/c.png)" in made


def test_lines_of_a_list_and_a_table_are_there() -> None:
    made = prose.render_prose("3. one\n4. two\n\n| a |\n|---|\n| `b` |\n\n```py\nif a < b:\n```")
    assert '<ol start="3"><li><p dir="auto">one</p></li>' in made
    assert '<td dir="auto"><code>b</code></td>' in made
    assert "<code>if a &lt; b:\n</code>" in made


@pytest.mark.parametrize(
    "piece", ["[", "![", "> ", "- ", "*a ", "_", "`", "|", "<", "&", "[a](", "~~a", "\n> "]
)
def test_text_made_to_be_hard_to_read_is_bounded(piece: str) -> None:
    made = prose.render_prose(piece * 100_000)
    assert len(made) < 40 * prose.MOST_CHARACTERS, "no more is looked at than is shown"
    assert read(piece * 100_000).tags <= TAGS


def test_half_a_character_is_shown_as_what_it_is_not() -> None:
    assert prose.render_prose("half \ud800").encode() == b'<p class="written" dir="auto">half ?</p>'
