"""Transcripts, a page at a time: from the end, both ways, over all generations of a conversation."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from frontdesk.contracts.store import Row, Work
from frontdesk.model import inputs, pages
from frontdesk.model.confirmations import Status
from frontdesk.model.people import Viewer
from frontdesk.model.reading import (
    MOST_ROWS,
    PAGE_ROWS,
    TranscriptPage,
    TranscriptRow,
    TurnApproval,
    TurnEnd,
)
from frontdesk.model.sessions import Relation, Session
from frontdesk.model.turns import Turn
from frontdesk.stores.columns import PLAIN, TIME, Column, Columns, Records, from_micros, read_bodies
from frontdesk.stores.lists.working import short_turns
from frontdesk.stores.rows import SESSIONS
from frontdesk.stores.work import Noun, reads, value

EVER = 2**59
MOST_APPROVALS = 500
"""Of the turns of one page so many are told of: how many an agent asks for is its own affair."""
MOST_GENERATIONS = 50
"""So many sessions at most are looked at for one page: some have no rows."""
MOST_ANCESTORS = 1_000
"""So far back at most a place is looked for."""
PAGE_BYTES = 8 * 1024 * 1024
"""Of messages on one page: what is more is on the next, but for a single one."""
APPROVAL = Columns(
    {
        "id": PLAIN,
        "turn_id": PLAIN,
        "action": PLAIN,
        "status": Column(Status),
        "asked_at": TIME,
        "decided_at": TIME,
        "decided_by": PLAIN,
        "decided_as": PLAIN,
        "reason": PLAIN,
    }
)
APPROVALS = Records("confirmation", TurnApproval, APPROVAL.facts)


class TranscriptLists(Noun):
    @reads
    def transcript(
        self,
        viewer: Viewer,
        session_id: str,
        limit: int = PAGE_ROWS,
        *,
        before: str | None = None,
        after: str | None = None,
    ) -> Work[TranscriptPage | None]:
        """The newest rows of a session and of those that it continues, those ``before`` a place or those
        ``after`` it; None when the viewer has no such session."""
        session = yield from _shown(session_id, viewer)
        if session is None:
            return None
        most = max(1, min(inputs.check_limit(limit), MOST_ROWS))
        if after is not None:
            return (yield from _newer(session, viewer, most, after))
        return (yield from _older(session, viewer, most, before))


class PageRows:
    """The rows of one page, as they are found: no more than so many, and so many bytes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._rows: list[TranscriptRow] = []
        self._bytes = 0
        self._is_cut = False

    @property
    def is_full(self) -> bool:
        return self._is_cut or len(self._rows) > self._most

    def add(self, way: str, session_id: str, position: int) -> Work[None]:
        """Those of a session ``before`` or ``after`` a position, as far as there is room."""
        values = {"session_id": session_id, "position": position}
        wanted = self._most + 1 - len(self._rows)
        together = yield from value(f"size_{way}", **values, limit=wanted)
        if self._bytes + together > PAGE_BYTES:
            sizes = yield f"sizes_{way}", {**values, "limit": wanted}
            fits = sum(self._bytes + each <= PAGE_BYTES for each in accumulate(size for (size,) in sizes))
            wanted = fits if fits or self._rows else 1
            self._is_cut = wanted < len(sizes)
        self._bytes += together
        if wanted:
            self._rows += _rows(session_id, (yield f"rows_{way}", {**values, "limit": wanted}))

    def cut(self) -> tuple[list[TranscriptRow], bool]:
        """The rows, and whether there are more."""
        kept, goes_on = pages.cut(self._rows, self._most)
        return kept, goes_on or self._is_cut


def _shown(session_id: str, viewer: Viewer) -> Work[Session | None]:
    found = yield from SESSIONS.one("session", session_id=session_id)
    return found if found and viewer.shows(found) else None


def _parent(session: Session, viewer: Viewer) -> Work[Session | None]:
    """The session that this one continues. A branch has the rows of the one that it comes from."""
    if session.parent_id is None or session.relation is Relation.BRANCH:
        return None
    return (yield from _shown(session.parent_id, viewer))


