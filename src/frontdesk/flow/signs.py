"""Signs: what a chat is shown besides messages. Nothing waits for them, and none of them fails anything."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from frontdesk.contracts.channels import Capabilities, Channel, Signing, capabilities_in
from frontdesk.flow.pacing import Pacing
from frontdesk.logs import get_logger
from frontdesk.model.chats import ChatSign
from frontdesk.model.deliveries import NotSent
from frontdesk.model.sources import SessionSource

CALL_SECONDS = 5.0
"""The longest that showing a sign may take."""
LATE_SECONDS = 60.0
"""A sign that cannot be shown within this time is not shown."""
LOOK_SECONDS = 0.2
"""How long an answer that waits is left alone."""
FIRST_SECONDS = 0.3
"""An answer that is there before nobody has to be told to wait for."""
REFRESHED = 0.8
"""A sign that passes is renewed when so much of its time is over."""
MOST_MESSAGES = 1_000
"""Of how many messages at once it is shown how far we are with them."""

Marked = tuple[str, str | None, str, str]
"""A message: its platform, our account, the chat and its id."""

log = get_logger(__name__)


class Signs:
    def __init__(self, channels: Mapping[tuple[str, str | None], Channel], pacing: Pacing) -> None:
        self._channels = channels
        self._pacing = pacing
        self._wanted: dict[Marked, ChatSign] = {}
        self._tasks: dict[Marked, asyncio.Task[None]] = {}

    def show(self, to: SessionSource, sign: ChatSign) -> None:
        """Show how far we are with a message, once that may go there; of several signs the latest."""
        signer = self._signer(to)
        if not signer or not to.message_id or not signer[1].reactions:
            return
        marked = str(to.platform), to.account, to.chat_id, to.message_id
        if sign is ChatSign.SEEN and marked in self._tasks:  # its turn has begun before we got here
            return
        if marked not in self._tasks:
            if len(self._tasks) >= MOST_MESSAGES:
                return
            self._tasks[marked] = asyncio.create_task(self._follow(marked, to, *signer))
        self._wanted[marked] = sign

    async def _follow(
        self, marked: Marked, to: SessionSource, channel: Signing, limits: Capabilities
    ) -> None:
        try:
            while marked in self._wanted and await self._has_passed(to):
                await self._sign(to, self._wanted.pop(marked), channel, limits)
        finally:
            self._wanted.pop(marked, None)
            del self._tasks[marked]

    async def _has_passed(self, to: SessionSource) -> bool:
        """Wait until a sign may go there, for a while."""
        loop = asyncio.get_running_loop()
        end = loop.time() + LATE_SECONDS
        while not self._pacing.may_pass(to):
            seconds = max(self._pacing.seconds_left(to), LOOK_SECONDS)
            if loop.time() + seconds > end:
                return False
            await asyncio.sleep(seconds)
        return True

    @contextmanager
    def typing(self, to: SessionSource, rests: Callable[[], bool]) -> Iterator[None]:
        """Show that we are writing, for as long as this lasts, but not while it ``rests``."""
        signer = self._signer(to)
        if not signer or not signer[1].typing_seconds:
            yield
            return
        task = asyncio.create_task(self._type(to, rests, signer[1].typing_seconds, *signer))
        try:
            yield
        finally:
            task.cancel()

    async def _type(
        self,
        to: SessionSource,
        rests: Callable[[], bool],
        seconds: float,
        channel: Signing,
        limits: Capabilities,
    ) -> None:
        await asyncio.sleep(FIRST_SECONDS)
        while True:
            if rests() or not self._pacing.may_pass(to):
                await asyncio.sleep(max(self._pacing.seconds_left(to), LOOK_SECONDS))
            elif await self._sign(to, ChatSign.TYPING, channel, limits):
                await asyncio.sleep(max(seconds * REFRESHED, LOOK_SECONDS))
            else:
                return

    def _signer(self, to: SessionSource) -> tuple[Signing, Capabilities] | None:
        channel = self._channels.get((str(to.platform), to.account))
        return (channel, capabilities_in(channel, to)) if isinstance(channel, Signing) else None

    async def _sign(self, to: SessionSource, sign: ChatSign, channel: Signing, limits: Capabilities) -> bool:
        """Whether the next one may be shown. The outermost door of a channel's signs."""
        self._pacing.pass_by(to, limits.send_pause_seconds)
        try:
            async with asyncio.timeout(CALL_SECONDS):
                outcome = await channel.sign(to, sign)
            self._pacing.heed(to, outcome)
        except TimeoutError:
            return True
        except Exception:
            log.exception("sign_failed", platform=str(to.platform), sign=str(sign))
            return False
        return not (isinstance(outcome, NotSent) and outcome.hopeless)

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
