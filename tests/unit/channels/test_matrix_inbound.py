"""What a homeserver may send, and that nothing in it breaks the reading."""

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest

from frontdesk.channels.matrix import answers, client, inbound
from frontdesk.contracts.channels import Happening, Incoming
from frontdesk.model.sources import ChatType
from tests import counts, fuzzing

US = inbound.Us(user_id="@desk:frontdesk.test", device_id="DESK")
ANN = "@ann:frontdesk.test"
ROOM = inbound.MatrixRoom(id="!room:frontdesk.test", name="Team")
FILE = {
    "url": "mxc://frontdesk.test/abc",
    "key": {"k": "x", "alg": "A256CTR"},
    "iv": "x",
    "hashes": {"sha256": "x"},
}
VOICE = {
    "msgtype": "m.audio",
    "body": "voice.ogg",
    "filename": "a.ogg",
    "info": {"mimetype": "audio/ogg", "size": 10},
    "file": FILE,
    "org.matrix.msc3245.voice": {},
}
TEXT = {
    "msgtype": "m.text",
    "body": "> <@x:y> before\n\nHello",
    "format": "org.matrix.custom.html",
    "formatted_body": "<a href='https://matrix.to/#/@desk:frontdesk.test'>desk</a>",
    "m.mentions": {"user_ids": [US.user_id]},
    "m.relates_to": {
        "rel_type": "m.thread",
        "event_id": "$root",
        "is_falling_back": False,
        "m.in_reply_to": {"event_id": "$before"},
    },
}
EDIT = TEXT | {"m.new_content": TEXT, "m.relates_to": {"rel_type": "m.replace", "event_id": "$first"}}
SIGN = {"m.relates_to": {"rel_type": "m.annotation", "event_id": "$first", "key": "👍"}}
LOCKED = {
    "algorithm": "m.megolm.v1.aes-sha2",
    "ciphertext": "AwgA",
    "session_id": "s",
    "sender_key": "k",
    "device_id": "ANN",
    "m.relates_to": TEXT["m.relates_to"],
}


def event(kind: str, content: dict[str, Any], **more: Any) -> dict[str, Any]:
    about = {"sender": ANN, "event_id": "$event", "room_id": ROOM.id, "origin_server_ts": 1767614400000}
    return {"type": kind, "content": content, **about, "unsigned": {"age": 1}, **more}


EVENTS = [
    event("m.room.message", TEXT),
    event("m.room.message", TEXT | {"msgtype": "m.emote"}),
    event("m.room.message", VOICE),
    event("m.room.message", EDIT),
    event("m.reaction", SIGN),
    event("m.room.redaction", {"redacts": "$first", "reason": "x"}, redacts="$first"),
    event("m.room.encrypted", LOCKED),
]
MEMBER = event(
    "m.room.member",
    {"membership": "join", "displayname": "Ann", "is_direct": True},
    state_key=US.user_id,
    unsigned={"prev_content": {"membership": "invite"}},
)
TOMBSTONE = event("m.room.tombstone", {"body": "x", "replacement_room": "!new:frontdesk.test"}, state_key="")
KEYS = {
    "keys": {"curve25519:DESK": "c", "ed25519:DESK": "e"},
    "signatures": {US.user_id: {"ed25519:master": "s", "ed25519:DESK": "s"}},
}
SYNC = {
    "next_batch": "s1",
    "device_one_time_keys_count": {"signed_curve25519": 49},
    "device_lists": {"changed": [ANN], "left": []},
    "to_device": {"events": [event("m.room.encrypted", LOCKED)]},
    "account_data": {"events": [{"type": "m.direct", "content": {ANN: [ROOM.id]}}]},
    "rooms": {
        "invite": {"!other:frontdesk.test": {"invite_state": {"events": [MEMBER]}}},
        "join": {
            ROOM.id: {
                "timeline": {"events": [*EVENTS, MEMBER, TOMBSTONE], "limited": True, "prev_batch": "p"},
                "state": {"events": [MEMBER]},
            }
        },
    },
}
HISTORY = {"chunk": EVENTS, "end": "t"}
KEPT = {"device_keys": {US.user_id: {"DESK": KEYS}}, "self_signing_keys": {US.user_id: KEYS}}
DAMAGE = fuzzing.Damage(values=[ANN, TEXT, MEMBER, "$event", "mxc://x/y", "m.room.encrypted"])


