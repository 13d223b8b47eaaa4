"""Turns: what waits, what runs, what was set aside, and what became of the others."""

from typing import Any

from starlette.responses import Response

from frontdesk.app.office.turns import UNREADABLE, TurnRow
from frontdesk.model.lists import ListedTurns
from frontdesk.model.turns import FINISHED, TurnState
from frontdesk.model.visitors import Need
from frontdesk.web.endpoints import HttpCall
from frontdesk.web.site import workload
from frontdesk.web.site.base import PAGES, Site

PATH = "/turns"
SIGNS = {
    TurnState.QUEUED: ("…", ""),
    TurnState.RUNNING: ("●", "work"),
    TurnState.WAITING: ("◔", "wait"),
    TurnState.DONE: ("✓", "ok"),
    TurnState.SILENT: ("✓", "ok"),
    TurnState.FAILED: ("✕", "bad"),
    TurnState.INTERRUPTED: ("–", ""),
    TurnState.SET_ASIDE: ("✕", "bad"),
    TurnState.JOINED: ("↳", ""),
    UNREADABLE: ("✕", "bad"),
}


@PAGES.add("GET", PATH, query=workload.ShownQuery)
async def show_turns(site: Site, call: HttpCall) -> Response:
    """What waits, what runs, and what was given up."""
    office = site.office_for(call)
    counts = await office.count_turns()
    lists = {
        ListedTurns.RUNNING: counts["running"] + counts["waiting"],
        ListedTurns.WAITING: counts["queued"],
        ListedTurns.SET_ASIDE: counts["set_aside"],
        ListedTurns.RECENT: 0,
    }
    show = call.query.show or next((name for name, count in lists.items() if count), ListedTurns.RECENT)
    found = await office.page_turns(show, after=call.query.after)
    values = {
        "show": show,
        "title": workload.title("turns", "turn_lists", show),
        "counts": workload.all_counted(counts),
        "tabs": workload.tabs(PATH, lists, show),
        "rows": [_shown(each) for each in found["items"]],
        "next_path": workload.next_path(PATH, show, found["next"]),
        "may_change": call.known.may(Need.ADMINISTER),
    }
    return await site.page(call, "turns", "turns.html", values)


def _shown(row: TurnRow) -> dict[str, Any]:
    is_aside = row["state"] == TurnState.SET_ASIDE or row["not_again"] is not None
    is_open = row["state"] not in {*FINISHED, UNREADABLE}
    return workload.item(row, SIGNS) | {"is_open": is_open, "is_aside": is_aside}
