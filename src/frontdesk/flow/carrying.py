"""Carrying: what a turn says while it runs is told to other nodes, where somebody there follows it."""

import asyncio
import secrets
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from frontdesk.flow import rounds
from frontdesk.flow.speech import Live
from frontdesk.model import events
from frontdesk.stores.nodes import Nodes

WANT_SECONDS = 1.0
"""How often a node says what it wants to hear."""
FIRST_WANT_SECONDS = 0.25
"""A turn that ends before that is not asked for."""
WANTED_SECONDS = 5.0
"""How long it is told without having said so again."""
GATHER_SECONDS = 0.1
"""What is said within that time is carried together."""
PIECE_CHARACTERS = 1_200
"""Words between nodes have at most 8,000 bytes, and a character takes up to six."""
MOST_TURNS = 200
"""That are asked for in one breath."""
MOST_CHARACTERS = 200_000
"""Who comes so late that more would have to be told at once gets the answer at the end."""
REST_SECONDS = 2.0
"""How long the last words of a turn that has ended are waited for."""
LOST = -1
"""A piece was: nothing more of the turn is told to who follows it here."""

CARRIED: Mapping[str, type[events.Event]] = {
    kind.__name__: kind for kind in (events.Text, events.Used, events.Restarted, events.Missed)
}
"""What else happens is in the store at once."""


class CarryWish(msgspec.Struct, frozen=True, tag="want"):
    """A node wants to be told of turns; of some from the beginning."""

    by: str
    anew: tuple[str, ...]
    still: tuple[str, ...]


class CarriedPiece(msgspec.Struct, frozen=True, tag="said"):
    """A piece of what happens in a turn; without a kind, that it is over where it ran."""

    to: str
    turn: str
    number: int
    kind: str | None = None
    event: dict[str, Any] = {}


WORDS = msgspec.json.Decoder(CarryWish | CarriedPiece)


