"""What every channel of a chat platform must hold: presses, files, quotes, and what people change later."""

import tempfile
from pathlib import Path
from typing import ClassVar, cast
from unittest import SkipTest

import msgspec

from frontdesk import errors
from frontdesk.contracts import channels
from frontdesk.model import deliveries
from frontdesk.model.chats import Attachment, Button, ChatSign, StoredFile
from frontdesk.testing.benches import SignedBench, VisibleSign, until
from frontdesk.testing.channels import (
    Act,
    EditingContract,
    PlatformFile,
    SendingBench,
    SendingContract,
    Trouble,
)
from frontdesk.testing.desks import RecordingDesk

NOTE = PlatformFile(name="note.txt", data="Grüße\n".encode() * 100, kind="text/plain")
MARKDOWN = "**Bold**, 2 < 3 & <i>x</i>\n\n```\na *b* <c> &amp;\n```"
BUTTONS = (Button(label="Yes", token="tok-1"), Button(label="No", token="tok-2"))


class PeopleContract(SendingContract):
    """What holds for a channel whose people do more than write. Tests are skipped of what the platform has
    not, as its capabilities and ``brings`` say."""

    brings: ClassVar[frozenset[Act]] = frozenset(Act)
    """What the platform tells us that people do."""

    def needs(self, act: Act) -> None:
        if act not in self.brings:
            raise SkipTest(f"the platform does not tell us of this: {act}")

    async def test_edit_names_the_message_that_it_changes(self) -> None:
        self.needs(Act.EDIT)
        async with self.on_desk() as (desk, bench):
            assert await bench.inject(self.event(1, "Helo"))
            assert await bench.inject(self.event(2, "Hello", act=Act.EDIT, about="event-1"))
        written, edited = desk.happened
        assert isinstance(edited, channels.Edited)
        assert (edited.text, edited.source.message_id) == ("Hello", written.source.message_id)
        assert edited.source.user_id == self.users[0]
        assert edited.event_id not in (None, written.event_id)

    async def test_deletion_names_the_message_that_is_gone(self) -> None:
        self.needs(Act.DELETE)
        async with self.on_desk() as (desk, bench):
            assert await bench.inject(self.event(1))
            assert await bench.inject(self.event(2, act=Act.DELETE, about="event-1"))
        written, deleted = desk.happened
        assert isinstance(deleted, channels.Deleted)
        assert deleted.source.message_id == written.source.message_id

    async def test_message_that_was_deleted_before_we_read_it_is_not_read(self) -> None:
        self.needs(Act.DELETE)
        async with self.on_lasting_desk() as (desk, bench, lasting):
            assert await bench.inject(self.event(1, "before"))
            taken_back = self.event(3, act=Act.DELETE, about="event-2")
            await lasting.restart(self.event(2, "a secret"), taken_back, self.event(4, "meanwhile"))
            await until(lambda: desk.stored[-1].text == "meanwhile")
        assert [incoming.text for incoming in desk.stored] == ["before", "meanwhile"]

    async def test_message_to_us_among_many_is_known_from_the_others(self) -> None:
        self.needs(Act.MENTION)
        async with self.on_desk() as (desk, bench):
            assert await bench.inject(self.event(1, "to everybody", in_group=True))
            assert await bench.inject(self.event(2, "to you", in_group=True, act=Act.MENTION))
        assert [incoming.addressed for incoming in desk.stored] == [False, True]
        assert "to you" in desk.stored[1].text

    async def test_chat_that_we_were_thrown_out_of_is_given_up_and_said_so(self) -> None:
        self.needs(Act.EXPEL)
        async with self.on_desk() as (desk, bench):
            answer = await self.delivery(bench, desk)
            assert await bench.inject(self.event(8, chat=1))
            (other,) = await desk.answers(f"turn-{len(desk.stored)}")
            await bench.inject(self.event(9, act=Act.EXPEL))
            for _ in range(2):
                outcome = await bench.channel.send(answer)
                assert isinstance(outcome, deliveries.NotSent), outcome
                assert (outcome.hopeless, bool(outcome.why), outcome.whole_account) == (True, True, False)
            if isinstance(bench.channel, channels.Signing):
                shown = await bench.channel.sign(answer.to, ChatSign.TYPING)
                assert not isinstance(shown, deliveries.Sent)
            assert isinstance(await bench.channel.send(other), deliveries.Sent)
            assert [each.chat_id for each in await bench.arrived()] == [self.chats[1]]

    async def test_quote_brings_the_message_that_is_answered(self) -> None:
        self.needs(Act.QUOTE)
        async with self.on_desk() as (desk, bench):
            assert await bench.inject(self.event(1, "The first"))
            assert await bench.inject(self.event(2, "The second", act=Act.QUOTE, about="event-1"))
        first, second = desk.stored
        assert second.text == "The second"
        assert second.quote is not None
        assert (second.quote.message_id, second.quote.text) == (first.source.message_id, "The first")
        assert not second.quote.is_ours

    async def test_parts_of_an_album_are_known_to_belong_together(self) -> None:
        self.needs(Act.ALBUM)
        async with self.on_desk() as (desk, bench):
            for number, album in enumerate(("one", "one", "two")):
                assert await bench.inject(self.event(number, album=album, files=(NOTE,)))
        albums = [incoming.album for incoming in desk.stored]
        assert albums[0] is not None
        assert albums[0] == albums[1] != albums[2]
        assert len({incoming.event_id for incoming in desk.stored}) == len(albums)

    async def test_file_can_be_fetched_within_its_bounds(self) -> None:
        self.needs(Act.FILE)
        async with self.on_desk() as (desk, bench):
            assert await bench.inject(self.event(files=(NOTE,)))
            (attachment,) = desk.stored[0].files
            assert (attachment.name, attachment.kind) == (NOTE.name, NOTE.kind)
            fetching = cast("channels.Fetching", bench.channel)
            size = len(NOTE.data)
            pieces = [piece async for piece in fetching.fetch(attachment, size)]
            assert b"".join(pieces) == NOTE.data
            gone = msgspec.structs.replace(attachment, id="gone")
            for wanted, most in ((attachment, size - 1), (gone, size)):
                await refuses(fetching, wanted, most)

    async def test_file_of_ours_arrives_as_it_is(self) -> None:
        async with self.on_desk() as (desk, bench):
            if not bench.channel.capabilities.most_files:
                raise SkipTest("the platform takes no files")
            with tempfile.TemporaryDirectory() as folder:
                place = Path(folder) / "kept"
                place.write_bytes(NOTE.data)
                size = len(NOTE.data)
                file = StoredFile(digest="x", name=NOTE.name, kind=NOTE.kind, size=size, path=str(place))
                answer = msgspec.structs.replace(await self.delivery(bench, desk, ""), files=(file,))
                assert isinstance(await bench.channel.send(answer), deliveries.Sent)
            brought = [(each.chat_id, file) for each in await bench.arrived() for file in each.files]
        assert brought == [(self.chats[0], NOTE)]

    async def test_markdown_is_shown_and_what_only_looks_like_it_stays(self) -> None:
        async with self.on_desk() as (desk, bench):
            answer = msgspec.structs.replace(await self.delivery(bench, desk, MARKDOWN), is_markdown=True)
            assert isinstance(await bench.channel.send(answer), deliveries.Sent)
            (shown,) = await bench.arrived()
        for part in ("Bold", "2 < 3 & <i>x</i>", "a *b* <c> &amp;"):
            assert part in shown.text, shown.text

    async def test_sign_is_shown_and_takes_the_place_of_the_one_before(self) -> None:
        async with self.on_desk() as (desk, bench):
            signing = bench.channel
            if not (isinstance(signing, channels.Signing) and isinstance(bench, SignedBench)):
                raise SkipTest("the channel shows nothing but messages")
            to = (await self.delivery(bench, desk)).to
            can = channels.capabilities_in(bench.channel, to)
            writing = await signing.sign(to, ChatSign.TYPING)
            assert isinstance(writing, deliveries.Sent) == bool(can.typing_seconds)
            shown = [VisibleSign(chat_id=to.chat_id)] if can.typing_seconds else []
            if can.reactions:
                for sign in (ChatSign.SEEN, ChatSign.WORKING, ChatSign.DONE):
                    assert isinstance(await signing.sign(to, sign), deliveries.Sent)
                shown.append(VisibleSign(chat_id=to.chat_id, message_id=to.message_id))
            assert list(await bench.signs()) == shown

    async def test_sign_that_cannot_be_shown_fails_nothing(self) -> None:
        async with self.on_desk() as (desk, bench):
            signing = bench.channel
            if not isinstance(signing, channels.Signing):
                raise SkipTest("the channel shows nothing but messages")
            answer = await self.delivery(bench, desk)
            await bench.trouble(Trouble.REFUSES)
            for sign in ChatSign:
                assert not isinstance(await signing.sign(answer.to, sign), deliveries.Sent)
            await bench.trouble(None)
            assert isinstance(await bench.channel.send(answer), deliveries.Sent)

    async def test_press_says_who_pressed_what_and_is_stored_before_it_is_confirmed(self) -> None:
        self.needs(Act.PRESS)
        async with self.on_desk(self.accounts[0]) as (desk, bench):
            shown = await self.shown_buttons(bench, desk)
            press = self.event(50, act=Act.PRESS, about=shown, token="tok-2")
            desk.refusal = errors.StoreFull(path="x")
            assert not await bench.inject(press)
            desk.refusal = None
            assert await bench.inject(press)
        pressed = desk.happened[-1]
        assert isinstance(pressed, channels.Pressed)
        assert (pressed.token, pressed.source.message_id) == ("tok-2", shown)
        assert (pressed.source.user_id, pressed.source.chat_id) == (self.users[0], self.chats[0])
        assert (pressed.source.account, pressed.source.is_bot) == (self.accounts[0], False)

    async def shown_buttons(self, bench: SendingBench, desk: RecordingDesk) -> str:
        """The platform's id of a message with buttons under it."""
        answer = await self.delivery(bench, desk, "Shall I?")
        sent = await bench.channel.send(msgspec.structs.replace(answer, buttons=BUTTONS))
        assert isinstance(sent, deliveries.Sent)
        assert sent.message_id
        return sent.message_id

    async def test_buttons_arrive_and_are_gone_when_the_message_is_changed(self) -> None:
        async with self.on_desk() as (desk, bench):
            if bench.channel.capabilities.most_buttons < len(BUTTONS):
                raise SkipTest("the platform has no buttons")
            shown = await self.shown_buttons(bench, desk)
            (arrival,) = await bench.arrived()
            assert arrival.buttons == (("Yes", "tok-1"), ("No", "tok-2"))
            answer = await self.delivery(bench, desk, "Approved.")
            changed = msgspec.structs.replace(answer, extra={deliveries.DRAFT: shown})
            assert isinstance(await bench.channel.send(changed), deliveries.Sent)
            arrived = await bench.arrived()
        assert [(each.text, each.buttons) for each in arrived] == [("Approved.", ())]

    async def test_reaction_names_its_message_and_who_put_it(self) -> None:
        self.needs(Act.REACT)
        async with self.on_desk() as (desk, bench):
            assert bench.channel.capabilities.reactions
            answer = await self.delivery(bench, desk)
            sent = await bench.channel.send(answer)
            assert isinstance(sent, deliveries.Sent)
            react = self.event(50, act=Act.REACT, about=sent.message_id, emoji="👍")
            assert await bench.inject(react)
        reacted = desk.happened[-1]
        assert isinstance(reacted, channels.Reacted)
        assert (reacted.emoji, reacted.removed) == ("👍", False)
        assert (reacted.source.message_id, reacted.source.user_id) == (sent.message_id, self.users[0])


class ChatContract(PeopleContract, EditingContract):
    """The same, where messages can be changed."""


async def refuses(channel: channels.Fetching, attachment: Attachment, most_bytes: int) -> None:
    """A file that cannot be had is refused with one of our errors."""
    try:
        async for _ in channel.fetch(attachment, most_bytes):
            pass
    except errors.FrontdeskError:
        return
    raise AssertionError(f"{attachment.id} came, of which at most {most_bytes} bytes were wanted")
