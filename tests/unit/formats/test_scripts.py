"""Writings in what people decide on: what passes for something else is seen, and what people write stays."""

import functools
import json
import random
from importlib import resources

import pytest

from frontdesk.formats import actions, scripts
from tests import counts


@functools.cache
def confusables() -> dict[str, str]:
    """Each character that Unicode says looks like something in ASCII, and what that is."""
    table = json.loads(resources.files("confusable_homoglyphs").joinpath("confusables.json").read_bytes())
    near: dict[str, set[str]] = {}
    for one, others in table.items():
        for each in others:
            near.setdefault(one.strip("\u200e"), set()).add(each["c"].strip("\u200e"))
    found = {}
    for one, others in near.items():
        wider = others.union(*(near.get(each, set()) for each in others))
        alike = sorted((each for each in wider if each.isascii()), key=lambda each: (len(each), each))
        if alike and len(one) == 1 and not one.isascii():
            found[one] = alike[0]
    return found


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
        "\u0633\u0644\u0627\u0645",
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
    instead: dict[str, list[str]] = {}
    for sign, alike in confusables().items():
        instead.setdefault(alike, []).append(sign)
    wanted, tried = counts.count(2_000, 20_000), 0
    while tried < wanted:
        text = " ".join(chance.choice(WORDS) for _ in range(chance.randint(1, 4)))
        share = chance.choice((0.05, 0.3, 1))
        other = "".join(
            chance.choice(instead[sign]) if sign in instead and chance.random() < share else sign
            for sign in text
        )
        if other != text:
            assert glance(text) != glance(other), (text, other)
            tried += 1
    tell("pairs of texts that differ in look-alikes alone: told apart at a glance", tried)
