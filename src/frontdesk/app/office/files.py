"""Files: what people bring for their messages, and what they take of a conversation."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from typing import TypedDict

import msgspec

from frontdesk import errors
from frontdesk.app.office.counters import Counter
from frontdesk.flow.files import Filing
from frontdesk.model.chats import Attachment, StoredFile
from frontdesk.model.files import KeptFile
from frontdesk.model.platforms import TERMINAL
from frontdesk.model.visitors import Need


class FileLimits(TypedDict):
    """What files a message may bring."""

    taken: bool
    """Whether there is a place for them at all."""
    most_bytes: int
    """Of one of them."""
    most_files: int
    keep_days: int
    """How long a file is kept."""


class BroughtFile(TypedDict):
    """A file that was brought, and waits for the message that it is for."""

    id: str
    name: str
    kind: str
    size: int


class SavedFile(TypedDict):
    """A file of a conversation; its digest names it there."""

    digest: str
    name: str
    kind: str
    size: int


class OpenFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a session, to be read."""

    kept: StoredFile
    pieces: AsyncGenerator[bytes, None]


class FileCounter(Counter):
    """What is no plain data, bytes that come or go, is asked of it by the public port alone."""

    async def file_limits(self) -> FileLimits:
        """How large and how many the files of a message may be, and how long they are kept."""
        settings = self._filing.settings
        return {
            "taken": self._filing.shelf is not None,
            "most_bytes": settings.most_bytes,
            "most_files": settings.most_files,
            "keep_days": settings.keep_days,
        }

    async def discard_file(self, file_id: str) -> bool:
        """Forget a file that was brought and not sent; False when there is no such file of theirs."""
        return await self._filing.drop(file_id, self._bringer)

    def bring_file(self, pieces: AsyncIterator[bytes], name: str, kind: str | None) -> Awaitable[BroughtFile]:
        """Bring a file for a message that is to be sent."""
        return self._bring(pieces, name, kind)

    def open_file(self, session_id: str, digest: str) -> Awaitable[OpenFile]:
        """A file of a session."""
        return self._open(session_id, digest)

    async def _bring(self, pieces: AsyncIterator[bytes], name: str, kind: str | None) -> BroughtFile:
        if self._visitor:
            self._visitor.require(Need.ACT)
        return _brought(await self._filing.bring(pieces, name, kind, self._bringer))

    async def _open(self, session_id: str, digest: str) -> OpenFile:
        session = await self._find(session_id)
        kept = await self._store.files.of_session(session.id, digest)
        shelf = self._filing.shelf
        if kept is None or kept.stored is None or shelf is None or shelf.find(digest) is None:
            raise errors.UnknownFile()
        return OpenFile(kept=kept.stored, pieces=shelf.pieces(digest))

    async def _attached(self, ids: Sequence[str]) -> tuple[Attachment, ...]:
        return await self._filing.brought(ids, self._bringer) if ids else ()

    @property
    def _bringer(self) -> str:
        """Whose files they are: of whoever writes the message."""
        return self._visitor.id if self._visitor else str(TERMINAL)

    @property
    def _filing(self) -> Filing:
        if self._gateway is None:
            raise errors.NeedsGateway()
        return self._gateway.parts.filing


def saved(file: StoredFile) -> SavedFile:
    return {"digest": file.digest, "name": file.name, "kind": file.kind, "size": file.size}


def _brought(kept: KeptFile) -> BroughtFile:
    return {"id": kept.turn_id, "name": kept.name, "kind": kept.kind, "size": kept.size}
