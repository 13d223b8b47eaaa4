"""Usage: what was spent, on what, and whether long sessions get worse."""

import msgspec
from starlette.responses import Response

from frontdesk.app.office.usage import USUAL_DAYS
from frontdesk.model.visitors import Need
from frontdesk.web.endpoints import HttpCall
from frontdesk.web.office_api import PREFIX
from frontdesk.web.site.base import PAGES, AnyQuery, Site

PATH = "/usage"
SPANS = (7, USUAL_DAYS, 30, 90)


class DaysQuery(AnyQuery, frozen=True, kw_only=True):
    """How many days are looked at."""

    days: int = USUAL_DAYS


class SpanTab(msgspec.Struct, frozen=True, kw_only=True):
    """A number of days that one can look at."""

    days: int
    path: str
    is_here: bool


@PAGES.add("GET", PATH, query=DaysQuery)
async def show_usage(site: Site, call: HttpCall) -> Response:
    """What was spent, and on what."""
    office, days, sees_all = site.office_for(call), call.query.days, call.known.may(Need.LOOK_AT_ALL)
    report = await office.usage(days)
    curve = await office.marathon(days) if sees_all else None
    values = {
        **report,
        "sees_all": sees_all,
        "count": days,
        "tabs": [SpanTab(days=each, path=f"{PATH}?days={each}", is_here=each == days) for each in SPANS],
        "days_path": f"{PREFIX}/usage?days={days}",
        "curve_path": f"{PREFIX}/usage/marathon?days={days}",
        "curve": curve["points"] if curve else [],
        "warn_at": curve and curve["warn_at"],
        "limit_at": curve and curve["limit_at"],
    }
    return await site.page(call, "usage", "usage.html", values)
