"""Lists of sessions, a page at a time: a few queries for each page, however many sessions there are."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from frontdesk.contracts.store import Row, Work
from frontdesk.formats.quoting import one_line
from frontdesk.model import pages
from frontdesk.model.calls import calls_of
from frontdesk.model.lists import (
    PREVIEW_CHARACTERS,
    LastWords,
    ListedSession,
    ListedStates,
    SessionFilter,
    SessionState,
    SessionTrouble,
    StateCounts,
    TroubleKind,
    is_nameless,
)
from frontdesk.model.messages import Plain, text_of
from frontdesk.model.pages import ListPage
from frontdesk.model.people import Viewer
from frontdesk.model.sessions import Session
from frontdesk.stores.beginnings import SHORT_BYTES, beginning
from frontdesk.stores.columns import MICROS_A_MINUTE, from_micros, maybe_time, read_body
from frontdesk.stores.rows import SESSION, SESSIONS
from frontdesk.stores.work import Noun, reads

EVER = 2**59
"""Later than every time."""
LOOKED_BACK = 200
"""So many rows of a transcript at most are looked through for its last words."""
CANDIDATES = 3
"""The newest rows may call tools, and say nothing."""
MOST_GENERATIONS = 100
"""So many steps back the first of a lineage is looked for, where it is not written down."""
MOST_FOREBEARS = 20
"""So many steps back a name is looked for: a list may have to do it for each of its rows."""
COUNTED = 1_000
UPDATED_AT = SESSION.names.index("updated_at")

BY_WORK = {
    ListedStates.WORKING: "page_of_working",
    ListedStates.WAITING: "page_of_waiting",
    ListedStates.TROUBLE: "page_of_trouble",
}
STATES = {
    "waiting": SessionState.WAITING,
    "running": SessionState.WORKING,
    "queued": SessionState.QUEUED,
}
"""What a session's turns say of it, the most urgent first."""


class SessionLists(Noun):
    @reads
    def sessions(
        self, viewer: Viewer, wanted: SessionFilter, limit: int = pages.PAGE_ITEMS, after: str | None = None
    ) -> Work[ListPage[ListedSession]]:
        """Sessions that the viewer may see, latest activity first; ``after`` the end of an earlier page."""
        most = pages.check_items(limit)
        before, before_id = pages.read_place(after, EVER)
        values = filter_values(viewer, wanted) | {
            "before": before,
            "before_id": before_id,
            "before_minute": before // MICROS_A_MINUTE,
            "limit": most + 1,
        }
        found, goes_on = pages.cut((yield _page_query(viewer, wanted), values), most)
        # By the row itself: one that makes no sense is left out, and the list goes on behind it.
        place = pages.place(found[-1][UPDATED_AT], found[-1][0]) if goes_on else None
        shown = [session for session in map(SESSIONS.read, found) if session]
        return ListPage(items=(yield from listed(shown)), next=place)

    @reads
    def counts(self, viewer: Viewer, wanted: SessionFilter, at_most: int = COUNTED) -> Work[StateCounts]:
        """How many sessions there are in each of the states that can be asked for."""
        if not viewer.administrator or wanted.owner is not None:
            query = "count_listed_of_owners"
        else:
            query = "count_listed" if wanted.platform is None else "count_listed_on_platform"
        ((everything, working, waiting, trouble, ended),) = yield (
            query,
            filter_values(viewer, wanted) | {"limit": at_most},
        )
        return StateCounts(
            all=everything, working=working, waiting=waiting, trouble=trouble, ended=ended, at_most=at_most
        )


def _page_query(viewer: Viewer, wanted: SessionFilter) -> str:
    if by_work := BY_WORK.get(wanted.states):
        return by_work
    ended = wanted.states is ListedStates.ENDED
    if wanted.owners(viewer) is not None:
        return "page_of_owners_ended" if ended else "page_of_owners"
    if wanted.platform is not None:
        return "page_of_ended_on_platform" if ended else "page_of_platform"
    return "page_of_ended" if ended else "page_of_all"


def filter_values(viewer: Viewer, wanted: SessionFilter) -> dict[str, Any]:
    """What queries need to know of the filter and of who asks."""
    owners = wanted.owners(viewer)
    return {
        "platform": wanted.platform,
        "chat": viewer.chat,
        "everything": int(owners is None),
        "owners": owners or [],
    }


