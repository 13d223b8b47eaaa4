"""Secrets, hidden where a value is shown.

For showing only. Where people decide, only that is hidden which looks like a secret itself: by its shape, or
because it seems drawn by chance. The word before it hides nothing: ``dropdb --password production`` is shown.
Where others read along (``wide``), what goes by a secret's name is hidden, too, whatever it looks like.

That something is there stays visible, and so does the shape of a list or an object that goes by a secret's
name. Nothing is hidden that could be run: a path, a flag, what has white space or signs of a shell in it, and
whatever follows a bare ``--``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import msgspec

from frontdesk.formats.randomness import random_parts
from frontdesk.formats.shapes import is_certain, may_hide, shaped
from frontdesk.formats.words import Interval, merge

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
    # What prints a secret is run for that.
    r"|args?|arguments|argv|cmd|command|exec|executable|hook|program|script|shell"
)
_DIRECTORIES = frozenset({"PWD", "OLDPWD"})
# First words of options that take no value: what follows them is something else.
_SWITCH = re.compile(r"allow|ask|disable|enable|generate|no|prompt|require|show|skip|use|with|without")

_OPTION = re.compile(r"--?[\w.-]+")
_USER_OPTIONS = frozenset({"-u", "-U", "--user", "--proxy-user"})
_ASSIGNMENT = re.compile(r"(?P<name>[\w.-]+)(?:=|:[ ]*)")
_TAKES_CODE = re.compile(r"-\w*c")
_CODE_BEFORE = re.compile(r"(?<!\S)-\w*c[ \t]+\\*[\"']\Z")
_LOOK_BEHIND = 20
_LABELS = ("name", "key", "header", "variable")

_SCHEME = re.compile(r"(?:bearer|basic|digest|token|apikey) +", re.IGNORECASE)
END_OF_OPTIONS = "--"
_END_IN_TEXT = re.compile(r"(?<!\S)--(?!\S)")

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
    rf"|(?P<bare>{_BARE})(?![(\[]|\\\s)",
)
_COOKIE = re.compile(rf"(?:\A|;[ ]?)[\w.-]+=(?P<value>{_BARE})")
_USER = re.compile(rf"(?<!\S)(?:-u|-U|--user|--proxy-user)(?:[ \t]+|=)[\"']?[^\s:\"']++:(?P<user>{_BARE})")
_IN_NAMES = re.compile(
    "pass|pwd|secret|token|key|credential|authorization|cookie|bearer|jwt|otp", re.IGNORECASE
)


class Hidden(msgspec.Struct, frozen=True):
    """Something that is not shown."""

    value: Any

    def __repr__(self) -> str:
        return MARK

    @property
    def characters(self) -> int:
        return len(str(self.value))


class Partly(msgspec.Struct, frozen=True):
    """A text of which something is hidden: its parts in order."""

    parts: tuple[str | Hidden, ...]

    def __str__(self) -> str:
        return "".join(MARK if isinstance(part, Hidden) else part for part in self.parts)

    @property
    def hidden(self) -> tuple[Hidden, ...]:
        return tuple(part for part in self.parts if isinstance(part, Hidden))

    @property
    def is_all_hidden(self) -> bool:
        return len(self.hidden) == len(self.parts)


def covered(value: Any, *, wide: bool = False) -> Any:
    """The same structure, with a Partly in the place of everything that is a secret, and of every text that
    holds one."""
    named = _covered(value, named=False)
    return named if wide else _narrowed(named)


def cover(text: str, *, wide: bool = False) -> str | Partly:
    """A text, or its parts when something in it looks like a secret."""
    found = _cover(text)
    shown: str | Partly = found if wide else _narrowed(found)
    return shown


def _cover(text: str) -> str | Partly:
    spans = merge([*_assigned(text), *shaped(text), *_users(text)])
    return _without(text, spans) if spans else text


def _narrowed(value: Any) -> Any:
    """Of what goes by a secret's name, hidden is what looks like one."""
    match value:
        case Partly():
            return _narrowed_text(value)
        case Mapping():
            return {key: _narrowed(each) for key, each in value.items()}
        case list():
            return [*map(_narrowed, value)]
    return value


def _narrowed_text(text: Partly) -> Any:
    parts: list[str | Hidden] = []
    for before, part, after in zip(("", *text.parts), text.parts, (*text.parts[1:], ""), strict=False):
        if isinstance(part, str) or is_certain(part.value, before, after):
            parts.append(part)
        elif not isinstance(part.value, str):
            return part.value
        else:
            parts += _without(part.value, random_parts(part.value)).parts
    if any(isinstance(part, Hidden) for part in parts):
        return _merged(parts)
    return "".join(map(str, parts))


def _merged(parts: Iterable[str | Hidden]) -> Partly:
    """The parts, texts that follow each other as one."""
    merged: list[str | Hidden] = []
    for part in parts:
        if merged and isinstance(part, str) and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return Partly(tuple(merged))


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


