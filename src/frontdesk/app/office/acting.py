"""Writing into conversations, and having something done to them: what a person would write there is handed to
the desk, so that it happens in their order, once, and is answered there."""

import asyncio
import hashlib
import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, TypedDict

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.app.office.counters import Counter
from frontdesk.app.office.plain import Plain, chosen, picked, where_of
from frontdesk.app.shown import plain_events
from frontdesk.contracts.channels import Incoming, Receipt
from frontdesk.flow import authors
from frontdesk.flow.commands import registry
from frontdesk.logs import get_logger
from frontdesk.model import deliveries, titles, turns
from frontdesk.model.people import Author
from frontdesk.model.platforms import PAGE, TERMINAL
from frontdesk.model.resolution import goes_on
from frontdesk.model.sessions import Session
from frontdesk.model.sources import SessionSource
from frontdesk.model.visitors import Need

if TYPE_CHECKING:
    from frontdesk.app.gateway import Gateway

WAIT_SECONDS = 10.0
"""How long whoever asked waits for what a command answers; what takes longer is told when it is over."""
LOOK_SECONDS = 0.5
"""The same of what happens after the turn that runs, which may be about to end."""
NAME_BYTES = 6
MAX_NAME_CHARACTERS = 64
OWNER = "the owner"
NO_CHANNEL = "its channel is not set up."
FOR_PROGRAMS = "only a program reads there."
NO_ADDRESS = "nobody knows where its messages came from."

log = get_logger(__name__)


class TurnReply(TypedDict):
    """Something that was said in answer to a message."""

    id: str
    kind: str
    state: str
    text: str
    final: bool


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

    turn_id: str
    is_over: bool
    """Whether it was carried out, or refused; else it goes on, and its turn tells."""
    waits: bool
    """Whether it happens after the turn that runs."""
    refused: str | None
    """Why nothing was done."""
    message: str
    """What was answered."""
    session_id: str | None
    """The session that goes on in the conversation now."""


class TakenMessage(TypedDict):
    """A message that was taken in."""

    turn_id: str
    session_id: str | None
    waiting: int
    """How many messages are before it."""
    repeated: bool
    """It was here before: nothing happened."""


class ActingFacts(TypedDict):
    """What whoever asks can do with a session."""

    acts: bool
    writes: bool
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


