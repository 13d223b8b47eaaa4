"""Checkpoints: what the agent's working directory was, what has changed since, and how to go back."""

from collections.abc import Iterator
from itertools import islice
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from frontdesk import errors
from frontdesk.app.office import Office
from frontdesk.app.office.checkpoints import KeptState, Workplace
from frontdesk.formats import quoting
from frontdesk.model import routing
from frontdesk.model.visitors import Need
from frontdesk.web.endpoints import HttpCall
from frontdesk.web.pages import wording
from frontdesk.web.site.base import PAGES, Site

MOST_CHANGES = 200
MOST_LINES = 2_000
LINE_CHARACTERS = 500
SIGNS = {"+": "ins", "-": "del", "@": "at"}
HEADS = ("diff ", "index ", "--- ", "+++ ", "new file", "deleted file", "old mode", "new mode")
"""How the lines of a unified diff begin that tell which file it is."""


class CheckpointsQuery(msgspec.Struct, frozen=True, kw_only=True):
    profile: str = ""
    after: str = ""
    restored: str = ""
    """The checkpoint that was restored right before."""
    undo: str = ""
    """What undoes that."""


@PAGES.add("GET", "/checkpoints", need=Need.LOOK_AT_ALL, query=CheckpointsQuery)
async def show_checkpoints(site: Site, call: HttpCall) -> Response:
    """States of the working directory that one can go back to."""
    office, query = site.office_for(call), call.query
    places = await office.list_workplaces()
    values = _around(call, places) | {"off": not places, "kept": [], "older": None, "undo": None}
    if places:
        page = await office.list_checkpoints(_profile(query.profile), query.after or None)
        values |= {
            "kept": page["items"],
            "older": _address(query.profile, after=page["next"]) if page["next"] else None,
            "undo": await _undo(office, query, page["items"]),
        }
    return await site.page(call, "checkpoints", "checkpoints.html", values)


@PAGES.add("GET", "/checkpoints/{checkpoint}", need=Need.LOOK_AT_ALL, query=CheckpointsQuery)
async def show_checkpoint(site: Site, call: HttpCall) -> Response:
    """What has changed since a checkpoint, and how to go back."""
    office, query = site.office_for(call), call.query
    diff = await office.diff_checkpoint(call.params["checkpoint"], _profile(query.profile))
    values = _around(call, await office.list_workplaces()) | {
        "each": diff["checkpoint"],
        "changes": diff["changes"][:MOST_CHANGES],
        "count": len(diff["changes"]),
        "more_changes": len(diff["changes"]) > MOST_CHANGES or diff["truncated"],
        "lines": list(islice(_lines(diff["text"]), MOST_LINES)),
        "more_lines": diff["truncated"] or diff["text"].count("\n") > MOST_LINES,
        "title": f"{diff['checkpoint']['number']} · {wording.say('places.checkpoints')}",
    }
    return await site.page(call, "checkpoints", "checkpoint.html", values)


def _around(call: HttpCall, places: list[Workplace]) -> dict[str, Any]:
    profile = call.query.profile or (places[0]["profile"] if places else routing.DEFAULT)
    here = next((each["directory"] for each in places if each["profile"] == profile), None)
    return {
        "places_of_work": [(each, _address(each["profile"])) for each in places],
        "profile": profile,
        "directory": here,
        "address": _address(call.query.profile),
        "may_change": call.known.may(Need.ADMINISTER),
    }


def _profile(name: str) -> str | None:
    return None if name in ("", routing.DEFAULT) else name


def _address(profile: str, **more: str | None) -> str:
    given = ({"profile": profile} if _profile(profile) else {}) | more
    return f"?{urlencode(given)}" if given else ""


async def _undo(office: Office, query: CheckpointsQuery, kept: list[KeptState]) -> dict[str, Any] | None:
    """The restore that can be undone: the one that was just made, else one after which nothing was kept."""
    newest = kept[0] if kept and not query.after else None
    wanted = query.undo or (newest["id"] if newest and newest["before_restore"] else "")
    if not wanted:
        return None
    try:
        before = await office.show_checkpoint(wanted, _profile(query.profile))
        restored = await office.show_checkpoint(before["before_restore"] or "", _profile(query.profile))
    except errors.UnknownCheckpoint:  # it is so long ago that it was dropped, or was never there
        return None
    if query.undo and query.restored != restored["id"]:  # a link says so, and no restore
        return None
    return {"before": before, "restored": restored}


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """The lines of a diff, each with what it is; in a file of the agent's there may be anything."""
    for line in text.split("\n"):
        shown = quoting.visible(line[:LINE_CHARACTERS]) + ("…" if len(line) > LINE_CHARACTERS else "")
        yield "file" if line.startswith(HEADS) else SIGNS.get(line[:1], ""), shown
