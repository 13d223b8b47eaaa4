"""Markdown in the dialects of the chats."""

import random
import re
from html.parser import HTMLParser

import pytest

from frontdesk.formats.markdown import chat_html, chat_markdown, mrkdwn, page_html, plaintext
from tests import counts

CHAT_TAGS = {"a", "b", "blockquote", "code", "i", "pre", "s"}
PAGE_TAGS = {
    *("a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol"),
    *("p", "pre", "strong", "table", "tbody", "td", "th", "tr", "ul"),
}
SINGLE = {"br", "hr"}
ATTRIBUTE = {
    "href": re.compile(r"(https?://|mailto:).+"),
    "class": re.compile(r"language-[\w+#.-]+"),
    "start": re.compile(r"\d+"),
}
DIALECTS = (chat_html, chat_markdown, mrkdwn, page_html, plaintext)
FRAGMENTS = (
    *(
        "*",
        "**",
        "***",
        "_",
        "__",
        "~~",
        "`",
        "``",
        "```",
        "```\n",
        "~~~",
        "\n",
        "\n\n",
        "> ",
        "- ",
        "1. ",
        "7) ",
    ),
    *(
        "# ",
        "#### ",
        "    ",
        "\t",
        "|",
        "|-|-|\n",
        "| a | b |\n|---|---|\n|",
        "[",
        "]",
        "](",
        "](http://a.b/)",
    ),
    *(
        "](mailto:a@b.c)",
        "](javascript:x)",
        "](http://[)",
        ")",
        "(",
        "<",
        ">",
        "&",
        "&lt;",
        "&#42;",
        "&#0;",
        "\\",
    ),
    *(
        "![",
        "!",
        "http://a.b/c_d_e",
        "<http://a.b>",
        "@everyone",
        "<!channel>",
        "<b>",
        "</b>",
        "<@1>",
        "---\n",
    ),
    *(
        "👩‍👧",
        "é",
        "e\u0301",
        "שלום",
        "\u202e",
        "\x00",
        "\ud800",
        "\r\n",
        "\u2028",
        " ",
        " ",
        '"',
        "'",
        "||",
        "+ ",
    ),
)


SAMPLE = """\
# Title *one*

Some **bold**, *it* and ~~no~~; `a < b` & <b>
next line, \\*as is\\*
- first
- second
  1. inner
  ```py
  x = "<"
  ```

> quoted
> > twice

[name](https://a.b/?q=1&r=2) ![pic](http://a.b/p.png)

| a | bb |
|---|----|
| 1 | 22 |
"""


class Strict(HTMLParser):
    """Raises where a platform would refuse."""

    def __init__(self, tags: set[str]) -> None:
        super().__init__(convert_charrefs=True)
        self.tags, self.open = tags, list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in self.tags, tag
        assert not self.open or self.open[-1] != "code", "code has no parts"
        if self.tags is CHAT_TAGS:
            assert tag not in ("a", "blockquote") or tag not in self.open, "not in itself"
        for name, value in attrs:
            assert ATTRIBUTE[name].fullmatch(value or ""), (name, value)
        if tag not in SINGLE:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)

    @classmethod
    def check(cls, markup: str, tags: set[str]) -> None:
        assert not re.search(r"&(?!amp;|lt;|gt;|quot;|#x27;)|<(?![/a-z])", markup)
        parser = cls(tags)
        parser.feed(markup)
        parser.close()
        assert parser.open == []


def check_mrkdwn(markup: str) -> None:
    assert not re.search(r"&(?!amp;|lt;|gt;)", markup)
    rest = re.sub(r"<(?:https?://|mailto:)[^<>|\s]+\|[^<>|\n]+>", "", markup)
    assert "<" not in rest
    assert not re.search(r"(?<!^)>", re.sub(r"^> ", "", rest, flags=re.M))


def random_text(chance: random.Random) -> tuple[str, list[str]]:
    """A text, and the words in it that nothing may swallow."""
    parts, words = [], []
    for number in range(chance.randrange(1, 30)):
        parts.append(chance.choice(FRAGMENTS))
        if chance.random() < 0.4:
            parts.append(f"w{number}w")
    text = "".join(parts)
    for line in re.split(r"\r\n|\n|\r", text):
        if "```" not in line and "~~~" not in line:  # behind these stands the name of a language
            words += re.findall(r"(?<![\\&#])w\d+w", line)
    return text, words


@pytest.mark.prove
def test_every_text_has_a_form_that_its_dialect_takes_and_that_hides_nothing(tell: counts.Tell) -> None:
    chance, tries = random.Random(13), counts.count(1_000, 400_000)
    for _ in range(tries):
        text, words = random_text(chance)
        made = {dialect: dialect.render(text) for dialect in DIALECTS}
        Strict.check(made[chat_html], CHAT_TAGS)
        Strict.check(made[page_html], PAGE_TAGS)
        check_mrkdwn(made[mrkdwn])
        for dialect, markup in made.items():
            assert markup.encode().strip() or not text.strip(), dialect
            assert [word for word in words if word not in markup] == [], (dialect, text)
    tell(counts.TRIED, tries)


