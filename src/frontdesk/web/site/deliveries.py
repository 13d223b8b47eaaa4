"""Deliveries: what did not arrive, may not have, or not yet; to be sent again or given up."""

from typing import Any

from starlette.responses import Response

from frontdesk.app.office.deliveries import LOST, DeliveryRow
from frontdesk.model.deliveries import DeliveryState
from frontdesk.model.lists import ListedDeliveries
from frontdesk.model.visitors import Need
from frontdesk.web.endpoints import HttpCall
from frontdesk.web.site import workload
from frontdesk.web.site.base import PAGES, Site

PATH = "/deliveries"
SIGNS = {
    DeliveryState.DEAD: ("✕", "bad"),
    DeliveryState.UNKNOWN: ("?", "wait"),
    DeliveryState.PENDING: ("…", ""),
    DeliveryState.SENDING: ("●", "work"),
    DeliveryState.SENT: ("✓", "ok"),
    DeliveryState.DISCARDED: ("–", ""),
}


@PAGES.add("GET", PATH, query=workload.ShownQuery)
async def show_deliveries(site: Site, call: HttpCall) -> Response:
    """Which answers did not reach people, and why."""
    office = site.office_for(call)
    counts = await office.count_deliveries()
    show = call.query.show or _urgent(counts["dead"], counts["unsure"], counts["late"])
    found = await office.page_deliveries(show, after=call.query.after)
    named = {"dead": counts["dead"], "unsure": counts["unsure"], "late": counts["late"]}
    lists = {**named, "waiting": counts["waiting"], "discarded": 0}
    values = {
        "show": show,
        "title": workload.title("deliveries", "delivery_lists", show),
        "counts": workload.all_counted(counts),
        "tabs": workload.tabs(PATH, lists, show),
        "rows": [shown(each) for each in found["items"]],
        "next_path": workload.next_path(PATH, show, found["next"]),
        "may_discard": call.known.may(Need.ADMINISTER),
    }
    return await site.page(call, "deliveries", "deliveries.html", values)


def _urgent(dead: int, unsure: int, late: int) -> ListedDeliveries:
    """What somebody wants to see who names no list."""
    if unsure and not dead:
        return ListedDeliveries.UNSURE
    return ListedDeliveries.LATE if late and not dead else ListedDeliveries.DEAD


def shown(row: DeliveryRow) -> dict[str, Any]:
    """A delivery as lists show it."""
    item = workload.item(row, SIGNS)
    is_late = row["state"] == DeliveryState.PENDING and row["error"]
    if is_late:
        item |= {"sign": "◔", "mood": "wait"}
    return item | {"shown_state": "late" if is_late else row["state"], "can_resend": row["state"] in LOST}
