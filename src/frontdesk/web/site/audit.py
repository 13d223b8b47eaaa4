"""The audit log: what was asked and decided, and whether nobody has changed that since."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from frontdesk.app.office.audit import AuditLine
from frontdesk.formats import quoting
from frontdesk.model.audit import AuditKind
from frontdesk.model.feed import FeedKind
from frontdesk.model.visitors import Need
from frontdesk.web.endpoints import HttpCall
from frontdesk.web.site.base import PAGES, Site

FACT_CHARACTERS = 120
BAD = frozenset({AuditKind.REFUSED, AuditKind.REDEEM_REFUSED, AuditKind.PAUSED, AuditKind.DENIED})
GOOD = frozenset({AuditKind.APPROVED, AuditKind.AUTO_APPROVED, AuditKind.REDEEMED})


class AuditQuery(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = ""
    person: str = ""
    request: str = ""
    after: str = ""


@PAGES.add("GET", "/audit", need=Need.LOOK_AT_ALL, query=AuditQuery)
async def show_audit(site: Site, call: HttpCall) -> Response:
    """What was asked, decided and carried out."""
    given = {name: getattr(call.query, name).strip() for name in ("kind", "person", "request")}
    wanted = {name: value for name, value in given.items() if value}
    place = await site.streams.place(call.known)
    page = await site.office_for(call).list_audit(**wanted, after=call.query.after or None)
    values = {
        "rows": [(row, _facts(row), _sign(row)) for row in page["items"]],
        "kinds": list(AuditKind),
        "wanted": given,
        "is_filtered": bool(wanted),
        "is_first": not call.query.after,
        "first": f"?{urlencode(wanted)}" if wanted else "",
        "older": f"?{urlencode(wanted | {'after': page['next']})}" if page["next"] else None,
        "events": urlencode({"about": FeedKind.CONFIRMATION, "after": place}),
    }
    return await site.page(call, "audit", "audit.html", values)


def _facts(row: AuditLine) -> list[tuple[str, str]]:
    """What else is known, in a few words each: much of it comes from agents."""
    return [
        (quoting.visible(name), _fact(value)) for name, value in row["facts"].items() if value is not None
    ]


def _fact(value: Any) -> str:
    told = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    shown = quoting.visible(told)
    return shown if len(shown) <= FACT_CHARACTERS else f"{shown[:FACT_CHARACTERS]}…"


def _sign(row: Mapping[str, Any]) -> tuple[str, str]:
    """The sign before what happened, and its colour."""
    if not row["readable"]:
        return "✕", "bad"
    if row["kind"] in BAD:
        return "✕", "wait"
    return ("✓", "ok") if row["kind"] in GOOD else ("·", "")
