"""Pages as the server makes them, from templates in which every text is a text."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import Response

from frontdesk.formats import quoting
from frontdesk.web import addresses
from frontdesk.web.pages import assets, figures, tiles, wording

if TYPE_CHECKING:
    from jinja2 import Environment

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "manifest-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}
"""Nothing in a page itself is style or script, and nothing comes from elsewhere."""
HEADERS = {
    "content-security-policy": "; ".join(f"{name} {value}" for name, value in POLICY.items()),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


YEAR_DAYS = 365.25
MONTH_DAYS = YEAR_DAYS / 12
SHORTEST_YEARS = 730
"""What lasts as many days is told in years, and so on; no unit is told of which there is one."""
SHORTEST_MONTHS = 60
SHORTEST_DAYS = 2
LONGEST_HOURS = 7
"""With days the hours are told until there are as many."""


class Root:
    """What every address in a template begins with: the prefix of the server that shows the page."""

    def __str__(self) -> str:
        return addresses.here.get().root


@cache
def _environment(package: str) -> "Environment":
    """The templates of a package, which use the shared ones."""
    from jinja2 import (  # noqa: PLC0415 - takes a tenth of a second to load, and is of use only for pages
        ChoiceLoader,
        Environment,
        PackageLoader,
        StrictUndefined,
    )

    loader = ChoiceLoader([PackageLoader(package), PackageLoader(__package__)])
    made = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {"instant": instant, "told": told, "span": span, "json": as_json, "tile": tiles.tile}
    made.filters |= {"moment": datetime.fromisoformat, "visible": quoting.visible}
    made.filters |= {"visible_lines": quoting.visible_lines}
    made.filters |= {name: getattr(figures, name) for name in figures.FORMS}
    made.globals |= {
        "static": assets.ADDRESS,
        "root": Root(),
        "say": wording.say,
        "script_words": wording.script_words,
    }
    return made


def render(
    package: str, template: str, values: Mapping[str, Any], status: HTTPStatus = HTTPStatus.OK
) -> Response:
    """A page of a package, from its template."""
    text = _environment(package).get_template(template).render(values)
    return Response(text, int(status), HEADERS, media_type="text/html")


def as_json(value: Any) -> str:
    """For scripts, in an attribute."""
    return msgspec.json.encode(value).decode()


def render_piece(package: str, template: str, macro: str, *values: Any) -> str:
    """What a macro of a template makes of values, to be put into pages as it is."""
    made: str = getattr(_environment(package).get_template(template).module, macro)(*values)
    return made


def instant(moment: datetime) -> str:
    """For programs."""
    return moment.astimezone(UTC).isoformat()


def told(moment: datetime) -> str:
    """For people, until the script says it in their own time."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def span(seconds: float) -> str:
    """How long that is, as the script says it, too."""
    whole = abs(int(seconds))
    hours, minutes, days = whole // 3600, whole // 60 % 60, whole // 86_400
    if days >= SHORTEST_YEARS:
        return wording.say("script.years", years=round(days / YEAR_DAYS))
    if days >= SHORTEST_MONTHS:
        return wording.say("script.months", months=round(days / MONTH_DAYS))
    if days >= SHORTEST_DAYS:
        exact = "days" if days >= LONGEST_HOURS else "days_hours"
        return wording.say(f"script.{exact}", days=days, hours=hours % 24)
    if hours:
        return wording.say("script.hours", hours=hours, minutes=minutes)
    exact = "minutes" if minutes else "seconds"
    return wording.say(f"script.{exact}", minutes=minutes, seconds=whole % 60)
