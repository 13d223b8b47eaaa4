"""What is asked about what was said in a conversation."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Any, TypedDict

from frontdesk import errors
from frontdesk.app.office.counters import Counter
from frontdesk.app.office.listing import LineageStep, lineage_step
from frontdesk.formats import quoting
from frontdesk.model import events, pages
from frontdesk.model.reading import PAGE_ROWS, TranscriptRow, TurnApproval, TurnEnd
from frontdesk.model.turns import TurnKind, TurnState

OPEN_TURNS = 20
QUEUED_CHARACTERS = 200


class MessageRow(TypedDict):
    """A message of a conversation."""

    number: int
    session_id: str
    place: str
    """From which the messages before or after it are asked for."""
    at: str
    role: str
    message: dict[str, Any] | None
    """As it is stored; none where what is stored cannot be read."""
    turn_id: str | None
    undone: str | None
    """What took it out of the conversation, if something did: a rewind or a rewrite."""


class ApprovalRow(TypedDict):
    """Something that a turn asked to be allowed, and what became of that."""

    id: str
    turn_id: str
    action: str
    status: str
    asked_at: str
    decided_at: str | None
    decided_by: str | None
    decided_as: str | None
    """What they want to be called, which nobody checked."""
    reason: str | None


class TurnOutcome(TypedDict):
    """A turn that ended without an answer, or in the middle of one."""

    turn_id: str
    state: str
    at: str | None
    by: str | None
    """Who stopped it."""
    why: str | None


class MessageList(TypedDict):
    """Messages, the oldest first. ``next`` is sent as ``before`` to get those before them, ``newer`` as
    ``after`` to get those after."""

    items: list[MessageRow]
    next: str | None
    newer: str | None
    generations: list[LineageStep]
    """The sessions that they are from, oldest first; at the end also those in which nothing was said yet."""
    approvals: list[ApprovalRow]
    endings: list[TurnOutcome]


class OpenTurn(TypedDict):
    """A turn that runs or waits."""

    id: str
    kind: str
    state: str
    text: str
    who: str
    at: str
    attempts: int


class TurnPiece(TypedDict):
    """What a turn that runs does: a piece of its ``text``, the ``call`` of tools or a ``result``; that it
    begins ``again``, or that something of it was ``missed``."""

    turn_id: str
    type: str
    text: str


class TranscriptCounter(Counter):
    async def transcript(
        self, session_id: str, before: str | None = None, after: str | None = None, limit: int = PAGE_ROWS
    ) -> MessageList:
        """The newest messages of a session and of those it continues, or those before or after a place: what
        was undone is among them. Of long ones there are fewer, so that they have 8 MiB together.
        No more than 500 approvals are told of."""
        found = await self._conversations.read_page(
            session_id, self._viewer, limit=min(limit, pages.MOST_ITEMS), before=before, after=after
        )
        if found is None:
            raise errors.SessionNotFound(session_id=session_id)
        return {
            "items": [_message(row) for row in found.rows],
            "next": found.older,
            "newer": found.newer,
            "generations": [lineage_step(each) for each in found.generations],
            "approvals": [_approval(each) for each in found.approvals],
            "endings": [_outcome(each, self._why(each.state, each.why)) for each in found.endings],
        }

    async def open_turns(self, session_id: str) -> list[OpenTurn]:
        """The turns of a session's conversation that run or wait, the first one first."""
        session = await self._find(session_id)
        found = await self._store.lists.open_turns(session.entry.session_key, OPEN_TURNS)
        return [
            OpenTurn(
                id=turn.id,
                kind=str(turn.kind),
                state=str(turn.state),
                text=quoting.one_line(turn.text[: 4 * QUEUED_CHARACTERS], QUEUED_CHARACTERS),
                who=quoting.one_line(turn.sender, QUEUED_CHARACTERS),
                at=turn.received_at.isoformat(),
                attempts=turn.attempts,
            )
            for turn in found
            if turn.kind is not TurnKind.EXPIRY
            and (turn.session_id == session.id or (turn.session_id is None and session.ended_at is None))
        ]

    async def follow_session(self, session_id: str) -> AsyncGenerator[TurnPiece, None]:
        """What the turn does that runs in a session, as it happens, to its end; nothing where none runs."""
        if self._gateway is None:
            return
        running = [turn for turn in await self.open_turns(session_id) if turn["state"] != TurnState.QUEUED]
        for turn in running[:1]:
            async with aclosing(self._gateway.desk.follow(turn["id"])) as steps:
                async for step in steps:
                    for kind, text in _pieces(step):
                        yield TurnPiece(turn_id=turn["id"], type=kind, text=text)


def _message(row: TranscriptRow) -> MessageRow:
    return MessageRow(
        number=row.position + 1,
        session_id=row.session_id,
        place=pages.place(row.position, row.session_id),
        at=row.at.isoformat(),
        role=row.role,
        message=row.message,
        turn_id=row.turn_id,
        undone=row.undone_by,
    )


def _approval(asked: TurnApproval) -> ApprovalRow:
    return ApprovalRow(
        id=asked.id,
        turn_id=asked.turn_id,
        action=asked.action,
        status=str(asked.status),
        asked_at=asked.asked_at.isoformat(),
        decided_at=asked.decided_at.isoformat() if asked.decided_at else None,
        decided_by=asked.decided_by,
        decided_as=asked.decided_as,
        reason=asked.reason,
    )


def _outcome(ended: TurnEnd, why: str | None) -> TurnOutcome:
    return TurnOutcome(
        turn_id=ended.turn_id,
        state=str(ended.state),
        at=ended.at.isoformat() if ended.at else None,
        by=ended.by,
        why=why,
    )


def _pieces(step: object) -> Iterable[tuple[str, str]]:
    match step:
        case events.Text(text=text):
            return [("text", text)]
        case events.Calls(calls=calls):
            return [("call", quoting.one_line(", ".join(call.name for call in calls), QUEUED_CHARACTERS))]
        case events.Result(name=name):
            return [("result", name or "")]
        case events.Restarted():
            return [("again", "")]
        case events.Missed():
            return [("missed", "")]
    return []