@pytest.mark.prove
def test_any_event_is_read_or_passed_over(tell: counts.Tell) -> None:
    rooms = [ROOM, inbound.MatrixRoom(id=ROOM.id, is_direct=True, encryption={})]

    def make(chance: random.Random) -> Any:
        return DAMAGE(chance.choice(EVENTS), chance), chance.choice(rooms)

    def read(given: Any) -> Iterator[Happening | None]:
        raw, room = given
        if isinstance(raw, dict):
            yield inbound.read_event(raw, room, US, inbound.text_of(raw))

    fuzzing.read_or_refused(make, read, tell, of="Matrix")


def everything_in(given: Any) -> Iterator[Happening | None]:
    """All that is ever looked up in an answer."""
    if not isinstance(given, dict):
        return
    found, end = answers.page_of(given)
    assert isinstance(end, str)
    for _, invited in answers.rooms_in(given, "invite"):
        answers.invitation(US, invited)
    for room_id, joined in answers.rooms_in(given, "join"):
        assert client.place("rooms", room_id).startswith("/_matrix/client/v3/rooms/")
        found += [*answers.timeline_of(joined).events, *answers.events_in(joined, "state")]
    for each in found:
        answers.replacement(each)
        answers.comes_or_goes(each)
        answers.is_megolm(each)
        answers.rotation(each)
        yield inbound.read_event(each, ROOM, US)
    for each in answers.events_in(given, "account_data"):
        answers.direct_rooms(each.get("content"))
    left, waiting = answers.keys_left(given), client.waiting_seconds(given, str(given.get("end")))
    assert left is None or left >= 0
    assert waiting is None or waiting >= 0
    answers.changed_devices(given)
    answers.events_in(given, "to_device")
    answers.is_signed(given, US)


@pytest.mark.prove
def test_any_answer_of_a_homeserver_is_taken_apart(tell: counts.Tell) -> None:
    whole = [SYNC, SYNC, HISTORY, KEPT, {"retry_after_ms": 1.5, "end": "5"}]

    def make(chance: random.Random) -> Any:
        return DAMAGE(chance.choice(whole), chance)

    fuzzing.read_or_refused(make, everything_in, tell, of="Matrix, whole answers", reduced=5_000)


@pytest.mark.prove
def test_whatever_was_encrypted_is_read_or_passed_over(tell: counts.Tell) -> None:
    """What is inside no homeserver has looked at."""
    pytest.importorskip("olm", reason="python-olm has no wheel for this Python")
    from mautrix.types import Event  # noqa: PLC0415

    from frontdesk.channels.matrix import encryption  # noqa: PLC0415

    def read(given: Any) -> Iterator[Happening | None]:
        try:
            opened: Any = Event.deserialize(copy.deepcopy(given)).serialize()
        except encryption.UNREADABLE:
            return
        if isinstance(opened, dict):
            yield inbound.read_event(opened, ROOM, US)

    def make(chance: random.Random) -> Any:
        return DAMAGE(chance.choice(EVENTS), chance)

    fuzzing.read_or_refused(make, read, tell, of="Matrix, decrypted", reduced=2_000)


@pytest.mark.parametrize("named", ["../../!other:x/event/$x", "..", "a/b?c=d#e", "%2e%2e/x"])
def test_what_others_have_named_stays_one_part_of_a_path(named: str) -> None:
    path = client.place("rooms", ROOM.id, "event", named)
    assert path.count("/") == client.place("rooms", ROOM.id, "event", "$x").count("/")
    assert ".." not in path.split("/")
    assert "?" not in path
    assert "#" not in path


@pytest.mark.parametrize(
    ("before", "now", "changes"),
    [
        ("invite", "join", True),
        (None, "join", True),
        ("join", "leave", True),
        ("join", "ban", True),
        ("join", "join", False),
        ("leave", "ban", False),
        (None, "invite", False),
    ],
)
def test_who_reads_along_changes_with_who_is_in_the_room(before: str | None, now: str, changes: bool) -> None:
    unsigned = {"prev_content": {"membership": before}} if before else {}
    member = event("m.room.member", {"membership": now}, state_key=ANN, unsigned=unsigned)
    assert answers.comes_or_goes(member) is changes


def test_thread_in_a_group_is_a_conversation_of_its_own() -> None:
    happening = inbound.read_event(EVENTS[0], ROOM, US, "Ann")
    assert isinstance(happening, Incoming)
    assert (happening.source.thread_id, happening.source.chat_type) == ("$root", ChatType.THREAD)
    assert (happening.text, happening.addressed) == ("Hello", True)
