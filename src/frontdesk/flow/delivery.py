"""Delivery: what is due is sent, oldest first in each chat; each send ends in one of three ways."""

import asyncio
from datetime import datetime, timedelta
from functools import partial
from typing import Literal

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.contracts.channels import Seeking
from frontdesk.contracts.hooks import HookEvent
from frontdesk.flow import hook_calls
from frontdesk.flow.confirmations.notifying import CONFIRMATION, HOME
from frontdesk.flow.crew import Held, until_stored
from frontdesk.flow.pacing import LONGEST_WAIT_SECONDS
from frontdesk.flow.parts import Parts
from frontdesk.formats import quoting
from frontdesk.logs import get_logger
from frontdesk.model import confirmations
from frontdesk.model.deliveries import (
    Delivery,
    DeliveryClaim,
    DeliveryState,
    NotSent,
    Outcome,
    Sent,
    Settlement,
    Unknown,
)
from frontdesk.model.policies import EndReason
from frontdesk.model.sessions import SessionStatus

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 300.0
SHORT_PAUSE_SECONDS = 5.0
PAUSES_OF_AN_OUTAGE = 6
"""A pause is at most this part of the time that an answer has waited: after an outage of a minute, ten
seconds."""
WAIT_SECONDS = 0.1
"""So long an answer keeps its place while nothing may go to its chat. If the process died meanwhile, nobody
could tell any more that nothing of it was sent."""
MOST_REMEMBERED = 10_000
SEEK_SECONDS = 600.0
"""So long at least it is looked whether something arrived, while all else to that chat waits."""
MAX_WHY_CHARACTERS = 2_000
"""Of what a platform says."""
MAX_DOUBLINGS = 16
FEWEST_ATTEMPTS = 8
"""Before age counts: what a person sends again, or what waited for us, is old at its first attempt."""

TOLD_TO_WAIT = "its chat is to be left alone for a moment"
TOO_LATE = Unknown(why="it may have arrived, and the platform would not know it again by now")

log = get_logger(__name__)


Receiver = tuple[str, str | None]
"""A platform and our account there."""


Sending = Held[DeliveryClaim]
"""A delivery while it is sent."""


