"""The store that both dialects offer: the nouns over one engine."""

from types import TracebackType
from typing import Self

from frontdesk.stores.search import Index
from frontdesk.stores.sessions import Aliases, Sessions
from frontdesk.stores.transcripts import Transcripts
from frontdesk.stores.work import Engine


class SqlStore:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.sessions = Sessions(engine)
        self.transcripts = Transcripts(engine)
        self.index = Index(engine)
        self.aliases = Aliases(engine)

    async def close(self) -> None:
        await self._engine.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