def _older(session: Session, viewer: Viewer, most: int, before: str | None) -> Work[TranscriptPage]:
    position, (first, *_) = yield from _from_place(session, viewer, before, EVER)
    at: Session | None = first
    found = PageRows(most)
    seen: list[Session] = []
    while at is not None and not found.is_full and len(seen) < MOST_GENERATIONS:
        if at in seen:
            break
        seen.append(at)
        yield from found.add("before", at.id, position)
        at, position = (yield from _parent(at, viewer)), EVER
    kept, goes_on = found.cut()
    older = kept[-1] if kept and (goes_on or at is not None) else None
    kept.reverse()
    newer = _place(kept[-1]) if kept and before is not None else None
    return (yield from _page(session, seen[::-1], kept, _place(older) if older else None, newer))


def _newer(session: Session, viewer: Viewer, most: int, after: str) -> Work[TranscriptPage]:
    position, chain = yield from _from_place(session, viewer, after, -EVER)
    found = PageRows(most)
    seen: list[Session] = []
    for at in chain:
        if found.is_full:
            break
        seen.append(at)
        yield from found.add("after", at.id, position)
        position = -EVER
    kept, goes_on = found.cut()
    newer = _place(kept[-1]) if goes_on else None
    return (yield from _page(session, seen, kept, _place(kept[0]) if kept else after, newer))


def _from_place(
    session: Session, viewer: Viewer, written: str | None, otherwise: int
) -> Work[tuple[int, list[Session]]]:
    """The position of a place, and the sessions from the one that it is in to the one that is read.
    InvalidInput when it is in none of those that this one continues."""
    position, name = pages.read_place(written, otherwise)
    chain = yield from _in_lineage(session, name or session.id, viewer)
    if written is not None and (position < 0 or not chain):
        raise pages.no_place(written)
    return position, chain


def _in_lineage(session: Session, name: str, viewer: Viewer) -> Work[list[Session]]:
    """From the named one, of those that the session continues, to itself; nothing when it is none."""
    chain, at = {session.id: session}, session
    while at.id != name and len(chain) < MOST_ANCESTORS:
        parent = yield from _parent(at, viewer)
        if parent is None or parent.id in chain:
            return []
        chain[parent.id] = at = parent
    return list(chain.values())[::-1] if at.id == name else []


def _place(row: TranscriptRow) -> str:
    return pages.place(row.position, row.session_id)


def _rows(session_id: str, found: list[Row]) -> Iterator[TranscriptRow]:
    messages = read_bodies([row[-1] for row in found], session=session_id)
    for (position, role, at, turn_id, hidden_by, kind, _), message in zip(found, messages, strict=True):
        yield TranscriptRow(
            session_id=session_id,
            position=position,
            role=role,
            at=from_micros(at),
            turn_id=turn_id,
            undone_by=None if hidden_by is None else kind or "undone",
            message=message,
        )


def _page(
    session: Session,
    generations: Sequence[Session],
    rows: list[TranscriptRow],
    older: str | None,
    newer: str | None,
) -> Work[TranscriptPage]:
    told = {row.session_id for row in rows}
    turn_ids = sorted({row.turn_id for row in rows if row.turn_id})
    approvals = (yield from _approvals(turn_ids)) if turn_ids else []
    ended = (yield from _endings(turn_ids)) if turn_ids else []
    begun = next((place for place, each in enumerate(generations) if each.id in told), 0)
    shown = [each for each in generations[begun:] if newer is None or each.id in told]
    return TranscriptPage(
        session=session,
        rows=rows,
        generations=shown,
        approvals=approvals,
        endings=ended,
        older=older,
        newer=newer,
    )


def _approvals(turn_ids: list[str]) -> Work[list[TurnApproval]]:
    return APPROVALS.many("approvals_of_turns", ids=turn_ids, limit=MOST_APPROVALS)


def _endings(turn_ids: list[str]) -> Work[list[TurnEnd]]:
    sizes = yield "unanswered_of_turns", {"ids": turn_ids}
    return [_ending(turn) for turn in (yield from short_turns(sizes)) if turn]


def _ending(turn: Turn) -> TurnEnd:
    return TurnEnd(turn_id=turn.id, state=turn.state, at=turn.finished_at, by=turn.stopped_by, why=turn.error)