def listed(sessions: Sequence[Session]) -> Work[list[ListedSession]]:
    """The sessions with all that a list shows of them."""
    if not sessions:
        return []
    ids = [each.id for each in sessions]
    work = yield "work_of_sessions", {"ids": ids}
    undelivered = yield "undelivered_of_sessions", {"ids": ids}
    suspended = [each.id for each in sessions if _is_set_aside(each)]
    aside = (yield "set_aside_of_sessions", {"ids": suspended}) if suspended else []
    values = {"most_bytes": SHORT_BYTES, "back": LOOKED_BACK, "most": CANDIDATES}
    said = yield "last_words_of_sessions", {"ids": ids, **values}
    called = yield from _called([each for each in sessions if is_nameless(each.entry)])
    roots = yield from _roots(sessions)
    words = _last_words(said)
    troubles = {name: _undelivered(count, why) for name, count, why in undelivered}
    troubles |= {name: SessionTrouble(kind=TroubleKind.SET_ASIDE) for name in suspended}
    troubles |= {name: SessionTrouble(kind=TroubleKind.SET_ASIDE, why=why) for name, why in aside}
    found = [_row(each, roots[each.id], work, troubles.get(each.id), words.get(each.id)) for each in sessions]
    return [replace(each, called=called.get(each.session.id)) for each in found]


def _called(sessions: Sequence[Session]) -> Work[dict[str, str]]:
    """What chats that nobody has named are called: a title, or what was said first in them. A session that
    goes on from another is called like that one."""
    titles = {each.id: each.title for each in sessions}
    begun = {each.id: each.id for each in sessions}
    going_on = [each.id for each in sessions if each.title is None and each.parent_id is not None]
    values: dict[str, Any] = {"ids": going_on, "most": MOST_FOREBEARS}
    for name, ancestor, title in (yield "forebears_of_sessions", values) if going_on else ():
        titles[name], begun[name] = title, ancestor
    asked = sorted({each for name in titles if titles[name] is None for each in (name, begun[name])})
    values = {"ids": asked, "most_bytes": SHORT_BYTES, "back": LOOKED_BACK, "most": CANDIDATES}
    first = _last_words((yield "first_words_of_sessions", values)) if asked else {}
    texts = {name: each.text for name, each in first.items() if each.text}
    said = {name: texts[each] for name in titles for each in (name, begun[name]) if each in texts}
    return said | {name: title for name, title in titles.items() if title}


def _is_set_aside(session: Session) -> bool:
    return session.entry.suspended and session.ended_at is None


def _undelivered(count: int, why: str | None) -> SessionTrouble:
    return SessionTrouble(kind=TroubleKind.UNDELIVERED, why=why, count=count)


def _row(
    session: Session, root: str, work: list[Row], trouble: SessionTrouble | None, last: LastWords | None
) -> ListedSession:
    own = {state: (count, since) for name, state, count, since in work if name == session.id}
    found = next((name for name in STATES if name in own), None)
    if found:
        state = STATES[found]
    elif trouble:
        state = SessionState.TROUBLE
    else:
        state = SessionState.IDLE if session.ended_at is None else SessionState.ENDED
    return ListedSession(
        session=session,
        root=root,
        state=state,
        since=maybe_time(own[found][1]) if found else None,
        queued=own.get("queued", (0, None))[0],
        trouble=trouble,
        last=last,
    )


def _roots(sessions: Sequence[Session]) -> Work[dict[str, str]]:
    """The first of each one's lineage: as it is written down, else as far back as is looked."""
    roots = {each.id: each.root or each.id for each in sessions}
    unknown = [each.id for each in sessions if each.root is None and each.parent_id is not None]
    if unknown:
        found = yield "roots_of_sessions", {"ids": unknown, "most": MOST_GENERATIONS}
        for name, ancestor, _ in sorted(found, key=lambda step: step[2]):
            roots[name] = ancestor
    return roots


def _last_words(found: list[Row]) -> dict[str, LastWords]:
    """Of each session's newest messages the first that says something, else the newest."""
    words: dict[str, LastWords] = {}
    for session_id, role, at, body in found:
        known = words.get(session_id)
        if known and known.text and not known.calls_tools:
            continue
        whole = len(body) < SHORT_BYTES
        last = _words(role, at, read_body(body, session=session_id) if whole else beginning(bytes(body)))
        if known is None or (last.text and not last.calls_tools):
            words[session_id] = last
    return words


def _words(role: str, at: int, message: Plain | None) -> LastWords:
    said = text_of(_without_files(message)) or text_of(message) if message else ""
    text = one_line(said[: 4 * PREVIEW_CHARACTERS], PREVIEW_CHARACTERS)
    named = [call.name for call in calls_of(message)] if message and not text else []
    shown = text or one_line(", ".join(named), PREVIEW_CHARACTERS)
    return LastWords(role=role, text=shown, at=from_micros(at), calls_tools=bool(named))


def _without_files(message: Plain) -> Plain:
    """What somebody wrote, without what is noted of the files that came with it."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return {"content": [part for part in content if isinstance(part, dict) and part.get("type") == "text"]}
