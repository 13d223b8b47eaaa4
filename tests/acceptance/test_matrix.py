"""The program as a user starts it, on a real Matrix homeserver."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from frontdesk.testing.channels import Trouble
from tests import counts
from tests.acceptance import program
from tests.peers.people import Person, said_by, wait_for
from tests.peers.proxies import TOO_MANY, fateful_proxy
from tests.peers.synapse import Homeserver

FILE = """
[agent]
driver = "scripted"

[server]
port = 0

[gateway]
tell_times = false

[session_reset]
max_messages = 6

[channels.matrix]
homeserver = "{url}"
access_token_env = "MATRIX_TOKEN"
encryption = false
edit_pause_seconds = 0.3
allow = ["{ann}"]
approvers = ["{bob}"]
"""
READY = "agent is"


class Scene:
    """The program's account, somebody who talks, somebody who decides, and a stranger."""

    def __init__(self, server: Homeserver, home: Path, url: str | None = None) -> None:
        names = ("desk", "ann", "bob", "eve")
        self.us, self.ann, self.bob, self.eve = (Person(server, server.register(name)) for name in names)
        self.home = home
        folder = home / ".frontdesk"
        folder.mkdir()
        said = FILE.format(url=url or server.url, ann=self.ann.user_id, bob=self.bob.user_id)
        (folder / "frontdesk.toml").write_text(said)

    @contextmanager
    def running(self) -> Iterator[Popen[bytes]]:
        token = self.us.account.token
        with program.start(self.home, "run", "--log-level", "warning", MATRIX_TOKEN=token) as process:
            program.read_until(process, READY)
            yield process

    def room(self, *others: Person, direct: bool = False) -> str:
        """A room of Ann's that we have come to."""
        room = self.ann.create_room(self.us.user_id, *(each.user_id for each in others), direct=direct)
        for each in others:
            each.join(room)
        wait_for(lambda: self.us.user_id in self.ann.members(room))
        return room

    def said(self, room: str) -> list[dict[str, Any]]:
        return said_by(self.us.user_id, self.ann.events(room))

    def texts(self, room: str) -> list[str]:
        return [each["content"]["body"] for each in self.said(room)]

    def waits_for(self, room: str, text: str) -> None:
        wait_for(lambda: text in self.texts(room))

    def unanswered(self, room: str, asked: list[str]) -> set[str]:
        """Neither answered nor given up."""
        texts = self.texts(room)
        return {each for each in asked if f"echo: {each}" not in texts} - self.set_aside()

    def waits_for_answers(self, room: str, asked: list[str]) -> None:
        """As long as one after the other comes."""
        while left := self.unanswered(room, asked):
            wait_for(lambda left=left: self.unanswered(room, asked) < left)  # type: ignore[misc]

    def set_aside(self) -> set[str]:
        """The messages whose turns were cut off each time: their sender is told."""
        return set(program.set_aside(self.home))


@pytest.fixture
def scene(synapse: Homeserver, tmp_path: Path) -> Scene:
    return Scene(synapse, tmp_path)


def test_person_gets_an_answer_that_grows_a_notice_and_a_card_that_only_an_approver_decides(
    scene: Scene,
) -> None:
    with scene.running():
        # An answer that grows in one message.
        direct = scene.room(direct=True)
        scene.ann.say(direct, "!say This is the beginning of it.; !sleep 8; !say And the end.")
        wait_for(lambda: any("And the end" in text for text in scene.texts(direct)))
        events = scene.ann.events(direct)
        ours = [each["content"] for each in events if each["type"] == "m.room.message"][1:]
        assert [text for text in scene.texts(direct) if "beginning" in text] == [
            "This is the beginning of it.And the end."
        ]
        assert sum("m.new_content" in content for content in ours) >= 1
        # After so many messages the conversation goes on in a new session, and says so.
        for text in ("one", "two"):
            scene.ann.say(direct, text)
            scene.waits_for(direct, f"echo: {text}")
        wait_for(lambda: any("6 message limit" in text for text in scene.texts(direct)))
        # A card, and who decides.
        room = scene.room(scene.bob, scene.eve)
        mention = {"m.mentions": {"user_ids": [scene.us.user_id]}}
        scene.ann.say(room, '!approve tidy_up {"folder": "attic"} please', **mention)
        (card,) = wait_for(
            lambda: [each for each in scene.said(room) if "tidy_up" in each["content"]["body"]]
        )
        wait_for(lambda: len(signs_at(scene, room, card["event_id"])) == 2)
        yes, _ = signs_at(scene, room, card["event_id"])
        for stranger in (scene.eve, scene.ann):
            stranger.react(room, card["event_id"], yes)
        scene.ann.say(direct, "still there?")
        wait_for(lambda: "echo: still there?" in scene.texts(direct))
        assert not any("approved: tidy_up" in text for text in scene.texts(room))
        scene.bob.react(room, card["event_id"], yes)
        wait_for(lambda: any("approved: tidy_up" in text for text in scene.texts(room)))
        wait_for(lambda: "was approved by" in body_of(scene, room, card["event_id"]))


def signs_at(scene: Scene, room: str, event_id: str) -> list[str]:
    """The signs that we put to a message."""
    reactions = [
        each["content"]["m.relates_to"]
        for each in scene.ann.events(room)
        if each["type"] == "m.reaction" and each["sender"] == scene.us.user_id
    ]
    return [each["key"] for each in reactions if each["event_id"] == event_id]


def body_of(scene: Scene, room: str, event_id: str) -> str:
    return str(next(each for each in scene.said(room) if each["event_id"] == event_id)["content"]["body"])


@pytest.mark.prove
def test_nothing_is_lost_or_answered_twice_however_often_it_is_killed(
    synapse: Homeserver, tmp_path: Path, tell: counts.Tell
) -> None:
    """In a network where one of five requests that write is refused for a while, and one cut off after
    the homeserver took it."""
    chance = random.Random(13)
    fates: list[Trouble | int | None] = [TOO_MANY, Trouble.CUTS, None, None, None]
    with fateful_proxy(synapse.url, lambda: chance.choice(fates)) as proxy:
        _kill_often(Scene(synapse, tmp_path, proxy.url), chance, tell)


def _kill_often(scene: Scene, chance: random.Random, tell: counts.Tell) -> None:
    kills = counts.count(4, 40)
    with scene.running():
        rooms = [scene.room(direct=True) for _ in range(3)]
    asked: dict[str, list[str]] = {room: [] for room in rooms}
    for number in range(kills):
        with scene.running() as process:
            for step in range(6):
                room = chance.choice(rooms)
                scene.ann.say(room, text := f"message {number}-{step}")
                asked[room].append(text)
            time.sleep(chance.uniform(0, 1.5))
            process.kill()
            process.wait()
    with scene.running():
        for room in rooms:
            scene.waits_for_answers(room, asked[room])
    broken = scene.set_aside()
    for room in rooms:
        said = [text for text in scene.texts(room) if text.startswith("echo: ")]
        assert said == [f"echo: {text}" for text in asked[room] if text not in broken]
    tell("messages on Matrix between kills: each is answered once, in order", sum(map(len, asked.values())))
    tell("of which every attempt broke off, and their sender is told", len(broken))