def _covered(value: Any, *, named: bool) -> Any:
    """``named``: it goes by a secret's name, or is part of something that does."""
    match value:
        case str():
            return _hidden_text(value) if named else _cover(value)
        case Mapping():
            labelled = any(isinstance(value.get(label), str) and is_secret(value[label]) for label in _LABELS)
            return {key: _member(key, each, named=named, labelled=labelled) for key, each in value.items()}
        case list() | tuple():
            return [*_listed(value, named=named)]
        case bool() | None:
            return value
        case int() | float():
            return Partly((Hidden(value),)) if named else value
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
    """The items; one that follows ``--token`` is a token. After a bare ``--`` there are no options."""
    curl = any(isinstance(each, str) and each.rpartition("/")[2] == "curl" for each in values)
    before = ""
    ended = False
    for each in values:
        if not isinstance(each, str):
            yield _covered(each, named=named)
        elif ended:
            yield each
        elif _is_secret_option(before):
            yield _hidden_text(each)
        elif curl and before in _USER_OPTIONS and ":" in each:
            yield _hidden_end(each, each.index(":") + 1)
        elif not _TAKES_CODE.fullmatch(before) and (start := _value_start(each)):
            yield _joined(each[:start], _hidden_text(each[start:]))
        else:
            yield _covered(each, named=named)
        ended = ended or each == END_OF_OPTIONS
        before = each if isinstance(each, str) else ""


def _value_start(item: str) -> int:
    """Where the secret begins in ``TOKEN=x``, all of which is one argument; 0 when it is no such thing."""
    found = _ASSIGNMENT.match(item)
    return found.end() if found and is_secret(found["name"]) else 0


def _joined(before: str, text: str | Partly) -> str | Partly:
    return before + text if isinstance(text, str) else Partly((before, *text.parts))


def _is_secret_option(option: str) -> bool:
    """Whether what follows it is a secret: ``--token``, not ``--token=x`` or ``--no-token``."""
    if not _OPTION.fullmatch(option) or not is_secret(option):
        return False
    return not _SWITCH.fullmatch(_words(option)[0])


def _hidden_text(text: str) -> str | Partly:
    """A text that goes by a secret's name."""
    spans = _secret_parts(text)
    return _without(text, spans) if spans else _cover(text)


def _secret_parts(text: str) -> list[Interval]:
    """What is hidden of a text that goes by a secret's name: all of it, else its parts that may be."""
    scheme = _SCHEME.match(text)
    parts = [(scheme.end(), len(text))] if scheme else _cookies(text)
    for spans in ([(0, len(text))], parts):
        if hidden := [span for span in spans if may_hide(text, span)]:
            return hidden
    return []


def _hidden_end(text: str, start: int) -> str | Partly:
    """A text that is a secret from there on."""
    span = (start, len(text))
    return _without(text, [span]) if may_hide(text, span) else _cover(text)


def _without(text: str, spans: Iterable[Interval]) -> Partly:
    parts: list[str | Hidden] = []
    shown = 0
    for start, end in spans:
        parts += [text[shown:start], Hidden(text[start:end])]
        shown = end
    return Partly(tuple(part for part in (*parts, text[shown:]) if part != ""))


def _cookies(text: str) -> list[Interval]:
    """Where the values stand in ``a=b; c=d``, if it is that and nothing else."""
    found = [*_COOKIE.finditer(text)]
    whole = "".join(each[0] for each in found) == text
    return [each.span("value") for each in found] if whole else []


def _assigned(text: str) -> Iterator[Interval]:
    """Where the values stand of what is assigned in a text: ``--password=x``, ``TOKEN: x``, ``--token x``."""
    if not _IN_NAMES.search(text):
        return
    end = _END_IN_TEXT.search(text)
    position = 0
    while found := _NAME.search(text, position):
        position = found.end()
        name = found["name"]
        is_option = found["gap"] is not None
        is_over = end is not None and name.startswith("-") and found.start() > end.start()
        if not is_over and (_is_secret_option(name) if is_option else is_secret(name)):
            for span in _values(text, found):
                yield span
                position = span[1]


def _values(text: str, named: re.Match[str]) -> Iterator[Interval]:
    """What is hidden of the value that follows a name."""
    end = _end_of_quotes(text, named)
    if end is not None:
        value = text[named.end() : end].rstrip("\\")
        yield from ((named.end() + start, named.end() + stop) for start, stop in _secret_parts(value))
        return
    found = _VALUE.match(text, named.end())
    if found is None or found.lastgroup is None:
        return
    cookies = named["name"].lower().endswith("cookie")
    spans = [found.span(found.lastgroup)]
    while cookies and found.lastgroup == "bare" and (more := _COOKIE.match(text, spans[-1][1])):
        spans.append(more.span("value"))
    yield from (span for span in spans if may_hide(text, span))


def _end_of_quotes(text: str, named: re.Match[str]) -> int | None:
    """Where the quotes end that a name and its value stand in together, as in ``env 'TOKEN=x'``; None without
    any, and in ``sh -c 'TOKEN=x run'``."""
    before = text[max(named.start() - _LOOK_BEHIND, 0) : named.start()]
    quote = before[-1:]
    separator = text[named.end("name") : named.end()]
    if quote not in ("'", '"') or quote in separator or _CODE_BEFORE.search(before):
        return None
    end = text.find(quote, named.end())
    return end if end >= 0 else None


def _users(text: str) -> Iterator[Interval]:
    """``curl -u name:password``."""
    if "curl" in text:
        spans = (found.span("user") for found in _USER.finditer(text))
        yield from (span for span in spans if may_hide(text, span))
