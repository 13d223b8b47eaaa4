"""What channels have in common that read what a platform keeps for us."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from importlib import import_module
from typing import Any, Generic, TypeVar

from frontdesk import errors
from frontdesk.contracts.channels import Desk, Edited, Happening, Incoming, Receipt
from frontdesk.logs import get_logger
from frontdesk.model.chats import Cursor

FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 60.0
HELD_SECONDS = 1.0
"""How long what is left with the platform is left there. It is one chat's: others do not wait for long."""
LATER = (errors.StoreError, errors.TooManyWaiting)
"""What could not be stored now: the platform is not told that we have it."""
REFUSED = (errors.NotAllowed, errors.InvalidInput, errors.Unroutable)
"""What is refused for good: it need not come again."""

Made = TypeVar("Made")

log = get_logger(__name__)


async def hand_over(desk: Desk, happening: Happening, cursor: Cursor | None = None) -> Receipt | None:
    """The receipt of what is stored; None for what is refused for good, where the cursor moves all the same.
    Raises one of LATER."""
    try:
        return await desk.accept(happening, cursor=cursor)
    except REFUSED as error:
        source = happening.source
        log.info("update_refused", platform=str(source.platform), account=source.account, why=str(error))
        if cursor:
            await desk.move_cursor(cursor)
        return None


def waits_its_turn(happening: Happening) -> bool:
    """Whether it must not overtake what its chat said before: a press waits for nothing, and of commands the
    desk knows which do."""
    return isinstance(happening, Incoming | Edited) and not happening.text.startswith("/")


class GrowingPauses:
    """How long to wait before the platform, or the store, is tried again: longer each time."""

    def __init__(self) -> None:
        self._seconds = FIRST_PAUSE_SECONDS

    async def wait(self, at_least: float | None = None) -> None:
        await asyncio.sleep(max(self._seconds, at_least or 0.0))
        self._seconds = min(2 * self._seconds, LONGEST_PAUSE_SECONDS)

    def forget(self) -> None:
        """It works again."""
        self._seconds = FIRST_PAUSE_SECONDS


async def load(module: str) -> Any:
    """A module whose libraries are large: loaded beside the loop, so that nobody waits for them."""
    return await asyncio.to_thread(import_module, module)


class Lazily(Generic[Made]):
    """What a channel makes of such a module, when it is needed for the first time."""

    def __init__(self, module: str, make: Callable[[Any], Made]) -> None:
        self.made: Made | None = None
        self._module, self._make = module, make
        self._making = asyncio.Lock()

    async def get(self) -> Made:
        async with self._making:
            if self.made is None:
                self.made = self._make(await load(self._module))
            return self.made

    def take(self) -> Made | None:
        """What was made, to be closed."""
        made, self.made = self.made, None
        return made


async def at_most(pieces: AsyncIterator[bytes], most_bytes: int) -> AsyncGenerator[bytes, None]:
    """The bytes of a file; FileUnavailable when they are too many."""
    size = 0
    async for piece in pieces:
        size += len(piece)
        if size > most_bytes:
            raise errors.FileUnavailable(why=f"it is larger than {most_bytes} bytes")
        yield piece
