"""Secrets, hidden where a value is shown: found by the name they go by, or by how they look.

For showing only. A list or an object that goes by a secret's name is hidden whole. That something is there
stays visible, and so does a value with something in it that a shell would run.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import msgspec

MARK = "•••• (hidden)"

# The names of secrets. "pgpassword" and "accesstoken" are words, too.
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET = re.compile(
    r"\w*(?:password|passwd|passphrase|passcode|pwd|secret|token|credential|authorization|cookie"
    r"|(?:api|access|secret|private)key)s?"
)
_SECRET_AT_LAST = frozenset({"bearer", "jwt", "otp", "pass"})
_SECRET_KEY = re.compile(
    r"access|account|aes|api|app|auth|bot|client|deploy|encryption|gpg|hmac|license|master|pgp|private|rsa"
    r"|secret|service|signing|ssh|subscription|webhook"
)
# Last words that say: it is about a secret, and is none.
_ABOUT = re.compile(
    r"address|age|algorithm|arn|at|audience|budget|count|days|dir|disabled|domain|enabled|endpoint|expiration"
    r"|expires|expiry|field|files?|format|hint|hours|ids?|issuer|kind|len|length|limits?|location|manager"
    r"|minutes|mode|names?|optional|owner|paths?|policy|prefix|provider|ref|reference|required|rotation|scopes?"
    r"|seconds|size|source|state|status|stdin|store|strength|ttl|type|uri|url|usage|user|username|vault|versions?"
)
_DIRECTORIES = frozenset({"PWD", "OLDPWD"})
# First words of options that take no value: what follows them is something else.
_SWITCH = re.compile(r"allow|ask|disable|enable|generate|no|prompt|require|show|skip|use|with|without")

_OPTION = re.compile(r"--?[\w.-]+")
_USER_OPTIONS = frozenset({"-u", "-U", "--user", "--proxy-user"})
_LABELS = ("name", "key", "header", "variable")

_REFERENCE = re.compile(r"\$[A-Z_][A-Z0-9_]*|\$\{\w+\}|\$?\{\{[^{}]*\}\}")
_RUNNABLE = re.compile(r"\$\(|`|&&|\|\||\s\||[\r\n]|;\s++(?![\w.-]+(?:=|;|$))")

# Values in a longer text.
_NAME = re.compile(
    r"(?<![\w.-])(?P<name>[\w.-]++)"
    r"(?:\\{0,4}[\"']?(?:[ \t]*:[ \t]*|=|[ \t]+=[ \t]+)(?:(?:bearer|basic|digest|token|apikey)[ ]+)?"
    r"|(?P<gap>[ \t]+)(?!-))",
    re.IGNORECASE,
)
_BARE = r"(?:[^\s;|&<>()`\"'{}\[\],$\\]|[,$](?![\s({]))++"
_VALUE = re.compile(
    r"\"(?P<double>(?:[^\"\\\r\n]|\\.)*+)"
    r"|\\{1,4}\"(?P<escaped>(?:[^\"\\\r\n]|\\(?!\\*\"))*+)"
    r"|'(?P<single>[^'\r\n]*+)"
    rf"|(?P<bare>{_BARE})(?![(\[])",
)
_MORE_COOKIES = re.compile(rf"(?:;[ ]?[\w.-]+={_BARE})*+")
_USER = re.compile(rf"(?<!\S)(?:-u|-U|--user|--proxy-user)(?:[ \t]+|=)[\"']?[^\s:\"']++:(?P<user>{_BARE})")
_IN_NAMES = re.compile(
    "pass|pwd|secret|token|key|credential|authorization|cookie|bearer|jwt|otp", re.IGNORECASE
)


def _shape(opening: str, form: str, *, after: str = "[A-Za-z0-9]") -> tuple[str, re.Pattern[str]]:
    """Something that begins with exactly these characters, and does not go on from what is before them."""
    return opening, re.compile(f"{re.escape(opening)}(?<!{after}{re.escape(opening)}){form}", re.ASCII)


# What looks like a secret wherever it stands: how it begins, and the whole or the group of it that is hidden.
_SHAPES = (
    _shape(
        "-----BEGIN ",
        # The lines of a key are long but for the last one.
        r"[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:\s|\\n)*+"
        r"(?:(?:Proc-Type|DEK-Info|Version|Comment): [\w ,.()-]*+(?:\s|\\n)++)*+"
        r"(?:(?:[A-Za-z0-9+/=]{40,}+(?:\s|\\n)*+)++"
        r"(?:(?:[A-Za-z0-9+/=]{1,76}+(?:\s|\\n)*+)?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----)?)?",
    ),
    _shape("AGE-SECRET-KEY-1", r"[A-Z0-9]{20,}+"),
    *(_shape(kind, r"[A-Z0-9]{16}(?![A-Za-z0-9])") for kind in ("AKIA", "ASIA", "ABIA", "ACCA")),
    *(_shape(kind, r"[A-Za-z0-9]{20,}+") for kind in ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "hf_", "npm_")),
    *(_shape(kind, r"\w{20,}+") for kind in ("github_pat_", "dop_v1_", "doo_v1_", "dor_v1_")),
    *(_shape(kind, r"[\w-]{16,}+") for kind in ("glpat-", "pypi-", "AIza", "ya29.")),
    *(_shape(f"xox{kind}-", r"[A-Za-z0-9-]{10,}+") for kind in "abcdeoprs"),
    _shape("xapp-", r"[A-Za-z0-9-]{10,}+"),
    _shape("hooks.slack.com/services/", r"(?P<hook>[\w/-]++)"),
    _shape("sk-", r"(?=[\w-]*[0-9])[\w-]{16,}+", after=r"[\w-]"),
    *(
        _shape(f"{kind}_{mode}_", r"[A-Za-z0-9]{16,}+")
        for kind in ("sk", "rk", "pk")
        for mode in ("live", "test")
    ),
    _shape("whsec_", r"[A-Za-z0-9+/=]{16,}+"),
    _shape("SG.", r"[\w-]{16,}+\.[\w-]{16,}+"),
    _shape("eyJ", r"[\w-]{8,}+\.[\w-]{8,}+\.[\w-]*+", after=r"[\w-]"),
    *(
        _shape(f"{scheme} ", r"[ ]*+(?P<proof>(?=[\w.~+/=-]*[0-9]|[\w.~+/=-]{20})[\w.~+/=-]{8,}+)")
        for scheme in ("Bearer", "bearer", "BEARER", "Basic", "basic", "BASIC")
    ),
    # https://user:password@host, or a token in the place of the user.
    _shape("://", r"[^\s/?#@:]*+:(?P<password>[^\s/?#@`|;&<>()]++)@", after="[:]"),
    _shape("://", r"(?P<token>[^\s/?#@:`|;&<>()]{20,}+)@", after="[:]"),
)
_TELEGRAM = re.compile(r":(?<=[0-9]{8}:)(?P<bot>[\w-]{35})(?![\w-])", re.ASCII)
_DISCORD = re.compile(r"[MNO](?<![\w-][MNO])[\w-]{23,}+\.[\w-]{6}\.[\w-]{27,}+", re.ASCII)


class Partly(msgspec.Struct, frozen=True):
    """A text of which something is hidden: its parts in order, None for each hidden one."""

    parts: tuple[str | None, ...]

    def __str__(self) -> str:
        return "".join(MARK if part is None else part for part in self.parts)


HIDDEN = Partly((None,))


def masked(value: Any) -> Any:
    """The same structure, with MARK in the place of every secret."""
    return _plain(covered(value))


def covered(value: Any) -> Any:
    """The same structure, with a Partly in the place of everything that is a secret, and of every text that
    holds one."""
    return _covered(value, named=False)


def cover(text: str) -> str | Partly:
    """A text, or its parts when something in it looks like a secret."""
    spans = _merged([*_assigned(text), *_shaped(text), *_users(text)])
    if not spans:
        return text
    parts: list[str | None] = []
    shown = 0
    for start, end in spans:
        parts += [text[shown:start], None]
        shown = end
    return Partly(tuple(part for part in (*parts, text[shown:]) if part != ""))


def is_secret(name: str) -> bool:
    """Whether what goes by this name is a secret: ``DB_PASSWORD``, ``apiKey``, ``--token``."""
    words = _words(name)
    if not words or _ABOUT.fullmatch(words[-1]) or name in _DIRECTORIES:
        return False
    if words[-1] in _SECRET_AT_LAST or any(map(_SECRET.fullmatch, words)):
        return True
    return any(_SECRET_KEY.fullmatch(kind) and key in ("key", "keys") for kind, key in pairwise(words))


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name)]


def _plain(value: Any) -> Any:
    match value:
        case Partly():
            return str(value)
        case Mapping():
            shown: dict[Any, Any] = {}
            for key, each in value.items():
                shown[_free_name(key, shown)] = _plain(each)
            return shown
        case list() | tuple():
            return [_plain(each) for each in value]
        case _:
            return value


def _free_name(key: Any, taken: Mapping[Any, Any]) -> Any:
    """The key as it may be shown; two that would look the same are told apart."""
    name = str(cover(key)) if isinstance(key, str) else key
    number = 2
    free = name
    while free in taken:
        free = f"{name} ({number})"
        number += 1
    return free


def _covered(value: Any, *, named: bool) -> Any:
    """``named``: it goes by a secret's name, or is part of something that does and is not hidden whole."""
    if named and isinstance(value, Mapping | list | tuple) and value and not _could_run(value):
        return HIDDEN
    match value:
        case str():
            return _hidden_text(value) if named else cover(value)
        case Mapping():
            labelled = any(isinstance(value.get(label), str) and is_secret(value[label]) for label in _LABELS)
            return {key: _member(key, each, named=named, labelled=labelled) for key, each in value.items()}
        case list() | tuple():
            return [*_listed(value, named=named)]
        case bool() | None:
            return value
        case int() | float():
            return HIDDEN if named else value
        case _:
            return value


