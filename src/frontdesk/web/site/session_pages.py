"""Sessions and transcripts: which conversations there are, and what is said in them."""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from frontdesk.app.office import Office
from frontdesk.app.office.listing import SessionCounts, SessionRow
from frontdesk.app.office.transcripts import MessageRow
from frontdesk.model import messages
from frontdesk.web.endpoints import HttpCall
from frontdesk.web.pages.frame import Values
from frontdesk.web.site.base import PAGES, Site
from frontdesk.web.site.chips import StateChip, chip_of, reason_of
from frontdesk.web.site.messages import shown_messages

TABS = ("all", "working", "waiting", "trouble", "ended")
QUERY_CHARACTERS = 200
PAGE_CHARACTERS = 60_000
"""Of a transcript on one page; where its messages are long, there are fewer of them."""
NEAR = 0.85


class ListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which sessions are listed."""

    q: str = ""
    """Words, and ``platform:…`` or ``person:…``."""
    state: str = "all"
    after: str | None = None


class ThreadQuery(ListQuery, frozen=True, kw_only=True):
    """Which part of a transcript is shown beside them."""

    before: str | None = None


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
    return await site.page(call, "sessions", "sessions.html", _stated(values | {"thread": None}))


@PAGES.add("GET", "/sessions/{session_id}", query=ThreadQuery)
async def show_transcript(site: Site, call: HttpCall) -> Response:
    """What is said in one of them."""
    office, session_id = site.office_for(call), call.params["session_id"]
    thread = await _thread(office, call, session_id)
    values = await _list(office, call, session_id)
    return await site.page(call, "sessions", "sessions.html", _stated(values | {"thread": thread}))


async def _list(office: Office, call: HttpCall, here: str | None) -> Values:
    asked: ListQuery = call.query
    wish = SearchWish.read(asked.q)
    state = asked.state if asked.state in TABS else TABS[0]
    found = await office.browse_sessions(
        states=state, platform=wish.platform, person=wish.person, words=wish.words, after=asked.after
    )
    counts = await office.count_states(platform=wish.platform, person=wish.person)
    root = call.request.scope.get("root_path", "")
    kept = _query(q=asked.q[:QUERY_CHARACTERS], state=asked.state if state != TABS[0] else "")
    rows = [_listed(row, root, kept, asked.after, here) for row in found["items"]]
    tabs = [
        {
            "name": name,
            "href": f"{root}/sessions{_query(q=asked.q, state=name if name != TABS[0] else '')}",
            "count": "" if wish.words else _counted(name, counts),
        }
        for name in TABS
    ]
    return {
        "rows": rows,
        "tabs": tabs,
        "state_shown": state,
        "q": asked.q[:QUERY_CHARACTERS],
        "is_filtered": bool(asked.q.strip() or state != TABS[0]),
        "newer": f"{root}/sessions{kept}" if asked.after else "",
        "older": f"{root}/sessions{_more(kept, after=found['next'])}" if found["next"] else "",
        "back": f"{root}/sessions{_more(kept, after=asked.after)}",
    }


def _counted(name: str, counts: SessionCounts) -> str:
    """How many there are behind a tab; of the ones that need nobody, none is said."""
    numbers = {"working": counts["working"], "waiting": counts["waiting"], "trouble": counts["trouble"]}
    count = numbers.get(name, 0)
    return f"{count}+" if count >= counts["at_most"] else str(count or "")


def _listed(row: SessionRow, root: str, kept: str, after: str | None, here: str | None) -> ListedRow:
    limit = row["message_limit"]
    return ListedRow(
        row=row,
        chip=chip_of(row),
        updated_at=datetime.fromisoformat(row["updated_at"]),
        href=f"{root}/sessions/{row['id']}{_more(kept, after=after)}",
        is_here=row["id"] == here,
        low=max(1, int(limit * NEAR)) if limit else 0,
        high=limit,
    )


def _query(**parts: str | None) -> str:
    written = urlencode({name: value for name, value in parts.items() if value})
    return f"?{written}" if written else ""


def _more(query: str, **parts: str | None) -> str:
    """A query with more in it."""
    more = _query(**parts)
    return f"{query}&{more[1:]}" if query and more else query + more


async def _thread(office: Office, call: HttpCall, session_id: str) -> Values:
    asked: ThreadQuery = call.query
    row = await office.describe_session(session_id)
    page = await office.transcript(session_id, before=asked.before)
    rows = _bounded(page["items"])
    older = page["next"] if len(rows) == len(page["items"]) else str(rows[0]["number"] - 1)
    root = call.request.scope.get("root_path", "")
    return {
        "row": row,
        "chip": chip_of(row),
        "limit": row["message_limit"],
        "left": max(0, row["message_limit"] - row["messages"]),
        "low": max(1, int(row["message_limit"] * NEAR)),
        "messages": shown_messages(rows, row["person"], shared=row["shared"]),
        "older": f"{root}/sessions/{row['id']}{_query(before=older)}" if older else "",
        "newest": f"{root}/sessions/{row['id']}" if asked.before else "",
        "reason": reason_of(row["end_reason"]) if row["ended_at"] else "",
        "created_at": datetime.fromisoformat(row["created_at"]),
        "ended_at": row["ended_at"] and datetime.fromisoformat(row["ended_at"]),
    }


def _bounded(rows: Sequence[MessageRow]) -> Sequence[MessageRow]:
    """The newest of them that are not too long together; one at least."""
    spent = 0
    for count, row in enumerate(reversed(rows)):
        spent += len(messages.text_of(row["message"] or {}))
        if spent > PAGE_CHARACTERS and count:
            return rows[len(rows) - count :]
    return rows


def _stated(values: Values) -> Values:
    """The values with a mark by which it is seen whether they are others than before."""
    told = msgspec.json.encode(values, enc_hook=str)
    return values | {"mark": hashlib.blake2b(told, digest_size=12).hexdigest()}
