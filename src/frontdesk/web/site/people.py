"""People: who may talk to the agent, and who waits to be let in."""

from collections import Counter
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from frontdesk.app.office.people import PlaceAccess
from frontdesk.app.reception import PassPage
from frontdesk.model import access, codes
from frontdesk.model.access import CHAT_ROLES
from frontdesk.model.feed import FeedKind
from frontdesk.model.visitors import Need
from frontdesk.web.endpoints import HttpCall
from frontdesk.web.site.base import PAGES, Site

NO_PASSES: PassPage = {"items": [], "next": None}


class PeopleQuery(msgspec.Struct, frozen=True, kw_only=True):
    after: str = ""
    links: str = ""
    """Where the list of people with several names goes on."""
    passes: str = ""
    """Where the list of what people sign in with goes on."""


@PAGES.add("GET", "/people", need=Need.LOOK_AT_ALL, query=PeopleQuery)
async def show_people(site: Site, call: HttpCall) -> Response:
    """Who was let in, and who waits to be."""
    office, query = site.office_for(call), call.query
    place = await site.streams.place(call.known)
    known = await office.list_people(query.after or None)
    links = await office.list_links(query.links or None)
    passes = await site.reception.list_passes(query.passes or None) if site.reception else NO_PASSES
    settings, waiting = await office.show_access(), await office.pending_people()
    of_platform = Counter(each["platform"] for each in waiting)
    values = {
        "waiting": waiting,
        "full": sorted(name for name, count in of_platform.items() if count >= codes.MOST_PENDING),
        "people": known["items"],
        "links": links["items"],
        "passes": passes["items"],
        "is_first": not (query.after or query.links or query.passes),
        "more_people": f"?{urlencode({'after': known['next']})}" if known["next"] else None,
        "more_passes": f"?{urlencode({'passes': passes['next']})}" if passes["next"] else None,
        "more_links": f"?{urlencode({'links': links['next']})}" if links["next"] else None,
        "access": [(each, _lists(each)) for each in settings],
        "pairs": any(each["strangers"] == access.Strangers.PAIR for each in settings),
        "roles": CHAT_ROLES,
        "may_change": call.known.may(Need.ADMINISTER),
        "own": call.known.people | {call.known.id},
        "events": urlencode({"about": FeedKind.PERSON, "after": place}),
    }
    return await site.page(call, "people", "people.html", values)


def _lists(settings: PlaceAccess) -> list[tuple[str, list[str]]]:
    """Whom they name, and as what."""
    named = ((name, settings[name]) for name in access.LISTS)  # type: ignore[literal-required]
    return [(name, entries) for name, entries in named if entries]
