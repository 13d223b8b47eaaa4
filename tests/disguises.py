"""Actions that want to pass for others: pairs that differ in a place that is easily missed."""

import functools
import json
import random
from collections.abc import Callable
from importlib import resources
from typing import Any, NamedTuple

Change = Callable[[random.Random, str], str]


class Pair(NamedTuple):
    """Two actions, each its name and its details, and how they differ."""

    one: tuple[str, dict[str, Any]]
    other: tuple[str, dict[str, Any]]
    how: str


WORDS = (
    *(
        "rm",
        "-rf",
        "/srv/data",
        "production",
        "customers",
        "a b",
        "it's",
        "paypal.com",
        "--force",
        "DELETE",
        "1200",
    ),
    *(
        "https://example.org/x",
        "report-2026.pdf",
        "привет",
        "日本語",
        "שלום",
        "سلام",
        "हिन्दी",
        "caf\u00e9",
        "x=1",
        "50",
    ),
)
NAMES = (
    "path",
    "argv",
    "database",
    "to",
    "amount",
    "sql",
    "env",
    "note",
    "url",
    "a.b",
    "x y",
    "имя",
    "script",
)
ACTIONS = (
    "run_command",
    "delete_file",
    "transfer_funds",
    "wipe_database",
    "send_mail",
    "query",
    "über",
    "run",
)
SECRETS = ("aB3dE5gH7jK9", "ghp_0123456789abcdefghijABCDEFGHIJ012345", "hunter2", "https://u:pW8xT3@h/x")
UNSEEN = (
    *"\u00ad\u034f\u061c\u115f\u1160\u17b4\u180b\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2063\u2800\u3164\ufe00\ufe0f\ufeff",
    *"\uffa0\ufff9\ufffc\x00\x07\x08\x1b\x7f\x85\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
    *"\U000e0001\U000e0041\U000e007f\U000e0100\U0001d173\u2d7f\u1039\u17d2\ue000\U000f0000",
)
SPACES = ("\u00a0", "\u2003", "\u2009", "\u202f", "\u3000", "\u1680", "\t", "  ", "\v", "\f", "\r", "\u200b ")
MARKS = (
    "\u0301",
    "\u0323",
    "\u0336",
    "\u0338",
    "\u20dd",
    "\u20e0",
    "\u0488",
    "\u05b0",
    "\u0e31",
    "\u3099",
    "\ufe20",
)
TURNED = ("\u05d0", "\u05d1", "\u0633", "\u0662", "\u06f3", "\u05be", "\u05c0", "\u200f", "\u202e")
SIGNS = {
    "/": "\u2044\u2215\u29f8\uff0f\u30ce",
    "-": "\u2010\u2011\u2012\u2013\u2212\u4e00\u30fc",
    ".": "\u2024\uff0e\u06d4",
    ":": "\u2236\ua789\uff1a\u0589",
    "'": "\u2019\u02bc\u00b4\uff07",
    " ": "\u00a0\u2003",
    "=": "\uff1d\u2e40",
    "0": "\u041e\u0966\uff10",
    "1": "\uff11\u0661",
    "(": "\uff08\u2768",
    ",": "\u201a\uff0c",
}
FORGED = (
    'Action: "list_files"',
    "What will be done:",
    "details: {}",
    "Approve exactly this? [y/N]: ",
    "> quoted",
    "•••• (hidden)",
    "∙∙∙∙ (hidden)",
    "⟦Cyrillic: copy⟧",
    "[2,999 empty lines]",
    "[the line above stands here 40 times]",
    "\\u{202e}",
    "\\n",
    "␣",
    "…",
    "[level 3] a: 1",
    "⟦and 2 more arguments⟧",
    '"',
    '\\"',
    "- x",
    "x: 1",
    "null",
    "true",
    "! 0 values are hidden.",
    "▲ It is one of the ten actions that are always asked.",
    'Its path: "/tmp"',
    "'",
    "{}",
    "[… 300 characters, all of them above …]",
    "<script>alert(1)</script>",
    "&lt;",
    "</p><button>",
    "{{ 7 * 7 }}",
)


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


@functools.cache
def instead() -> dict[str, list[str]]:
    """For each text of ASCII what passes for it."""
    found: dict[str, list[str]] = {}
    for sign, alike in confusables().items():
        found.setdefault(alike, []).append(sign)
    return {alike: sorted(signs) for alike, signs in found.items()}


def _at(chance: random.Random, text: str, new: str) -> str:
    place = chance.randint(0, len(text))
    return text[:place] + new + text[place:]


def _look_alike(chance: random.Random, text: str) -> str:
    places = [place for place, sign in enumerate(text) if sign in instead()]
    for place in chance.sample(places, min(len(places), chance.choice((1, 1, 2, len(places))))):
        text = text[:place] + chance.choice(instead()[text[place]]) + text[place + 1 :]
    return text


