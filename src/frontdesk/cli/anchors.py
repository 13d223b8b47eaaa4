"""Anchors of the audit log: in a file, or at an address that keeps what it is told."""

import os
from http import HTTPStatus
from pathlib import Path

import httpx

from frontdesk import errors
from frontdesk.flow.audits import Anchor

SECONDS = 30.0
ADDRESSES = ("https://", "http://")


def read(place: str) -> Anchor | None:
    """The newest anchor that is kept there; None when there is none yet."""
    text = _asked(place) if place.startswith(ADDRESSES) else _in_file(Path(place))
    lines = [line for line in text.splitlines() if line.strip()]
    return Anchor.read(lines[-1]) if lines else None


def keep(place: str, newest: Anchor | None, known: Anchor | None) -> None:
    """Add the newest row to what is kept there, unless it is the last already."""
    if newest is None or (known and newest.number <= known.number):
        return
    if place.startswith(ADDRESSES):
        _tell(place, newest.line)
    else:
        _add(Path(place), newest.line)


def _in_file(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise errors.InvalidInput(what=f"The anchor file {file}", why=str(error)) from error


def _add(file: Path, line: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as opened:
        opened.write(f"{line}\n")
        opened.flush()
        os.fsync(opened.fileno())


def _asked(url: str) -> str:
    answer = _request("GET", url)
    return "" if answer.status_code == HTTPStatus.NOT_FOUND else answer.text


def _tell(url: str, line: str) -> None:
    answer = _request("POST", url, f"{line}\n")
    if answer.status_code == HTTPStatus.NOT_FOUND:
        raise errors.ServiceUnreachable(url=url, why="it does not keep what it is told (404)")


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
