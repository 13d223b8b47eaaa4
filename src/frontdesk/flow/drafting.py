"""Drafting: an answer is shown while it is written, where the platform lets a message be changed."""

import asyncio
from contextlib import suppress
from typing import Self, cast

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.contracts.channels import Drafts
from frontdesk.flow.hearing import Hearing
from frontdesk.flow.parts import Parts
from frontdesk.flow.speech import Speech
from frontdesk.formats import quoting
from frontdesk.formats.markdown import splitting
from frontdesk.logs import get_logger
from frontdesk.model.deliveries import DRAFT, Delivery, DeliveryKind, NotSent, Outcome, Sent, Unknown

CALL_SECONDS = 5.0
"""The longest that showing a draft may take, and that a turn which has ended waits for it."""
MAX_DOUBLINGS = 6
MIN_NEW_CHARACTERS = 20
MOST_TOOLS = 3
TOOL_CHARACTERS = 40
AT_WORK = "⏳"
NO_ID = "the channel did not say which message it is"

log = get_logger(__name__)


class Drafting:
    """Shows what a turn has said so far, from time to time, in one message; the answer takes its place.

    It neither holds up the turn nor fails it. A text that is longer than one message stops growing there: the
    answer begins with the same piece.
    """

    def __init__(self, parts: Parts, turn: Hearing, speech: Speech, session_id: str) -> None:
        self._parts = parts
        self._held = turn
        self._turn = turn.turn
        self._capabilities = parts.capabilities_of(self._turn.source)
        self._speech = speech
        self._session_id = session_id
        self._ending = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._seen = ""
        self._shown = ""
        self._patience_seconds = min(CALL_SECONDS, parts.running.send_seconds)
        self._tries = 0
        self._failures = 0
        self.message_id = self._turn.draft
        """The platform's id of the message; None while there is none."""

    async def __aenter__(self) -> Self:
        channel = cast("Drafts", self._parts.channel_of(self._turn.source))
        self._task = asyncio.create_task(self._run(channel))
        return self

    async def __aexit__(self, *_: object) -> None:
        """Show nothing more. What is under way is waited for, or it could come after the answer."""
        self._ending.set()
        if self._task is None:
            return
        try:
            await asyncio.wait({self._task}, timeout=self._patience_seconds)
        finally:
            self._task.cancel()

    async def _run(self, channel: Drafts) -> None:
        """The outermost door of a channel's drafts."""
        try:
            await self._follow(channel)
        except errors.FrontdeskError as error:
            self._give_up(str(error))
        except Exception:
            log.exception("draft_failed", turn=self._turn.id)

    async def _follow(self, channel: Drafts) -> None:
        pause: float | None = self._capabilities.edit_pause_seconds
        while pause is not None and not await self._ends_within(pause):
            text = self._due_text()
            if text:
                pause = await self._show(channel, text)

    async def _ends_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._ending.wait()
        except TimeoutError:
            return False

    def _due_text(self) -> str | None:
        """What is to be shown now: when enough is new, or when it has not grown since the last look."""
        limits = self._capabilities
        text = splitting.first_piece(self._speech.answer, limits.text_limit, limits.text_unit)
        text = self._with_progress(text) if self._speech.tools and self._parts.running.progress else text
        rests, self._seen = text == self._seen, text
        if text == self._shown:
            return None
        new = len(text) - len(self._shown) if text.startswith(self._shown) else len(text)
        return text if rests or new >= MIN_NEW_CHARACTERS else None

    def _with_progress(self, text: str) -> str:
        """The text with a line that says what the agent does now, if there is room for it."""
        tools, limits = self._speech.tools, self._capabilities
        names = [quoting.one_line(name, TOOL_CHARACTERS).replace("`", "'") for name in tools[:MOST_TOOLS]]
        more = f" and {len(tools) - MOST_TOOLS} more" if len(tools) > MOST_TOOLS else ""
        whole = f"{text}\n\n{AT_WORK} {', '.join(f'`{name}`' for name in names)}{more}".strip()
        fits = limits.text_limit is None or limits.text_unit.fits(whole, limits.text_limit)
        return whole if fits else text

    async def _show(self, channel: Drafts, text: str) -> float | None:
        """How long to leave it so; None when nothing more is to be shown: where there may be a message that
        we know nothing of, a second one would be worse than none."""
        pacing, chat, limits = self._parts.pacing, self._turn.source, self._capabilities
        if not pacing.may_pass(chat):
            return max(pacing.seconds_left(chat), limits.edit_pause_seconds)
        await self._held.confirm()  # or it would change the answer that somebody else has given by now
        pacing.pass_by(chat, limits.send_pause_seconds)
        outcome: Outcome = Unknown(why="no answer in time")
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience_seconds):
                outcome = await channel.draft(self._delivery(text))
        pacing.heed(chat, outcome)
        match outcome:
            case Sent() if message_id := outcome.message_id or self.message_id:
                self._shown, self._failures = text, 0
                await self._keep(message_id)
                return limits.edit_pause_seconds
            case NotSent(gone=True) if self.message_id:
                self.message_id = None
                return limits.edit_pause_seconds
            case NotSent(hopeless=False):
                return self._put_off(outcome.why, outcome.retry_after_seconds)
            case Unknown() if self.message_id:
                return self._put_off(outcome.why, outcome.retry_after_seconds)
        self._give_up(NO_ID if isinstance(outcome, Sent) else outcome.why)
        return None

    def _delivery(self, text: str) -> Delivery:
        turn, self._tries = self._turn, self._tries + 1
        (delivery,) = self._parts.answers(turn, text, kind=DeliveryKind.DRAFT, final=False)
        place = {DRAFT: self.message_id} if self.message_id else {}
        named = f"{turn.id}-draft-{turn.attempts}-{self._tries}"
        return replace(delivery, id=named, session_id=self._session_id, extra=place)

    async def _keep(self, message_id: str) -> None:
        """Remember the message; in the store, too, for the turn may have to be run again."""
        if message_id != self.message_id:
            self.message_id = message_id
            await self._parts.store.turns.keep_draft(self._held.claim, message_id)

    def _put_off(self, why: str, asked_seconds: float | None = None) -> float:
        if not self._failures:
            log.warning("draft_put_off", turn=self._turn.id, why=why)
        self._failures += 1
        doubled = self._capabilities.edit_pause_seconds * 2.0 ** min(self._failures, MAX_DOUBLINGS)
        return max(doubled, asked_seconds or 0.0)

    def _give_up(self, why: str) -> None:
        log.warning("draft_given_up", turn=self._turn.id, why=why)