class ActingCounter(Counter):
    async def acting_on(self, session_id: str) -> ActingFacts:
        """What whoever asks can do with a session, and why not more; changes nothing."""
        session = await self._find(session_id)
        gateway, may = self._gateway, self._visitor is None or self._visitor.may(Need.ACT)
        current = await self._store.sessions.current(session.entry.session_key)
        lives = current is not None and current.id == session.id and goes_on(current)
        facts: ActingFacts = {
            "acts": False,
            "writes": False,
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

    async def write_message(
        self, session_id: str, text: str, busy: str | None = None, key: str | None = None
    ) -> TakenMessage:
        """Say something in a session that goes on; the people of its chat are shown it, too. While a turn
        runs, `busy` says what becomes of it: `queue`, `steer` or `interrupt`."""
        session = await self._going_on(session_id)
        place = await self._place(session, speaks=True)
        wanted = chosen(turns.Busy, busy) if busy else None
        receipt = await self._hand_in(session, place, text, key, busy=wanted)
        return _taken(receipt, session.id)

    async def start_chat(self, text: str, name: str | None = None, key: str | None = None) -> TakenMessage:
        """Begin a chat of one's own on the page with this message."""
        gateway, visitor = self._running(), self._visitor
        if name is not None and (not name.isprintable() or not 0 < len(name.strip()) <= MAX_NAME_CHARACTERS):
            why = f"use 1 to {MAX_NAME_CHARACTERS} visible characters"
            raise errors.InvalidInput(what="The chat's name", why=why)
        if not text.strip():
            raise errors.InvalidMessage(why="it is empty")
        who = visitor.id if visitor else str(TERMINAL)
        event = self._event(key)
        source = SessionSource(
            platform=PAGE,
            chat_id=f"{event.rpartition('-')[2][: NAME_BYTES * 2]}@{who}",  # nobody else's begins like that
            chat_name=name,
            user_id=who,
            user_name=visitor.name if visitor else OWNER,
        )
        source = self._conversations.directed(source)
        begun = await self._conversations.get_or_create_session(source)
        incoming = Incoming(source=source, text=text, event_id=event, author=self._author(None))
        receipt = await gateway.desk.accept(incoming)
        return _taken(receipt, begun.session_id)

    async def stop_session(self, session_id: str, key: str | None = None) -> Acted:
        """Stop what runs in a session."""
        return await self._order(await self._going_on(session_id), "/stop", key)

    async def reset_session(self, session_id: str, key: str | None = None) -> Acted:
        """Let the conversation go on in a new session; this one is kept."""
        return await self._order_here(session_id, "/new", key)

    async def resume_session(self, session_id: str, key: str | None = None) -> Acted:
        """Go on with a session that ended, in its own chat."""
        return await self._order(await self._acted_on(session_id), f"/resume {session_id}", key)

    async def rename_session(self, session_id: str, title: str, key: str | None = None) -> Acted:
        """Give a session a title."""
        return await self._order_here(session_id, f"/title {titles.clean_title(title)}", key)

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
        return await self._order_here(session_id, "/forget yes", key)

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
        receipt = await self._hand_in(session, place, command, key, about=about, administers=administers)
        waits = receipt.waiting > 0 and not registry.is_hasty(command)
        ended = await self._ended(receipt.turn_id, LOOK_SECONDS if waits else WAIT_SECONDS)
        said = await self._running().desk.answers(receipt.turn_id)
        return {
            "turn_id": receipt.turn_id,
            "is_over": ended is not None,
            "waits": waits and ended is None,
            "refused": ended.error if ended else None,
            "message": "\n".join(each.text for each in said if _is_reply(each)),
            "session_id": await self._conversations.peek_session_id(session.entry.session_key),
        }

    async def _hand_in(
        self,
        session: Session,
        place: SessionSource,
        text: str,
        key: str | None,
        *,
        about: str | None = None,
        busy: turns.Busy | None = None,
        administers: bool = False,
    ) -> Receipt:
        author = replace(self._author(session), administers=administers)
        incoming = Incoming(
            source=place, text=text, event_id=self._event(key), author=author, about=about, busy=busy
        )
        receipt = await self._running().desk.accept(incoming)
        log.info("written_from_page", who=author.id, session=session.id, turn=receipt.turn_id)
        return receipt

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

    async def _going_on(self, session_id: str) -> Session:
        """A session that the next message of its chat would go to. NotCurrent for any other."""
        session = await self._acted_on(session_id)
        current = await self._store.sessions.current(session.entry.session_key)
        if current is None or current.id != session.id or not goes_on(current):
            raise errors.NotCurrent(session_id=session_id)
        return current

    async def _acted_on(self, session_id: str) -> Session:
        self._running()
        if self._visitor:
            self._visitor.require(Need.ACT)
        return await self._find(session_id)

    async def _place(self, session: Session, *, speaks: bool = False) -> SessionSource:
        """The chat that a session goes on in. NotWritable where nothing can be written, or, with ``speaks``,
        nobody would read it."""
        parts, origin = self._running().parts, session.entry.origin
        if origin is None:
            raise errors.NotWritable(where=session.id, why=NO_ADDRESS)
        place = replace(origin, message_id=None)
        if await self._conversations.session_key_for(place) != session.entry.session_key:
            raise errors.NotWritable(where=session.id, why=NO_ADDRESS)
        if parts.channel_of(place) is None:
            raise errors.NotWritable(where=where_of(place), why=NO_CHANNEL)
        if authors.is_for_programs(place) and (speaks or not parts.capabilities_of(place).collects):
            raise errors.NotWritable(where=where_of(place), why=FOR_PROGRAMS)
        return place

    def _author(self, session: Session | None) -> Author:
        """Whoever asks, as who writes into a session, or into a chat of their own."""
        visitor = self._visitor
        if visitor is None:
            guest = session is not None and session.entry.platform not in (TERMINAL, PAGE)
            return Author(id=str(TERMINAL), name=OWNER, is_guest=guest)
        guest = session is not None and session.owner not in visitor.names
        return Author(id=visitor.id, name=visitor.name, is_guest=guest)

    def _event(self, key: str | None) -> str:
        """By what a message is known again: the same person's with the same key is the same."""
        who = self._visitor.id if self._visitor else str(TERMINAL)
        known = f"{who}\0{key}" if key else secrets.token_hex()
        return f"page-{hashlib.sha256(known.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"

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
            "error": turn.error,
            "session_id": turn.session_id,
            "received_at": times["received_at"],
            "finished_at": times["finished_at"],
            "replies": replies,
        }

    def _running(self) -> "Gateway":
        if self._gateway is None:
            raise errors.NeedsGateway()
        return self._gateway


def _taken(receipt: Receipt, session_id: str | None) -> TakenMessage:
    return {
        "turn_id": receipt.turn_id,
        "session_id": session_id,
        "waiting": receipt.waiting,
        "repeated": receipt.repeated,
    }


def _is_reply(delivery: deliveries.Delivery) -> bool:
    """Not what shows a message of the page to its chat."""
    return authors.SHOWN not in delivery.id
