"""Sessions and transcripts: which conversations there are, and what is said in them."""

from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus

import msgspec
from starlette.responses import RedirectResponse, Response

from frontdesk import errors
from frontdesk.app.office import Office
from frontdesk.app.office.listing import SessionCounts, SessionRow
from frontdesk.web.endpoints import HttpCall
from frontdesk.web.pages.frame import Values
from frontdesk.web.site import threads
from frontdesk.web.site.base import PAGES, Site
from frontdesk.web.site.chips import StateChip, chip_of
from frontdesk.web.site.threads import NEAR, QUERY_CHARACTERS, TABS, ListQuery, ThreadQuery, query_of


class SearchWish(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wrote into the search box."""

    words: str = ""
    platform: str | None = None
    person: str | None = None

    @classmethod
    def read(cls, written: str) -> "SearchWish":
        named: dict[str, str] = {}
        words = []
        for word in written[:QUERY_CHARACTERS].split():
            name, colon, value = word.partition(":")
            if colon and value and name in ("platform", "person"):
                named[name] = value
            else:
                words.append(word)
        return cls(words=" ".join(words), **named)


class ListedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A session in the list."""

    row: SessionRow
    chip: StateChip
    updated_at: datetime
    href: str
    is_here: bool
    low: int
    high: int


@PAGES.add("GET", "/sessions", query=ListQuery)
async def show_sessions(site: Site, call: HttpCall) -> Response:
    """The conversations."""
    values = await _list(site.office_for(call), call, None)
    return await site.page(call, "sessions", "sessions.html", values | {"thread": None})


@PAGES.add("GET", "/sessions/{session_id}", query=ThreadQuery)
async def show_transcript(site: Site, call: HttpCall) -> Response:
    """What is said in one of them."""
    office, session_id = site.office_for(call), call.params["session_id"]
    newest = await office.newest_of(session_id)
    if newest != session_id:
        root = call.request.scope.get("root_path", "")
        return RedirectResponse(f"{root}/sessions/{newest}", HTTPStatus.SEE_OTHER)
    thread = await threads.thread_of(office, call, session_id)
    values = await _list(office, call, session_id)
    return await site.page(call, "sessions", "sessions.html", values | {"thread": thread})


async def _list(office: Office, call: HttpCall, here: str | None) -> Values:
    asked: ListQuery = call.query
    wish = SearchWish.read(asked.q)
    state = asked.state if asked.state in TABS else TABS[0]
    try:
        found = await office.browse_sessions(
            states=state, platform=wish.platform, person=wish.person, words=wish.words, after=asked.after
        )
    except errors.InvalidQuery:  # no word in it that could be looked for
        found = {"items": [], "next": None}
    counts = await office.count_states(platform=wish.platform, person=wish.person)
    root = call.request.scope.get("root_path", "")
    kept = asked.kept
    rows = [_listed(row, root, kept, here) for row in found["items"]]
    tabs = [
        {
            "name": name,
            "href": f"{root}/sessions{query_of(q=kept['q'], state=name if name != TABS[0] else '')}",
            "count": "" if wish.words else _counted(name, counts),
        }
        for name in TABS
    ]
    return {
        "rows": rows,
        "how_many": _number(counts["all"], counts),
        "tabs": tabs,
        "state_shown": state,
        "q": kept["q"],
        "is_filtered": bool(asked.q.strip() or state != TABS[0] or asked.after),
        "newer": f"{root}/sessions{query_of(**kept | {'after': None})}" if asked.after else "",
        "older": f"{root}/sessions{query_of(**kept | {'after': found['next']})}" if found["next"] else "",
        "back": f"{root}/sessions{query_of(**kept)}",
    }


def _counted(name: str, counts: SessionCounts) -> str:
    """How many there are behind a tab; of the ones that need nobody, none is said."""
    numbers = {"working": counts["working"], "waiting": counts["waiting"], "trouble": counts["trouble"]}
    return _number(numbers.get(name, 0), counts)


def _number(count: int, counts: SessionCounts) -> str:
    return f"{count}+" if count >= counts["at_most"] else str(count or "")


def _listed(row: SessionRow, root: str, kept: Mapping[str, str | None], here: str | None) -> ListedRow:
    limit = row["message_limit"]
    return ListedRow(
        row=row,
        chip=chip_of(row),
        updated_at=datetime.fromisoformat(row["updated_at"]),
        href=f"{root}/sessions/{row['id']}{query_of(**kept)}",
        is_here=row["id"] == here,
        low=max(1, int(limit * NEAR)) if limit else 0,
        high=limit,
    )