class Carrying:
    """Nobody relies on it: what is lost on the way is in the store at the end."""

    def __init__(self, nodes: Nodes, live: Live) -> None:
        self._nodes = nodes
        self._live = live
        self._name = secrets.token_hex(4)
        self._wanted: Counter[str] = Counter()
        """How many follow a turn here."""
        self._expected: dict[str, int] = {}
        """The number of the next piece of each turn that we are told of."""
        self._over: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        """Whether that was all."""
        self._until: dict[tuple[str, str], float] = {}
        """How long a node is told of a turn that runs here, unless it says so again."""
        self._telling: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._asking: asyncio.Task[None] | None = None
        nodes.hear = self._hear

    async def close(self) -> None:
        tasks = [*self._telling.values(), *filter(None, [self._asking])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @contextmanager
    def wanted(self, turn_id: str) -> Iterator[None]:
        """Somebody follows a turn here, wherever it runs."""
        if self._nodes.is_alone:
            yield
            return
        self._wanted[turn_id] += 1
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        try:
            yield
        finally:
            self._wanted[turn_id] -= 1
            if not self._wanted[turn_id]:
                del self._wanted[turn_id]
                self._over.pop(turn_id, None)
                if self._expected.pop(turn_id, None) is not None:
                    self._live.tell(turn_id, None)

    async def rest(self, turn_id: str) -> None:
        """Until the last words of a turn that has ended are here, or Missed instead of them."""
        if self._expected.get(turn_id, LOST) == LOST:
            return
        try:
            async with asyncio.timeout(REST_SECONDS):
                await self._over[turn_id].wait()
        except TimeoutError:
            self._live.tell(turn_id, events.Missed())

    async def _ask(self) -> None:
        """Say what is wanted here and runs elsewhere, for as long as there may be something."""
        await asyncio.sleep(FIRST_WANT_SECONDS)
        while self._wanted:
            elsewhere = [turn_id for turn_id in self._wanted if not self._is_here(turn_id)]
            for first in range(0, len(elsewhere), MOST_TURNS):
                some = elsewhere[first : first + MOST_TURNS]
                still = tuple(filter(self._is_told, some))
                anew = tuple(turn_id for turn_id in some if not self._is_told(turn_id))
                with rounds.going_on():
                    await self._say(CarryWish(self._name, anew, still))
            await asyncio.sleep(WANT_SECONDS)

    def _is_told(self, turn_id: str) -> bool:
        """Whether somebody tells us of a turn. One that was over, and is followed still, begins again."""
        return turn_id in self._expected and not self._over[turn_id].is_set()

    def _is_here(self, turn_id: str) -> bool:
        """Whether a turn runs on this node."""
        return self._live.has(turn_id) and turn_id not in self._expected

    def _hear(self, words: str) -> None:
        with suppress(msgspec.MsgspecError):  # another version of us may say it otherwise
            self._heed(WORDS.decode(words))

    def _heed(self, words: CarryWish | CarriedPiece) -> None:
        match words:
            case CarryWish(by=by) as want if by != self._name:
                for turn_id in filter(self._is_here, want.anew):
                    self._tell_anew(turn_id, by)
                for told in {(turn_id, by) for turn_id in want.still} & self._until.keys():
                    self._until[told] = asyncio.get_running_loop().time() + WANTED_SECONDS
            case CarriedPiece(to=to, turn=turn_id) as said if to == self._name and turn_id in self._wanted:
                self._take(said)

    def _tell_anew(self, turn_id: str, node: str) -> None:
        told = (turn_id, node)
        if told in self._telling:
            self._telling[told].cancel()
        self._until[told] = asyncio.get_running_loop().time() + WANTED_SECONDS
        task = self._telling[told] = asyncio.create_task(self._tell(turn_id, node))
        task.add_done_callback(lambda ended: self._forget(told, ended))

    def _forget(self, told: tuple[str, str], ended: "asyncio.Task[None]") -> None:
        if self._telling.get(told) is ended:
            del self._telling[told], self._until[told]

    async def _tell(self, turn_id: str, node: str) -> None:
        """Tell a node of a turn that runs here, from its beginning."""
        number, over = 0, False
        with rounds.going_on(), self._live.listening(turn_id, lambda: None) as heard:
            while not over and asyncio.get_running_loop().time() < self._until[turn_id, node]:
                over = heard.is_over()
                for event in _pieces(list(heard.drain())):
                    facts = msgspec.to_builtins(event)
                    await self._say(CarriedPiece(node, turn_id, number, type(event).__name__, facts))
                    number += 1
                if not over:
                    await asyncio.sleep(GATHER_SECONDS)
            if over:
                await self._say(CarriedPiece(node, turn_id, number))

    def _take(self, said: CarriedPiece) -> None:
        if self._is_here(said.turn):
            return
        if said.number == 0:
            # Another node has the turn now: what the one before said counts no more.
            self._live.begin(said.turn, attempt=2 if said.turn in self._expected else 1)
        elif said.number != self._expected.get(said.turn):
            if self._expected.get(said.turn, LOST) != LOST:
                self._expected[said.turn] = LOST
                self._live.tell(said.turn, events.Missed())
            return
        self._expected[said.turn] = said.number + 1
        if said.kind is None:
            self._over[said.turn].set()
        else:
            self._over[said.turn].clear()
            self._live.tell(said.turn, msgspec.convert(said.event, CARRIED[said.kind]))

    async def _say(self, words: CarryWish | CarriedPiece) -> None:
        await self._nodes.say(msgspec.json.encode(words).decode())


def _pieces(heard: Sequence[events.Event]) -> Iterator[events.Event]:
    """What is carried of what happened, each short enough."""
    if sum(len(each.text) for each in heard if isinstance(each, events.Text)) > MOST_CHARACTERS:
        yield events.Missed()
        return
    for event in heard:
        match event:
            case events.Text(text=text):
                for first in range(0, len(text), PIECE_CHARACTERS):
                    yield events.Text(text=text[first : first + PIECE_CHARACTERS])
            case events.Used() | events.Restarted() | events.Missed():
                yield event
