"""Having something done to conversations: the command that a person would write there is handed to the desk,
so that it happens in their order, once, and is answered there."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import TypedDict

from frontdesk import errors
from frontdesk.app.office.files import SavedFile, saved
from frontdesk.app.office.plain import Plain, picked
from frontdesk.app.office.writing import WritingCounter
from frontdesk.app.shown import plain_events
from frontdesk.flow import authors, forgetting
from frontdesk.flow.commands import registry
from frontdesk.logs import get_logger
from frontdesk.model import deliveries, titles, turns
from frontdesk.model.platforms import PAGE
from frontdesk.model.resolution import goes_on
from frontdesk.model.sessions import Session
from frontdesk.model.visitors import Need

WAIT_SECONDS = 10.0
"""How long whoever asked waits for what a command answers; what takes longer is told when it is over."""
LOOK_SECONDS = 0.5
"""The same of what happens after the turn that runs, which may be about to end."""
WAITS = "It happens after what is under way there."
UNDER_WAY = "It is under way."
RENAMED = "It has this title now."
FORGOTTEN = "Forgotten. Nobody can go on with it. Its text stays in the database until it is erased there."

log = get_logger(__name__)


class TurnReply(TypedDict):
    """Something that was said in answer to a message."""

    id: str
    kind: str
    state: str
    text: str
    final: bool
    files: list[SavedFile]


class TurnProgress(TypedDict):
    """A message, and what became of it so far."""

    turn_id: str
    kind: str
    state: str
    is_over: bool
    error: str | None
    session_id: str | None
    received_at: str
    finished_at: str | None
    replies: list[TurnReply]


class Acted(TypedDict):
    """What became of an order."""

    turn_id: str | None
    """None where it was done at once, without its chat."""
    is_over: bool
    """Whether it was carried out, or refused; else it goes on, and its turn tells."""
    waits: bool
    """Whether it happens after the turn that runs."""
    refused: str | None
    """Why nothing was done."""
    message: str
    """What was answered."""
    session_id: str | None
    """The session that goes on in the conversation now; none where that was forgotten."""


class ActingFacts(TypedDict):
    """What whoever asks can do with a session."""

    acts: bool
    writes: bool
    keeps: bool
    """Whether they can rename and forget it, which its chat is not needed for."""
    goes_on: bool
    """Whether the next message of its chat goes there."""
    on_page: bool
    """Whether it is a chat of the page itself."""
    why: str | None
    """Why nothing can be written into it."""
    busy: str
    """What becomes of a message while a turn runs, unless its sender says otherwise."""
    keeps_files: bool
    """Whether the state of its working directory can be kept."""


class ActingCounter(WritingCounter):
    async def acting_on(self, session_id: str) -> ActingFacts:
        """What whoever asks can do with a session, and why not more; changes nothing."""
        session = await self._find(session_id)
        gateway, may = self._gateway, self._visitor is None or self._visitor.may(Need.ACT)
        current = await self._store.sessions.current(session.entry.session_key)
        lives = current is not None and current.id == session.id and goes_on(current)
        facts: ActingFacts = {
            "acts": False,
            "writes": False,
            "keeps": gateway is not None and may and not session.is_forgotten,
            "goes_on": lives,
            "on_page": session.entry.platform is PAGE,
            "why": None,
            "busy": str(gateway.parts.running.busy_mode) if gateway else "",
            "keeps_files": False,
        }
        if gateway is None or not may:
            return facts
        try:
            place = await self._place(session)
            facts["acts"] = True
            administers = self._visitor is None or self._visitor.may(Need.ADMINISTER)
            facts["keeps_files"] = administers and gateway.parts.keeps_files_of(place)
            await self._place(session, speaks=True)
        except errors.NotWritable as refusal:
            facts["why"] = str(refusal)
            return facts
        facts["writes"] = lives
        if not lives:
            facts["why"] = str(errors.NotCurrent(session_id=session.id))
        return facts

    async def stop_session(self, session_id: str, key: str | None = None) -> Acted:
        """Stop what runs in a session."""
        return await self._order(await self._going_on(session_id), "/stop", key)

    async def reset_session(self, session_id: str, key: str | None = None) -> Acted:
        """Let the conversation go on in a new session; this one is kept."""
        return await self._order_here(session_id, "/new", key)

    async def resume_session(self, session_id: str, key: str | None = None) -> Acted:
        """Go on with a session that ended, in its own chat."""
        return await self._order(await self._remembered(session_id), f"/resume {session_id}", key)

    async def rename_session(self, session_id: str, title: str, key: str | None = None) -> Acted:
        """Give a session a title."""
        session, named = await self._remembered(session_id), titles.clean_title(title)
        if await self._hears_orders(session):
            return await self._order(session, f"/title {named}", key, about=session.id)
        await self._conversations.set_title(session.id, named, self._viewer)
        return await self._done(session, RENAMED)

    async def branch_session(self, session_id: str, key: str | None = None) -> Acted:
        """Go on in a copy; the original stays as it is."""
        return await self._order_here(session_id, "/branch", key)

    async def compress_session(self, session_id: str, key: str | None = None) -> Acted:
        """Go on with a short hand-over in place of the older messages."""
        return await self._order_here(session_id, "/compress", key)

    async def undo_session(self, session_id: str, turns: int = 1, key: str | None = None) -> Acted:
        """Take back the last turn, or several."""
        return await self._order_here(session_id, f"/undo {turns}", key)

    async def redo_session(self, session_id: str, key: str | None = None) -> Acted:
        """Bring back what was taken back, until something is said."""
        return await self._order_here(session_id, "/redo", key)

    async def forget_session(self, session_id: str, key: str | None = None) -> Acted:
        """End a session so that it can never be resumed."""
        session = await self._acted_on(session_id)
        if await self._hears_orders(session):
            return await self._order(session, "/forget yes", key, about=session.id)
        if not session.is_forgotten:
            await forgetting.forget(self._running().parts, session, self._viewer)
        return await self._done(session, FORGOTTEN)

    async def keep_checkpoint(self, session_id: str, key: str | None = None) -> Acted:
        """Keep the state of the working directory that a session's agent works in."""
        if self._visitor:
            self._visitor.require(Need.ADMINISTER)
        session = await self._going_on(session_id)
        return await self._order(session, "/checkpoint", key, about=session.id, administers=True)

    async def show_turn(self, turn_id: str) -> TurnProgress:
        """A message, and what became of it so far."""
        return await self._progress(await self._turn(turn_id))

    async def follow_turn(self, turn_id: str) -> AsyncGenerator[Plain, None]:
        """What happens in a turn from its beginning on, and at the end what was said in it."""
        turn = await self._turn(turn_id)
        async with aclosing(self._running().desk.follow(turn.id)) as steps:
            async for step in steps:
                for each in plain_events(step):
                    yield each
                if isinstance(step, turns.Turn):
                    yield {"type": "end"} | dict(await self._progress(step))

    async def _hears_orders(self, session: Session) -> bool:
        """Whether it goes on in a chat in which something can be done."""
        current = await self._store.sessions.current(session.entry.session_key)
        if current is None or current.id != session.id or not goes_on(current):
            return False
        with suppress(errors.NotWritable):
            return bool(await self._place(session))
        return False

    async def _done(self, session: Session, message: str) -> Acted:
        """What was done to a session without its chat."""
        log.info("kept_from_page", who=self._author(session).id, session=session.id, what=message)
        now = await self._store.sessions.current(session.entry.session_key)
        return {
            "turn_id": None,
            "is_over": True,
            "waits": False,
            "refused": None,
            "message": message,
            "session_id": now.id if now and now.id == session.id and goes_on(now) else None,
        }

    async def _order_here(self, session_id: str, command: str, key: str | None) -> Acted:
        """Something that is for this very session: when another one goes on by the time that it is its turn,
        nothing is done."""
        session = await self._going_on(session_id)
        return await self._order(session, command, key, about=session.id)

    async def _order(
        self,
        session: Session,
        command: str,
        key: str | None,
        about: str | None = None,
        *,
        administers: bool = False,
    ) -> Acted:
        place = await self._place(session)
        receipt = await self._hand_in(
            session, place, command, self._event(key), about=about, administers=administers
        )
        waits = receipt.waiting > 0 and not registry.is_hasty(command)
        ended = await self._ended(receipt.turn_id, LOOK_SECONDS if waits else WAIT_SECONDS)
        said = await self._running().desk.answers(receipt.turn_id)
        now = await self._store.sessions.current(session.entry.session_key)
        return {
            "turn_id": receipt.turn_id,
            "is_over": ended is not None,
            "waits": waits and ended is None,
            "refused": ended.error if ended else None,
            "message": "\n".join(each.text for each in said if _is_reply(each))
            or ("" if ended else WAITS if waits else UNDER_WAY),
            "session_id": now.id if now and goes_on(now) else None,
        }

    async def _ended(self, turn_id: str, seconds: float) -> turns.Turn | None:
        """The turn once it is over, if that is soon."""
        try:
            async with asyncio.timeout(seconds), aclosing(self._running().desk.follow(turn_id)) as steps:
                async for step in steps:
                    if isinstance(step, turns.Turn):
                        return step
        except TimeoutError:
            return None
        return None

    async def _turn(self, turn_id: str) -> turns.Turn:
        """A turn of a conversation that they may see. UnknownTurn for any other."""
        turn = await self._store.turns.find(turn_id)
        if turn is None:
            raise errors.UnknownTurn(turn_id=turn_id)
        visitor = self._visitor
        if visitor is None or self._viewer.administrator or (turn.author and turn.author.id == visitor.id):
            return turn
        sessions = self._store.sessions
        session = await (
            sessions.find(turn.session_id) if turn.session_id else sessions.current(turn.session_key)
        )
        if session is None or not self._viewer.sees(session.owner):
            raise errors.UnknownTurn(turn_id=turn_id)
        return turn

    async def _progress(self, turn: turns.Turn) -> TurnProgress:
        said = await self._running().desk.answers(turn.id)
        replies: list[TurnReply] = [
            {
                "id": each.id,
                "kind": str(each.kind),
                "state": str(each.state),
                "text": each.text,
                "final": each.final,
                "files": [saved(file) for file in each.files],
            }
            for each in said
            if _is_reply(each)
        ]
        times = picked(turn, "received_at", "finished_at")
        return {
            "turn_id": turn.id,
            "kind": str(turn.kind),
            "state": str(turn.state),
            "is_over": turn.state in turns.FINISHED,
            "error": self._why(turn.state, turn.error),
            "session_id": turn.session_id,
            "received_at": times["received_at"],
            "finished_at": times["finished_at"],
            "replies": replies,
        }


def _is_reply(delivery: deliveries.Delivery) -> bool:
    """Not what shows a message of the page to its chat."""
    return authors.SHOWN not in delivery.id
