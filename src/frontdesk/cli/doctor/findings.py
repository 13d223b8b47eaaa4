"""What the doctor finds."""

from enum import StrEnum

import msgspec


class Verdict(StrEnum):
    OK = "ok"
    NOTE = "note"
    """Nothing is wrong, but something is not known."""
    WARNING = "warning"
    FAILED = "failed"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    check: str
    verdict: Verdict = Verdict.OK
    text: str
