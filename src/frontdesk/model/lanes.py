"""Lanes: what must happen one after the other. Different lanes know nothing of each other."""

from enum import StrEnum

import msgspec

from frontdesk.model import keys
from frontdesk.model.sources import SessionSource

LEASE_SECONDS = 30.0
"""How long a lease lasts that nobody renews."""


class LaneKind(StrEnum):
    TURN = "turn"
    """The turns of a conversation."""
    CONTROL = "control"
    """The commands of a conversation that do not wait for its turns."""
    CHAT = "chat"
    """What is said to a chat."""
    BOX = "box"
    """What a chat collects itself; nobody works on these."""
    STREAM = "stream"
    """What a platform keeps for an account of ours. Nothing waits in these: whoever holds one reads."""


KINDS = {str(kind): kind for kind in LaneKind}


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The right to work on a lane, until somebody else gets it under a higher token."""

    lane: str
    node: int
    token: int


class Taker(msgspec.Struct, frozen=True, kw_only=True):
    """Who takes a lane at once, and for how long."""

    node: int
    lease_seconds: float = LEASE_SECONDS


def turn_lane(session_key: str) -> str:
    return f"{LaneKind.TURN}:{session_key}"


def control_lane(session_key: str) -> str:
    return f"{LaneKind.CONTROL}:{session_key}"


def chat_lane(source: SessionSource, *, collects: bool = False) -> str:
    """The lane of a chat, as the platform knows it."""
    kind = LaneKind.BOX if collects else LaneKind.CHAT
    ids = (source.account, source.chat_id or source.user_id, source.thread_id)
    return ":".join([kind, source.platform, *[keys.encode_part(each) if each else "" for each in ids]])


def stream_lane(platform: str, account: str | None) -> str:
    return f"{LaneKind.STREAM}:{platform}:{keys.encode_part(account) if account else ''}"


def kind_of(lane: str) -> LaneKind:
    return KINDS[lane.partition(":")[0]]
