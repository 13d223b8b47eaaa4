"""Anchors of the audit log: in a file, or at an address that keeps what it is told."""

import os
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path

import httpx

from frontdesk import errors
from frontdesk.flow.audits import Anchor
from frontdesk.model.audit import GENESIS

SECONDS = 30.0
ADDRESSES = ("https://", "http://")
NONE = (
    "it is empty or not there, so nothing was verified. If it has been used before, somebody has removed it;"
    " if not, begin it with --new-anchor"
)


def read(place: str, *, begins: bool = False) -> Anchor | None:
    """The newest anchor that is kept there. Unless it begins now, InvalidInput when there is none: one that
    is gone would have shown what was done to the log."""
    text = _asked(place) if place.startswith(ADDRESSES) else _in_file(Path(place))
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines and not begins:
        raise errors.InvalidInput(what=f"The anchor {place}", why=NONE)
    return Anchor.read(lines[-1]) if lines else None


def keep(place: str, newest: Anchor | None, known: Anchor | None) -> None:
    """Add the newest row to what is kept there, unless it is the last already. Of an empty log the beginning
    is kept, so that an anchor is there from then on."""
    newest = newest or Anchor(number=0, hash=GENESIS, at=datetime.now(UTC))
    if known and newest.number <= known.number:
        return
    if place.startswith(ADDRESSES):
        answer = _request("POST", place, f"{newest.line}\n")
        if answer.status_code == HTTPStatus.NOT_FOUND:
            raise errors.ServiceUnreachable(url=place, why="it does not keep what it is told (404)")
    else:
        descriptor = os.open(Path(place), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as opened:
            opened.write(f"{newest.line}\n")
            opened.flush()
            os.fsync(opened.fileno())


def _in_file(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise errors.InvalidInput(what=f"The anchor file {file}", why=str(error)) from error


def _asked(url: str) -> str:
    answer = _request("GET", url)
    return "" if answer.status_code == HTTPStatus.NOT_FOUND else answer.text


def _request(method: str, url: str, text: str | None = None) -> httpx.Response:
    """The answer; one that is neither good nor 404 is an error: nobody knows what is kept there then."""
    headers = {"content-type": "text/plain; charset=utf-8"} if text else {}
    try:
        answer = httpx.request(method, url, content=text, headers=headers, timeout=SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise errors.ServiceUnreachable(url=url, why=str(error) or type(error).__name__) from error
    if not answer.is_success and answer.status_code != HTTPStatus.NOT_FOUND:
        raise errors.ServiceUnreachable(url=url, why=f"it answered {answer.status_code}")
    return answer
