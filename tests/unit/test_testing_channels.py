"""The channel contract tells a good channel from bad ones."""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar, NamedTuple

import msgspec
import pytest

from frontdesk import errors
from frontdesk.contracts import channels as contract
from frontdesk.model import deliveries
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import SessionSource
from frontdesk.testing import channels

MAILBOX = Platform.SIGNAL
REFUSALS = (
    errors.StoreError,
    errors.NotAllowed,
    errors.InvalidInput,
    errors.Unroutable,
    errors.TooManyWaiting,
)
WAIT_SECONDS = 0.05


class Letter(NamedTuple):
    event: channels.PlatformEvent
    confirmed: asyncio.Future[bool]


class Mailbox:
    """A platform in memory."""

    def __init__(self) -> None:
        self.letters: asyncio.Queue[Letter] = asyncio.Queue()
        self.answers: list[channels.Arrival] = []
        self.trouble: channels.Trouble | None = None

    async def take(self, answer: channels.Arrival) -> None:
        if self.trouble is channels.Trouble.REFUSES:
            raise ConnectionRefusedError
        if self.trouble is channels.Trouble.FAILS:
            raise ValueError("out of order")
        self.answers.append(answer)
        if self.trouble is channels.Trouble.HANGS:
            await asyncio.Event().wait()
        if self.trouble is channels.Trouble.CUTS:
            raise ConnectionResetError


class MailboxOptions(msgspec.Struct, frozen=True, kw_only=True):
    mailbox: Mailbox


class Channel:
    """A channel as it should be."""

    Options = MailboxOptions
    name = str(MAILBOX)
    capabilities = contract.Capabilities(idempotent_seconds=math.inf)
    routes: Sequence[contract.Route] = ()

    def __init__(self, options: MailboxOptions, account: str | None = None) -> None:
        self.account = account
        self.mailbox = options.mailbox

    async def receive(self, desk: contract.Desk) -> None:
        while True:
            letter = await self.mailbox.letters.get()
            try:
                await desk.accept(self.read(letter.event))
            except REFUSALS:
                letter.confirmed.set_result(False)
            else:
                letter.confirmed.set_result(True)

    def read(self, event: channels.PlatformEvent) -> contract.Incoming:
        source = SessionSource(
            platform=MAILBOX, account=self.account, chat_id=event.chat_id, user_id=event.user_id
        )
        return contract.Incoming(source=source, text=event.text, event_id=event.id)

    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        answer = channels.Arrival(text=delivery.text, chat_id=delivery.to.chat_id, id=delivery.id)
        try:
            await asyncio.wait_for(self.mailbox.take(answer), WAIT_SECONDS)
        except (ConnectionRefusedError, ValueError) as error:
            return deliveries.NotSent(why=repr(error))
        except (ConnectionError, TimeoutError) as error:
            return deliveries.Unknown(why=repr(error))
        return deliveries.Sent()

    async def close(self) -> None:
        pass


