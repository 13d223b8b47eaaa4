"""A connection to a folder of mail that several questions share: signing in takes longer than asking."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from frontdesk import errors
from frontdesk.channels.email.positions import MailboxTrouble

if TYPE_CHECKING:
    from frontdesk.channels.email.mailbox import Mailbox

REST_SECONDS = 20.0
"""A connection that nobody needs is closed by then."""
LIFE_SECONDS = 600.0
MOST_AT_ONCE = 20
"""Mails that one search looks for: servers bound the length of a line."""
TROUBLES = (MailboxTrouble, errors.MissingSecret)

Read = TypeVar("Read")


class SharedMailbox:
    """Opened when something is asked, closed when nothing was for a while, opened anew when it broke. One
    question after the other; each sees the folder as it is when it is asked."""

    def __init__(
        self,
        open_box: "Callable[[], Awaitable[Mailbox]]",
        close_box: "Callable[[Mailbox], None]",
        off_loop: Callable[..., Awaitable[Any]],
        rest_seconds: float = REST_SECONDS,
    ) -> None:
        self._open_box, self._close_box, self._off_loop = open_box, close_box, off_loop
        self._rest_seconds = rest_seconds
        self._lock = asyncio.Lock()
        self._box: Mailbox | None = None
        self._old_at = 0.0
        self._rest: asyncio.TimerHandle | None = None

    async def ask(self, question: "Callable[[Mailbox], Read]") -> Read:
        """The answer, found on a thread. One of TROUBLES when it cannot be had now."""
        async with self._lock:
            self._wake()
            if time.monotonic() > self._old_at:
                self.close()
            known = self._box
            try:
                return await self._look(question)
            except MailboxTrouble:
                if known is None:
                    raise
            return await self._look(question)  # it had ended while nobody needed it

    async def _look(self, question: "Callable[[Mailbox], Read]") -> Read:
        box, self._box = self._box, None
        if box is None:
            box, self._old_at = await self._open_box(), time.monotonic() + LIFE_SECONDS
        try:
            found: Read = await self._off_loop(_look, box, question)
            self._box = box
        finally:
            if self._box is None:  # nobody may use it while a thread still waits for an answer
                self._close_box(box)
        self._rest = asyncio.get_running_loop().call_later(self._rest_seconds, self.close)
        return found

    def _wake(self) -> None:
        if self._rest:
            self._rest.cancel()
            self._rest = None

    def close(self) -> None:
        self._wake()
        box, self._box = self._box, None
        if box:
            self._close_box(box)


def _look(box: "Mailbox", question: "Callable[[Mailbox], Read]") -> Read:
    box.look()
    return question(box)


class _Sought:
    """A mail that is looked for."""

    def __init__(self, message_id: str) -> None:
        self.message_id = message_id
        self.found: bool | None = None
        self.trouble: Exception | None = None


class SentMail:
    """Looks for mails of ours among what was sent: those that are asked for meanwhile, by one search."""

    def __init__(self, folder: SharedMailbox) -> None:
        self._folder = folder
        self._waiting: list[_Sought] = []
        self._lock = asyncio.Lock()

    async def has(self, message_id: str) -> bool:
        """Whether it is there. One of TROUBLES when that cannot be told now."""
        sought = _Sought(message_id)
        self._waiting.append(sought)
        try:
            async with self._lock:
                if sought.found is None and sought.trouble is None:
                    await self._search(self._waiting[:MOST_AT_ONCE])
        finally:
            if sought in self._waiting:
                self._waiting.remove(sought)
        if sought.trouble:
            raise sought.trouble
        return bool(sought.found)

    def close(self) -> None:
        self._folder.close()

    async def _search(self, together: list[_Sought]) -> None:
        wanted = [each.message_id for each in together]
        try:
            found = await self._folder.ask(lambda box: box.having(wanted))
        except TROUBLES as error:
            for each in together:
                each.trouble = error
        else:
            for each in together:
                each.found = each.message_id in found
        for each in together:
            if each in self._waiting:
                self._waiting.remove(each)