def _member(key: Any, value: Any, *, named: bool, labelled: bool) -> Any:
    if not isinstance(key, str) or not (words := _words(key)):
        return _covered(value, named=named)
    inherited = named and not _ABOUT.fullmatch(words[-1])
    by_name = is_secret(key) or inherited or (labelled and words == ["value"])
    # A number of tokens is no token.
    counted = isinstance(value, int | float) and words[-1].endswith("s")
    return _covered(value, named=by_name and not counted)


def _listed(values: list[Any] | tuple[Any, ...], *, named: bool) -> Iterator[Any]:
    """The items; one that follows ``--token`` is a token."""
    curl = any(isinstance(each, str) and each.rpartition("/")[2] == "curl" for each in values)
    before: Any = None
    for each in values:
        if isinstance(before, str) and isinstance(each, str) and _takes_secret(before, each):
            yield _hidden_text(each)
        elif curl and before in _USER_OPTIONS and isinstance(each, str) and ":" in each:
            yield Partly((each.partition(":")[0] + ":", None))
        else:
            yield _covered(each, named=named)
        before = each


def _takes_secret(option: str, value: str) -> bool:
    return bool(_OPTION.fullmatch(option)) and _is_secret_option(option) and not value.startswith("-")


def _is_secret_option(option: str) -> bool:
    return option.startswith("-") and is_secret(option) and not _SWITCH.fullmatch(_words(option)[0])


