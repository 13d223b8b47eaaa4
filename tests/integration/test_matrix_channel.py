"""The Matrix channel and a real homeserver, with something between them that can be broken."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

import pytest
from msgspec.structs import replace

from frontdesk import errors
from frontdesk.channels.matrix import Channel
from frontdesk.contracts.channels import Deleted, Edited, Reacted
from frontdesk.model.chats import Button, ChatSign, StoredFile
from frontdesk.model.deliveries import NotSent, Sent
from frontdesk.model.sources import ChatType
from frontdesk.testing.benches import VisibleSign
from frontdesk.testing.channels import Act, Arrival, PlatformEvent, PlatformFile, RecordingDesk
from frontdesk.testing.conversing import ChatContract
from tests.contracts.benching import ServedBench, started
from tests.peers.people import Person, said_by
from tests.peers.proxies import Proxy, proxy_to
from tests.peers.synapse import Homeserver
from tests.peers.worlds import World, at_work, new_world, receiving, until

SIGNS = {"Approve": "✅", "Deny": "❌"}


@pytest.fixture
def world(synapse: Homeserver) -> World:
    return new_world(synapse)


class MatrixBench(ServedBench[Channel]):
    """The channel, behind a proxy; what people do is done at the homeserver itself."""

    def __init__(
        self, world: World, proxy: Proxy, make: Callable[[float], Channel], desk: RecordingDesk
    ) -> None:
        super().__init__(make, desk)
        self.trouble = proxy.trouble
        self._world, self._recording = world, desk
        self._read_before: dict[str, str] = {}
        self._sent: dict[str, str] = {}
        self._group = ""

    async def connected(self) -> None:
        await until(lambda: self._recording.read_until and self.channel.trouble() is None)

    async def inject(self, event: PlatformEvent) -> bool:
        """Yes is said by reading on behind it. The homeserver brings an event again to whoever has not."""
        desk, offered = self._recording, len(self._recording.offered)
        if before := self._read_before.get(event.id):
            read = before
            await self.stop()
            desk.read_until[""] = before
            await self.restart()
        else:
            self._read_before[event.id] = read = desk.read_until[""]
            happened = len(desk.happened)
            await self.happen(event)
            if event.act is Act.EXPEL:
                return True
            if event.act in (Act.EDIT, Act.DELETE, Act.REACT):
                await until(lambda: len(desk.happened) > happened and desk.read_until.get("") != read)
                return True
        await until(lambda: len(desk.offered) > offered)
        twice = offered + 2
        await until(lambda: desk.read_until.get("") != read or len(desk.offered) >= twice)
        return desk.read_until.get("") != read

    async def happen(self, event: PlatformEvent) -> None:
        await asyncio.to_thread(self._do, self._world.person(event.user_id), event)

    def _do(self, person: Person, event: PlatformEvent) -> None:
        room, about = event.chat_id, self._sent.get(event.about or "", event.about or "")
        if event.in_group:
            room = self._group = self._group or self._world.room(name="The team")
        if event.act is Act.DELETE:
            person.redact(room, about)
        elif event.act is Act.REACT:
            person.react(room, about, event.emoji or "")
        elif event.act is Act.EXPEL:
            person.call("POST", f"/rooms/{quote(room)}/kick", {"user_id": self._world.us.user_id})
        else:
            self._sent[event.id] = person.send(room, "m.room.message", self._content(person, event, about))

    def _content(self, person: Person, event: PlatformEvent, about: str) -> dict[str, Any]:
        content: dict[str, Any] = {"msgtype": "m.text", "body": event.text} | dict(event.forged)
        if event.act is Act.EDIT:
            content["m.new_content"] = dict(content)
            content["m.relates_to"] = {"rel_type": "m.replace", "event_id": about}
        elif event.act is Act.QUOTE:
            content["m.relates_to"] = {"m.in_reply_to": {"event_id": about}}
        elif event.act is Act.MENTION:
            content["m.mentions"] = {"user_ids": [self._world.us.user_id]}
        for file in event.files:
            place = person.upload(file.data, file.kind)
            info = {"mimetype": file.kind, "size": len(file.data)}
            content |= {"msgtype": "m.file", "body": file.name, "url": place, "info": info}
        return content

    async def _events(self) -> list[dict[str, Any]]:
        return [
            event
            for room in self._world.rooms
            for event in await asyncio.to_thread(self._world.ann.events, room)
        ]

    async def arrived(self) -> list[Arrival]:
        said = said_by(self._world.us.user_id, await self._events())
        said.sort(key=lambda each: int(each["origin_server_ts"]))
        return [
            Arrival(
                text=each["content"]["body"],
                chat_id=each["room_id"],
                id=each["event_id"],
                files=await asyncio.to_thread(self._files, each["content"]),
            )
            for each in said
        ]

    def _files(self, content: dict[str, Any]) -> tuple[PlatformFile, ...]:
        if "url" not in content:
            return ()
        data = self._world.ann.download(content["url"])
        return (PlatformFile(name=content["filename"], data=data, kind=content["info"]["mimetype"]),)

    async def signs(self) -> list[VisibleSign]:
        us, synced = self._world.us.user_id, await asyncio.to_thread(self._world.ann.call, "GET", "/sync")
        writing = [
            VisibleSign(chat_id=room)
            for room, joined in synced["rooms"]["join"].items()
            for event in joined["ephemeral"]["events"]
            if event["type"] == "m.typing" and us in event["content"]["user_ids"]
        ]
        put = [
            VisibleSign(chat_id=each["room_id"], message_id=each["content"]["m.relates_to"]["event_id"])
            for each in await self._events()
            if each["sender"] == us and each["type"] == "m.reaction" and each["content"]
        ]
        return writing + put


class TestMatrix(ChatContract):
    brings: ClassVar[frozenset[Act]] = frozenset(Act) - {Act.ALBUM, Act.PRESS}

    @pytest.fixture(autouse=True)
    def _prepare(self, world: World, synapse: Homeserver, tmp_path: Path) -> None:
        self._world, self._url, self._home = world, synapse.url, tmp_path
        self.chats = (world.rooms[0], world.rooms[1])  # type: ignore[misc]
        self.users = (world.ann.user_id, world.bob.user_id)  # type: ignore[misc]

    @asynccontextmanager
    async def open_bench(self, desk: RecordingDesk, account: str | None = None) -> AsyncIterator[MatrixBench]:
        async with proxy_to(self._url) as proxy:

            def make(_: float) -> Channel:
                return Channel(self._world.options(proxy.url, self._home), account)

            async with started(MatrixBench(self._world, proxy, make, desk)) as bench:
                yield bench


def found(desk: RecordingDesk, kind: type) -> list[Any]:
    return [each for each in desk.happened if isinstance(each, kind)]


async def test_what_people_do_in_a_room_reaches_the_desk(
    world: World, synapse: Homeserver, tmp_path: Path
) -> None:
    (room, _), ann, us = world.rooms, world.ann, world.us
    async with at_work(world, synapse.url, tmp_path) as (channel, desk):
        first = ann.say(room, "hello")
        changed = {"rel_type": "m.replace", "event_id": first}
        new = {"msgtype": "m.text", "body": "hello, you"}
        ann.say(room, "* hello, you", **{"m.new_content": new, "m.relates_to": changed})
        ann.react(room, first, "👍")
        await until(lambda: len(desk.stored) == 1)
        outcome = await channel.send((await desk.answers("turn-1"))[0])
        assert isinstance(outcome, Sent)
        answered = {"m.in_reply_to": {"event_id": outcome.message_id}}
        ann.say(room, "> <@x:y> You said: hello\n\nAnd now?", **{"m.relates_to": answered})
        ann.redact(room, first)
        await until(lambda: found(desk, Deleted))
    (edit,), (reaction,), (deletion,) = (found(desk, kind) for kind in (Edited, Reacted, Deleted))
    assert (edit.text, edit.source.message_id) == ("hello, you", first)
    assert (reaction.emoji, reaction.source.message_id) == ("👍", first)
    assert (deletion.source.message_id, deletion.source.user_id) == (first, ann.user_id)
    reply = desk.stored[1]
    assert reply.quote
    assert (reply.text, reply.quote.text, reply.quote.is_ours) == ("And now?", "You said: hello", True)
    assert {each.source.user_id for each in desk.happened} == {ann.user_id} != {us.user_id}


async def test_group_says_whether_a_message_is_for_us(
    world: World, synapse: Homeserver, tmp_path: Path
) -> None:
    group, ann, us = world.room(name="The team"), world.ann, world.us.user_id
    pill = f'<a href="https://matrix.to/#/{us}">desk</a>: hello'
    async with at_work(world, synapse.url, tmp_path) as (_, desk):
        ann.say(group, "to everybody")
        ann.say(group, "to you", **{"m.mentions": {"user_ids": [us]}})
        ann.say(group, "not to you", **{"m.mentions": {}, "formatted_body": pill})
        ann.say(group, "desk: hello", formatted_body=pill)
        root = ann.say(group, "a thread")
        ann.say(group, "in it", **{"m.relates_to": {"rel_type": "m.thread", "event_id": root}})
        world.bob.send(group, "m.room.message", {"msgtype": "m.notice", "body": "I am a program"})
        await until(lambda: len(desk.stored) == 7)
    told = {each.text: each for each in desk.stored}
    addressed = {text for text, each in told.items() if each.addressed}
    assert addressed == {"to you", "desk: hello"}
    assert (told["in it"].source.thread_id, told["in it"].source.chat_type) == (root, ChatType.THREAD)
    assert (told["to you"].source.chat_name, told["to you"].source.chat_type) == ("The team", ChatType.GROUP)
    assert [text for text, each in told.items() if each.source.is_bot] == ["I am a program"]


async def test_invitation_is_followed_only_of_who_may_talk(
    world: World, synapse: Homeserver, tmp_path: Path
) -> None:
    ann, us = world.ann, world.us.user_id
    async with at_work(world, synapse.url, tmp_path) as (_, desk):
        desk.refusal = errors.NotAllowed(who="x", rule="x")
        unwanted = ann.create_room(us, direct=True)
        await asyncio.sleep(1)
        desk.refusal = None
        wanted = ann.create_room(us, direct=True)
        await until(lambda: us in ann.members(wanted))
        ann.say(wanted, "hello")
        await until(lambda: desk.stored)
        assert us not in ann.members(unwanted)
    assert desk.stored[0].source.chat_type is ChatType.DM


async def test_what_was_missed_is_read_however_much_it_is(
    world: World, synapse: Homeserver, tmp_path: Path
) -> None:
    channel, desk = Channel(world.options(synapse.url, tmp_path)), RecordingDesk()
    async with receiving(channel, desk):
        pass
    many = 70  # of which it is given fifty at once
    for number in range(many):
        await asyncio.to_thread(world.ann.say, world.rooms[0], f"message {number}")
    async with receiving(channel, desk):
        await until(lambda: len(desk.stored) >= many)
    assert [each.text for each in desk.stored] == [f"message {number}" for number in range(many)]


async def test_file_comes_and_goes_whole(world: World, synapse: Homeserver, tmp_path: Path) -> None:
    data, (room, _) = b"\x89PNG" + bytes(range(256)) * 500, world.rooms
    (tmp_path / "out").write_bytes(data)
    async with at_work(world, synapse.url, tmp_path) as (channel, desk):
        world.ann.say(room, "hello")
        await until(lambda: desk.stored)
        (answer,) = await desk.answers("turn-1")
        stored = StoredFile(
            digest="x", name="picture.png", kind="image/png", size=len(data), path=str(tmp_path / "out")
        )
        assert isinstance(await channel.send(replace(answer, files=(stored,))), Sent)
        said = said_by(world.us.user_id, world.ann.events(room))
        assert [each["content"]["body"] for each in said] == ["You said: hello", "picture.png"]
        sent = said[1]["content"]
        world.ann.send(room, "m.room.message", {**sent, "body": "Look at this", "filename": "mine.png"})
        await until(lambda: len(desk.stored) == 2)
        (file,) = desk.stored[1].files
        assert (desk.stored[1].text, file.name, file.kind, file.size) == (
            "Look at this",
            "mine.png",
            "image/png",
            len(data),
        )
        assert b"".join([piece async for piece in channel.fetch(file, 10**6)]) == data
        with pytest.raises(errors.FileUnavailable, match="larger"):
            [piece async for piece in channel.fetch(file, 1_000)]


async def test_card_gets_the_signs_that_can_be_tapped(
    world: World, synapse: Homeserver, tmp_path: Path
) -> None:
    (room, _) = world.rooms
    async with at_work(world, synapse.url, tmp_path) as (channel, desk):
        world.ann.say(room, "hello")
        await until(lambda: desk.stored)
        (answer,) = await desk.answers("turn-1")
        buttons = tuple(Button(label=each, token=each * 4, sign=sign) for each, sign in SIGNS.items())
        outcome, again = [await channel.send(replace(answer, buttons=buttons)) for _ in range(2)]
        assert isinstance(await channel.sign(answer.to, ChatSign.TYPING), Sent)
        assert isinstance(await channel.sign(answer.to, ChatSign.SEEN), Sent)
    assert isinstance(outcome, Sent)
    assert outcome == again
    events = world.ann.events(room)
    signs = [each["content"]["m.relates_to"] for each in events if each["type"] == "m.reaction"]
    assert [(each["event_id"], each["key"]) for each in signs] == [
        (outcome.message_id, "✅"),
        (outcome.message_id, "❌"),
        (answer.to.message_id, "👀"),
    ]


async def test_revoked_token_is_told(world: World, synapse: Homeserver, tmp_path: Path) -> None:
    channel, desk = Channel(world.options(synapse.url, tmp_path)), RecordingDesk()
    async with receiving(channel, desk):
        world.us.call("POST", "/logout", {})
        await until(lambda: "log in anew" in (channel.trouble() or ""))


async def test_place_that_the_homeserver_does_not_know_is_left_for_the_one_of_now(
    world: World, synapse: Homeserver, tmp_path: Path
) -> None:
    channel, desk = Channel(world.options(synapse.url, tmp_path)), RecordingDesk()
    desk.read_until[""] = "of another homeserver"
    world.ann.say(world.rooms[0], "before")
    async with receiving(channel, desk):
        await until(lambda: desk.read_until[""].startswith("s"))
        world.ann.say(world.rooms[0], "after")
        await until(lambda: desk.stored)
    assert [each.text for each in desk.stored] == ["after"]


async def test_agent_goes_where_a_room_goes_on_and_a_way_that_is_closed_stops_nothing(
    world: World, synapse: Homeserver, tmp_path: Path
) -> None:
    ann, us = world.ann, world.us.user_id
    async with at_work(world, synapse.url, tmp_path) as (_, desk):
        deserted = ann.create_room(us)
        ann.call("POST", f"/rooms/{deserted}/leave", {})
        room = str(ann.call("POST", "/createRoom", {"preset": "public_chat", "invite": [us]})["room_id"])
        await until(lambda: us in ann.members(room))
        told = ann.call("POST", f"/rooms/{room}/upgrade", {"new_version": "11"})
        await until(lambda: us in ann.members(told["replacement_room"]))
        ann.say(told["replacement_room"], "hello again")
        await until(lambda: desk.stored)
    assert [each.source.chat_id for each in desk.stored] == [told["replacement_room"]]


async def test_chat_is_direct_as_long_as_nobody_else_is_there_and_what_was_left_is_given_up(
    world: World, synapse: Homeserver, tmp_path: Path
) -> None:
    ann, us, bob = world.ann, world.us.user_id, world.bob
    async with at_work(world, synapse.url, tmp_path) as (channel, desk):

        async def kind_of(text: str) -> ChatType:
            ann.say(room, text)
            await until(lambda: desk.stored and desk.stored[-1].text == text)
            return desk.stored[-1].source.chat_type

        room = ann.create_room(us, direct=True)
        await until(lambda: us in ann.members(room))
        assert await kind_of("we two") is ChatType.DM
        ann.call("POST", f"/rooms/{room}/invite", {"user_id": bob.user_id})
        bob.join(room)
        assert await kind_of("we three") is ChatType.GROUP
        bob.call("POST", f"/rooms/{room}/leave", {})
        assert await kind_of("alone again") is ChatType.DM
        world.us.call("PUT", f"/user/{us}/account_data/m.direct", {})
        ann.say(room, "not marked any more")
        await until(lambda: desk.stored[-1].text == "not marked any more")
        ann.call("POST", f"/rooms/{room}/ban", {"user_id": us})
        (answer,) = await desk.answers("turn-1")
        outcome = await channel.send(answer)
    assert isinstance(outcome, NotSent)
    assert outcome.hopeless
