"""What surrounds every page: the places one can go to, who looks, and where the site stands."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from frontdesk.model.visitors import Need, Visitor
from frontdesk.web.pages.wording import say

Values = dict[str, Any]


class Onlooker(msgspec.Struct, frozen=True, kw_only=True):
    """Who looks, as the page says it."""

    id: str
    name: str
    is_signed_in: bool
    role: str = ""


class PagePlace(msgspec.Struct, frozen=True, kw_only=True):
    """A place as the page shows it."""

    name: str
    path: str
    picture: str
    key: str = ""
    is_main: bool = True
    is_here: bool = False
    count: int = 0
    """How much waits there for somebody."""


class SitePlace(msgspec.Struct, frozen=True, kw_only=True):
    """A page that every page leads to."""

    name: str
    """In ``places`` of the words."""
    path: str
    picture: str
    key: str
    """After ``g``."""
    need: Need
    is_main: bool = False
    """Whether it is one of those that a phone has room for."""


PLACES = (
    SitePlace(name="sessions", path="/sessions", picture="talk", key="s", need=Need.LOOK, is_main=True),
    SitePlace(
        name="approvals",
        path="/approvals",
        picture="check",
        key="a",
        need=Need.LOOK_AT_REQUESTS,
        is_main=True,
    ),
    SitePlace(
        name="overview", path="/overview", picture="pulse", key="o", need=Need.LOOK_AT_ALL, is_main=True
    ),
    SitePlace(name="usage", path="/usage", picture="bars", key="u", need=Need.LOOK),
    SitePlace(name="turns", path="/turns", picture="queue", key="t", need=Need.LOOK),
    SitePlace(name="deliveries", path="/deliveries", picture="plane", key="d", need=Need.LOOK),
    SitePlace(name="checkpoints", path="/checkpoints", picture="flag", key="c", need=Need.LOOK_AT_ALL),
    SitePlace(name="people", path="/people", picture="person", key="p", need=Need.LOOK_AT_ALL),
    SitePlace(name="audit", path="/audit", picture="lines", key="l", need=Need.LOOK_AT_ALL),
    SitePlace(name="settings", path="/settings", picture="sliders", key=",", need=Need.LOOK_AT_ALL),
    SitePlace(name="api", path="/api", picture="braces", key="i", need=Need.LOOK),
)


APPROVALS = "approvals"
ALONE = tuple(place for place in PLACES if place.name == APPROVALS)
"""Where no gateway has other pages."""


def frame(
    visitor: Visitor,
    here: str,
    root: str,
    now: datetime,
    *,
    asked: int = 0,
    among: Sequence[SitePlace] = PLACES,
) -> Values:
    """The values that every page of somebody who is in has; so many requests wait for a decision."""
    waiting = {APPROVALS: asked}
    return {
        "root": root,
        "home": f"{root}/",
        "places": [
            _shown(place, here, root, waiting.get(place.name, 0))
            for place in among
            if visitor.may(place.need)
        ],
        "who": Onlooker(id=visitor.id, name=visitor.name, role=visitor.role, is_signed_in=True),
        "may_act": visitor.may(Need.ACT),
        "now": now,
    }


def _shown(place: SitePlace, here: str, root: str, count: int) -> PagePlace:
    return PagePlace(
        name=say(f"places.{place.name}"),
        path=root + place.path,
        picture=place.picture,
        key=place.key,
        is_main=place.is_main,
        is_here=place.name == here,
        count=count,
    )
