"""Turns, deliveries and the audit log, a page at a time, newest first."""

from collections.abc import Callable, Iterable
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

from msgspec.structs import replace

from frontdesk.contracts.store import Row, Work
from frontdesk.model import lanes, pages
from frontdesk.model.audit import Row as AuditRow
from frontdesk.model.deliveries import Delivery
from frontdesk.model.lists import (
    LISTED_CHARACTERS,
    DeliveryNumbers,
    ListedAudit,
    ListedDeliveries,
    ListedTurn,
    ListedTurns,
    TurnNumbers,
)
from frontdesk.model.pages import ListPage
from frontdesk.model.people import Viewer
from frontdesk.model.turns import Turn
from frontdesk.stores import audit
from frontdesk.stores.columns import from_micros, maybe_time
from frontdesk.stores.loading import slices_of
from frontdesk.stores.rows import DELIVERIES, TURN, TURNS
from frontdesk.stores.work import Noun, reads, value

T = TypeVar("T")

EVER = 2**59
LOOKED_AT = 2_000
"""So many rows at most are looked at for one page, when few of them may be shown."""
TURNS_LOOKED_AT = 10_000
BATCH = 200
TURN_NUMBER = TURN.names.index("number") + 2

TURNS_BY_STATE = {
    ListedTurns.WAITING: "turns_that_wait",
    ListedTurns.RUNNING: "turns_that_run",
    ListedTurns.SET_ASIDE: "turns_set_aside",
}
DELIVERIES_BY_STATE = {
    ListedDeliveries.DEAD: "deliveries_dead",
    ListedDeliveries.UNSURE: "deliveries_unsure",
    ListedDeliveries.LATE: "deliveries_late",
    ListedDeliveries.WAITING: "deliveries_waiting",
    ListedDeliveries.DISCARDED: "deliveries_discarded",
}


class WorkLists(Noun):
    @reads
    def turns(
        self,
        viewer: Viewer,
        wanted: ListedTurns,
        limit: int = pages.PAGE_ITEMS,
        after: str | None = None,
        *,
        whole: bool = False,
    ) -> Work[ListPage[ListedTurn]]:
        """Turns that the viewer may see, the newest first; ``after`` the end of an earlier page. Of what was
        written the beginning, and one character more where that is not all, unless it is wanted ``whole``.

        Of all turns, lately, the list of one person goes on from theirs alone, or ends: how many turns of
        others are in between is not told.
        """
        most, (before, _) = pages.check_items(limit), pages.read_place(after, EVER)
        values = _whose(viewer) | {"before": before, "limit": most + 1}
        if query := TURNS_BY_STATE.get(wanted):
            return (yield from _turns(_page((yield query, values), most, itemgetter(0)), whole))
        newest = yield from value("newest_turn", before=before)
        least = (newest or 0) - TURNS_LOOKED_AT
        page = _page((yield "turns_lately", values | {"least": least}), most, itemgetter(0))
        if page.items and page.next is None and (yield from value("newest_turn", before=least)) is not None:
            page = replace(page, next=pages.place(page.items[-1][0]))
        return (yield from _turns(page, whole))

    @reads
    def open_turns(self, session_key: str, limit: int) -> Work[list[Turn]]:
        """What is under way or waits in a conversation, oldest first; of the texts as much."""
        lane, control = lanes.turn_lane(session_key), lanes.control_lane(session_key)
        sizes = yield "sizes_of_open_turns", {"lane": lane, "control": control, "limit": limit}
        return [turn for turn in (yield from short_turns(sizes)) if turn][::-1]

    @reads
    def count_turns(self, viewer: Viewer, at_most: int) -> Work[TurnNumbers]:
        """How many turns there are in each list, no further than so many, and since when the oldest waits."""
        (found,) = yield "count_listed_turns", _whose(viewer) | {"limit": at_most}
        queued, running, waiting, set_aside, oldest = found
        return TurnNumbers(queued, running, waiting, set_aside, maybe_time(oldest))

    @reads
    def count_deliveries(self, viewer: Viewer, at_most: int) -> Work[DeliveryNumbers]:
        """How many deliveries there are in each list of what has not arrived, no further than so many."""
        (counts,) = yield "count_listed_deliveries", _whose(viewer) | {"limit": at_most}
        return DeliveryNumbers(*counts)

    @reads
    def deliveries(
        self,
        viewer: Viewer,
        wanted: ListedDeliveries,
        limit: int = pages.PAGE_ITEMS,
        after: str | None = None,
        *,
        whole: bool = False,
    ) -> Work[ListPage[Delivery]]:
        """Deliveries that the viewer may see, the newest first; ``after`` the end of an earlier page. Of
        their texts as much as of those of turns."""
        most, (before, _) = pages.check_items(limit), pages.read_place(after, EVER)
        values = _whose(viewer) | {"before": before, "limit": most + 1}
        page = _page((yield DELIVERIES_BY_STATE[wanted], values), most, itemgetter(0))
        found: list[Delivery] = []
        for numbers in slices_of(page.items):
            read = map(DELIVERIES.read, (yield "deliveries_numbered", {"numbers": numbers}))
            found += [each if whole else _short_delivery(each) for each in read if each]
        return ListPage(items=found, next=page.next)

    @reads
    def audit(
        self, wanted: ListedAudit, limit: int = pages.PAGE_ITEMS, after: str | None = None
    ) -> Work[ListPage[AuditRow]]:
        """Rows of the audit log, the newest first; ``after`` the end of an earlier page. When few of them are
        wanted a page may be short, or empty, and the log goes on all the same."""
        most, (before, _) = pages.check_items(limit), pages.read_place(after, EVER)
        found: list[AuditRow] = []
        looked_at = 0
        while len(found) <= most and looked_at < LOOKED_AT:
            batch = yield from audit.read("audit_before", before=before, limit=BATCH)
            found += [row for row in batch if _fits(row, wanted)]
            looked_at += len(batch)
            if len(batch) < BATCH:
                return _page(found, most, attrgetter("number"))
            before = batch[-1].number
        page = _page(found, most, attrgetter("number"))
        return page if page.next else ListPage(items=page.items, next=pages.place(before))