class Editing(Channel):
    """A channel whose messages can be changed, as it should be."""

    capabilities = contract.Capabilities(idempotent_seconds=math.inf, edits=True)

    async def draft(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        return await self.send(delivery)

    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        before, place = list(self.mailbox.answers), delivery.draft
        outcome = await super().send(delivery)
        if not isinstance(outcome, deliveries.Sent):
            return outcome
        if place is not None:
            before[int(place)] = self.mailbox.answers[-1]
            self.mailbox.answers = before
        return deliveries.Sent(message_id=place or str(len(self.mailbox.answers) - 1))


class Bench:
    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.mailbox = channel.mailbox

    async def inject(self, event: channels.PlatformEvent) -> bool:
        confirmed = asyncio.get_running_loop().create_future()
        await self.mailbox.letters.put(Letter(event, confirmed))
        async with asyncio.timeout(1):
            return bool(await confirmed)

    async def arrived(self) -> Sequence[channels.Arrival]:
        return self.mailbox.answers

    async def trouble(self, trouble: channels.Trouble | None) -> None:
        self.mailbox.trouble = trouble


class TestMailbox(channels.SendingContract):
    channel: ClassVar[type[Channel]] = Channel

    def open_bench(
        self, desk: channels.RecordingDesk, account: str | None = None
    ) -> AbstractAsyncContextManager[Bench]:
        return self._opened(desk, account)

    @asynccontextmanager
    async def _opened(self, desk: channels.RecordingDesk, account: str | None) -> AsyncIterator[Bench]:
        channel = self.channel(MailboxOptions(mailbox=Mailbox()), account)
        receiving = asyncio.create_task(channel.receive(desk))
        try:
            yield Bench(channel)
        finally:
            receiving.cancel()
            await asyncio.gather(receiving, return_exceptions=True)


class TestEditingMailbox(channels.EditingContract, TestMailbox):
    channel: ClassVar[type[Channel]] = Editing


class ConfirmsFirst(Channel):
    async def receive(self, desk: contract.Desk) -> None:
        while True:
            letter = await self.mailbox.letters.get()
            letter.confirmed.set_result(True)
            with contextlib.suppress(errors.FrontdeskError):
                await desk.accept(self.read(letter.event))


class Changing(Channel):
    """Reads a message otherwise than it should."""

    changes: ClassVar[dict[str, Any]] = {}

    def read(self, event: channels.PlatformEvent) -> contract.Incoming:
        return msgspec.structs.replace(super().read(event), **self.changes)


class ForgetsTheId(Changing):
    changes: ClassVar[dict[str, Any]] = {"event_id": None}


class CountsEvents(Channel):
    count = 0

    def read(self, event: channels.PlatformEvent) -> contract.Incoming:
        self.count += 1
        return msgspec.structs.replace(super().read(event), event_id=str(self.count))


class Trims(Channel):
    def read(self, event: channels.PlatformEvent) -> contract.Incoming:
        incoming = super().read(event)
        return msgspec.structs.replace(incoming, text=incoming.text.strip("\ufeff"))


class OneForAll(Channel):
    """Knows neither accounts nor chats apart."""

    def read(self, event: channels.PlatformEvent) -> contract.Incoming:
        source = SessionSource(platform=MAILBOX, chat_id="chat", user_id=event.user_id)
        return contract.Incoming(source=source, text=event.text, event_id=event.id)


class BelievesTheSender(Channel):
    def read(self, event: channels.PlatformEvent) -> contract.Incoming:
        incoming = super().read(event)
        trusted = {"is_bot": event.forged.get("is_bot", False)}
        return msgspec.structs.replace(incoming, source=msgspec.structs.replace(incoming.source, **trusted))


class StopsAtARefusal(Channel):
    async def receive(self, desk: contract.Desk) -> None:
        while True:
            letter = await self.mailbox.letters.get()
            try:
                await desk.accept(self.read(letter.event))
            except errors.FrontdeskError:
                letter.confirmed.set_result(False)
                return
            letter.confirmed.set_result(True)


class Optimist(Channel):
    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        outcome = await super().send(delivery)
        return deliveries.Sent() if isinstance(outcome, deliveries.Unknown) else outcome


class Raises(Channel):
    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        await asyncio.wait_for(
            self.mailbox.take(channels.Arrival(text=delivery.text, chat_id=delivery.to.chat_id)), WAIT_SECONDS
        )
        return deliveries.Sent()


class Shortens(Channel):
    capabilities = contract.Capabilities(text_limit=100)

    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        return await super().send(msgspec.structs.replace(delivery, text=delivery.text[:99]))


@pytest.mark.parametrize(
    ("bad", "test"),
    [
        (ConfirmsFirst, "platform_is_told_yes_only_when_the_message_is_stored"),
        (ConfirmsFirst, "platform_is_not_told_yes_when_the_message_could_not_be_stored"),
        (ForgetsTheId, "message_reaches_the_desk_as_it_was_sent"),
        (ForgetsTheId, "two_events_have_two_event_ids"),
        (CountsEvents, "same_event_twice_has_the_same_event_id"),
        (CountsEvents, "message_that_was_not_stored_is_taken_when_it_comes_again"),
        (Trims, "text_reaches_the_desk_exactly"),
        (OneForAll, "two_accounts_never_share_a_conversation"),
        (OneForAll, "two_chats_never_share_a_conversation"),
        (BelievesTheSender, "sender_does_not_say_what_only_the_channel_may_say"),
        (StopsAtARefusal, "refused_message_does_not_stop_the_next_one"),
        (Optimist, "platform_in_trouble_never_makes_send_raise_or_say_sent"),
        (Raises, "platform_in_trouble_never_makes_send_raise_or_say_sent"),
        (Raises, "repeated_answer_is_known_again_where_the_channel_says_so"),
        (Shortens, "longest_text_arrives_whole"),
    ],
)
async def test_bad_channel_is_found_out(bad: type[Channel], test: str) -> None:
    class TestBad(TestMailbox):
        channel: ClassVar[type[Channel]] = bad

    with pytest.raises((AssertionError, OSError, ValueError, TimeoutError)):
        await getattr(TestBad(), f"test_{test}")()


class SendsASecondMessage(Editing):
    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        drafted = delivery.kind is deliveries.DeliveryKind.DRAFT
        return await (super().send(delivery) if drafted else Channel.send(self, delivery))


class DraftsAnew(Editing):
    async def draft(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        return await self.send(msgspec.structs.replace(delivery, extra={}))


class KeepsTheIdToItself(Editing):
    async def draft(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        outcome = await super().draft(delivery)
        return deliveries.Sent() if isinstance(outcome, deliveries.Sent) else outcome


class KnowsOneMessage(Editing):
    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        place = {deliveries.DRAFT: "0"} if self.mailbox.answers else {}
        return await super().send(msgspec.structs.replace(delivery, extra=place))


class DraftsHopefully(Editing):
    async def draft(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        await super().draft(delivery)
        return deliveries.Sent(message_id="0")


class SaysItCannot(Editing):
    capabilities = contract.Capabilities()


@pytest.mark.parametrize(
    ("bad", "test"),
    [
        (SendsASecondMessage, "answer_grows_in_one_message"),
        (SendsASecondMessage, "answer_that_takes_a_drafts_place_twice_is_there_once"),
        (DraftsAnew, "answer_grows_in_one_message"),
        (KeepsTheIdToItself, "answer_grows_in_one_message"),
        (SaysItCannot, "answer_grows_in_one_message"),
        (KnowsOneMessage, "two_answers_grow_in_two_messages"),
        (DraftsHopefully, "platform_in_trouble_never_makes_draft_raise_or_say_sent"),
    ],
)
async def test_bad_editing_channel_is_found_out(bad: type[Channel], test: str) -> None:
    class TestBad(TestEditingMailbox):
        channel: ClassVar[type[Channel]] = bad

    with pytest.raises(AssertionError):
        await getattr(TestBad(), f"test_{test}")()
