"""Markdown on pages: whatever somebody writes becomes a few tags that load and do nothing."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.formats.markdown import elements
from frontdesk.web.pages.wording import say
from frontdesk.web.site import prose

TAGS = {
    "p", "br", "code", "strong", "em", "del", "a", "span", "pre", "blockquote", "ul", "ol", "li", "div",
    "table", "tr", "th", "td", "hr", "bdi",
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
        self.count = 0
        self.attributes: set[str] = set()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.count += 1
        self.attributes |= {name for name, _ in attrs}
        self.addresses += [value or "" for name, value in attrs if name == "href"]


def read(text: str) -> TagReader:
    return read_markup(prose.render_prose(text))


def read_markup(markup: str) -> TagReader:
    reader = TagReader()
    reader.feed(markup)
    return reader


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_any_text_becomes_a_few_tags(text: str) -> None:
    found = read(text)
    assert found.tags <= TAGS
    assert found.attributes <= ATTRIBUTES
    assert all(re.match(r"(?i)https?://|mailto:", address) for address in found.addresses)


def test_link_shows_where_it_leads() -> None:
    made = prose.render_prose("[your bank](https://evil.example/x) and <https://plain.example>")
    shown = '<bdi>your bank</bdi></a> <span class="soft">(<bdi dir="ltr">https://evil.example/x</bdi>)</span>'
    assert shown in made
    assert "https://plain.example</bdi></a></p>" in made
    assert 'rel="noreferrer noopener nofollow"' in made


@pytest.mark.parametrize("form", ["<{}>", "[bank]({})", "[accounts.bank.example]({})", "![]({})"])
@pytest.mark.parametrize("trick", ["", "%2F" * 100, "\\", "@"])
def test_link_shows_the_host_that_is_asked(form: str, trick: str) -> None:
    made = prose.render_prose(
        form.format(f"https://accounts.bank.example:443{trick}@evil.example/{'x' * 200}")
    )
    assert f'(<bdi dir="ltr">https://evil.example/{"x" * 99}…</bdi>)' in made


def test_long_host_is_shown_to_its_end() -> None:
    host = "accounts.bank.example" + ".a" * 110 + ".evil.example"
    assert f">https://{host}…</bdi>)" in prose.render_prose(f"[bank](https://{host}/{'x' * 99})")
    assert "@evil.example</bdi>)" in prose.render_prose(f"[bank](mailto:{'bank.example' * 20}@evil.example)")


@pytest.mark.parametrize(
    "form",
    [
        "plain {} text",
        "*marked* {}",
        "`code {}`",
        "```\ncode {}\n```",
        "[{}](https://a.example)",
        "[" * 301 + "{}",
    ],
)
def test_what_turns_writing_around_is_seen(form: str) -> None:
    signs = [chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200B)]
    made = prose.render_prose(form.format("".join(signs)))
    assert not any(sign in made for sign in signs)
    assert "".join(f"⟨U+{ord(sign):04X}⟩" for sign in signs) in made


def test_address_that_turns_writing_around_is_seen() -> None:
    made = prose.render_prose("<https://evil.example/%E2%80%AEmoc.knab>")
    assert "\u202e" not in made
    assert ">https://evil.example/%E2%80%AEmoc.knab</bdi>)" in made


def test_letters_that_are_joined_and_lines_stay_as_they_are() -> None:
    joined = "می\u200cخواهم 👩\u200d💻"
    assert prose.render_prose(f"{joined}\nb") == f'<p dir="auto">{joined}<br>b</p>'


def test_picture_is_an_address_to_follow() -> None:
    made = prose.render_prose("![a chart](https://tracker.example/c.png)")
    assert "<img" not in made
    assert "a chart</bdi></a>" in made
    assert ">https://tracker.example/c.png</bdi>)" in made


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


MUCH = {
    "filled rows": "|" + "a|" * 59 + "\n|" + "-|" * 59 + "\n" + "a\n" * 4_800,
    "quoted rows": "> |" + "a|" * 59 + "\r> |" + "-|" * 59 + "\r" + "> a\r" * 2_400,
    "cells": "|a|a|\n|-|-|\n" + "|a|a|\n" * 1_600,
    "bullets": "- a\n" * 2_490,
    "lines": "a\n" * 5_000,
    "marks": "*a* " * 2_500,
    "links": "<http://a>" * 1_000,
    "long addresses": "[a](http://" + "\U0001f600" * 9_000 + ")",
}


@pytest.mark.parametrize("text", MUCH.values(), ids=MUCH)
def test_what_is_made_of_a_text_is_bounded(text: str) -> None:
    made = prose.render_prose(text)
    assert read_markup(made).count <= 2 * prose.MOST_ELEMENTS
    assert len(made) <= prose.MOST_MARKUP
    assert prose.render_growing(text) == made


@pytest.mark.parametrize(
    "name", ["filled rows", "quoted rows", "cells", "bullets", "lines", "marks", "links"]
)
def test_what_is_too_much_is_shown_as_written(name: str) -> None:
    made = prose.render_prose(MUCH[name])
    assert read_markup(made).count == 2
    assert made.startswith('<p class="written" dir="auto">')
    assert say("transcript.too_much") in made


def test_table_is_none_where_its_rows_would_be_filled_up_beyond_measure() -> None:
    assert not elements.may_have_tables(MUCH["filled rows"])
    assert not elements.may_have_tables(MUCH["quoted rows"])
    assert elements.may_have_tables("|a|b|\n|-|-|\n" + "|c|d|\n" * 5_000)
    assert elements.may_have_tables("|a|b|c|\n|-|-|-|\n" + "|c|\n" * 300)


def test_cells_are_counted_before_they_are_made() -> None:
    tree, count = elements.parse_within("|" + "a|" * 9 + "\n|" + "-|" * 9 + "\n" + "a\n" * 500, 1_500)
    assert tree is None
    assert 4_500 <= count <= 6_000, "as many cells at least as there would be; no tokens of them"
    tree, count = elements.parse_within("|a|b|\n|-|-|\n|c|\n", 15)
    assert tree is not None


def test_page_of_many_such_texts_is_bounded() -> None:
    room = prose.PageRoom()
    made = [room.render("- a\n" * 700 + str(number)) for number in range(20)]
    assert sum(read_markup(each).count for each in made) <= 2 * prose.PAGE_ELEMENTS
    assert "<li>" in made[0]
    assert say("transcript.too_much") in made[-1]
    room = prose.PageRoom()
    assert [room.render("- a\n" * 700 + str(number)) for number in range(20)] == made, "kept or not"


def test_texts_are_kept_in_a_bounded_memory() -> None:
    kept = prose.KeptTexts(10_000)
    for number in range(100):
        kept.keep(str(number), prose.MadeText(markup="x" * 1_000))
        kept.take("0")
    assert kept.size <= 10_000
    assert kept.take("0"), "what is asked for stays"
    assert kept.take("99")
    assert kept.take("1") is None


def test_half_a_character_is_shown_as_what_it_is_not() -> None:
    assert prose.render_prose("half \ud800").encode() == b'<p class="written" dir="auto">half ?</p>'
