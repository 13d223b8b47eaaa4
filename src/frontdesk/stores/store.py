"""The store that both dialects offer: the nouns over one engine."""

from types import TracebackType
from typing import Self

from frontdesk.contracts.store import Engine, Upgrade
from frontdesk.stores.aliases import Aliases
from frontdesk.stores.background import BackgroundWork
from frontdesk.stores.buttons import Buttons
from frontdesk.stores.confirmations import Confirmations
from frontdesk.stores.cursors import Cursors
from frontdesk.stores.deliveries import Deliveries
from frontdesk.stores.feed import Feed
from frontdesk.stores.files import Files
from frontdesk.stores.health import HealthFigures
from frontdesk.stores.keyed import KeyedCalls
from frontdesk.stores.lists import Lists
from frontdesk.stores.nodes import Nodes
from frontdesk.stores.passes import Passes
from frontdesk.stores.people import People
from frontdesk.stores.seals import Seals
from frontdesk.stores.search import Index
from frontdesk.stores.sessions import Sessions
from frontdesk.stores.transcripts import Transcripts
from frontdesk.stores.turns import Turns
from frontdesk.stores.usage import UsageFigures


class Store:
    """Everything that is kept, by what it is about.

    The entry points of ``frontdesk.stores`` open one over an engine of theirs, by URL. Called with
    ``upgrade=False`` they refuse a database of an older version, and leave it as it is.
    """

    def __init__(
        self, engine: Engine, nodes: Nodes | None = None, *, upgraded: Upgrade | None = None
    ) -> None:
        self.upgraded = upgraded
        """What opening it has changed."""
        self.bells = engine.bells
        self.sessions = Sessions(engine)
        self.lists = Lists(engine)
        self.transcripts = Transcripts(engine)
        self.index = Index(engine)
        self.aliases = Aliases(engine)
        self.people = People(engine)
        self.passes = Passes(engine)
        self.turns = Turns(engine)
        self.usage = UsageFigures(engine)
        self.health = HealthFigures(engine)
        self.cursors = Cursors(engine)
        self.deliveries = Deliveries(engine)
        self.buttons = Buttons(engine)
        self.background = BackgroundWork(engine)
        self.feed = Feed(engine)
        self.files = Files(engine)
        self.nodes = nodes or Nodes(engine)
        self.confirmations = Confirmations(engine)
        self.keyed_calls = KeyedCalls(engine)
        self.seals = Seals(engine)
        self._engine = engine

    async def check(self) -> None:
        """Raise the StoreError that a message would meet now: by what was written in the last second, else
        by writing something that is taken back."""
        await self._engine.check()

    async def inspect(self, seconds: float) -> bool:
        """Look for damage, for so long at most; whether all was looked at. CorruptDatabase names it."""
        return await self._engine.inspect(seconds)

    async def close(self) -> None:
        await self.nodes.close()
        await self._engine.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