def test_chat_html_has_the_few_tags_and_keeps_lines() -> None:
    assert chat_html.render(SAMPLE) == (
        "<b>Title <i>one</i></b>\n\n"
        "Some <b>bold</b>, <i>it</i> and <s>no</s>; <code>a &lt; b</code> &amp; &lt;b&gt;\n"
        "next line, *as is*\n\n"
        "• first\n• second\n  1. inner\n\n"
        '<pre><code class="language-py">x = "&lt;"</code></pre>\n\n'
        "<blockquote>quoted\n\n&gt; twice</blockquote>\n\n"
        '<a href="https://a.b/?q=1&amp;r=2">name</a> <a href="http://a.b/p.png">pic</a>\n\n'
        "<pre>a | bb\n--+---\n1 | 22</pre>"
    )


def test_page_html_has_headings_lists_and_tables() -> None:
    assert page_html.render(SAMPLE) == (
        "<h1>Title <em>one</em></h1>"
        "<p>Some <strong>bold</strong>, <em>it</em> and <del>no</del>; <code>a &lt; b</code> &amp; &lt;b&gt;"
        "<br>next line, *as is*</p>"
        "<ul><li>first</li><li>second<ol><li>inner</li></ol>"
        '<pre><code class="language-py">x = "&lt;"\n</code></pre></li></ul>'
        "<blockquote><p>quoted</p><blockquote><p>twice</p></blockquote></blockquote>"
        '<p><a href="https://a.b/?q=1&amp;r=2">name</a> <a href="http://a.b/p.png">pic</a></p>'
        "<table><tbody><tr><th>a</th><th>bb</th></tr><tr><td>1</td><td>22</td></tr></tbody></table>"
    )


def test_mrkdwn_has_single_marks_and_calls_nobody() -> None:
    made = mrkdwn.render(SAMPLE + "\n<!channel> <@U1> @here a**b**c")
    assert made.startswith("*Title _one_*\n\nSome *bold*, _it_ and ~no~; `a &lt; b` &amp; &lt;b&gt;\n")
    assert '```\nx = "&lt;"\n```\n\n> quoted\n> \n> &gt; twice\n\n<https://a.b/?q=1&amp;r=2|name>' in made
    assert made.endswith("&lt;!channel&gt; &lt;@U1&gt; @here a\u200b*b*\u200bc")


def test_chat_markdown_escapes_what_is_no_mark() -> None:
    made = chat_markdown.render(
        SAMPLE + "\n<@1> a_b_c https://a.b/c_d @everyone ||x||\n\\# no title\n2\\. no list"
    )
    assert made.startswith(
        "# Title *one*\n\nSome **bold**, *it* and ~~no~~; `a < b` & \\<b\\>\nnext line, \\*as is\\*"
    )
    assert '```py\nx = "<"\n```\n\n> quoted\n> \n> \\> twice\n\n[name](<https://a.b/?q=1&r=2>)' in made
    assert made.endswith(
        "\\<@1\\> a\\_b\\_c https://a.b/c_d \\@everyone \\|\\|x\\|\\|\n\\# no title\n2\\. no list"
    )


def test_plain_text_says_where_links_lead() -> None:
    made = plaintext.render(SAMPLE)
    assert made.startswith("Title one\n\nSome bold, it and no; a < b & <b>\nnext line, *as is*\n\n- first")
    assert "name (https://a.b/?q=1&r=2) pic (http://a.b/p.png)" in made


@pytest.mark.parametrize("address", ["javascript:alert(1)", "data:text/html,x", "tg://user?id=1", "/etc"])
def test_only_addresses_of_web_and_mail_become_links(address: str) -> None:
    text = f"[here]({address})"
    assert chat_html.render(text) == text
    assert page_html.render(text) == f"<p>{text}</p>"


@pytest.mark.parametrize(
    "shown", ["bank.example", "https://bank.example/login", "https://bank.example@x.y", "x.y.z"]
)
def test_link_that_looks_like_another_address_shows_where_it_leads(shown: str) -> None:
    assert chat_html.render(f"[{shown}](https://evil.example/)") == (
        f'{shown} (<a href="https://evil.example/">https://evil.example/</a>)'
    )


def test_link_that_shows_its_own_address_is_left_alone() -> None:
    assert chat_html.render("[A.b/c](http://a.b/d)") == '<a href="http://a.b/d">A.b/c</a>'
    assert plaintext.render("<http://a.b> <a@b.c>") == "http://a.b a@b.c"


def test_form_that_is_too_long_or_empty_gives_way_to_what_was_written() -> None:
    table = "|a|b|\n|-|-|\n|1|longer by far|\n|2||"
    assert chat_html.render(table).startswith("<pre>")
    assert chat_html.render(table, len(table)) == table
    assert chat_html.render("😀 *a*", 4) == "😀 <i>a</i>"
    assert chat_html.render("😀 *a*", 3) == "😀 *a*"
    assert chat_html.render("```\n```") == "```\n```"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "*" * 8_000 + "a" + "*" * 8_000,
            "[" * 6_000,
            "_a __b " * 2_000,
            "![" * 2_000 + "](http://b)a" * 2_000,
        ),
        *(
            ">" * 8_000 + "a",
            "|a" * 4_000 + "\n" + "|-" * 4_000 + "\n" + "|\n" * 4_000,
            "`a``" * 4_000,
            "<a" * 8_000,
        ),
        "\n".join(" " * depth + "- a" for depth in range(150)),
    ],
    ids=["stars", "brackets", "nested", "pictures", "quotes", "columns", "code", "tags", "lists"],
)
def test_text_made_to_be_hard_keeps_its_letters(text: str) -> None:
    for dialect in DIALECTS:
        assert dialect.render(text).count("a") >= text.count("a")
