"""The store: what must be kept, and which changes happen together.

Every method is one intention and one transaction. A decision that belongs inside the transaction is passed in
as a pure function. What a method has returned is on disk.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from frontdesk.model.messages import Message
from frontdesk.model.moves import Move, Settled, Situation
from frontdesk.model.people import Viewer
from frontdesk.model.policies import EndReason
from frontdesk.model.searches import Hit, Search
from frontdesk.model.sessions import Session, SessionEntry, Usage
from frontdesk.model.transcripts import Revision, Rewound

Decide = Callable[[Situation], Move]
NewId = Callable[[], str]
Rename = Callable[[Session, Mapping[str, str]], tuple[str, str, str]]
"""The key, owner and peer of a session under another table of aliases."""


class Sessions(Protocol):
    async def settle(
        self,
        key: str,
        decide: Decide,
        *,
        now: datetime,
        new_id: NewId,
        peer: Callable[[], str] | None = None,
        target: str | None = None,
    ) -> Settled:
        """Decide about a key's current session and carry the decision out.

        ``decide`` may be called more than once. The other session of the situation is ``target``, else, when
        the key has none, the newest one of ``peer`` that is open or merely closed.
        """
        ...

    async def current(self, key: str) -> Session | None: ...

    async def find(self, session_id: str) -> Session | None: ...

    async def route_of(self, session_id: str) -> str | None:
        """The key that the session is current for."""
        ...

    async def tip(self, session_id: str) -> Session | None:
        """The newest session that continues this one after compressions."""
        ...

    async def end(self, session_id: str, reason: EndReason, now: datetime) -> bool: ...

    async def add_usage(self, key: str, usage: Usage, now: datetime) -> bool: ...

    async def list_current(
        self, *, since: datetime | None = None, limit: int | None = None, after: SessionEntry | None = None
    ) -> list[Session]:
        """The keys' current sessions, latest activity first; ``after`` an entry of an earlier list."""
        ...

    async def list_owned(self, viewer: Viewer, *, limit: int, titled: bool = False) -> list[Session]:
        """Sessions that the viewer may see, ended ones included, latest activity first."""
        ...

    async def count(self, at_most: int) -> int:
        """How many sessions were ever created, counting no further than ``at_most``."""
        ...

    async def mark_recent(self, since: datetime, reason: str, now: datetime) -> int: ...

    async def stale_keys(self, before: datetime) -> list[str]:
        """Keys whose session was last active before that time and is not suspended."""
        ...

    async def prune(self, key: str, before: datetime, now: datetime) -> bool:
        """End the key's session as pruned and forget the key, if it still is stale."""
        ...

    async def set_title(self, session_id: str, title: str | None) -> bool:
        """Give the title to the session; TitleTaken when another conversation of its owner has it."""
        ...

    async def find_title(self, viewer: Viewer, title: str) -> Session | None: ...


class Transcripts(Protocol):
    async def append(
        self, session_id: str, messages: Sequence[Message], now: datetime, usage: Usage | None = None
    ) -> int:
        """Store messages, and what the turn used; how many were new."""
        ...

    async def load(
        self, session_id: str, *, ancestors: bool = False, revision: int | None = None
    ) -> list[dict[str, Any]]: ...

    async def has_platform_message_id(self, session_id: str, platform_message_id: str) -> bool: ...

    async def rewrite(self, session_id: str, messages: Sequence[Message], now: datetime) -> bool: ...

    async def rewind(self, session_id: str, turns: int, now: datetime) -> Rewound | None: ...

    async def redo(self, session_id: str, now: datetime) -> Rewound | None: ...

    async def close_calls(self, session_id: str, now: datetime) -> int: ...

    async def revisions(self, session_id: str) -> list[Revision]: ...


class Index(Protocol):
    async def search(self, viewer: Viewer, search: Search) -> list[Hit]:
        """The best matches among everything committed before the call."""
        ...

    async def catch_up(self, limit: int) -> int:
        """Index messages not yet indexed; how many there were."""
        ...

    async def rebuild(self) -> None: ...


class Aliases(Protocol):
    async def canonical(self, identifiers: Sequence[str]) -> dict[str, str]:
        """The canonical identifier of each one that has another."""
        ...

    async def learn(self, identifier: str, person: str, rename: Rename, now: datetime) -> bool:
        """From now on ``identifier`` is another name of ``person``; False when that was known.

        What the person had under the old name is found under the new one, in the same transaction.
        """
        ...


class Store(Protocol):
    @property
    def sessions(self) -> Sessions: ...

    @property
    def transcripts(self) -> Transcripts: ...

    @property
    def index(self) -> Index: ...

    @property
    def aliases(self) -> Aliases: ...

    async def close(self) -> None: ...
