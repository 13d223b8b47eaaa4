"""What a homeserver answers, taken apart: total on any JSON."""

from collections.abc import Mapping
from typing import Any, TypeGuard

import msgspec

from frontdesk.channels.matrix.inbound import Event, Us

MOST_ID_CHARACTERS = 255
MOST_COUNTED = 2**31
MEGOLM = "m.megolm.v1.aes-sha2"
MEMBER, JOINED = "m.room.member", "join"


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """What happened in a room, oldest first, and the place before it where something was left out."""

    events: list[Event]
    gap: str | None = None


def rooms_in(synced: Mapping[str, Any], kind: str) -> list[tuple[str, Event]]:
    """The rooms of a sync that we have joined, or are invited to."""
    listed = table(table(synced.get("rooms")).get(kind))
    return [(each, held) for each, held in listed.items() if is_id(each) and isinstance(held, Mapping)]


def timeline_of(joined: Event) -> Timeline:
    held = table(joined.get("timeline"))
    gap = held.get("prev_batch")
    is_cut = held.get("limited") is True and is_id(gap)
    return Timeline(events=tables(held.get("events")), gap=gap if is_cut else None)


def page_of(told: Mapping[str, Any]) -> tuple[list[Event], str]:
    """A page of a room's history, and where the next one begins; empty at the end."""
    found, end = tables(told.get("chunk")), told.get("end")
    return found, end if found and is_id(end) else ""


def events_in(of: Mapping[str, Any], name: str) -> list[Event]:
    return tables(table(of.get(name)).get("events"))


def invitation(us: Us, invited: Event) -> tuple[str | None, bool]:
    """Who invites us, and whether to a direct chat."""
    for event in events_in(invited, "invite_state"):
        if event.get("type") == MEMBER and event.get("state_key") == us.user_id:
            sender = event.get("sender")
            direct = table(event.get("content")).get("is_direct") is True
            return (sender if is_id(sender) else None), direct
    return None, False


def replacement(event: Event) -> str | None:
    """The room that people go on in, where an event says that this one is over."""
    if event.get("type") != "m.room.tombstone" or event.get("state_key") != "":
        return None
    named = table(event.get("content")).get("replacement_room")
    return named if is_id(named) and named.startswith("!") else None


def comes_or_goes(event: Event) -> bool:
    """Whether somebody is in the room from now on, or no more; not only under a new name."""
    if event.get("type") != MEMBER:
        return False
    before = table(table(event.get("unsigned")).get("prev_content")).get("membership")
    now = table(event.get("content")).get("membership")
    return before != now and JOINED in (before, now)


def is_megolm(encryption: Event | None) -> bool:
    """Whether a room is encrypted as we can. Where nobody says how, the way that there is, is meant."""
    return encryption is not None and encryption.get("algorithm", MEGOLM) == MEGOLM


def rotation(encryption: Event) -> dict[str, int]:
    """After how long, and how many messages, a room wants new keys."""
    asked = {name: encryption.get(name) for name in ("rotation_period_ms", "rotation_period_msgs")}
    return {
        name: each
        for name, each in asked.items()
        if isinstance(each, int) and not isinstance(each, bool) and 0 < each < MOST_COUNTED
    }


def direct_rooms(content: object) -> frozenset[str]:
    """The rooms that our account's own data calls direct chats."""
    return frozenset(room for rooms in table(content).values() for room in texts(rooms))


def keys_left(synced: Mapping[str, Any]) -> int | None:
    """How many of our one-time keys the homeserver has; None where it does not say."""
    if not isinstance(counts := synced.get("device_one_time_keys_count"), Mapping):
        return None
    left = counts.get("signed_curve25519", 0)
    return left if isinstance(left, int) and 0 <= left < MOST_COUNTED else None


def changed_devices(synced: Mapping[str, Any]) -> list[str]:
    """People whose devices are others than before."""
    return [each for each in texts(table(synced.get("device_lists")).get("changed")) if is_id(each)]


def device_keys(told: Mapping[str, Any], us: Us) -> Event:
    """What the homeserver keeps of our device's keys; empty where there are none."""
    return table(table(table(told.get("device_keys")).get(us.user_id)).get(us.device_id))


def key_of(keys: Event, algorithm: str) -> str | None:
    """One of the keys of a device, or of an account."""
    for name, key in table(keys.get("keys")).items():
        if isinstance(name, str) and name.startswith(f"{algorithm}:") and isinstance(key, str):
            return key
    return None


def is_signed(told: Mapping[str, Any], us: Us) -> bool:
    """Whether our account's own key has signed our device."""
    signer = key_of(table(table(told.get("self_signing_keys")).get(us.user_id)), "ed25519")
    signed = table(table(device_keys(told, us).get("signatures")).get(us.user_id))
    return signer is not None and f"ed25519:{signer}" in signed


def table(value: object) -> Event:
    return value if isinstance(value, Mapping) else {}


def tables(value: object) -> list[Event]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def texts(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def is_id(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= MOST_ID_CHARACTERS and value.isprintable()
