"""Writings in what people decide on: what passes for something else is seen, and what people write stays."""

import random
import re
import unicodedata

import pytest

from frontdesk.formats import actions, scripts
from tests import counts
from tests.disguises import confusables, instead

LETTERS = [each for each in confusables() if each.isalnum()]
SIGNS = [each for each in confusables() if not each.isalnum()]


def told(text: str) -> tuple[str, ...]:
    """What is said of its writing."""
    return scripts.told(actions.lines_of({"x": text}))


def view(text: str) -> str:
    return "\n".join(actions.lines_of({"x": text})).partition("x: ")[2]


def glance(text: str) -> str:
    """What somebody sees who takes every look-alike for what it looks like, with what is said of it."""
    return "".join(confusables().get(sign, sign) for sign in view(text)) + "".join(told(text))


@pytest.mark.parametrize("word", ["{0}", "{0}{0}{0}", "{0}2", "{0} {0}"])
def test_all_letters_that_pass_for_others_are_marked_in_words_of_them_alone(word: str) -> None:
    missed = [each for each in LETTERS if not set("⟦\\") & set(view(word.format(each)))]
    assert (len(LETTERS) > 1_300, missed) == (True, [])


@pytest.mark.parametrize(
    "word", ["wipe_d{0}tabase", "{0}x", "x{0}", "caf\u00e9{0}", "a{0}\u0301b", "{0}\u0301b"]
)
def test_all_letters_that_pass_for_others_are_marked_in_latin_words(word: str) -> None:
    missed = [
        each for each in LETTERS if not set("⟦\\") & set(view(word.format(each)).replace("\\u{301}", ""))
    ]
    assert missed == []


@pytest.mark.parametrize(
    "text", ["a{0}b", "rm {0}rf", "{0}", "x {0} y", "echo {0}; rm -rf / {0}", "/srv{0}x"]
)
def test_all_signs_that_pass_for_others_are_escapes_or_told(text: str) -> None:
    missed = [
        each
        for each in SIGNS
        if "\\" not in view(text.format(each)) and not any(each in said for said in told(text.format(each)))
    ]
    assert (len(SIGNS) > 200, missed) == (True, [])


def test_how_many_there_are(tell: counts.Tell) -> None:
    tell("confusables of Unicode: none is shown without a mark", len(LETTERS) + len(SIGNS))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("wipe_d\u0251tabase", r"wipe_d\u{251}tabase"),
        ("\u0441\u043e\u0440\u0443", "⟦Cyrillic: \u0441\u043e\u0440\u0443⟧"),
        ("rm /\u0441\u043e\u0440\u0443/a", "rm /⟦Cyrillic: \u0441\u043e\u0440\u0443⟧/a"),
        (
            "\u042f \u0441 \u0440\u0430\u0431\u043e\u0442\u044b, ok",
            "⟦Cyrillic: \u042f \u0441 \u0440\u0430\u0431\u043e\u0442\u044b⟧, ok",
        ),
        (
            "\u0443\u0434\u0430\u043b\u0438\u0442\u044c copy",
            "\u0443\u0434\u0430\u043b\u0438\u0442\u044c copy",
        ),
        (
            "\u0443\u0434\u0430\u043b\u0438\u0442\u044c \u0441\u043e\u0440\u0443",
            "⟦Cyrillic: \u0443\u0434\u0430\u043b\u0438\u0442\u044c \u0441\u043e\u0440\u0443⟧",
        ),
        ("\uff57\uff49\uff50\uff45", "⟦Full-width: \uff57\uff49\uff50\uff45⟧"),
        ("\uff57ipe", r"\u{ff57}ipe"),
        ("\U0001d430\U0001d422", r"\u{1d430}\u{1d422}"),
        ("s\u0131f\u0131r", "⟦with \u0131: s\u0131f\u0131r⟧"),
        ("wipe_\u0441\u043e\u0440\u0443", r"wipe_\u{441}\u{43e}\u{440}\u{443}"),
        ("\u0430\u0301ypal", r"\u{430}\u{301}ypal"),
        ("it\u2019s \u2013 fine\u2026", "it\u2019s \u2013 fine\u2026"),
        ("rm \u2013rf", r"rm \u{2013}rf"),
        ("echo \u2019; rm \u2019", r"echo \u{2019}; rm \u{2019}"),
        ("\u738b\uff1a\u4f60", "\u738b\uff1a\u4f60"),
        ("https\uff1a//a", r"https\u{ff1a}//a"),
        ("srv\u30cedata", r"srv\u{30ce}data"),
        ("Windows\u30ce\u30fc\u30c8", "Windows\u30ce\u30fc\u30c8"),
        ("\u05d0\u05d1 12", "⟦Hebrew: \u05d0\u05d1⟧ 12"),
        ("12 \u05d0\u05d1", "12 ⟦Hebrew: \u05d0\u05d1⟧"),
        ("\u05d0\u05d1 \u05d2\u05b0\u05d3!", "⟦Hebrew: \u05d0\u05d1 \u05d2\u05b0\u05d3⟧!"),
        ("rm \u05d0/\u05d1", "rm ⟦Hebrew: \u05d0⟧/⟦Hebrew: \u05d1⟧"),
        ("x\u05d0\u05d112", "x⟦Hebrew: \u05d0\u05d1⟧12"),
        ("\u0662\u0663-\u0664", "⟦Arabic: \u0662\u0663⟧-⟦Arabic: \u0664⟧"),
        ("\u0633\u0644\u05d0", "⟦right to left: \u0633\u0644\u05d0⟧"),
        ("a\u2d7fb", r"a\u{2d7f}b"),
        ("x\u1039", r"x\u{1039}"),
        ("p\u0336rod", r"p\u{336}rod"),
        ("p\u20e0rod", r"p\u{20e0}rod"),
        ("\u2f2f\u5834", "\\u{2f2f}\u5834"),
        ("\ufed9", r"⟦Arabic: \u{fed9}⟧"),
        ("a\u23b5\u23b5b", r"a\u{23b5}\u{23b5}b"),
        ("\u2219\u2219\u2219\u2219 (hidden)", r"\u{2219}\u{2219}\u{2219}\u{2219} (hidden)"),
        ("⟦Cyrillic: x⟧", r"\u{27e6}Cyrillic: x\u{27e7}"),
    ],
    ids=ascii,
)
def test_what_passes_for_something_else_is_marked(text: str, expected: str) -> None:
    assert view(text) == f'"{expected}"'


