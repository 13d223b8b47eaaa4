"""Values of JSON, and pairs of them that are the same or nearly so."""

import random
import unicodedata
from collections.abc import Callable, Hashable
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from frontdesk.formats import canonical

NAMES = ("path", "argv", "env", "é", "e\u0301", "a b", "", "\U0001f600", "\ufb33", "PATH", "1", "cwd")
TEXTS = (
    "",
    "rm -rf build",
    "/srv/data",
    "/srv/../srv/data",
    "é",
    "e\u0301",
    "Å",
    "1",
    "1.0",
    "true",
    "null",
    "a\nb",
    "a\\nb",
    '"',
    "\\",
    "a\u202eb",
    "p\u0430th",
    "한",
    "\u1112\u1161\u11ab",
    "␣",
    "•••• (hidden)",
    "- 1",
    "a: 1",
    "{}",
    "日本／語",
)
NUMBERS = (0, 1, -1, 1.5, -0.0, 1e21, 1e-7, 5e-324, 0.1, 2**53 - 1, 100, 1e2, 9.999999999999997e22)


def is_exact(value: float) -> bool:
    """Whether the number has a canonical form that can be read again."""
    return not canonical.MAX_WHOLE < abs(value) < canonical.ALL_WHOLE_FROM


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(TEXTS)
numbers = (
    st.integers(-canonical.MAX_WHOLE, canonical.MAX_WHOLE)
    | st.floats(allow_nan=False, allow_infinity=False).filter(is_exact)
    | st.sampled_from(NUMBERS)
)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def meaning(value: Any) -> Hashable:
    """Equal for two values that are the same, number by number and character by character."""
    match value:
        case None | bool() | str():
            return type(value).__name__, value
        case int() | float():
            return "number", Fraction(value)
        case list() | tuple():
            return "list", tuple(map(meaning, value))
    return "object", frozenset((key, meaning(each)) for key, each in value.items())


def some_value(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.randrange(7 if depth < 3 else 4)
    if kind == 0:
        return chance.choice((None, True, False))
    if kind == 1:
        return chance.choice(NUMBERS)
    if kind <= 3:
        return chance.choice(TEXTS) + chance.choice(("", " ", "x", "\n"))
    if kind == 4:
        return [some_value(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {chance.choice(NAMES): some_value(chance, depth + 1) for _ in range(chance.randrange(4))}


SECRETS = ("token", "password", "credentials", "API_KEY", "Cookie", "tokens")
OPTIONS = ("--token", "--password=pW8xT3vN6cJ1", "--", "-u", "TOKEN=x", "--token x", "curl")
VALUES = (
    "aB3dE5gH7jK9",
    "Bearer kQ7zR2mX9pL4",
    "hunter2",
    "a=b; c=d",
    "rm -rf /",
    "/srv",
    "-rf",
    "rm",
    "$(rm)",
    "x;reboot",
    "~",
)


def some_secret_value(chance: random.Random, depth: int = 0) -> Any:
    """A value with secrets, and with what wants to pass for one."""
    kind = chance.randrange(6 if depth < 3 else 3)
    if kind < 2:
        return chance.choice(VALUES)
    if kind == 2:
        return chance.choice((None, True, 5, *OPTIONS))
    if kind == 3:
        return [chance.choice((*OPTIONS, *VALUES)) for _ in range(chance.randrange(6))]
    if kind == 4:
        return [some_secret_value(chance, depth + 1) for _ in range(chance.randrange(4))]
    names = (*SECRETS, "command", "args", "name", "value")
    return {chance.choice(names): some_secret_value(chance, depth + 1) for _ in range(chance.randrange(4))}


def some_secret_pair(chance: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """The details of two actions with secrets; mostly a single place differs."""
    first = {name: some_secret_value(chance) for name in ("argv", "env", *chance.sample(SECRETS, 2))}
    return first, changed_secret(first, chance)


def changed_secret(value: Any, chance: random.Random) -> Any:
    match value:
        case dict() if value:
            name = chance.choice([*value])
            return {**value, name: changed_secret(value[name], chance)}
        case list() if value and chance.randrange(4):
            place = chance.randrange(len(value))
            return [*value[:place], changed_secret(value[place], chance), *value[place + 1 :]]
        case str() if chance.randrange(2):
            return chance.choice((*VALUES, value + "x", f"{value} /etc", value + ";x"))
    return some_secret_value(chance)


def some_pair(chance: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """The details of two actions; mostly a single place differs, or nothing but the spelling."""
    first = {name: some_value(chance) for name in chance.sample(NAMES, 3)}
    if chance.randrange(10) == 0:
        return first, {name: some_value(chance) for name in chance.sample(NAMES, 3)}
    return first, changed(first, chance)


def changed(value: Any, chance: random.Random) -> Any:
    match value:
        case dict() if value and chance.randrange(4):
            name = chance.choice([*value])
            return {**value, name: changed(value[name], chance)}
        case list() if value and chance.randrange(4):
            place = chance.randrange(len(value))
            return [*value[:place], changed(value[place], chance), *value[place + 1 :]]
        case dict() | list():
            return chance.choice(_CHANGES[type(value)])(value)
        case str():
            return chance.choice(_CHANGES[str])(value)
        case bool() | None:
            return chance.choice(
                (None, True, False, str(value), str(value).lower(), int(bool(value)), [value])
            )
        case _:
            return chance.choice(
                (float(value), -value, value - 1, str(value), canonical.number(value), [value])
            )


_CHANGES: dict[type, tuple[Callable[[Any], Any], ...]] = {
    str: (
        lambda text: text + " ",
        lambda text: " " + text,
        lambda text: text + "\u200b",
        lambda text: text + "\u00a0",
        lambda text: text + "\r",
        lambda text: text.replace(" ", "  "),
        lambda text: text.replace(" ", "\t"),
        lambda text: text.replace("a", "\u0430"),
        lambda text: text.replace("/", "\u2215"),
        lambda text: unicodedata.normalize("NFD", text),
        lambda text: unicodedata.normalize("NFC", text),
        lambda text: text.upper(),
        lambda text: [text],
        lambda text: text.split(" "),
        lambda text: {text: text},
        lambda text: None,
    ),
    list: (
        lambda items: [*items, None],
        lambda items: items[:-1],
        lambda items: items[::-1],
        lambda items: [items],
        lambda items: [" ".join(map(str, items))],
        lambda items: {str(place): item for place, item in enumerate(items)},
        str,
    ),
    dict: (
        lambda members: dict(reversed(members.items())),
        lambda members: {**members, "LD_PRELOAD": "/tmp/x.so"},
        lambda members: dict([*members.items()][:-1]),
        lambda members: {name + " ": each for name, each in members.items()},
        lambda members: {unicodedata.normalize("NFD", name): each for name, each in members.items()},
        lambda members: [[name, each] for name, each in members.items()],
        str,
    ),
}
