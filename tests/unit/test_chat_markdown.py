"""Markdown on a terminal: what is shown, and what never is."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.cli.chat.markdown import MAX_BLOCK_CHARACTERS, Painter, split_finished

WIDTH = 60
STYLES = re.compile(r"\x1b\[[0-9;]*m")
COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def painted(text: str, *, colours: bool = True) -> str:
    return Painter(io.StringIO(), colours=colours).paint(text, WIDTH)


def words(text: str) -> str:
    return STYLES.sub("", painted(text))


@given(st.text(alphabet=st.sampled_from("a*_`#|-[]()<>&;!\\\n \t\r\x1b\x9b\x07\u202e0x27[2J:"), max_size=80))
def test_nothing_but_styles_reaches_the_terminal(text: str) -> None:
    assert not COMMANDS.search(STYLES.sub("", painted(text)))
    assert "\x1b" not in painted(text, colours=False)


@pytest.mark.parametrize("attack", ["&#27;[2J", "&#x9b;2J", "&#x202e;abc", "&#7;", "&lrm;", "&#8238;"])
def test_command_written_in_another_way_does_not_get_through(attack: str) -> None:
    assert not COMMANDS.search(words(f"before {attack} after"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<b>bold</b> and List<int>", "<b>bold</b> and List<int>\n"),
        ("<script>\nalert()\n</script>", "<script>\nalert()\n</script>\n"),
        ("[here](http://elsewhere.example)", "here (http://elsewhere.example)\n"),
        ("![picture](http://p.example)", "!picture (http://p.example)\n"),
        ("[x]: http://hidden.example", "[x]: http://hidden.example\n"),
        ("[bold]no markup of ours[/bold]", "[bold]no markup of ours[/bold]\n"),
        ("one\ntwo\r\nthree", "one\ntwo\nthree\n"),
    ],
)
def test_nothing_is_left_out(text: str, shown: str) -> None:
    assert words(text) == shown


def test_table_and_code_are_drawn() -> None:
    drawn = words("| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nprint(1)\n```")
    assert "───" in drawn
    assert " print(1)" in drawn
    assert "```" not in drawn


def test_wide_characters_stay_within_the_width() -> None:
    assert all(len(line) <= WIDTH // 2 for line in words("漢" * 100).splitlines())


def test_finished_blocks_are_those_that_nothing_later_changes() -> None:
    assert split_finished("# Plan\ntext\nmore") == (["# Plan\n"], "text\nmore")
    assert split_finished("- one\n- two\n\ntext") == (["- one\n- two\n\n"], "text")
    assert split_finished("```\na\n\nb\n") == ([], "```\na\n\nb\n")
    assert split_finished("") == ([], "")


@given(st.text(alphabet="ab*#`|-> \n", max_size=200))
def test_blocks_together_are_the_text(text: str) -> None:
    blocks, rest = split_finished(text)
    assert text.endswith("".join(blocks) + rest)
    assert not text[: len(text) - len("".join(blocks) + rest)].strip()


def test_long_block_is_cut_between_words() -> None:
    text = "word " * MAX_BLOCK_CHARACTERS
    blocks, rest = split_finished(text)
    assert "".join(blocks) + rest == text
    assert blocks[0].endswith(" ")
    assert len(blocks[0]) <= MAX_BLOCK_CHARACTERS
