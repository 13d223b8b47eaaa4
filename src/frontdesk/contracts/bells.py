"""Bells: a hint that there is something to do. Nobody relies on hearing one."""

from enum import StrEnum
from typing import Protocol


class Topic(StrEnum):
    TURNS = "turns"
    CONTROL = "control"
    SIGNALS = "signals"
    DELIVERIES = "deliveries"
    FEED = "feed"
    CONFIRMATIONS = "confirmations"


class Bell(Protocol):
    async def wait(self, seconds: float) -> bool:
        """Wait until it rings, no longer than so many seconds; whether it did, now or since the last wait."""
        ...

    def ring(self) -> None: ...

    def silence(self) -> None:
        """Listen no more."""
        ...


class Bells(Protocol):
    def listen(self, *topics: Topic) -> Bell: ...

    def ring(self, topic: Topic, *, far: bool = True) -> None:
        """Ring here, and on the other nodes too unless they need not know."""
        ...
