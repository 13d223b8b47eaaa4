"""The turnstile: where messages become turns, all of them one by one."""

from collections.abc import Awaitable
from typing import Protocol

from frontdesk.contracts.store import Admit
from frontdesk.model.chats import Cursor
from frontdesk.model.turns import Accepted, Gathering, Turn


class Accept(Protocol):
    def __call__(
        self, turn: Turn, admit: Admit, cursor: Cursor | None = None, gather: Gathering | None = None, /
    ) -> Awaitable[Accepted]: ...


class Turnstile:
    """By the store alone they are taken in. A worker that is there puts itself in its place, and begins what
    it has a place for."""

    def __init__(self, accept: Accept) -> None:
        self.accept = accept
