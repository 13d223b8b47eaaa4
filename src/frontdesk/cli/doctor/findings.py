"""What the doctor finds."""

from collections.abc import Callable
from enum import StrEnum

import msgspec

from frontdesk import errors
from frontdesk.cli import one_line
from frontdesk.config import Config


class Severity(StrEnum):
    OK = "ok"
    NOTE = "note"
    """Nothing is wrong, but something is not known."""
    WARNING = "warning"
    FAILED = "failed"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    check: str = ""
    verdict: Severity = Severity.OK
    text: str


Check = Callable[[Config], Finding | list[Finding]]


def warning(text: str) -> Finding:
    return Finding(verdict=Severity.WARNING, text=text)


def failed(text: str) -> Finding:
    return Finding(verdict=Severity.FAILED, text=text)


def examine(check: str, look: Check, loaded: Config) -> list[Finding]:
    """What a check finds; what stands in its way is a finding, too."""
    try:
        found = look(loaded)
    except errors.FrontdeskError as error:
        found = failed(one_line(error))
    several = [found] if isinstance(found, Finding) else found
    return [msgspec.structs.replace(each, check=check) for each in several]