def _whose(viewer: Viewer) -> dict[str, Any]:
    return {"everything": int(viewer.administrator), "owners": sorted(viewer.owners)}


def _page(found: list[T], most: int, number: Callable[[T], int]) -> ListPage[T]:
    shown, goes_on = pages.cut(found, most)
    return ListPage(items=shown, next=pages.place(number(shown[-1])) if goes_on else None)


def short_turns(sizes: Iterable[Row]) -> Work[list[Turn | None]]:
    """The turns with these numbers, beside which stands how large each is: as much of them as lists show, the
    newest first where they are sorted like that; None for one that cannot be read."""
    return [listed.turn for listed in (yield from _listed_turns(sizes, whole=False))]


def _turns(page: ListPage[Row], whole: bool) -> Work[ListPage[ListedTurn]]:
    return ListPage(items=(yield from _listed_turns(page.items, whole)), next=page.next)


def _listed_turns(sizes: Iterable[Row], whole: bool) -> Work[list[ListedTurn]]:
    found: list[ListedTurn] = []
    for numbers in slices_of(sizes):
        rows = yield "turns_numbered", {"numbers": numbers}
        found += [_turn(row, whole) for row in rows]
    return found


def _turn(row: Row, whole: bool) -> ListedTurn:
    lane, due_at, *rest = row
    turn = TURNS.read(tuple(rest))
    return ListedTurn(
        id=rest[0],
        number=row[TURN_NUMBER],
        lane=lane,
        due_at=from_micros(due_at),
        turn=turn if turn is None or whole else _short_turn(turn),
    )


def _short_turn(turn: Turn) -> Turn:
    """A turn without what may be long in it, but for the beginning of its text."""
    none: dict[str, Any] = dict.fromkeys(("content", "history", "quote", "handle", "instructions"))
    none |= {"text": turn.text[: LISTED_CHARACTERS + 1], "files": (), "noted": {}}
    return replace(turn, **none)


def _short_delivery(delivery: Delivery) -> Delivery:
    """The same of a delivery."""
    text = delivery.text[: LISTED_CHARACTERS + 1]
    return replace(delivery, text=text, extra={}, buttons=(), files=(), handle=None)


def _fits(row: AuditRow, wanted: ListedAudit) -> bool:
    """One that cannot be read is shown where everything is: somebody has put it there."""
    entry = row.readable
    return wanted.fits(entry) if entry else wanted == ListedAudit()
