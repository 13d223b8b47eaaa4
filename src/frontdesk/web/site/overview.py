"""The overview: whether everything works, and what does not."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec
from starlette.responses import RedirectResponse, Response

from frontdesk.app.office import Office
from frontdesk.app.office.condition import ChannelHealth, GatewayHealth, NodeHealth
from frontdesk.app.office.deliveries import OverduePlatform
from frontdesk.app.office.usage import MarathonPoint
from frontdesk.formats import quoting
from frontdesk.model.lists import ListedDeliveries
from frontdesk.model.visitors import Need, Visitor
from frontdesk.web.endpoints import HttpCall
from frontdesk.web.pages.wording import say
from frontdesk.web.site import deliveries, workload
from frontdesk.web.site.base import PAGES, Site

SHOWN_DELIVERIES = 5
OVERDUE = (ListedDeliveries.DEAD, ListedDeliveries.UNSURE, ListedDeliveries.LATE)
"""What has not arrived, the worst first."""
SIGNS = {"works": ("●", "ok"), "fails": ("✕", "bad"), "silent": ("◔", "wait"), "gone": ("–", "soft")}
NOTHING: dict[str, Any] = {"rows": [], "today": None, "curve": None, "warn_at": None, "limit_at": None}


class ShownTrouble(msgspec.Struct, frozen=True, kw_only=True):
    """Something that needs a person: what it is, what that means, and where to go."""

    what: str
    so: str = ""
    why: str | None = None
    """In words that are not ours."""
    since: datetime | None = None
    next_try: datetime | None = None
    until: datetime | None = None
    """When somebody must have done something."""
    act: str = ""
    path: str = ""
    is_bad: bool = True


@PAGES.add("GET", "/")
async def show_home(site: Site, call: HttpCall) -> Response:  # noqa: ARG001
    """Where somebody begins: with what they may see."""
    root = call.request.scope.get("root_path", "")
    return RedirectResponse(root + _first(call.known), 303)


def _first(visitor: Visitor) -> str:
    """What somebody with this role has to look at before all else."""
    if visitor.may(Need.LOOK_AT_ALL):
        return "/overview"
    return "/approvals" if visitor.may(Need.DECIDE) else "/sessions"


@PAGES.add("GET", "/overview", need=Need.LOOK_AT_ALL)
async def show_overview(site: Site, call: HttpCall) -> Response:
    """Whether everything works."""
    office = site.office_for(call)
    health = await office.health()
    requests, troubles, name = health["requests"], list(troubles_of(health)), say("places.overview")
    looked_up = await _looked_up(office) if health["store"] else NOTHING
    overdue = sum(each["count"] for each in health["deliveries"])
    values = {
        **looked_up,
        "title": f"({len(troubles)}) {name}" if troubles else name,
        "troubles": troubles,
        "for_others": requests["waiting"] - requests["yours"],
        "turns": workload.all_counted(health["turns"]),
        "store": health["store"],
        "nodes": [_signed_node(each) for each in health["nodes"]],
        "channels": [_signed(each) for each in health["channels"]],
        "may_discard": call.known.may(Need.ADMINISTER),
        "overdue": workload.counted(overdue),
        "more_overdue": workload.counted(max(0, overdue - len(looked_up["rows"]))),
        "is_lost": any(each["is_lost"] for each in health["deliveries"]),
    }
    return await site.page(call, "overview", "overview.html", values)


async def _looked_up(office: Office) -> dict[str, Any]:
    """What the store knows besides how the gateway is."""
    pages = [await office.page_deliveries(each, limit=SHOWN_DELIVERIES) for each in OVERDUE]
    overdue = [deliveries.shown(each) for page in pages for each in page["items"]]
    usage, marathon = await office.usage(), await office.marathon()
    return {
        "rows": overdue[:SHOWN_DELIVERIES],
        "today": usage["today"],
        "curve": _told(marathon["points"]),
        "warn_at": marathon["warn_at"],
        "limit_at": marathon["limit_at"],
    }


def _told(points: list[MarathonPoint]) -> dict[str, Any] | None:
    """The curve in a sentence, for those who do not see it: where it begins and where it ends."""
    known = [each for each in points if each["tool_error_rate"] is not None]
    if not known:
        return None
    first, last = known[0], known[-1]
    return {"rate": first["tool_error_rate"], "last": last["tool_error_rate"], "message": last["message"]}


def _signed(channel: ChannelHealth) -> dict[str, Any]:
    state = "fails" if channel["trouble"] else "works"
    sign, mood = SIGNS[state]
    return {**channel, "state": state, "sign": sign, "mood": mood}


def _signed_node(node: NodeHealth) -> dict[str, Any]:
    sign, mood = SIGNS[node["state"]]
    since = {"works": node["started_at"], "silent": node["leased_until"]}
    return {**node, "sign": sign, "mood": mood, "since": since.get(node["state"], node["stopped_at"])}


def troubles_of(health: GatewayHealth) -> Iterator[ShownTrouble]:
    """What needs a person, the worst first: what is broken, what was lost, who waits, what may be late. What
    the page says about it elsewhere says no other thing."""
    if not health["running"]:
        yield ShownTrouble(what=say("overview.not_running"))
    for why in health["troubles"]:
        yield ShownTrouble(what=say("overview.gateway_fails"), why=why, so=say("overview.gateway_so"))
    yield from _channel_troubles(health)
    yield from _delivery_troubles([each for each in health["deliveries"] if each["is_lost"]])
    yield from _waiting_people(health)
    yield from _delivery_troubles([each for each in health["deliveries"] if not each["is_lost"]])
    yield from _lesser_troubles(health)


def _waiting_people(health: GatewayHealth) -> Iterator[ShownTrouble]:
    """Where somebody waits until a person does something."""
    requests = health["requests"]
    if count := requests["yours"]:
        yield ShownTrouble(
            what=say("overview.asked", count=count),
            so=say("overview.asked_so", count=count),
            until=workload.moment(requests["denied_at"]),
            act=say("overview.decide"),
            path="/approvals",
            is_bad=False,
        )
    if aside := workload.counted(health["turns"]["set_aside"]):
        yield ShownTrouble(
            what=say("overview.set_aside", count=aside),
            so=say("overview.set_aside_so"),
            act=say("overview.look"),
            path="/turns?show=set_aside",
            is_bad=False,
        )


def _lesser_troubles(health: GatewayHealth) -> Iterator[ShownTrouble]:
    for node in health["nodes"]:
        if node["state"] == "silent":
            yield ShownTrouble(
                what=say("overview.silent", number=node["number"], name=quoting.one_line(node["name"], 60)),
                so=say("overview.silent_so", count=node["leases"]),
                since=workload.moment(node["leased_until"]),
                act=say("overview.look"),
                path="/overview#nodes",
                is_bad=False,
            )
    told = [each["trouble"] for each in health["channels"]]
    for warning in (each for each in health["warnings"] if each not in told):
        yield ShownTrouble(
            what=say("overview.warning"),
            why=warning,
            act=say("overview.settings"),
            path="/settings",
            is_bad=False,
        )


def _channel_troubles(health: GatewayHealth) -> Iterator[ShownTrouble]:
    for channel in health["channels"]:
        if channel["trouble"]:
            name = f"{channel['platform']} {channel['account'] or ''}".strip()
            yield ShownTrouble(
                what=say("overview.channel_trouble", name=name),
                why=channel["trouble"].removesuffix("."),
                so=say("overview.channel_so"),
                act=say("overview.settings"),
                path="/settings",
            )


def _delivery_troubles(overdue: Sequence[OverduePlatform]) -> Iterator[ShownTrouble]:
    for each in overdue:
        shown, count = "trouble" if each["is_lost"] else "late", workload.counted(each["count"])
        yield ShownTrouble(
            what=say(f"overview.delivery_{shown}", platform=each["platform"], count=count),
            why=each["why"] and quoting.one_line(each["why"], workload.ERROR_CHARACTERS),
            so=say(f"overview.delivery_{shown}_so", count=count),
            since=workload.moment(each["since"]),
            next_try=workload.moment(each["next_try_at"]),
            act=say("overview.look"),
            path="/deliveries" if each["is_lost"] else "/deliveries?show=late",
            is_bad=each["is_lost"],
        )
