"""The store that both dialects offer: the nouns over one engine."""

from types import TracebackType
from typing import Self

from frontdesk.contracts.store import Upgrade
from frontdesk.stores.aliases import Aliases
from frontdesk.stores.background import BackgroundWork
from frontdesk.stores.bells import Bells
from frontdesk.stores.confirmations import Confirmations
from frontdesk.stores.deliveries import Deliveries
from frontdesk.stores.feed import Feed
from frontdesk.stores.nodes import Alone, Nodes, Presence
from frontdesk.stores.people import People
from frontdesk.stores.search import Index
from frontdesk.stores.sessions import Sessions
from frontdesk.stores.transcripts import Transcripts
from frontdesk.stores.turns import Turns
from frontdesk.stores.work import Engine


class SqlStore:
    def __init__(
        self,
        engine: Engine,
        bells: Bells | None = None,
        presence: Presence | None = None,
        *,
        upgraded: Upgrade | None = None,
    ) -> None:
        self.upgraded = upgraded
        self._engine = engine
        self._presence = presence or Alone()
        self.bells = bells or Bells()
        self.sessions = Sessions(engine)
        self.transcripts = Transcripts(engine)
        self.index = Index(engine)
        self.aliases = Aliases(engine, self.bells)
        self.people = People(engine)
        self.turns = Turns(engine, self.bells)
        self.deliveries = Deliveries(engine, self.bells)
        self.background = BackgroundWork(engine)
        self.feed = Feed(engine)
        self.nodes = Nodes(engine, self._presence)
        self.confirmations = Confirmations(engine, self.bells)

    async def check(self) -> None:
        await self._engine.check()

    async def inspect(self, seconds: float) -> bool:
        return await self._engine.inspect(seconds)

    async def close(self) -> None:
        await self._presence.close()
        await self._engine.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
