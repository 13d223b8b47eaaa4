"""A counter of the office: where questions of one kind are answered."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Self

import msgspec

from frontdesk import errors
from frontdesk.app.office.plain import Plain, picked, where_of
from frontdesk.config.effective import SettingsInEffect
from frontdesk.contracts.channels import Channel
from frontdesk.contracts.clock import Clock, SystemClock
from frontdesk.contracts.snapshots import Snapshots
from frontdesk.flow.authorization import Authorization, owner_of_terminal
from frontdesk.flow.conversations import Conversations
from frontdesk.model.access import AccessRule, AccessVerdict
from frontdesk.model.people import Viewer
from frontdesk.model.sessions import Session
from frontdesk.model.turns import TurnState
from frontdesk.model.visitors import Need, Visitor
from frontdesk.stores.store import Store

if TYPE_CHECKING:
    from frontdesk.app.gateway import Gateway

LIST_LIMIT = 50
COUNTED = 1_000
"""No list is counted further than that."""

PLACE_BYTES = 20
"""Of a number that says where a page ends, however large."""

OURS = (TurnState.DONE, TurnState.INTERRUPTED)
"""How turns end for a reason that we give."""

Channels = Callable[[], Awaitable[Sequence[Channel]]]
Workplace = Callable[[], tuple[Snapshots | None, str | None]]
"""The checkpoints that are made, and of which directory."""


async def _no_channels() -> Sequence[Channel]:
    return ()


class Counter:
    """What each of them answers from. Whoever can read the database is its administrator, so that everything
    is seen here; a visitor sees what is theirs."""

    def __init__(
        self,
        store: Store,
        conversations: Conversations,
        gateway: "Gateway | None" = None,
        *,
        clock: Clock | None = None,
        channels: Channels = _no_channels,
        workplace: Workplace = lambda: (None, None),
        ports: Callable[[], Sequence[msgspec.Struct]] = tuple,
        settings: Callable[[], SettingsInEffect] = SettingsInEffect,
    ) -> None:
        """Without a gateway, ``channels`` gives those that one would have, ``workplace`` its checkpoints;
        ``ports`` tells of each that a gateway listens on, ``settings`` what holds."""
        self._store = store
        self._conversations = conversations
        self._gateway = gateway
        self._channels = channels
        self._workplace = workplace
        self._ports = ports
        self._settings = settings
        self._clock = clock or SystemClock()
        self._people = Authorization(store, conversations.config, clock=self._clock)
        self._viewer = Viewer.everything()
        self._visitor: Visitor | None = None
        """Who asks; nobody is the owner."""
        self._owner = self._by = owner_of_terminal()
        self._verifying = asyncio.Lock()
        """Held by whoever verifies the log: all of it is read, and many ask at once."""

    @classmethod
    def of_gateway(cls, gateway: "Gateway", ports: Callable[[], Sequence[msgspec.Struct]] = tuple) -> Self:
        parts = gateway.parts
        return cls(
            parts.store,
            parts.conversations,
            gateway,
            clock=parts.clock,
            workplace=lambda: (parts.snapshots, parts.running.working_dir),
            ports=ports,
            settings=lambda: gateway.settings(),  # noqa: PLW0108 - whatever tells it then
        )

    def seen_by(self, visitor: Visitor) -> Self:
        """The same, of what this visitor may see. What they may do is asked before anybody gets here."""
        seen = copy(self)
        seen._viewer, seen._visitor = visitor.viewer, visitor
        seen._by = AccessVerdict(
            allowed=True, rule=AccessRule.CHANNEL_CREDENTIAL, place=visitor.id, role=visitor.role
        )
        return seen

    async def _closed(self, place: str | None, of: str) -> str | None:
        """A place in a list whose numbers are everybody's: who does not see all of it is not told how many
        there are."""
        if place is None or self._viewer.administrator or self._visitor is None:
            return place
        seal = await self._store.seals.seal()
        return seal.close(place.rjust(PLACE_BYTES).encode(), f"{of} {self._visitor.id}")

    async def _opened(self, written: str | None, of: str) -> str | None:
        """What `_closed` gave to whoever asks. InvalidInput."""
        if written is None or self._viewer.administrator or self._visitor is None:
            return written
        seal = await self._store.seals.seal()
        place = seal.open(written, f"{of} {self._visitor.id}")
        if place is None:
            raise errors.InvalidInput(what=f"the cursor {written[:40]!r}", why="use one that a page gave")
        return place.decode().strip()

    def _running(self) -> "Gateway":
        if self._gateway is None:
            raise errors.NeedsGateway()
        return self._gateway

    async def _facts(self, session: Session) -> Plain:
        return _plain_session(session, await self._conversations.count_messages(session))

    async def _sees(self, session_id: str | None) -> bool:
        """Whether what belongs to a session may be shown to whoever asks; what belongs to none is seen by
        those who see everything."""
        if self._viewer.administrator:
            return True
        return bool(session_id and await self._conversations.find_session(session_id, self._viewer))

    @property
    def _sees_everything(self) -> bool:
        return self._visitor is None or self._visitor.may(Need.LOOK_AT_ALL)

    def _why(self, state: TurnState, error: str | None) -> str | None:
        """Why a turn is as it is. What an agent may have written by accident is for who sees everything."""
        return error if self._sees_everything or state in OURS else None

    async def _find(self, session_id: str) -> Session:
        session = await self._conversations.find_session(session_id, self._viewer)
        if session is None:
            raise errors.SessionNotFound(session_id=session_id)
        return session


def _plain_session(session: Session, messages: int) -> Plain:
    entry, origin = session.entry, session.entry.origin
    return {
        "id": session.id,
        "key": entry.session_key,
        **picked(session, "owner", "title"),
        **picked(entry, "platform", "chat_type"),
        "account": origin.account if origin else None,
        "chat_id": origin.chat_id if origin else None,
        "where": where_of(origin) if origin else entry.session_key,
        "state": str(session.status),
        "end_reason": session.end_reason,
        **picked(entry, "suspended", "resume_pending"),
        **picked(session, "parent_id", "relation"),
        "messages": messages,
        **picked(entry, "input_tokens", "output_tokens"),
        "cost_usd": entry.estimated_cost_usd,
        **picked(entry, "created_at", "updated_at"),
        **picked(session, "ended_at"),
    }
