"""A session and what was said in it, as the page shows it."""

import asyncio
import itertools
from collections.abc import Sequence
from datetime import datetime
from urllib.parse import urlencode

import msgspec

from frontdesk.app.office import Office
from frontdesk.app.office.listing import SessionFacts
from frontdesk.app.office.transcripts import MessageList, MessageRow
from frontdesk.model import calls, messages
from frontdesk.model.platforms import TERMINAL
from frontdesk.model.policies import LIMITS, EndReason
from frontdesk.model.turns import PROMPT, TurnState
from frontdesk.model.visitors import Need
from frontdesk.web.endpoints import HttpCall
from frontdesk.web.pages.frame import Values
from frontdesk.web.pages.wording import say
from frontdesk.web.site import prose
from frontdesk.web.site.boundaries import boundaries_in
from frontdesk.web.site.chips import chip_of, reason_of
from frontdesk.web.site.messages import ShownMessage, shown_messages
from frontdesk.web.site.searching import read_wish

TABS = ("all", "working", "waiting", "trouble", "ended")
PAGE_CHARACTERS = 60_000
"""Of a transcript on one page; where its messages are long, there are fewer of them."""
NEAR = 0.85
"""Of its messages, from where on a session is near its limit."""

RULES = {each.reason for each in LIMITS} | {EndReason.IDLE, EndReason.DAILY, EndReason.SPIRAL}
"""By which a session ends without anybody's order: who writes just then goes on in the next."""


class ListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which sessions are listed."""

    q: str = ""
    """Words, and what they are filtered by."""
    state: str = "all"
    after: str | None = None

    @property
    def shown_state(self) -> str:
        return read_wish(self.q).state or (self.state if self.state in TABS else TABS[0])

    @property
    def kept(self) -> dict[str, str | None]:
        """What every link from the page says again, so that the list stays as it is."""
        return {
            "q": read_wish(self.q).rest,
            "state": self.shown_state if self.shown_state != TABS[0] else None,
            "after": self.after,
        }


class ThreadQuery(ListQuery, frozen=True, kw_only=True):
    """Which part of a transcript is shown beside them."""

    before: str | None = None
    later: str | None = None
    """A place: what was said after it."""


def query_of(**parts: str | None) -> str:
    """The end of an address; without what there is nothing of."""
    written = urlencode({name: value for name, value in parts.items() if value})
    return f"?{written}" if written else ""


async def thread_of(office: Office, call: HttpCall, session_id: str) -> Values:
    """What the page shows of a session."""
    asked: ThreadQuery = call.query
    row = await office.describe_session(session_id)
    page = await office.transcript(session_id, before=asked.before, after=asked.later)
    turns = await office.open_turns(session_id)
    acting = await office.acting_on(session_id)
    rows, shown = await asyncio.to_thread(_shown_rows, row, page, newest=asked.later is None)
    here = f"{call.request.scope.get('root_path', '')}/sessions/{row['id']}"
    older = page["next"] if rows[:1] == page["items"][:1] else rows[0]["place"]
    newer = page["newer"] if rows[-1:] == page["items"][-1:] else rows[-1]["place"]
    running = [
        turn["id"] for turn in turns if turn["state"] != TurnState.QUEUED and turn["kind"] not in PROMPT
    ]
    return {
        "row": row,
        "chip": chip_of(row),
        "acting": acting,
        "limits": await office.file_limits(),
        "limit": row["message_limit"],
        "left": max(0, row["message_limit"] - row["messages"]),
        "low": max(1, int(row["message_limit"] * NEAR)),
        "messages": shown,
        "boundaries": boundaries_in(shown, page["generations"], goes_on=bool(newer)),
        "older": f"{here}{query_of(**asked.kept, before=older)}" if older else "",
        "newer": f"{here}{query_of(**asked.kept, later=newer)}" if newer else "",
        "newest": f"{here}{query_of(**asked.kept)}" if asked.before or asked.later else "",
        "goes_on": f"{here[: -len(row['id'])]}{row['current_id']}" if _goes_on(row) else "",
        "by_rule": row["end_reason"] in RULES,
        "running": running[:1],
        "stream": f"{here}/growing",
        "step": steps_of(rows, running[0]) if running else 0,
        "queued": [turn for turn in turns if turn["state"] == TurnState.QUEUED],
        "may_see_requests": call.known.may(Need.LOOK_AT_REQUESTS),
        "reason": reason_of(row["end_reason"]) if row["ended_at"] else "",
        "created_at": datetime.fromisoformat(row["created_at"]),
        "ended_at": row["ended_at"] and datetime.fromisoformat(row["ended_at"]),
    }


def _shown_rows(
    row: SessionFacts, page: MessageList, *, newest: bool
) -> tuple[Sequence[MessageRow], list[ShownMessage]]:
    """Takes a while where there is much to format."""
    rows = _bounded(page["items"], newest=newest)
    if newest and (page["next"] or len(rows) < len(page["items"])):
        rows = _begun_with_calls(rows)
    shown = shown_messages(
        rows,
        row["id"],
        row["person"] or (say("transcript.nameless") if row["platform"] == TERMINAL else ""),
        shared=row["shared"],
        approvals=page["approvals"],
        endings=page["endings"],
        goes_on=bool(page["newer"]) or rows[-1:] != page["items"][-1:],
    )
    return rows, shown


def _goes_on(row: SessionFacts) -> bool:
    return bool(row["ended_at"] and row["current_id"] and row["current_id"] != row["id"])


def steps_of(rows: Sequence[MessageRow], turn_id: str) -> int:
    """How often the agent has called tools in a turn, by the rows that there are."""
    own = (row["message"] for row in rows if row["turn_id"] == turn_id and row["message"])
    return sum(1 for message in own if any(calls.calls_of(message)))


def _begun_with_calls(rows: Sequence[MessageRow]) -> Sequence[MessageRow]:
    """Without results at their beginning, which stand with their calls on the page before; unless there are
    only those."""
    kept = list(itertools.dropwhile(lambda row: calls.is_result(row["message"] or {}), rows))
    return kept or rows


def _bounded(rows: Sequence[MessageRow], *, newest: bool) -> Sequence[MessageRow]:
    """The newest of them, or the oldest, that are not too long together; one at least."""
    spent = 0
    for count, row in enumerate(reversed(rows) if newest else rows):
        spent += min(len(messages.text_of(row["message"] or {})), prose.MOST_CHARACTERS)
        if spent > PAGE_CHARACTERS and count:
            return rows[len(rows) - count :] if newest else rows[:count]
    return rows
