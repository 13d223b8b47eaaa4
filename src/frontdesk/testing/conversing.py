"""What every channel of a chat platform must hold: presses, files, quotes, and what people change later."""

from typing import ClassVar, cast
from unittest import SkipTest

import msgspec

from frontdesk import errors
from frontdesk.contracts import channels
from frontdesk.model import deliveries
from frontdesk.model.chats import Attachment, Button
from frontdesk.testing.channels import Act, EditingContract, PlatformFile, SendingBench, SendingContract
from frontdesk.testing.desks import RecordingDesk

NOTE = PlatformFile(name="note.txt", data="Grüße\n".encode() * 100, kind="text/plain")
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