class Sender:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._late: dict[Receiver, dict[str, Delivery]] = {}
        self._hastened: set[str] = set()
        """Those that were tried sooner because another one had arrived."""

    async def send(self, sending: Sending) -> None:
        """Send it and write down what became of it, unless somebody else has it by now."""
        claim = sending.claim
        delivery = claim.delivery
        try:
            if delivery.extra:
                delivery = await self._parts.as_it_stands(delivery)
            pause = self._parts.capabilities_of(delivery.to).send_pause_seconds
            if (pause or self._parts.pacing.closed_until) and await self._put_off(sending, pause):
                return
            await until_stored(sending.confirm, delivery=delivery.id)
        except asyncio.CancelledError:
            await self.put_back(sending)
            raise
        if sending.is_lost:
            return
        # Nothing is waited for between the certainty that it is ours and the send.
        begun = self._parts.clock.now()
        found = await self._look_for(sending, delivery, begun) if delivery.unsure_since else None
        if sending.is_lost:
            return
        outcome = found or await self._call("send", delivery)
        settlement = self._settlement(delivery, outcome, begun)
        settle = partial(self._parts.store.deliveries.settle, claim, settlement, self._parts.clock.now())
        await until_stored(settle, delivery=delivery.id)
        _log(claim.delivery, settlement)
        await self._note_receiver(claim.delivery, outcome, settlement)
        if settlement.state is DeliveryState.SENT:
            if str(delivery.to.platform) in self._parts.running.close_after_answer:
                await self._close_session(claim.delivery)
        elif HOME in claim.delivery.extra and claim.delivery.attempts == 1:
            await self._tell_elsewhere(claim.delivery)

    async def put_back(self, sending: Sending) -> None:
        """Nothing of it was sent, and it waits as before; nobody could tell that after the next start. Tried
        once: whoever cuts it off is in a hurry."""
        unsent = Settlement(state=DeliveryState.PENDING, counts=False)
        try:
            await self._parts.store.deliveries.settle(sending.claim, unsent, self._parts.clock.now())
        except (errors.LeaseLost, errors.StoreError) as error:
            log.warning("delivery_not_put_back", delivery=sending.claim.delivery.id, why=str(error))

    async def _put_off(self, sending: Sending, pause_seconds: float) -> bool:
        """Wait until something may go to its chat. When that takes long, nothing of it was sent, and others
        have its place meanwhile."""
        claim = sending.claim
        seconds = await self._parts.pacing.wait(claim.delivery.to, pause_seconds, WAIT_SECONDS)
        if not seconds:
            return False
        now = self._parts.clock.now()
        later = now + timedelta(seconds=seconds)
        waits = Settlement(state=DeliveryState.PENDING, retry_at=later, error=TOLD_TO_WAIT, counts=False)
        settle = partial(self._parts.store.deliveries.settle, claim, waits, now)
        await until_stored(settle, delivery=claim.delivery.id)
        return True

    async def _note_receiver(self, delivery: Delivery, outcome: Outcome, settlement: Settlement) -> None:
        """Whoever takes one answer takes the others, too: those that wait for another try are due at once.
        When the receiver itself has said how long to wait, that holds; what is to be looked for is left time
        to arrive; and one that is refused even then waits as it would alone, however many others arrive."""
        late = self._late.setdefault((str(delivery.to.platform), delivery.to.account), {})
        late.pop(delivery.id, None)
        if settlement.state is not DeliveryState.PENDING:
            self._hastened.discard(delivery.id)
        waits = not isinstance(outcome, Sent) and (
            outcome.retry_after_seconds is not None or self._is_sought(delivery, outcome)
        )
        hastens = not waits and delivery.id not in self._hastened
        if settlement.state is DeliveryState.PENDING and hastens and len(late) < MOST_REMEMBERED:
            late[delivery.id] = delivery
        elif settlement.state is DeliveryState.SENT and late:
            again = list(late.values())
            if len(self._hastened) > MOST_REMEMBERED:  # other nodes have sent most of them
                self._hastened.clear()
            self._hastened.update(late)
            late.clear()
            try:
                await self._parts.store.deliveries.bring_forward(again, self._parts.clock.now())
            except errors.StoreError as error:  # they are tried when it is their time
                log.warning("store_troubled", delivery=delivery.id, why=str(error))

    def _is_sought(self, delivery: Delivery, outcome: Outcome) -> bool:
        return isinstance(outcome, Unknown) and isinstance(self._parts.channel_of(delivery.to), Seeking)

    def _is_sought_in_vain(self, delivery: Delivery, now: datetime) -> bool:
        """Whether it was looked for so long that what waits behind it goes on."""
        since = delivery.unsure_since
        late = since is not None and (now - since).total_seconds() > SEEK_SECONDS
        return late and delivery.attempts >= FEWEST_ATTEMPTS and not self._parts.repeatable(delivery, now)

    async def _look_for(self, sending: Sending, delivery: Delivery, now: datetime) -> Outcome | None:
        """What became of a send that may have arrived, and may not be repeated just so; None when it is to be
        sent again, as when a person says so."""
        if delivery.attempts == 1 or self._parts.repeatable(delivery, now):
            return None
        if not isinstance(self._parts.channel_of(delivery.to), Seeking):
            return TOO_LATE
        found = await self._call("find", delivery)
        if not isinstance(found, NotSent) or found.hopeless or found.retry_after_seconds:
            return found
        await until_stored(sending.confirm, delivery=delivery.id)  # looking may have taken long
        return None

    async def _call(self, verb: Literal["send", "find"], delivery: Delivery) -> Outcome:
        channel = self._parts.channel_of(delivery.to)
        if channel is None:
            return NotSent(why=f"no channel is connected for {delivery.to.platform}")
        handed = self._parts.filing.at_hand(delivery) if delivery.files else delivery
        try:
            async with asyncio.timeout(self._parts.running.send_seconds):
                outcome: Outcome | None = await getattr(channel, verb)(handed)
        except TimeoutError:
            return Unknown(why="no answer in time")
        except Exception as error:
            log.exception("send_failed", delivery=delivery.id)
            return Unknown(why=f"the channel failed: {type(error).__name__}")
        if isinstance(outcome, Sent):
            return outcome
        if not isinstance(outcome, NotSent | Unknown):
            log.warning("send_failed", delivery=delivery.id, why=f"{verb} gave {type(outcome).__name__}")
            return Unknown(why="the channel did not say what became of it")
        self._parts.pacing.heed(delivery.to, outcome)
        return replace(outcome, why=quoting.clean_text(outcome.why, MAX_WHY_CHARACTERS))

    def _settlement(self, delivery: Delivery, outcome: Outcome, begun: datetime) -> Settlement:
        now, unsure_since, not_before = self._parts.clock.now(), delivery.unsure_since, None
        match outcome:
            case Sent():
                return Settlement(state=DeliveryState.SENT, platform_message_id=outcome.message_id)
            case NotSent(hopeless=True):
                return Settlement(state=DeliveryState.DEAD, error=outcome.why)
            case NotSent(gone=True) if delivery.draft is not None:
                dropped = Settlement(state=DeliveryState.PENDING, error=outcome.why, drops_draft=True)
                return replace(dropped, retry_at=_later(now, delivery, outcome.retry_after_seconds))
            case Unknown():
                unsure_since = unsure_since or begun
                not_before = self._parts.try_again_at(replace(delivery, unsure_since=unsure_since), now)
                if not_before is None or outcome.hopeless or self._is_sought_in_vain(delivery, now):
                    return Settlement(state=DeliveryState.UNKNOWN, error=outcome.why)
        oldest = now - timedelta(seconds=self._parts.running.delivery_max_age_seconds)
        if delivery.created_at < oldest and delivery.attempts >= FEWEST_ATTEMPTS:
            state = DeliveryState.UNKNOWN if unsure_since else DeliveryState.DEAD
            return Settlement(state=state, error=f"given up: {outcome.why}")
        later = _later(now, delivery, outcome.retry_after_seconds)
        return Settlement(
            state=DeliveryState.PENDING,
            retry_at=max(later, not_before or later),
            error=outcome.why,
            unsure_since=unsure_since,
        )

    async def _tell_elsewhere(self, delivery: Delivery) -> None:
        """Somebody has to decide, soon: another chat is told, too."""
        parts, asked_for = self._parts, str(delivery.extra[CONFIRMATION])
        try:
            asked = await parts.confirmations.find(asked_for)
        except errors.UnknownConfirmation:
            return  # nothing is left to decide
        if asked.status is not confirmations.Status.PENDING:
            return
        if told := parts.notifier.after(delivery, await parts.confirmations.with_precedent(asked)):
            await parts.store.deliveries.add(told)
        else:
            log.warning("nobody_told", confirmation=asked_for, look="frontdesk confirm list")

    async def _close_session(self, delivery: Delivery) -> None:
        """Where it is so configured, a session rests, resumably, once its answer has arrived."""
        parts = self._parts
        if not (delivery.final and delivery.session_id and delivery.session_key):
            return
        session = await parts.store.sessions.find(delivery.session_id)
        if session is None or session.status is SessionStatus.ENDED:
            return
        if await parts.store.turns.open_turns(delivery.session_key, 1):
            return  # whichever is answered last closes it
        # A message that comes in after this look takes the session up again, as one after its end does.
        await hook_calls.tell(parts, HookEvent.END, session.entry, EndReason.CLOSED)
        await parts.conversations.close_session(session.id)


def _later(now: datetime, delivery: Delivery, asked_seconds: float | None) -> datetime:
    """When to try again: when the platform said, else later after each attempt."""
    doubled = FIRST_PAUSE_SECONDS * 2 ** min(max(delivery.attempts - 1, 0), MAX_DOUBLINGS)
    waited = (now - delivery.created_at).total_seconds()
    patience = max(waited / PAUSES_OF_AN_OUTAGE, SHORT_PAUSE_SECONDS)
    seconds = min(doubled, patience, LONGEST_PAUSE_SECONDS)
    if asked_seconds is not None and asked_seconds >= 0:  # what is no number is no wish
        seconds = min(max(asked_seconds, FIRST_PAUSE_SECONDS), LONGEST_WAIT_SECONDS)
    return now + timedelta(seconds=seconds)


def _log(delivery: Delivery, settlement: Settlement) -> None:
    facts = {"delivery": delivery.id, "turn": delivery.turn_id, "state": str(settlement.state)}
    if settlement.state in (DeliveryState.DEAD, DeliveryState.UNKNOWN):
        log.warning("delivery_failed", **facts, why=settlement.error)
    else:
        log.info("delivery_settled", **facts, why=settlement.error)