@pytest.mark.parametrize(
    "text",
    [
        "\u0423\u0434\u0430\u043b\u0438\u0442\u044c \u0444\u0430\u0439\u043b",
        "\u0395\u03bb\u03bb\u03ac\u03b4\u03b1",
        "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8",
        "\u0939\u093f\u0928\u094d\u0926\u0940",
        "J\u00fcrgen M\u00fcller, \u0141\u00f3d\u017a, r\u00f8d gr\u00f8d",
    ],
)
def test_writing_of_people_is_never_an_escape(text: str) -> None:
    assert view(text) == f'"{text}"'


def test_words_in_another_writing_are_told() -> None:
    assert told("\u0441\u043e\u0440\u0443 file") == (
        '"\u0441\u043e\u0440\u0443" is in Cyrillic letters and may pass for "copy".',
    )
    assert told("\u043f\u0440\u0438\u0432\u0435\u0442 \u65e5") == (
        "Some of it is not in Latin letters: Cyrillic, Han.",
    )
    assert told("s\u0131f\u0131r") == ('"s\u0131f\u0131r" is written with \u0131 and may pass for "sifir".',)
    assert told("\u201cso\u201d") == ("Signs that may pass for others: \u201c \u201d",)
    assert told("plain") == ()
    assert told("\u30a8\u5834")[-1] == "Signs that may pass for others: \u30a8"
    assert told("\u65e5\u30ce\u65e5")[-1] == "Signs that may pass for others: \u30ce"
    assert told("\u30c7\u30fc\u30bf\u5de5\u5834") == ("Some of it is not in Latin letters: Han, Katakana.",)


ESCAPED = re.compile(r"\\u\{[0-9a-f]+\}")
TURNED = re.compile(r"⟦[A-Za-z ]+: [^⟧]*⟧")


@pytest.mark.prove
def test_screens_turn_nothing_around_but_words_inside_their_marks(tell: counts.Tell) -> None:
    """The name of the writing begins each mark, and its brackets are a pair: nothing outside of one is
    between digits and words that are written from right to left."""
    chance = random.Random(9)
    signs = (
        *"\u05d0\u05d1\u0628\u0633\u07ca\u0710\u0780",
        *"\u0661\u0662\u06f3",
        *'12 ab/-.,:()"',
        "\u05b0",
        "\u0301",
        "\u0430",
    )
    wanted = counts.count(2_000, 20_000)
    for _ in range(wanted):
        shown = view("".join(chance.choices(signs, k=chance.randint(1, 14))))
        outside = TURNED.sub("", shown)
        assert not {*map(unicodedata.bidirectional, outside)} & {"R", "AL", "AN"}, shown
        for mark in TURNED.findall(ESCAPED.sub("", shown)):
            kinds = {*map(unicodedata.bidirectional, mark.partition(": ")[2][:-1])} - {"NSM", "WS"}
            assert kinds <= {"R", "AL"} or kinds <= {"AN"} or kinds.isdisjoint({"R", "AL", "AN"}), shown
    tell("lines with words from right to left: nothing is turned around", wanted)


WORDS = (
    "rm",
    "-rf",
    "/srv/copy",
    "wipe_database",
    "paypal.com",
    "it's",
    '"x"',
    "a",
    "\u043f\u0440\u0438\u0432\u0435\u0442",
    "caf\u00e9",
)


@pytest.mark.prove
def test_texts_that_differ_in_look_alikes_alone_are_told_apart(tell: counts.Tell) -> None:
    chance = random.Random(39)
    wanted, tried = counts.count(2_000, 20_000), 0
    while tried < wanted:
        text = " ".join(chance.choice(WORDS) for _ in range(chance.randint(1, 4)))
        share = chance.choice((0.05, 0.3, 1))
        other = "".join(
            chance.choice(instead()[sign]) if sign in instead() and chance.random() < share else sign
            for sign in text
        )
        if other != text:
            assert glance(text) != glance(other), (text, other)
            tried += 1
    tell("pairs of texts that differ in look-alikes alone: told apart at a glance", tried)