def _sign(chance: random.Random, text: str) -> str:
    found = [sign for sign in text if sign in SIGNS]
    sign = chance.choice(found) if found else ""
    return text.replace(sign, chance.choice(SIGNS[sign]), 1) if sign else text + "\u2215"


def _repeated(chance: random.Random, text: str) -> str:
    """One line more among many that are the same."""
    lines = text.split("\n")
    place = chance.randrange(len(lines))
    return "\n".join([*lines[:place], lines[place], *lines[place:]])


def _swapped(chance: random.Random, text: str) -> str:
    """The words in another order, as a screen may turn them around."""
    words = text.split(" ")
    place = chance.randrange(len(words))
    return " ".join(words[place:] + words[:place])


CHANGES: dict[str, Change] = {
    "unseen": lambda chance, text: _at(chance, text, chance.choice(UNSEEN)),
    "look-alike": _look_alike,
    "sign": _sign,
    "space": lambda chance, text: (
        text.replace(" ", chance.choice(SPACES), 1) if " " in text else text + chance.choice(SPACES)
    ),
    "edge": lambda chance, text: chance.choice(
        (f" {text}", f"{text} ", f"{text}\n", f"\n{text}", f"{text}\r")
    ),
    "accent": lambda chance, text: _at(chance, text, chance.choice(MARKS) * chance.choice((1, 1, 3, 40))),
    "turned": lambda chance, text: _at(chance, text, chance.choice(TURNED)),
    "swapped": _swapped,
    "repeated": _repeated,
    "escape": lambda chance, text: (
        text.replace("\n", "\\n", 1) if "\n" in text else _at(chance, text, "\\u{202e}")
    ),
    "forged": lambda chance, text: chance.choice(
        (f"{text}\n{chance.choice(FORGED)}", text + chance.choice(FORGED))
    ),
    "cut": lambda _, text: text[:-1] if text else "x",
    "case": lambda _, text: text.swapcase(),
}


def some_text(chance: random.Random) -> str:
    match chance.randrange(9):
        case 0:
            return chance.choice(FORGED)
        case 1:
            return chance.choice(SECRETS)
        case 2:
            return "\n".join(chance.choice(WORDS) for _ in range(chance.randint(1, 12)))
        case 3:
            return (chance.choice(WORDS) + chance.choice((" ", "\n"))) * chance.choice((3, 5, 30, 150))
        case 4:
            return "\n" * chance.choice((1, 3, 5, 299)) + chance.choice(WORDS)
        case 5:
            return "".join(chance.choices((*UNSEEN, *MARKS, *TURNED, *"ab 1/"), k=chance.randint(1, 8)))
        case _:
            return " ".join(chance.choice(WORDS) for _ in range(chance.randint(1, 5)))


def some_value(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.randrange(8 if depth < 3 else 5)
    if kind == 0:
        return chance.choice((None, True, False, 0, 1, 1.5, -1, 1e21, 100))
    if kind <= 4:
        return some_text(chance)
    if kind == 5:
        return [some_value(chance, depth + 1) for _ in range(chance.randrange(4))]
    if kind == 6:
        return [chance.choice(WORDS)] * chance.choice((1, 4, 40))
    return {some_name(chance): some_value(chance, depth + 1) for _ in range(chance.randrange(4))}


def some_name(chance: random.Random) -> str:
    return chance.choice(NAMES) if chance.random() < 0.8 else some_text(chance)[:40]


def some_action(chance: random.Random) -> tuple[str, dict[str, Any]]:
    name = chance.choice(ACTIONS) if chance.random() < 0.8 else some_text(chance)[:100].strip() or "act"
    details: dict[str, Any] = {some_name(chance): some_value(chance) for _ in range(chance.randint(1, 4))}
    if chance.random() < 0.4:
        details["argv"] = [chance.choice(WORDS) for _ in range(chance.randint(1, 6))]
    return name, details


def some_pair(chance: random.Random) -> Pair:
    action, details = some_action(chance)
    how = chance.choice(sorted(CHANGES))
    if chance.random() < 0.1:
        return Pair(
            (action, details), (CHANGES[how](chance, action).strip() or "act", details), f"{how} in the name"
        )
    return Pair((action, details), (action, _changed(chance, details, how)), how)


def _changed(chance: random.Random, value: Any, how: str) -> Any:
    match value:
        case dict() if value:
            name = chance.choice([*value])
            if chance.random() < 0.15:
                return {
                    (CHANGES[how](chance, key) if key == name else key): each for key, each in value.items()
                }
            return {**value, name: _changed(chance, value[name], how)}
        case list() if value:
            place = chance.randrange(len(value))
            return [*value[:place], _changed(chance, value[place], how), *value[place + 1 :]]
        case str():
            return CHANGES[how](chance, value)
        case bool() | None:
            return chance.choice((str(value).lower(), int(bool(value)), [value], [], {}))
        case int() | float():
            return chance.choice((str(value), value + 1, [value], float(value) / 2))
    return chance.choice((None, "", [[]], [{}]))
