"""What every channel must hold, as tests to inherit, and the desk that they are run against.

A channel's own tests derive from :class:`SendingContract` (from :class:`EditingContract` where messages can
be changed, from those of :mod:`frontdesk.testing.conversing` where people do more than write) or from
:class:`CollectingContract`, and say in ``open_bench`` how the channel is tied to a
platform that the test plays.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar, Generic, TypeVar, cast
from unittest import SkipTest

import msgspec

from frontdesk import errors
from frontdesk.contracts import channels
from frontdesk.model import deliveries, keys
from frontdesk.model.platforms import Platform
from frontdesk.testing.benches import FORGED, REFUSALS, TROUBLED, until
from frontdesk.testing.benches import Act as Act  # noqa: PLC0414
from frontdesk.testing.benches import Arrival as Arrival  # noqa: PLC0414
from frontdesk.testing.benches import Bench as Bench  # noqa: PLC0414
from frontdesk.testing.benches import LastingBench as LastingBench  # noqa: PLC0414
from frontdesk.testing.benches import PlatformEvent as PlatformEvent  # noqa: PLC0414
from frontdesk.testing.benches import PlatformFile as PlatformFile  # noqa: PLC0414
from frontdesk.testing.benches import SendingBench as SendingBench  # noqa: PLC0414
from frontdesk.testing.benches import Trouble as Trouble  # noqa: PLC0414
from frontdesk.testing.desks import Answer as Answer  # noqa: PLC0414
from frontdesk.testing.desks import RecordingDesk as RecordingDesk  # noqa: PLC0414
from frontdesk.testing.desks import echo as echo  # noqa: PLC0414

AnyBench = TypeVar("AnyBench", bound=Bench)


class ChannelContract(Generic[AnyBench]):
    """What holds for every channel."""

    chats: ClassVar[tuple[str, str]] = ("chat-1", "chat-2")
    """Two chats, as the platform names them."""
    users: ClassVar[tuple[str, str]] = ("user-1", "user-2")
    accounts: ClassVar[tuple[str | None, str | None]] = ("one", "two")
    texts: ClassVar[tuple[str, ...]] = (
        "Grüße, 你好, שלום, e\u0301, ﬁ, \U0001f469\u200d\U0001f680, \ufeff",
        "two\nlines\tand a tab",
        '{"text": "not JSON"} \\u0041 %41 &amp; <b>*x*</b>',
    )

    def open_bench(
        self, desk: RecordingDesk, account: str | None = None
    ) -> AbstractAsyncContextManager[AnyBench]:
        raise NotImplementedError

    @asynccontextmanager
    async def on_desk(self, account: str | None = None) -> AsyncIterator[tuple[RecordingDesk, AnyBench]]:
        """A bench with a desk of its own."""
        desk = RecordingDesk()
        async with self.open_bench(desk, account) as bench:
            yield desk, bench

    def event(self, number: int = 1, text: str = "Hello", chat: int = 0, **more: Any) -> PlatformEvent:
        chat_id, user_id = self.chats[chat], self.users[0]
        return PlatformEvent(id=f"event-{number}", chat_id=chat_id, user_id=user_id, text=text, **more)

    async def test_message_reaches_the_desk_as_it_was_sent(self) -> None:
        async with self.on_desk(self.accounts[0]) as (desk, bench):
            assert await bench.inject(self.event(text="Hello"))
        (incoming,) = desk.stored
        assert (incoming.text, incoming.source.user_id) == ("Hello", self.users[0])
        assert incoming.source.platform == bench.channel.name
        assert incoming.source.account == bench.channel.account == self.accounts[0]
        assert incoming.event_id

    async def test_platform_is_told_yes_only_when_the_message_is_stored(self) -> None:
        async with self.on_desk() as (desk, bench):
            assert await bench.inject(self.event())
            assert len(desk.stored) == 1

    async def test_platform_is_not_told_yes_when_the_message_could_not_be_stored(self) -> None:
        async with self.on_desk() as (desk, bench):
            for refusal in (errors.StoreFull(path="x"), errors.StoreUnavailable(path="x", why="x")):
                desk.refusal = refusal
                assert not await bench.inject(self.event())
        assert desk.offered
        assert not desk.stored

    async def test_message_that_was_not_stored_is_taken_when_it_comes_again(self) -> None:
        async with self.on_desk() as (desk, bench):
            desk.refusal = errors.StoreFull(path="x")
            await bench.inject(self.event())
            desk.refusal = None
            assert await bench.inject(self.event())
        assert len({incoming.event_id for incoming in desk.offered}) == len(desk.stored) == 1

    async def test_same_event_twice_has_the_same_event_id(self) -> None:
        async with self.on_desk() as (desk, bench):
            assert await bench.inject(self.event())
            assert await bench.inject(self.event())
        first, second = desk.offered
        assert first.event_id == second.event_id
        assert first.source == second.source

    async def test_two_events_have_two_event_ids(self) -> None:
        async with self.on_desk() as (desk, bench):
            for number in (1, 2):
                assert await bench.inject(self.event(number))
        one, two = desk.stored
        assert one.event_id != two.event_id

    async def test_text_reaches_the_desk_exactly(self) -> None:
        async with self.on_desk() as (desk, bench):
            for number, text in enumerate(self.texts):
                assert await bench.inject(self.event(number, text))
        assert tuple(incoming.text for incoming in desk.stored) == self.texts

    async def test_sender_does_not_say_what_only_the_channel_may_say(self) -> None:
        async with self.on_desk(self.accounts[0]) as (desk, bench):
            await bench.inject(self.event(forged=FORGED))
        for source in (incoming.source for incoming in desk.offered):
            assert (source.platform, source.account) == (bench.channel.name, self.accounts[0])
            said = (source.is_bot, source.role_authorized, source.delivered_via_upstream_relay)
            assert (*said, source.profile) == (False, False, False, None)

    async def test_two_accounts_never_share_a_conversation(self) -> None:
        stored: list[channels.Incoming] = []
        for account in self.accounts:
            async with self.on_desk(account) as (desk, bench):
                assert await bench.inject(self.event())
            stored += desk.stored
        one, two = stored
        assert one.source != two.source
        assert keys.build_session_key(one.source) != keys.build_session_key(two.source)

    async def test_two_chats_never_share_a_conversation(self) -> None:
        async with self.on_desk() as (desk, bench):
            for chat in (0, 1):
                assert await bench.inject(self.event(chat, chat=chat))
        one, two = desk.stored
        assert keys.build_session_key(one.source) != keys.build_session_key(two.source)

    async def test_refused_message_does_not_stop_the_next_one(self) -> None:
        async with self.on_desk() as (desk, bench):
            for number, refusal in enumerate(REFUSALS):
                desk.refusal = refusal
                await bench.inject(self.event(number))
            desk.refusal = None
            assert await bench.inject(self.event(len(REFUSALS), "The next one"))
        assert [incoming.text for incoming in desk.stored].count("The next one") == 1

    async def test_addresses_of_two_accounts_differ(self) -> None:
        seen: list[tuple[str, str]] = []
        for account in self.accounts:
            async with self.open_bench(RecordingDesk(), account) as bench:
                seen += [(route.method, route.path) for route in bench.channel.routes]
        assert len(seen) == len(set(seen))
        assert all(path.startswith("/") for _, path in seen)

    async def test_name_is_a_platform_and_options_are_a_frozen_record(self) -> None:
        async with self.open_bench(RecordingDesk()) as bench:
            assert Platform.parse(bench.channel.name) is not None
            options: type[msgspec.Struct] = type(bench.channel).Options  # type: ignore[attr-defined]
            assert issubclass(options, msgspec.Struct)
            assert options.__struct_config__.frozen

    @asynccontextmanager
    async def on_lasting_desk(self) -> AsyncIterator[tuple[RecordingDesk, AnyBench, LastingBench]]:
        async with self.on_desk() as (desk, bench):
            if not isinstance(bench, LastingBench):
                raise SkipTest("the bench cannot start the channel anew")
            yield desk, bench, bench

    async def test_what_happens_while_nobody_receives_is_read_once_and_in_order(self) -> None:
        async with self.on_lasting_desk() as (desk, bench, lasting):
            assert await bench.inject(self.event(1, "before"))
            await lasting.restart(self.event(2, "meanwhile"), self.event(3, "and then"))
            await until(lambda: len(desk.stored) >= len(("before", "meanwhile", "and then")))
            assert await bench.inject(self.event(4, "after"))
        texts = [incoming.text for incoming in desk.stored]
        assert texts == ["before", "meanwhile", "and then", "after"]

    async def test_channel_goes_on_where_the_desk_has_its_cursor(self) -> None:
        async with self.on_lasting_desk() as (desk, bench, lasting):
            assert await bench.inject(self.event(1, "before"))
            cursors = dict(desk.read_until)
            assert await bench.inject(self.event(2, "read twice"))
            desk.read_until = cursors
            await lasting.restart(self.event(3, "meanwhile"))
            await until(lambda: len(desk.stored) >= len(("before", "read twice", "meanwhile")))
            assert await bench.inject(self.event(4, "after"))
        texts = [incoming.text for incoming in desk.stored]
        assert texts == ["before", "read twice", "meanwhile", "after"]

    async def test_what_could_not_be_stored_comes_after_a_restart(self) -> None:
        async with self.on_lasting_desk() as (desk, bench, lasting):
            assert await bench.inject(self.event(1, "before"))
            desk.refusal = errors.StoreUnavailable(path="x", why="x")
            assert not await bench.inject(self.event(2, "not stored"))
            await lasting.restart(self.event(3, "meanwhile"))
            desk.refusal = None
            await until(lambda: len(desk.stored) >= len(("before", "not stored", "meanwhile")))
            assert await bench.inject(self.event(4, "after"))
        texts = [incoming.text for incoming in desk.stored]
        assert texts == ["before", "not stored", "meanwhile", "after"]

    async def test_closing_twice_is_harmless(self) -> None:
        async with self.open_bench(RecordingDesk()) as bench:
            await bench.channel.close()
            await bench.channel.close()


class SendingContract(ChannelContract[SendingBench]):
    """What holds for a channel that takes answers to its platform."""

    async def delivery(self, bench: Bench, desk: RecordingDesk, text: str = "Hello") -> deliveries.Delivery:
        """An answer to a message that came through the channel."""
        number = len(desk.stored)
        assert await bench.inject(self.event(number))
        (answer,) = await desk.answers(f"turn-{number + 1}")
        return msgspec.structs.replace(answer, text=text)

    async def test_answer_arrives_exactly_in_the_chat_of_its_message(self) -> None:
        async with self.on_desk() as (desk, bench):
            for text in self.texts:
                outcome = await bench.channel.send(await self.delivery(bench, desk, text))
                assert isinstance(outcome, deliveries.Sent)
            arrived = await bench.arrived()
        assert [(each.text, each.chat_id) for each in arrived] == [(t, self.chats[0]) for t in self.texts]

    async def test_longest_text_arrives_whole(self) -> None:
        async with self.on_desk() as (desk, bench):
            can = bench.channel.capabilities
            most = can.text_limit or 50_000
            texts = [character * (most // can.text_unit.length(character)) for character in "ü🙂"]
            for text in texts:
                await bench.channel.send(await self.delivery(bench, desk, text))
            assert [each.text for each in await bench.arrived()] == texts

    def asking(self, number: int) -> PlatformEvent:
        """A message with which the platform brings what it wants back, if it ever does."""
        return self.event(number)

    async def test_answer_belongs_to_its_message_and_not_to_the_latest_of_the_chat(self) -> None:
        async with self.on_desk() as (desk, bench):
            for number in (1, 2):
                assert await bench.inject(self.asking(number))
            for turn in ("turn-1", "turn-2"):
                (answer,) = await desk.answers(turn)
                assert isinstance(await bench.channel.send(answer), deliveries.Sent)
            about = [each.about for each in await bench.arrived()]
        if not any(about):
            raise SkipTest("the platform does not show which message is answered")
        names = [(each.source.message_id, each.handle and each.handle.value) for each in desk.stored]
        assert [each in names[place] for place, each in enumerate(about)] == [True, True]
        assert about[0] != about[1]

    async def test_expired_handle_keeps_nobody_from_an_outcome(self) -> None:
        async with self.on_desk() as (desk, bench):
            assert await bench.inject(self.asking(1))
            (answer,) = await desk.answers("turn-1")
            if answer.handle is None:
                raise SkipTest("the platform wants nothing back with an answer")
            expired = msgspec.structs.replace(answer.handle, expires_at=answer.created_at)
            outcome = await bench.channel.send(msgspec.structs.replace(answer, handle=expired))
            arrived = [(each.text, each.chat_id) for each in await bench.arrived()]
        if isinstance(outcome, deliveries.Sent):
            assert arrived == [(answer.text, answer.to.chat_id)]
        else:
            assert (isinstance(outcome, deliveries.NotSent), outcome.hopeless) == (True, True)
            assert not arrived

    async def test_answer_that_arrived_unnoticed_is_found_and_one_that_did_not_is_not(self) -> None:
        async with self.on_desk() as (desk, bench):
            seeking = bench.channel
            if not isinstance(seeking, channels.Seeking):
                raise SkipTest("the channel cannot look for what it has sent")
            taken, never = [await self.delivery(bench, desk, text) for text in ("Taken", "Never")]
            await bench.trouble(Trouble.CUTS)
            assert isinstance(await bench.channel.send(taken), deliveries.Unknown)
            await bench.trouble(Trouble.REFUSES)
            assert isinstance(await bench.channel.send(never), deliveries.NotSent)
            assert not isinstance(await seeking.find(taken), deliveries.NotSent)
            await bench.trouble(None)
            assert isinstance(await seeking.find(taken), deliveries.Sent)
            assert isinstance(await seeking.find(never), deliveries.NotSent)
            assert isinstance(await bench.channel.send(never), deliveries.Sent)
            assert isinstance(await seeking.find(never), deliveries.Sent)
            assert [each.text for each in await bench.arrived()] == ["Taken", "Never"]

    async def test_platform_in_trouble_never_makes_send_raise_or_say_sent(self) -> None:
        async with self.on_desk() as (desk, bench):
            delivery = await self.delivery(bench, desk)
            outcomes = {}
            for trouble in Trouble:
                await bench.trouble(trouble)
                outcomes[trouble] = await bench.channel.send(delivery)
        assert all(isinstance(outcome, TROUBLED[trouble]) for trouble, outcome in outcomes.items()), outcomes

    async def test_answer_arrives_when_the_trouble_is_over(self) -> None:
        async with self.on_desk() as (desk, bench):
            delivery = await self.delivery(bench, desk)
            await bench.trouble(Trouble.REFUSES)
            await bench.channel.send(delivery)
            await bench.trouble(None)
            assert isinstance(await bench.channel.send(delivery), deliveries.Sent)
            assert [each.text for each in await bench.arrived()] == [delivery.text]

    async def test_repeated_answer_is_known_again_where_the_channel_says_so(self) -> None:
        async with self.on_desk() as (desk, bench):
            delivery = await self.delivery(bench, desk)
            for _ in range(2):
                await bench.channel.send(delivery)
            known = {each.id for each in await bench.arrived()}
            if bench.channel.capabilities.idempotent_seconds:
                assert len(known) == 1
                assert None not in known


class EditingContract(SendingContract):
    """What holds for a channel whose platform lets a message be changed."""

    async def _drafted(self, bench: Bench, delivery: deliveries.Delivery, number: int) -> deliveries.Outcome:
        """The answer so far, as the flow has it shown."""
        name, kind = f"{delivery.turn_id}-draft-1-{number}", deliveries.DeliveryKind.DRAFT
        draft = msgspec.structs.replace(delivery, id=name, kind=kind, final=False)
        return await cast("channels.Drafts", bench.channel).draft(draft)

    async def test_answer_grows_in_one_message(self) -> None:
        async with self.on_desk() as (desk, bench):
            assert bench.channel.capabilities.edits
            delivery = await self.delivery(bench, desk, "Hel")
            shown = await self._drafted(bench, delivery, 1)
            assert [each.text for each in await bench.arrived()] == ["Hel"]
            delivery = in_place_of(shown, delivery, "Hello, wor")
            assert isinstance(await self._drafted(bench, delivery, 2), deliveries.Sent)
            assert [each.text for each in await bench.arrived()] == ["Hello, wor"]
            answer = in_place_of(shown, delivery, "Hello, world.")
            assert isinstance(await bench.channel.send(answer), deliveries.Sent)
            arrived = [(each.text, each.chat_id) for each in await bench.arrived()]
        assert arrived == [("Hello, world.", self.chats[0])]

    async def test_answer_that_takes_a_drafts_place_twice_is_there_once(self) -> None:
        async with self.on_desk() as (desk, bench):
            delivery = await self.delivery(bench, desk)
            answer = in_place_of(await self._drafted(bench, delivery, 1), delivery, delivery.text)
            for _ in range(2):
                assert isinstance(await bench.channel.send(answer), deliveries.Sent)
            assert [each.text for each in await bench.arrived()] == [answer.text]

    async def test_two_answers_grow_in_two_messages(self) -> None:
        async with self.on_desk() as (desk, bench):
            first, second = [await self.delivery(bench, desk, text) for text in ("One", "Two")]
            shown = [await self._drafted(bench, each, 1) for each in (first, second)]
            await self._drafted(bench, in_place_of(shown[0], first, "One and a half"), 2)
            assert [each.text for each in await bench.arrived()] == ["One and a half", "Two"]

    async def test_platform_in_trouble_never_makes_draft_raise_or_say_sent(self) -> None:
        async with self.on_desk() as (desk, bench):
            delivery = await self.delivery(bench, desk)
            outcomes = {}
            for number, trouble in enumerate(Trouble):
                await bench.trouble(trouble)
                outcomes[trouble] = await self._drafted(bench, delivery, number)
        assert all(isinstance(outcome, TROUBLED[trouble]) for trouble, outcome in outcomes.items()), outcomes


def in_place_of(shown: deliveries.Outcome, delivery: deliveries.Delivery, text: str) -> deliveries.Delivery:
    """A delivery that takes the place of a draft."""
    assert isinstance(shown, deliveries.Sent)
    assert shown.message_id
    return msgspec.structs.replace(delivery, text=text, extra={deliveries.DRAFT: shown.message_id})


class CollectingContract(ChannelContract[Bench]):
    """What holds for a channel whose other side comes and collects the answers."""

    async def test_answer_is_handed_out_exactly_and_noted_as_collected(self) -> None:
        async with self.on_desk() as (desk, bench):
            assert bench.channel.capabilities.collects
            for number, text in enumerate(self.texts):
                assert await bench.inject(self.event(number, text))
            arrived = await bench.arrived()
        assert [each.text for each in arrived] == [echo(incoming).text for incoming in desk.stored]
        assert len(desk.collected_ids) == len(self.texts)

    async def test_send_says_that_nothing_was_sent(self) -> None:
        async with self.on_desk() as (desk, bench):
            assert await bench.inject(self.event())
            (answer,) = await desk.answers("turn-1")
            assert isinstance(await bench.channel.send(answer), deliveries.NotSent)
