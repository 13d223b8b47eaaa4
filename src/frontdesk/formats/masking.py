"""Secrets, hidden where a value is shown: found by the name they go by, or by how they look.

For showing only. That something is there stays visible, and so does the shape of a list or an object that
goes by a secret's name. Nothing is hidden that could be run: a path, a flag, what has white space or signs of
a shell in it, and whatever follows a bare ``--``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import msgspec

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

# What could be run, or be a target of what is: a path, a flag, several words, anything that a shell reads.
_RUNNABLE = re.compile(r"\A(?:[/~-]|\.\.?/)|[\s`$;|&<>(){}\\\"']")
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


def _shape(opening: str, form: str, *, after: str = "[A-Za-z0-9]") -> tuple[str, re.Pattern[str]]:
    """Something that begins with exactly these characters, and does not go on from what is before them."""
    return opening, re.compile(f"{re.escape(opening)}(?<!{after}{re.escape(opening)}){form}", re.ASCII)


_KEY_OPENING = "-----BEGIN "
# What looks like a secret wherever it stands: how it begins, and the whole or the group of it that is hidden.
_SHAPES = (
    _shape(
        _KEY_OPENING,
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
_NUMBERED_BOT = re.compile(r":(?<=[0-9]{8}:)(?P<bot>[\w-]{35})(?![\w-])", re.ASCII)
_DOTTED_BOT = re.compile(r"[MNO](?<![\w-][MNO])[\w-]{23,}+\.[\w-]{6}\.[\w-]{27,}+", re.ASCII)


class Partly(msgspec.Struct, frozen=True):
    """A text of which something is hidden: its parts in order, None for each hidden one."""

    parts: tuple[str | None, ...]

    def __str__(self) -> str:
        return "".join(MARK if part is None else part for part in self.parts)


HIDDEN = Partly((None,))


def covered(value: Any) -> Any:
    """The same structure, with a Partly in the place of everything that is a secret, and of every text that
    holds one."""
    return _covered(value, named=False)


def cover(text: str) -> str | Partly:
    """A text, or its parts when something in it looks like a secret."""
    spans = merge([*_assigned(text), *_shaped(text), *_users(text)])
    return _without(text, spans) if spans else text


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
    return _without(text, spans) if spans else cover(text)


def _secret_parts(text: str) -> list[Interval]:
    """What is hidden of a text that goes by a secret's name: all of it, else its parts that may be."""
    scheme = _SCHEME.match(text)
    parts = [(scheme.end(), len(text))] if scheme else _cookies(text)
    for spans in ([(0, len(text))], parts):
        if hidden := [span for span in spans if _may_hide(text, span)]:
            return hidden
    return []


def _hidden_end(text: str, start: int) -> str | Partly:
    """A text that is a secret from there on."""
    span = (start, len(text))
    return _without(text, [span]) if _may_hide(text, span) else cover(text)


def _without(text: str, spans: Iterable[Interval]) -> Partly:
    parts: list[str | None] = []
    shown = 0
    for start, end in spans:
        parts += [text[shown:start], None]
        shown = end
    return Partly(tuple(part for part in (*parts, text[shown:]) if part != ""))


def _may_hide(text: str, span: Interval) -> bool:
    """Not an empty text, and nothing that could be run."""
    start, end = span
    return start < end and not _RUNNABLE.search(text[start:end])


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
    yield from (span for span in spans if _may_hide(text, span))


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


def _shaped(text: str) -> Iterator[Interval]:
    for opening, shape in _SHAPES:
        start = text.find(opening)
        while start >= 0:
            found = shape.match(text, start)
            if found and (opening == _KEY_OPENING or _may_hide(text, found.span(found.lastgroup or 0))):
                yield found.span(found.lastgroup or 0)
            start = text.find(opening, found.end() if found else start + 1)
    for shape in (_NUMBERED_BOT, _DOTTED_BOT):
        yield from (found.span(found.lastgroup or 0) for found in shape.finditer(text))


def _users(text: str) -> Iterator[Interval]:
    """``curl -u name:password``."""
    if "curl" in text:
        spans = (found.span("user") for found in _USER.finditer(text))
        yield from (span for span in spans if _may_hide(text, span))
