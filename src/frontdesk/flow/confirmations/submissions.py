"""Requests as they come in: read, checked, and brought into the one form that people vote on."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from frontdesk import errors
from frontdesk.formats import canonical, kinds, quoting
from frontdesk.model.confirmations import (
    DEFAULT_REQUESTER,
    MAX_ACTION_CHARACTERS,
    MAX_NAME_CHARACTERS,
    MAX_TEXT_CHARACTERS,
    Caller,
    CallerKind,
    Settings,
    Submission,
    clamp_timeout,
    is_reserved,
)

MAX_KEY_CHARACTERS = 255
MAX_URL_CHARACTERS = 2_000
BRIEF_CHARACTERS = 1_000
"""So much is read in a millisecond, whatever it is."""
VALUE_CHARACTERS = 8
"""What a value counts, besides its text."""

NOT_ONE_LINE = "it holds control characters, line ends or invisible formatting: use one line of plain text"
NOT_HTTP = "use an http or https address"
NOT_LISTED = "its address is not among those of confirm.callbacks"

_SCHEMES = ("http", "https")
_NOT_IN_URLS = re.compile(r"[\s\\#]")
_SLASHES = re.compile(r"[/\\]")
_DOTS = frozenset({".", ".."})
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


async def read(data: Mapping[str, Any], caller: Caller, settings: Settings) -> Submission:
    """As `read_submission`, and nobody waits meanwhile for what takes long."""
    if is_brief(data):
        return read_submission(data, caller, settings)
    return await asyncio.to_thread(read_submission, data, caller, settings)


def is_brief(data: object) -> bool:
    """Whether it is sooner read than handed to a thread."""
    waiting, left = [data], BRIEF_CHARACTERS
    while waiting and left > 0:
        value = waiting.pop()
        left -= VALUE_CHARACTERS
        match value:
            case str():
                left -= len(value)
            case dict() | list() if len(value) > left:
                return False
            case dict():
                waiting += (*value, *value.values())
            case list():
                waiting += value
            case int() | float() | None:
                pass
            case _:
                return False
    return left > 0


def read_submission(data: Mapping[str, Any], caller: Caller, settings: Settings) -> Submission:
    """What is asked for. InvalidInput when something is missing or cannot be used."""
    action = _plain("action", needed(data, "action", MAX_ACTION_CHARACTERS))
    details = data.get("details")
    if details is None:
        details = {}
    if not isinstance(details, Mapping):
        raise errors.InvalidInput(what="details", why="use an object")
    payload = canonical.payload(action, details)
    kind, target = kinds.of(action, details)
    return Submission(
        action=action,
        description=needed(data, "description", MAX_TEXT_CHARACTERS),
        payload=payload,
        digest=canonical.digest(payload),
        requester=_requester(data, caller),
        session_key=cleaned("session_key", data.get("session_key"), MAX_TEXT_CHARACTERS),
        timeout_seconds=clamp_timeout(data.get("timeout_seconds")),
        callback_url=_callback(data, settings),
        kind_digest=kind,
        target_digest=target,
    )


def _requester(data: Mapping[str, Any], caller: Caller) -> str:
    """Whoever showed a credential is known by it, whatever they call themselves."""
    named = _plain(
        "requester", cleaned("requester", data.get("requester"), MAX_NAME_CHARACTERS) or DEFAULT_REQUESTER
    )
    if caller.kind is not CallerKind.ANYBODY:
        return caller.id
    if is_reserved(named):
        raise errors.InvalidInput(what="requester", why="only somebody with a credential goes by that name")
    return named


def _plain(what: str, text: str) -> str:
    """A text that looks like what it is, wherever it is shown."""
    if not quoting.is_one_line(text):
        raise errors.InvalidInput(what=what, why=NOT_ONE_LINE)
    return text


def _callback(data: Mapping[str, Any], settings: Settings) -> str | None:
    """An address under one that was allowed, whoever reads it: it leads nowhere else."""
    url = cleaned("callback_url", data.get("callback_url"), MAX_URL_CHARACTERS)
    if url is None:
        return None
    if why := _fault(url):
        raise errors.InvalidInput(what="callback_url", why=why)
    if not url.startswith(settings.callbacks):
        raise errors.InvalidInput(what="callback_url", why=NOT_LISTED)
    return url


def _fault(url: str) -> str | None:
    if _NOT_IN_URLS.search(url) or not quoting.is_one_line(url):
        return "use an address without spaces, control characters, backslashes and '#'"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return NOT_HTTP
    if parts.scheme not in _SCHEMES or not parts.hostname:
        return NOT_HTTP
    if "@" in parts.netloc:
        return "use an address without a user's name"
    if not _DOTS.isdisjoint(_SLASHES.split(unquote(parts.path))):
        return "use an address without '.' and '..' in its path"
    return None


def needed(data: Mapping[str, Any], name: str, most: int) -> str:
    text = cleaned(name, data.get(name), most)
    if text is None:
        raise errors.InvalidInput(what=name, why="it is missing or blank")
    return text


def cleaned(name: str, value: object, most: int) -> str | None:
    """A text without the space around it; None when there is none."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise errors.InvalidInput(what=name, why="use a text")
    text = value.strip()
    if len(text) > most:
        raise errors.InvalidInput(what=name, why=f"it is longer than {most} characters")
    if _UNSTORABLE.search(text):
        raise errors.InvalidInput(what=name, why="it holds characters that cannot be stored")
    return text or None
