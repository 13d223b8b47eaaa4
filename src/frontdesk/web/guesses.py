"""Guessing tokens: slow for each address that wrong ones come from."""

import hashlib
import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from typing import TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request

from frontdesk.logs import get_logger
from frontdesk.web.senders import sender_of

MAX_TOKEN_BYTES = 1_000
MOST_WRONG, WINDOW_SECONDS = 10, 60.0
"""So many wrong tokens of one address are looked at in so many seconds."""
GUESSED = "Too many wrong tokens came from this address: none is looked at for a while."
MOST_ADDRESSES = 10_000
MOST_RIGHT = 1_000
"""So many are remembered; the oldest are forgotten first."""

DRAWN_CHARACTERS = 32
DRAWN_RUN = 3.5
"""With so many letters and digits, and fewer of one kind in a row, it was drawn by chance, as ours are."""

_RUNS = re.compile(rb"[a-z]+|[A-Z]+|[0-9]+")

K = TypeVar("K")
V = TypeVar("V")

log = get_logger(__name__)


class Guesses:
    """Counts the wrong tokens of each address. Over the limit no other token of it is looked at for a while,
    so that nobody learns whether one is right. One that was right before, from there, is, and so is one that
    seems drawn by chance, which nobody guesses: a program that guesses keeps nobody out who is at work at the
    same address, or comes there with a token that we made."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._wrong: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._right: OrderedDict[tuple[str, bytes], None] = OrderedDict()

    def check(self, token: bytes, request: Request) -> None:
        """429 after too many wrong ones from the address that it comes from; the owner's socket has none."""
        if request.client and (seconds := self.wait_seconds(request.client.host, token)):
            raise HTTPException(HTTPStatus.TOO_MANY_REQUESTS, GUESSED, {"retry-after": str(seconds)})

    def count(self, token: bytes, request: Request, *, right: bool) -> None:
        """Count one that was looked at."""
        if request.client and self.note(request.client.host, token, right=right):
            log.warning("tokens_guessed", address=request.client.host)

    def wait_seconds(self, host: str, token: bytes) -> int:
        """For how long a token from there is not looked at; 0 when it is."""
        address = sender_of(host)
        if _is_drawn(token) or (address, _digest(token)) in self._right:
            return 0
        began, wrong = self._wrong.get(address, (0.0, 0))
        left = began + WINDOW_SECONDS - self._clock()
        return math.ceil(left) if wrong >= MOST_WRONG and left > 0 else 0

    def note(self, host: str, token: bytes, *, right: bool) -> bool:
        """Count a token that was looked at; whether it was the last one that is, for a while."""
        address, digest = sender_of(host), _digest(token)
        if right:
            _keep(self._right, (address, digest), None, MOST_RIGHT)
            return False
        self._right.pop((address, digest), None)
        began, wrong = self._wrong.pop(address, (0.0, 0))
        now = self._clock()
        if not wrong or now - began >= WINDOW_SECONDS:
            began, wrong = now, 0
        _keep(self._wrong, address, (began, wrong + 1), MOST_ADDRESSES)
        return wrong + 1 == MOST_WRONG


def token_in(given: list[str]) -> bytes:
    """The bearer token of the one header that there is; empty when there is none that can be used."""
    kind, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    raw = token.strip().encode("latin-1")
    return raw if kind.lower() == "bearer" and len(raw) <= MAX_TOKEN_BYTES else b""


def _is_drawn(token: bytes) -> bool:
    runs = _RUNS.findall(token)
    signs = sum(map(len, runs))
    return signs >= DRAWN_CHARACTERS and signs / len(runs) < DRAWN_RUN


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _keep(known: "OrderedDict[K, V]", key: K, value: V, most: int) -> None:
    known[key] = value
    known.move_to_end(key)
    while len(known) > most:
        known.popitem(last=False)
