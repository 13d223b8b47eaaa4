"""The Telegram channel holds the contract of chats, asking for messages and being called with them."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar, cast

import pytest
from msgspec.structs import replace

from frontdesk.channels import telegram
from frontdesk.contracts import channels as contract
from frontdesk.model import deliveries
from frontdesk.model.chats import Attachment, ChatSign
from frontdesk.model.sources import SessionSource
from frontdesk.testing import channels
from frontdesk.testing.benches import VisibleSign
from frontdesk.testing.channels import Act, Arrival, PlatformEvent, PlatformFile, Trouble
from frontdesk.testing.conversing import BUTTONS, ChatContract
from frontdesk.testing.telegram import ApiFault, BotApi, Member
from frontdesk.testing.telegram.chats import Chat
from tests import loopback
from tests.contracts.benching import ServedBench, started

RECEIVING = ("getUpdates", "setWebhook")
SECRET = "a-secret-of-the-webhook"
TROUBLES = {
    Trouble.FAILS: ApiFault(method="sendMessage", status=429, description="Too Many Requests", times=None),
    Trouble.HANGS: ApiFault(method="sendMessage", taken=True, hangs=True, times=None),
    Trouble.CUTS: ApiFault(method="sendMessage", taken=True, cut=True, times=None),
}


class TelegramBench(ServedBench[telegram.Channel]):
    def __init__(
        self, api: BotApi, make: Callable[[float], telegram.Channel], desk: contract.Desk, port: int = 0
    ) -> None:
        super().__init__(make, desk, port)
        self.api = api
        self.messages: dict[str, dict[str, Any]] = {}
        self.called = 0
        """How many calls there were before this channel began."""
        for number in (1, 2):
            api.group(number)

    async def connected(self) -> None:
        await self.api.until(lambda: any(each.method in RECEIVING for each in self.api.calls[self.called :]))

    async def stop(self) -> None:
        await super().stop()
        self.called = len(self.api.calls)

    async def inject(self, event: PlatformEvent) -> bool:
        number = 800_000_000 + int(event.id.removeprefix("event-"))
        if number not in self.api.pending_ids:
            self.put(event, number)
        handed = self.api.handed[number]
        self.api.release_poll()
        await self.api.until(
            lambda: number not in self.api.pending_ids or self.api.handed[number] > handed + 1
        )
        return number not in self.api.pending_ids

    async def happen(self, event: PlatformEvent) -> None:
        self.put(event, 800_000_000 + int(event.id.removeprefix("event-")))

    def put(self, event: PlatformEvent, number: int) -> None:
        chat, member = self.api.chats[int(event.chat_id)], Member(id=int(event.user_id))
        if event.act is Act.PRESS:
            post = next(each for each in self.api.posts if str(each.message_id) == event.about)
            self.api.press(post, member, event.token, update_id=number)
        elif event.act is Act.REACT:
            assert event.emoji
            self.api.react(chat, int(event.about or 0), member, event.emoji, update_id=number)
        elif event.act is Act.EDIT:
            self.api.edit(self.messages[event.about or ""], event.text, update_id=number)
        elif event.act is Act.EXPEL:
            chat.blocked = True
        else:
            self.write(event, number, chat, member)

    def write(self, event: PlatformEvent, number: int, chat: Chat, member: Member) -> None:
        more: dict[str, Any] = {**event.forged}
        if event.act is Act.QUOTE:
            more["reply_to_message"] = self.messages[event.about or ""]
        for file in event.files:
            more["document"] = self.api.keep_file(file.name, file.data, file.kind)
        if event.album:
            more["media_group_id"] = event.album
        if known := self.messages.get(event.id):
            more["message_id"] = known["message_id"]
        if event.files:
            more["caption"] = event.text
        text = None if event.files else event.text
        if event.act is Act.MENTION:
            called = f"@{self.api.me.username}"
            text = f"{called} {event.text}"
            more["entities"] = [{"type": "mention", "offset": 0, "length": len(called)}]
        self.messages[event.id] = self.api.say(member, text, chat, update_id=number, **more)

    async def arrived(self) -> Sequence[Arrival]:
        return [
            Arrival(
                text=post.text,
                chat_id=str(post.chat_id),
                about=str(post.reply_to) if post.reply_to else None,
                buttons=tuple((each["text"], each["callback_data"]) for each in post.buttons),
                files=tuple(PlatformFile(name=f.name, data=f.data, kind=f.kind) for f in post.files),
            )
            for post in self.api.posts
        ]

    async def signs(self) -> Sequence[VisibleSign]:
        writing = [VisibleSign(chat_id=str(chat)) for chat, *_ in self.api.actions]
        put = [(chat, number) for (chat, number), signs in self.api.signs.items() for _ in signs]
        return writing + [VisibleSign(chat_id=str(chat), message_id=str(number)) for chat, number in put]

    async def trouble(self, trouble: Trouble | None) -> None:
        await self.face(trouble)
        self.api.faults = [TROUBLES[trouble]] if trouble in TROUBLES else []
        if trouble is Trouble.REFUSES:
            await self.api.wire.refuse()
        else:
            await self.api.wire.listen()


class TestTelegram(ChatContract):
    chats: ClassVar[tuple[str, str]] = ("-1000000000001", "-1000000000002")
    users: ClassVar[tuple[str, str]] = ("7", "8")
    brings: ClassVar[frozenset[Act]] = frozenset(Act) - {Act.DELETE}
    channel: ClassVar[type[telegram.Channel]] = telegram.Channel

    @asynccontextmanager
    async def open_bench(
        self, desk: channels.RecordingDesk, account: str | None = None
    ) -> AsyncIterator[TelegramBench]:
        async with BotApi.open() as api:

            def make(seconds: float) -> telegram.Channel:
                options = telegram.Options(
                    token=lambda: api.token, api_url=api.url, poll_seconds=5, timeout_seconds=seconds
                )
                return self.channel(options, account)

            async with started(TelegramBench(api, make, desk)) as bench:
                yield bench


class TestTelegramThatCalls(TestTelegram):
    @asynccontextmanager
    async def open_bench(
        self, desk: channels.RecordingDesk, account: str | None = None
    ) -> AsyncIterator[TelegramBench]:
        async with BotApi.open() as api:
            port = loopback.free_port()
            path = f"/channels/telegram/{account}" if account else "/channels/telegram"

            def make(seconds: float) -> telegram.Channel:
                options = telegram.Options(
                    token=lambda: api.token,
                    api_url=api.url,
                    public_url=f"http://127.0.0.1:{port}{path}",
                    public_secret=lambda: SECRET,
                    timeout_seconds=seconds,
                )
                return telegram.Channel(options, account)

            async with started(TelegramBench(api, make, desk, port)) as bench:
                yield bench
                await api.stop_pushing()


class Altering:
    """A desk that hears something else than what was said."""

    def __init__(
        self, desk: contract.Desk, alter: Callable[[contract.Happening], contract.Happening]
    ) -> None:
        self.desk, self.alter = desk, alter

    async def accept(self, happening: contract.Happening, **more: Any) -> contract.Receipt:
        return await self.desk.accept(self.alter(happening), **more)


class Alters(telegram.Channel):
    async def receive(self, desk: contract.Desk) -> None:
        await super().receive(cast("contract.Desk", Altering(desk, self.alter)))

    def alter(self, happening: contract.Happening) -> contract.Happening:
        raise NotImplementedError


class TakesEditsForMessages(Alters):
    def alter(self, happening: contract.Happening) -> contract.Happening:
        if isinstance(happening, contract.Edited):
            return contract.Incoming(
                source=happening.source, text=happening.text, event_id=happening.event_id
            )
        return happening


class ForgetsWhatCameAlong(Alters):
    def alter(self, happening: contract.Happening) -> contract.Happening:
        if isinstance(happening, contract.Incoming):
            return replace(happening, quote=None, album=None, files=())
        return happening


class ForgetsWho(Alters):
    def alter(self, happening: contract.Happening) -> contract.Happening:
        if isinstance(happening, contract.Incoming):
            return happening
        return replace(happening, source=replace(happening.source, user_id=None))


class DecidesByTheToken(Alters):
    def alter(self, happening: contract.Happening) -> contract.Happening:
        return replace(happening, token="yes") if isinstance(happening, contract.Pressed) else happening


class KeepsButtons(telegram.Channel):
    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        return await super().send(replace(delivery, buttons=BUTTONS))


class FetchesAll(telegram.Channel):
    def fetch(self, attachment: Attachment, most_bytes: int) -> AsyncIterator[bytes]:
        return super().fetch(attachment, 10**9)


class AnswersTheLatest(telegram.Channel):
    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        return await super().send(replace(delivery, to=replace(delivery.to, message_id="2")))


class NeverGivesUp(telegram.Channel):
    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        outcome = await super().send(delivery)
        return replace(outcome, hopeless=False) if isinstance(outcome, deliveries.NotSent) else outcome


class ShowsNothing(telegram.Channel):
    async def sign(self, to: SessionSource, sign: ChatSign) -> deliveries.Outcome:
        return deliveries.Sent()


class LosesFiles(telegram.Channel):
    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        return await super().send(replace(delivery, text=delivery.text or "A file", files=()))


class HearsEverything(Alters):
    def alter(self, happening: contract.Happening) -> contract.Happening:
        return replace(happening, addressed=True) if isinstance(happening, contract.Incoming) else happening


class ShowsMarks(telegram.Channel):
    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        return await super().send(replace(delivery, text=delivery.text.replace("<i>", "")))


@pytest.mark.parametrize(
    ("bad", "test"),
    [
        (AnswersTheLatest, "answer_belongs_to_its_message_and_not_to_the_latest_of_the_chat"),
        (NeverGivesUp, "chat_that_we_were_thrown_out_of_is_given_up_and_said_so"),
        (ShowsNothing, "sign_is_shown_and_takes_the_place_of_the_one_before"),
        (ShowsNothing, "sign_that_cannot_be_shown_fails_nothing"),
        (LosesFiles, "file_of_ours_arrives_as_it_is"),
        (HearsEverything, "message_to_us_among_many_is_known_from_the_others"),
        (ShowsMarks, "markdown_is_shown_and_what_only_looks_like_it_stays"),
        (TakesEditsForMessages, "edit_names_the_message_that_it_changes"),
        (ForgetsWhatCameAlong, "quote_brings_the_message_that_is_answered"),
        (ForgetsWhatCameAlong, "parts_of_an_album_are_known_to_belong_together"),
        (ForgetsWho, "press_says_who_pressed_what_and_is_stored_before_it_is_confirmed"),
        (ForgetsWho, "reaction_names_its_message_and_who_put_it"),
        (DecidesByTheToken, "press_says_who_pressed_what_and_is_stored_before_it_is_confirmed"),
        (KeepsButtons, "buttons_arrive_and_are_gone_when_the_message_is_changed"),
        (FetchesAll, "file_can_be_fetched_within_its_bounds"),
    ],
)
async def test_bad_channel_is_found_out(bad: type[telegram.Channel], test: str) -> None:
    class TestBad(TestTelegram):
        channel: ClassVar[type[telegram.Channel]] = bad

    with pytest.raises(AssertionError):
        await getattr(TestBad(), f"test_{test}")()