def _could_run(value: Any) -> bool:
    """Whether there is a text somewhere in it that a shell would run."""
    match value:
        case str():
            return bool(_RUNNABLE.search(value))
        case Mapping():
            return any(_could_run(each) for pair in value.items() for each in pair)
        case list() | tuple():
            return any(map(_could_run, value))
    return False


def _hidden_text(text: str) -> str | Partly:
    """A text that goes by a secret's name."""
    return HIDDEN if _may_hide(text) else cover(text)


def _may_hide(text: str) -> bool:
    """Not an empty text, not one that names where the secret is, and nothing that could be run."""
    return bool(text) and not _REFERENCE.fullmatch(text) and not _could_run(text)


def _assigned(text: str) -> Iterator[tuple[int, int]]:
    """Where the values stand of what is assigned in a text: ``--password=x``, ``TOKEN: x``, ``--token x``."""
    if not _IN_NAMES.search(text):
        return
    position = 0
    while found := _NAME.search(text, position):
        position = found.end()
        named = is_secret(found["name"]) if found["gap"] is None else _is_secret_option(found["name"])
        if named and (span := _value(text, position, cookies=found["name"].lower().endswith("cookie"))):
            yield span
            position = span[1]


def _value(text: str, position: int, *, cookies: bool) -> tuple[int, int] | None:
    found = _VALUE.match(text, position)
    if found is None or found.lastgroup is None:
        return None
    start, end = found.span(found.lastgroup)
    if cookies and found.lastgroup == "bare" and (more := _MORE_COOKIES.match(text, end)):
        end = more.end()
    return (start, end) if start < end and _may_hide(text[start:end]) else None


def _shaped(text: str) -> Iterator[tuple[int, int]]:
    for opening, shape in _SHAPES:
        start = text.find(opening)
        while start >= 0:
            found = shape.match(text, start)
            if found:
                yield found.span(found.lastgroup or 0)
            start = text.find(opening, found.end() if found else start + 1)
    for shape in (_TELEGRAM, _DISCORD):
        yield from (found.span(found.lastgroup or 0) for found in shape.finditer(text))


def _users(text: str) -> Iterator[tuple[int, int]]:
    """``curl -u name:password``."""
    return (found.span("user") for found in _USER.finditer(text)) if "curl" in text else iter(())


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """In order, those that touch as one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
