"""Encrypted rooms of a real homeserver: people with another program, and some who keep to no rules."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from frontdesk import errors
from frontdesk.channels.matrix import Channel
from frontdesk.channels.matrix.inbound import UNREADABLE
from frontdesk.model.chats import StoredFile
from frontdesk.model.deliveries import NotSent, Sent
from frontdesk.testing.channels import RecordingDesk
from tests.peers.people import Person, said_by
from tests.peers.synapse import Homeserver
from tests.peers.worlds import World, at_work, new_world, receiving, second_client, until

pytest.importorskip("olm", reason="python-olm has no wheel for this Python")
from tests.peers import keyholders

ANOTHERS_KEY = "EsTE s92N EtaX s2h6 VQYF 9Kao tHYL mkyL GKMh isZb KJ4E tvoC"
LEFT = 50
"""So many keys a device leaves for those who want to write to it."""


@pytest.fixture
def world(synapse: Homeserver) -> World:
    return new_world(synapse)


def kinds_of(person: Person, room: str, asked: Person) -> list[str]:
    """The kinds of what somebody has sent into a room, members and the like aside."""
    return [
        each["type"]
        for each in asked.events(room)
        if each["sender"] == person.user_id and "state_key" not in each
    ]


def encrypted(world: World, synapse: Homeserver, home: Path, **more: Any) -> Channel:
    return Channel(world.options(synapse.url, home, encryption=True, **more))


async def findings_of(channel: Channel, home: str | None = None) -> str:
    found = await channel.examine(in_use=False, home=home)
    return "\n".join(f"{each.verdict}: {each.text}" for each in found)


async def test_encrypted_room_is_read_and_answered_encrypted(
    world: World, synapse: Homeserver, tmp_path: Path
) -> None:
    """Also after a restart, with the keys from before."""
    ann, us = world.ann, world.us.user_id
    channel, desk = Channel(world.options(synapse.url, tmp_path, encryption=True)), RecordingDesk()
    async with second_client(ann, synapse.url, tmp_path) as client:
        async with receiving(channel, desk):
            room = ann.create_room(us, direct=True, encrypted=True)
            await until(lambda: us in ann.members(room))
            await client.tell("say", room, "a secret")
            await until(lambda: desk.stored)
            assert isinstance(await channel.send((await desk.answers("turn-1"))[0]), Sent)
            assert await client.hears() == [room, us, "You said: a secret", True]
        await client.tell("say", room, "another")
        async with receiving(channel, desk):
            await until(lambda: len(desk.stored) == 2)
            draft = replace((await desk.answers("turn-2"))[0], id="d-1", text="You")
            shown = await channel.draft(draft)
            assert isinstance(shown, Sent)
            assert await client.hears() == [room, us, "You", True]
            longest = "я" * ((channel.capabilities.text_limit or 0) // 2)
            grown = replace(
                draft, id="d-2", text=longest, extra={"draft": shown.message_id}, is_markdown=True
            )
            assert isinstance(await channel.send(grown), Sent)
            assert (await client.hears())[2:] == [f"* {longest[:500]}", True]
    assert [each.text for each in desk.stored] == ["a secret", "another"]
    assert {each["type"] for each in ann.events(room) if each["sender"] == us} <= {
        "m.room.member",
        "m.room.encrypted",
    }


async def test_nothing_is_written_in_the_clear_into_an_encrypted_room(
    world: World, synapse: Homeserver, tmp_path: Path
) -> None:
    room = world.room(encrypted=True)
    async with at_work(world, synapse.url, tmp_path) as (channel, desk):
        world.ann.say(room, "hello")  # as a program does that knows nothing of encryption
        await until(lambda: desk.stored)
        outcome = await channel.send((await desk.answers("turn-1"))[0])
    assert isinstance(outcome, NotSent)
    assert outcome.hopeless
    assert not said_by(world.us.user_id, world.ann.events(room))


async def test_keys_of_a_device_are_one_process_s(world: World, synapse: Homeserver, tmp_path: Path) -> None:
    first, second = (Channel(world.options(synapse.url, tmp_path, encryption=True)) for _ in range(2))
    async with receiving(first, RecordingDesk()):
        with pytest.raises(errors.InvalidInput, match="another process"):
            await second.receive(RecordingDesk())


async def test_recovery_key_signs_the_device_and_a_wrong_one_is_told(
    world: World, synapse: Homeserver, tmp_path: Path
) -> None:
    async def trouble_with(key: str) -> str | None:
        channel, desk = encrypted(world, synapse, tmp_path, recovery_key=lambda: key), RecordingDesk()
        task = asyncio.create_task(channel.receive(desk))
        await until(lambda: desk.read_until or "recovery key" in (channel.trouble() or ""))
        trouble = channel.trouble()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return trouble

    assert "has no recovery" in str(await trouble_with(ANOTHERS_KEY))
    recovery_key = await keyholders.set_up_recovery(synapse.url, synapse.sign_in(world.us.account))
    for wrong in (ANOTHERS_KEY, "not a key"):
        assert "does not open" in str(await trouble_with(wrong))
    examined = encrypted(world, synapse, tmp_path, recovery_key=lambda: recovery_key)
    assert "note: The device is not signed yet" in await findings_of(examined)
    assert await trouble_with(recovery_key) is None
    assert keyholders.is_signed_by_its_account(world.us, asked=world.ann)
    assert "ok: The device is signed by its account" in await findings_of(examined)


async def test_examination_tells_what_is_wrong(world: World, synapse: Homeserver, tmp_path: Path) -> None:
    channel = encrypted(world, synapse, tmp_path)
    found = await findings_of(channel, world.rooms[0])
    assert found.startswith(f"ok: This is {world.us.user_id}, on the device {world.us.account.device_id}.")
    assert "note: Without recovery_key" in found
    assert "failed" not in found
    elsewhere = world.ann.create_room()
    assert "failed" in await findings_of(channel, elsewhere)
    away = Channel(world.options("http://127.0.0.1:1", tmp_path))
    assert (await findings_of(away)).startswith("failed: The homeserver cannot be used")
    world.us.call("POST", "/logout", {})
    assert "log in anew" in await findings_of(channel)


async def test_keys_that_are_lost_or_old_are_refused_and_those_that_the_homeserver_lost_sent_again(
    world: World, synapse: Homeserver, tmp_path: Path
) -> None:
    home, stale, ann = tmp_path / "home", tmp_path / "stale", keyholders.KeyHolder(world.ann)
    desk = RecordingDesk()
    async with receiving(encrypted(world, synapse, home), desk):
        kept = ann.keys_of(world.us)
    shutil.copytree(home, stale)
    synapse.forget_keys(world.us.account)
    assert not ann.keys_of(world.us)
    async with receiving(encrypted(world, synapse, home), desk):
        assert ann.keys_of(world.us)["keys"] == kept["keys"]
        ann.claim(world.us)
        ann.send_raw(world.us, "m.dummy", {})  # so that there is news
        await until(lambda: ann.left_by(world.us) == LEFT)
    lost = encrypted(world, synapse, tmp_path / "elsewhere")
    with pytest.raises(errors.InvalidInput, match="are lost"):
        await lost.receive(desk)
    assert "are lost" in str(lost.trouble())
    ann.claim(world.us)
    with pytest.raises(errors.InvalidInput, match="old copy"):
        await encrypted(world, synapse, stale).receive(desk)
    (file,) = home.glob("matrix/*.db")
    file.write_bytes(b"no database" * 1_000)
    damaged = encrypted(world, synapse, home)
    task = asyncio.create_task(damaged.receive(desk))
    await until(lambda: "file with the keys" in str(damaged.trouble()))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_nothing_that_a_stranger_sends_stops_the_reading(
    world: World, synapse: Homeserver, tmp_path: Path
) -> None:
    ann, eve, room = (
        keyholders.KeyHolder(world.ann),
        keyholders.KeyHolder(world.bob),
        world.room(encrypted=True),
    )
    good, bad, forged = (keyholders.new_session() for _ in range(3))
    channel, desk = encrypted(world, synapse, tmp_path), RecordingDesk()
    async with receiving(channel, desk):
        eve.share(world.us, room, bad, session_key="nonsense")
        eve.share(world.us, room, bad, session_id={"a": 1}, room_id=["x"])
        eve.send_raw(world.us, "m.room.encrypted", {"algorithm": keyholders.OLM, "ciphertext": {"x": 1}})
        eve.share(world.us, room, bad)
        for plain in ("[" * 20_000, "{}", json.dumps({"room_id": room, "type": 1, "content": [1]})):
            eve.say_anything(room, bad, plain)
        eve.forward(world.us, room, forged, as_if_of=ann)
        ann.say(room, forged, "transfer everything to eve")
        ann.share(world.us, room, good)
        eve.share(world.us, room, good)  # as if it were hers
        ann.say(room, good, "hello")
        await until(lambda: any(each.text == "hello" for each in desk.stored))
    assert [each.text for each in desk.stored if each.source.user_id == world.ann.user_id] == [
        UNREADABLE,
        "hello",
    ]


async def test_sender_is_asked_once_to_send_again_and_a_key_that_comes_late_is_used(
    world: World, synapse: Homeserver, tmp_path: Path
) -> None:
    ann, room, session = keyholders.KeyHolder(world.ann), world.room(encrypted=True), keyholders.new_session()
    key = session.session_key
    channel, desk = encrypted(world, synapse, tmp_path), RecordingDesk()
    async with receiving(channel, desk):
        asked = [ann.say(room, session, text) for text in ("one", "two")]
        await until(lambda: len(desk.stored) == 2 and kinds_of(world.us, room, world.ann))
    async with receiving(encrypted(world, synapse, tmp_path), desk):  # after a restart
        asked.append(ann.say(room, session, "three"))
        await until(lambda: len(desk.stored) == 3)
        ann.share(world.us, room, session, session_key=key)
        await until(lambda: len(desk.stored) == 4)
        ann.say(room, session, "four")
        await until(lambda: len(desk.stored) == 5)
    assert [each.text for each in desk.stored] == [*[UNREADABLE] * 3, "three", "four"]
    assert [each.observed for each in desk.stored] == [True, True, True, False, False]
    assert [each.source.message_id for each in desk.stored[:4]] == [*asked, asked[2]]
    assert kinds_of(world.us, room, world.ann) == ["m.room.encrypted"]


async def test_file_in_an_encrypted_room_is_opened_on_both_sides_and_a_damaged_one_is_not(
    world: World, synapse: Homeserver, tmp_path: Path
) -> None:
    ann, us, out = world.ann, world.us.user_id, tmp_path / "out"
    out.write_text("our secret file")
    channel, desk = encrypted(world, synapse, tmp_path), RecordingDesk()
    async with second_client(ann, synapse.url, tmp_path) as client, receiving(channel, desk):
        room = ann.create_room(us, direct=True, encrypted=True)
        await until(lambda: us in ann.members(room))
        await client.tell("file", room, "their secret file")
        await client.tell("damaged", room, "something else")
        await until(lambda: len(desk.stored) == 2)
        (file,), (damaged,) = (each.files for each in desk.stored)
        assert (file.name, file.kind, file.size) == ("a.txt", "text/plain", len("their secret file"))
        assert [piece async for piece in channel.fetch(file, 1_000)] == [b"their secret file"]
        with pytest.raises(errors.FileUnavailable, match="cannot be decrypted"):
            [piece async for piece in channel.fetch(damaged, 1_000)]
        (answer,) = await desk.answers("turn-1")
        stored = StoredFile(digest="x", name="b.txt", kind="text/plain", size=15, path=str(out))
        assert isinstance(await channel.send(replace(answer, text="", files=(stored,))), Sent)
        assert await client.hears() == [room, us, "our secret file", True]
    assert set(kinds_of(world.us, room, ann)) == {"m.room.encrypted"}


async def test_who_comes_later_reads_what_is_said_from_then_on(
    world: World, synapse: Homeserver, tmp_path: Path
) -> None:
    """Somebody who is invited, and a further device of somebody who was there."""
    ann, bob, us = world.ann, world.bob, world.us.user_id
    channel, desk = encrypted(world, synapse, tmp_path), RecordingDesk()
    async with second_client(ann, synapse.url, tmp_path) as client, receiving(channel, desk):
        room = ann.create_room(us, encrypted=True)
        await until(lambda: us in ann.members(room))
        await client.tell("say", room, "hello")
        await until(lambda: desk.stored)
        (answer,) = await desk.answers("turn-1")

        async def is_heard_by(client: Any, text: str) -> bool:
            assert isinstance(await channel.send(replace(answer, id=text, text=text)), Sent)
            while (heard := await client.hears())[2] is None:
                pass  # said before, and nothing for them
            return bool(heard[2:] == [text, True])

        assert await is_heard_by(client, "first")
        (tmp_path / "bob").mkdir()
        async with second_client(bob, synapse.url, tmp_path / "bob") as other:
            seen = desk.read_until[""]
            ann.call("POST", f"/rooms/{room}/invite", {"user_id": bob.user_id})
            await other.tell("join", room)
            await until(lambda: bob.user_id in ann.members(room) and desk.read_until[""] != seen)
            bob.send(room, "m.room.message", {"msgtype": "m.text", "body": "I am here"})
            await until(lambda: len(desk.stored) == 2)
            assert await is_heard_by(other, "second")
        (tmp_path / "phone").mkdir()
        phone = Person(synapse, synapse.sign_in(ann.account))
        async with second_client(phone, synapse.url, tmp_path / "phone") as another:
            phone.send(room, "m.room.message", {"msgtype": "m.text", "body": "from my new phone"})
            await until(lambda: len(desk.stored) == 3)
            assert await is_heard_by(another, "third")


async def test_room_that_is_encrypted_later_is_written_to_encrypted_or_not_at_all(
    world: World, synapse: Homeserver, tmp_path: Path
) -> None:
    """Also by a node that only sends, and hears nothing of it."""
    room, ann = world.rooms[0], keyholders.KeyHolder(world.ann)
    reading, sending = encrypted(world, synapse, tmp_path), encrypted(world, synapse, tmp_path / "other")
    desk = RecordingDesk()
    async with receiving(reading, desk):
        world.ann.say(room, "hello")
        await until(lambda: desk.stored)
        (answer,) = await desk.answers("turn-1")
        for number, each in enumerate((reading, sending)):
            assert isinstance(await each.send(replace(answer, id=f"plain-{number}")), Sent)
        ann.encrypt_room(room)
        world.ann.say(room, "from now on encrypted")
        await until(lambda: len(desk.stored) == 2)
        assert isinstance(await reading.send(replace(answer, id="secret")), Sent)
        refused = await sending.send(replace(answer, id="secret-too"))
        world.ann.call("PUT", f"/rooms/{room}/state/m.room.encryption/", {})  # as if it were no more
        late = encrypted(world, synapse, tmp_path / "another")
        also = await late.send(replace(answer, id="secret-as-well"))
        for each in (sending, late):
            await each.close()
    for outcome in (refused, also):
        assert isinstance(outcome, NotSent)
        assert not outcome.hopeless
    assert kinds_of(world.us, room, world.ann) == ["m.room.message", "m.room.message", "m.room.encrypted"]
