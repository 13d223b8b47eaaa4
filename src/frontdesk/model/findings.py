"""What somebody who looks for trouble has found."""

from enum import StrEnum

import msgspec


class Severity(StrEnum):
    OK = "ok"
    NOTE = "note"
    """Nothing is wrong, but something is not known, or should be."""
    WARNING = "warning"
    FAILED = "failed"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    check: str = ""
    verdict: Severity = Severity.OK
    text: str
    """For people: what is so, and what to do about it."""


def note(text: str) -> Finding:
    return Finding(verdict=Severity.NOTE, text=text)


def warning(text: str) -> Finding:
    return Finding(verdict=Severity.WARNING, text=text)


def failed(text: str) -> Finding:
    return Finding(verdict=Severity.FAILED, text=text)
