"""Secrets by their shape: what looks like one wherever it stands, and what can be none."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from frontdesk.formats.words import Interval

# What could be run, or be a target of what is: a path, a flag, several words, anything that a shell reads.
_RUNNABLE = re.compile(r"\A(?:[/~-]|\.\.?/)|[\s`$;|&<>(){}\\\"']")


def _shape(opening: str, form: str, *, after: str = "[A-Za-z0-9]") -> tuple[str, str]:
    """Something that begins with exactly these characters, and does not go on from what is before them."""
    return opening, f"{re.escape(opening)}(?<!{after}{re.escape(opening)}){form}"


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
_OPENING = re.compile("|".join({re.escape(opening): None for opening, _ in _SHAPES}))
_NUMBERED_BOT = re.compile(r":(?<=[0-9]{8}:)(?P<bot>[\w-]{35})(?![\w-])", re.ASCII)
# What is hidden by its shape alone; of everything else that may be a secret, what seems drawn by chance.
_CERTAIN = re.compile(rf"{_KEY_OPENING}|AGE-SECRET-KEY-1|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{{16}}\Z")
_BEFORE_PASSWORD = re.compile(r"://[^\s/?#@:]*:\Z")
_DOTTED_BOT = re.compile(r"[MNO](?<![\w-][MNO])[\w-]{23,}+\.[\w-]{6}\.[\w-]{27,}+", re.ASCII)


def may_hide(text: str, span: Interval) -> bool:
    """Not an empty text, and nothing that could be run."""
    start, end = span
    return start < end and not _RUNNABLE.search(text[start:end])


@cache
def _read(form: str) -> re.Pattern[str]:
    """When it is first looked for: few programs look for any of them."""
    return re.compile(form, re.ASCII)


def shaped(text: str) -> Iterator[Interval]:
    # Most texts have none of them: one look is enough for those.
    for opening, form in _SHAPES if _OPENING.search(text) else ():
        start = text.find(opening)
        while start >= 0:
            found = _read(form).match(text, start)
            if found and (opening == _KEY_OPENING or may_hide(text, found.span(found.lastgroup or 0))):
                yield found.span(found.lastgroup or 0)
            start = text.find(opening, found.end() if found else start + 1)
    for shape in (_NUMBERED_BOT, _DOTTED_BOT):
        yield from (found.span(found.lastgroup or 0) for found in shape.finditer(text))


def is_certain(value: Any, before: object, after: object) -> bool:
    """Whether its shape, or its place in an address, is enough."""
    if not isinstance(value, str):
        return False
    in_address = isinstance(before, str) and _BEFORE_PASSWORD.search(before) and str(after).startswith("@")
    return bool(in_address or _CERTAIN.match(value))
