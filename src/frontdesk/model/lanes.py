"""Lanes: what must happen one after the other. Different lanes know nothing of each other."""

from collections import Counter
from collections.abc import Iterable, Iterator
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


class Sharing(msgspec.Struct, frozen=True):
    """Who has the places of a crew when more waits than there are places for: who has fewest comes first.

    So of those who want more than an even part nobody gets much more than another, somebody who has nothing
    comes next, and what the others do not want anybody may have.
    """

    count: int = 0
    """With none, nothing is shared."""
    taken: dict[str, int] = {}
    """By each party that has some, or had of late."""

    @property
    def levels(self) -> Iterator[int]:
        """How many places each may have at first, and then: coarser as it goes up, so that they are few."""
        level = 1
        while level <= self.count:
            yield level
            level *= 2

    def full(self, level: int) -> list[str]:
        """The parties that have so many."""
        return [party for party, taken in self.taken.items() if taken >= level]

    def with_taken(self, parties: Iterable[str]) -> "Sharing":
        return Sharing(self.count, dict(Counter(self.taken) + Counter(parties)))


UNSHARED = Sharing()


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
