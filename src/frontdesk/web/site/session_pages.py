"""Sessions and transcripts: which conversations there are, and what is said in them."""

from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus

import msgspec
from starlette.responses import RedirectResponse, Response

from frontdesk import errors
from frontdesk.app.office import Office
from frontdesk.app.office.counters import LIST_LIMIT
from frontdesk.app.office.listing import SessionCounts, SessionList, SessionRow
from frontdesk.formats import quoting
from frontdesk.model import pages
from frontdesk.model.platforms import Platform
from frontdesk.model.policies import EndReason
from frontdesk.model.reading import PAGE_ROWS
from frontdesk.model.visitors import Need
from frontdesk.web.endpoints import HttpCall
from frontdesk.web.pages.frame import Values
from frontdesk.web.pages.wording import say
from frontdesk.web.site import searching, threads
from frontdesk.web.site.base import PAGES, Site
from frontdesk.web.site.chips import StateChip, chip_of
from frontdesk.web.site.searching import SearchWish, read_wish
from frontdesk.web.site.threads import NEAR, TABS, ListQuery, ThreadQuery, query_of

NOTHING: SessionList = {"items": [], "next": None}
TOLD = ("working", "waiting", "trouble")
UNCLEAR_CHARACTERS = 40
AROUND_WORDS = PAGE_ROWS // 2
"""How many messages after the one that was found are on its page."""


class ListedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A session in the list."""

    row: SessionRow
    chip: StateChip
    updated_at: datetime
    created_at: datetime
    title: str | None
    """Where it is not its name."""
    whose: str
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
        kept = query_of(**call.query.kept, before=call.query.before, later=call.query.later)
        return RedirectResponse(f"{root}/sessions/{newest}{kept}", HTTPStatus.SEE_OTHER)
    thread = await threads.thread_of(office, call, session_id)
    values = await _list(office, call, session_id)
    name = thread["row"]["title"] or thread["row"]["name"] or say("chat.title")
    values |= {"thread": thread, "title": f"{name} · {say('places.sessions')}"}
    return await site.page(call, "sessions", "sessions.html", values)


async def _list(office: Office, call: HttpCall, here: str | None) -> Values:
    asked: ListQuery = call.query
    wish, state, kept = read_wish(asked.q), asked.shown_state, asked.kept
    found = await _found(office, wish, state, asked.after)
    counts = await office.count_states(platform=wish.platform, person=wish.person)
    root = call.request.scope.get("root_path", "")
    sees_all = call.known.may(Need.LOOK_AT_ALL)
    return {
        "rows": [_listed(row, root, kept, here, sees_all=sees_all) for row in found["items"]],
        "how_many": _how_many(found, wish, counts, state),
        "tabs": [_tab(name, root, wish, counts) for name in TABS],
        "state_shown": state,
        "q": kept["q"],
        "is_filtered": bool(asked.q.strip() or state != TABS[0] or asked.after),
        "unclear": _unclear(wish),
        "nobody": wish.person,
        "may_administer": call.known.may(Need.ADMINISTER),
        "may_decide": call.known.may(Need.DECIDE),
        "newer": f"{root}/sessions{query_of(**kept | {'after': None})}" if asked.after else "",
        "older": f"{root}/sessions{query_of(**kept | {'after': found['next']})}" if found["next"] else "",
        "back": f"{root}/sessions{query_of(**kept)}",
        "title": " · ".join(filter(None, (kept["q"], say("places.sessions")))),
    }


async def _found(office: Office, wish: SearchWish, state: str, after: str | None) -> SessionList:
    if wish.is_misspelt:
        return NOTHING
    try:
        return await office.browse_sessions(
            states=state, platform=wish.platform, person=wish.person, words=wish.words, after=after
        )
    except errors.InvalidQuery:  # no word in it that could be looked for
        return NOTHING


def _unclear(wish: SearchWish) -> str | None:
    """What of the search was not understood, and what could be said instead."""
    if wish.unclear is None:
        return None
    name, value = wish.unclear
    told = quoting.one_line(value, UNCLEAR_CHARACTERS)
    if wish.is_misspelt:
        return say(f"sessions.no_{name}", value=told, choices=searching.choices(name))
    return say("sessions.no_filter", name=quoting.one_line(name, UNCLEAR_CHARACTERS))


def _tab(name: str, root: str, wish: SearchWish, counts: SessionCounts) -> Values:
    """A tab, with how many there are behind it: not of those that need nobody, nor of what words find."""
    is_told = name in TOLD and not wish.words and not wish.is_misspelt
    return {
        "name": name,
        "href": f"{root}/sessions{query_of(q=wish.rest, state=name if name != TABS[0] else '')}",
        "count": _number(_count(name, counts), counts) if is_told else "",
    }


def _how_many(found: SessionList, wish: SearchWish, counts: SessionCounts, state: str) -> str:
    """How many there are in the list that is shown."""
    if wish.words or wish.is_misspelt:
        some = len(found["items"])
        return f"{some}+" if some >= LIST_LIMIT else str(some or "")
    return _number(_count(state, counts), counts)


def _count(name: str, counts: SessionCounts) -> int:
    return int(counts[name])  # type: ignore[literal-required]


def _number(count: int, counts: SessionCounts) -> str:
    return f"{count}+" if count >= counts["at_most"] else str(count or "")


def _listed(
    row: SessionRow, root: str, kept: Mapping[str, str | None], here: str | None, *, sees_all: bool
) -> ListedRow:
    limit = row["message_limit"]
    return ListedRow(
        row=row,
        chip=chip_of(row),
        updated_at=datetime.fromisoformat(row["updated_at"]),
        href=f"{root}/sessions/{row['id']}{_way_to_words(row, kept)}",
        created_at=datetime.fromisoformat(row["created_at"]),
        title=row["title"] if row["title"] != row["name"] else None,
        whose=_whose(row, sees_all=sees_all),
        is_here=row["id"] == here,
        low=max(1, int(limit * NEAR)) if limit else 0,
        high=limit,
    )


def _way_to_words(row: SessionRow, kept: Mapping[str, str | None]) -> str:
    """The end of its address. Where words were found in it, it leads to them, on a page of their own unless
    they are among the newest."""
    number = row["preview"] and row["preview"]["number"]
    if not number:
        return query_of(**kept)
    goes_on = row["end_reason"] == EndReason.COMPRESSED  # and is shown as the beginning of another
    is_new = not goes_on and number > row["messages"] - AROUND_WORDS
    before = None if is_new else pages.place(number + AROUND_WORDS, row["id"])
    anchor = f"{row['id']}-{number}" if goes_on else f"m{number}"
    return f"{query_of(**kept, before=before)}#{anchor}"


def _whose(row: SessionRow, *, sees_all: bool) -> str:
    """Who writes in a chat that is not called after them, where everybody's are seen."""
    platform = Platform.parse(row["platform"])
    is_told = sees_all and platform is not None and platform.facts.nameless_chats
    return row["person"] if is_told else ""
