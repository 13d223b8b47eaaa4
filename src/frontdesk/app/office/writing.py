"""Writing into conversations: what a person would write there is handed to the desk, so that it happens in
their order, once, and is answered there."""

import hashlib
import secrets
from datetime import timedelta
from typing import Annotated, TypedDict

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.app.office.files import FileCounter
from frontdesk.app.office.plain import among, chosen, where_of
from frontdesk.contracts.channels import Incoming, Receipt
from frontdesk.flow import authors
from frontdesk.formats import quoting
from frontdesk.logs import get_logger
from frontdesk.model import turns
from frontdesk.model.chats import Attachment
from frontdesk.model.people import Author
from frontdesk.model.platforms import PAGE, TERMINAL
from frontdesk.model.resolution import goes_on
from frontdesk.model.sessions import Session
from frontdesk.model.sources import SessionSource
from frontdesk.model.visitors import Need

NAME_BYTES = 6
MAX_NAME_CHARACTERS = 64
MOST_CHATS = 100
CHATS_WITHIN = timedelta(hours=1)
"""So many chats somebody may begin in so long."""
OWNER = "the owner"
NO_CHANNEL = "its channel is not set up."
FOR_PROGRAMS = "only a program reads there."
SOMEBODY_ELSES = "it went on in a chat of somebody else, and stays out of there."
NO_ADDRESS = "nobody knows where its messages came from."

log = get_logger(__name__)


class TakenMessage(TypedDict):
    """A message that was taken in."""

    turn_id: str
    session_id: str | None
    waiting: int
    """How many messages are before it."""
    repeated: bool
    """It was here before: nothing happened."""


class WritingCounter(FileCounter):
    async def write_message(
        self,
        session_id: str,
        text: str,
        busy: Annotated[str, among(turns.Busy)] | None = None,
        files: tuple[str, ...] = (),
        key: str | None = None,
    ) -> TakenMessage:
        """Say something in a session that goes on; the people of its chat are shown it, too. While a turn
        runs, `busy` says what becomes of it: `queue`, `steer` or `interrupt`. `files` were brought before."""
        session = await self._going_on(session_id)
        place = await self._place(session, speaks=True)
        wanted = None if busy is None else chosen("busy", turns.Busy, busy)
        event = self._event(key)
        if files and (said := await self._store.files.sent_with(place, event)):
            return _taken(_again(said), session.id)
        brought = await self._attached(files)
        receipt = await self._hand_in(session, place, text, event, busy=wanted, files=brought)
        return _taken(receipt, session.id)

    async def start_chat(
        self, text: str, name: str | None = None, files: tuple[str, ...] = (), key: str | None = None
    ) -> TakenMessage:
        """Begin a chat of one's own on the page with this message. `files` were brought before."""
        gateway, visitor = self._running(), self._visitor
        if name is not None and (not name.isprintable() or not 0 < len(name.strip()) <= MAX_NAME_CHARACTERS):
            why = f"use 1 to {MAX_NAME_CHARACTERS} visible characters"
            raise errors.InvalidInput(what="The chat's name", why=why)
        if not text.strip() and not files:
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
        said = await self._store.files.sent_with(source, event) if files else None
        brought = () if said else await self._attached(files)
        begun = await self._conversations.begin_chat(source, MOST_CHATS, CHATS_WITHIN)
        if said:
            return _taken(_again(said), begun.session_id)
        incoming = Incoming(
            source=source, text=text, event_id=event, author=self._author(None), files=brought
        )
        receipt = await gateway.desk.accept(incoming)
        return _taken(receipt, begun.session_id)

    async def _hand_in(
        self,
        session: Session,
        place: SessionSource,
        text: str,
        event: str,
        *,
        about: str | None = None,
        busy: turns.Busy | None = None,
        administers: bool = False,
        files: tuple[Attachment, ...] = (),
    ) -> Receipt:
        author = replace(self._author(session), administers=administers)
        incoming = Incoming(
            source=place, text=text, event_id=event, author=author, about=about, busy=busy, files=files
        )
        receipt = await self._running().desk.accept(incoming)
        log.info("written_from_page", who=author.id, session=session.id, turn=receipt.turn_id)
        return receipt

    async def _going_on(self, session_id: str) -> Session:
        """A session that the next message of its chat would go to. NotCurrent for any other."""
        session = await self._remembered(session_id)
        current = await self._store.sessions.current(session.entry.session_key)
        if current is None or current.id != session.id or not goes_on(current):
            raise errors.NotCurrent(session_id=session_id)
        return current

    async def _remembered(self, session_id: str) -> Session:
        """A session that can be gone on with. SessionForgotten for one that was forgotten."""
        session = await self._acted_on(session_id)
        if session.is_forgotten:
            raise errors.SessionForgotten(session_id=session_id)
        return session

    async def _acted_on(self, session_id: str) -> Session:
        self._running()
        if self._visitor:
            self._visitor.require(Need.ACT)
        return await self._find(session_id)

    async def _place(self, session: Session, *, speaks: bool = False) -> SessionSource:
        """The chat that a session goes on in. NotWritable where nothing can be done, or, with ``speaks``,
        nobody would read what is written."""
        parts, origin = self._running().parts, session.entry.origin
        if origin is None:
            raise errors.NotWritable(where=session.id, why=NO_ADDRESS)
        place = replace(origin, message_id=None)
        if await self._conversations.session_key_for(place) != session.entry.session_key:
            raise errors.NotWritable(where=session.id, why=NO_ADDRESS)
        if not (await self._conversations.viewer_for(place)).sees(session.owner):
            raise errors.NotWritable(where=session.id, why=SOMEBODY_ELSES)
        if parts.channel_of(place) is None:
            raise errors.NotWritable(where=_named(place), why=NO_CHANNEL)
        if speaks and authors.is_for_programs(place):
            raise errors.NotWritable(where=_named(place), why=FOR_PROGRAMS)
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


def _named(place: SessionSource) -> str:
    return quoting.one_line(where_of(place), MAX_NAME_CHARACTERS)


def _taken(receipt: Receipt, session_id: str | None) -> TakenMessage:
    return {
        "turn_id": receipt.turn_id,
        "session_id": session_id,
        "waiting": receipt.waiting,
        "repeated": receipt.repeated,
    }


def _again(turn: turns.Turn) -> Receipt:
    """Of a message that came before."""
    return Receipt(turn_id=turn.id, session_key=turn.session_key, repeated=True)
