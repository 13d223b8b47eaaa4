"""What the pages about work share: overview, turns and deliveries."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import msgspec

from frontdesk.app.office.counters import COUNTED
from frontdesk.formats import quoting
from frontdesk.web.pages.wording import say
from frontdesk.web.site.base import AnyQuery

PREVIEW_CHARACTERS = 300
WHERE_CHARACTERS = 100
ERROR_CHARACTERS = 200


class ShownQuery(AnyQuery, frozen=True, kw_only=True):
    """Which list is shown, and where its page begins."""

    show: str = ""
    after: str | None = None


class PageTab(msgspec.Struct, frozen=True, kw_only=True):
    """One of the lists of a page."""

    name: str
    path: str
    count: str
    """Nothing where there is none."""
    is_here: bool


def moment(written: str | None) -> datetime | None:
    return datetime.fromisoformat(written) if written else None


def tabs(path: str, counts: Mapping[Any, int], here: str) -> list[PageTab]:
    """A tab for each list, with how many are in it."""
    return [
        PageTab(
            name=str(name), path=f"{path}?show={name}", count=str(counted(count) or ""), is_here=name == here
        )
        for name, count in counts.items()
    ]


def title(place: str, lists: str, show: str) -> str:
    """Of a page with several lists: which one is shown."""
    return f"{say(f'{lists}.{show}')} · {say(f'places.{place}')}"


def counted(count: int) -> int | str:
    """How many, as far as they are counted."""
    return f"{COUNTED}+" if count >= COUNTED else count


def all_counted(counts: Mapping[str, Any]) -> dict[str, Any]:
    """The same of each number among others."""
    return {name: counted(each) if isinstance(each, int) else each for name, each in counts.items()}


def next_path(path: str, show: str, place: str | None) -> str | None:
    """Where a list goes on."""
    return f"{path}?{urlencode({'show': show, 'after': place})}" if place else None


def item(row: Mapping[str, Any], signs: Mapping[Any, tuple[str, str]]) -> dict[str, Any]:
    """A row as a list shows it: its platform's tile, the sign of its state, its first words."""
    sign, mood = signs[row["state"]]
    preview = quoting.one_line(row["text"][: 4 * PREVIEW_CHARACTERS], PREVIEW_CHARACTERS)
    shown = {
        "sign": sign,
        "mood": mood,
        "preview": preview,
        "where": quoting.one_line(row["where"], WHERE_CHARACTERS),
        "error": quoting.one_line(row["error"] or "", ERROR_CHARACTERS),
    }
    return {**row, **shown}
