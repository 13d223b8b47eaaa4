"""The connections of one port: how many there may be, in all and for one sender, and who gives way."""

import ipaddress
import itertools
import math
import resource
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, Protocol

import msgspec

from frontdesk.logs import get_logger
from frontdesk.web.keeping import KEPT_BYTES, SHORT_BODY_BYTES, KeptBodies
from frontdesk.web.senders import parsed_address, sender_of

CONNECTIONS = 1000
HEADER_SECONDS = 10.0
ENOUGH_FILES = 8192
PORTION_OF_ADDRESS = 4
PORTION_OF_CREDENTIAL = 2
YOUNG_SECONDS = 0.25
"""A connection may be so old before it gives way to another of the same sender: many come at once, and are
heard one after the other."""
BODY_BYTES = 16 * 1024 * 1024
SWEEPS_OF_ALL = 10
"""In so many sweeps each of those is looked at once whose answers have no end: they may be thousands."""
TELLING_SECONDS = 60.0
AWAITED_SECONDS = 0.05
"""For so long an answer is expected in a moment; what takes longer does so for a reason."""
SILENT, LINGERING = "silent", "lingering"
USUAL_REASONS = (SILENT, LINGERING)
"""Browsers connect in advance and say nothing, and who is refused may stay a moment: nothing to tell of."""
CONNECTION = "frontdesk.connection"
"""Where a request's scope has the connection that it came on."""

Networks = tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]

log = get_logger(__name__)


class PortLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What the owner chose."""

    connections: int = CONNECTIONS
    portion_of_files: int = 4
    """One by this of the files that the process may have open is the most, too. Two ports and the owner's
    socket leave some to the store and the agents."""
    header_seconds: float = HEADER_SECONDS
    """From the connection, or the first byte of a later request, to the end of its header; and for the rest
    of a request that is answered already."""
    body_bytes: int = BODY_BYTES
    """Of all the bodies that are not answered yet, of those who have shown no valid credential. What is more
    is not read until there is room."""
    kept_bytes: int = KEPT_BYTES
    """Of all the bodies that are not answered yet, of those who have."""
    proxies: tuple[str, ...] = ()
    """Addresses and networks that speak for many: the bound on one address is not theirs."""

    def places(self, files: int) -> int:
        """How many connections there may be in a process that may have so many files open."""
        return max(min(self.connections, files // self.portion_of_files), 1)

    @property
    def files(self) -> int:
        """How many files a process needs for all its connections."""
        return self.connections * self.portion_of_files


USUAL = PortLimits()
OWNERS = PortLimits(connections=256, portion_of_files=8)
"""Those of the owner's socket: what comes on the ports takes nothing from it."""


class CountedConnection(Protocol):
    """A connection, as far as it is counted."""

    @property
    def address(self) -> str | None:
        """Of the other side; None on a Unix socket."""

    @property
    def waits(self) -> bool:
        """Whether the next step is the other side's."""

    def overdue(self, now: float) -> str | None:
        """Why it lets us wait for too long, if it does."""

    def cut(self) -> None: ...

    def stop_reading(self) -> None: ...

    def go_on_reading(self) -> None: ...


Crowd = dict[CountedConnection, float]
"""Connections with the time of their coming, oldest first."""


class PortConnections:
    """Who comes is not refused for being one too many: somebody who is there gives way, the oldest whose turn
    it is to say something, or else the oldest.

    So whoever shows a credential at once is heard, however many say nothing. Until a connection has shown a
    valid one it counts for its address, then for that credential. Where the port is full, those go first that
    have shown none, and then those of whoever has the most.
    """

    def __init__(self, name: str, limits: PortLimits, elapsed: Callable[[], float]) -> None:
        """``name`` is what the log calls the port; ``elapsed`` is a clock that nobody sets."""
        self.header_seconds = limits.header_seconds
        self._body_bytes = limits.body_bytes
        self._kept = KeptBodies(limits.kept_bytes)
        self.most = limits.places(most_files())
        self.asked_at = -math.inf
        """When the latest request came that is not answered yet."""
        self.refused: Counter[str] = Counter()
        """How many connections were cut off, by the reason."""
        self.name = name
        self._elapsed = elapsed
        self._proxies: Networks = tuple(ipaddress.ip_network(each, strict=False) for each in limits.proxies)
        self._groups: dict[CountedConnection, str] = {}
        """The group of each connection."""
        self._swept: set[CountedConnection] = set()
        """Who is looked at in every sweep."""
        self._staying: tuple[set[CountedConnection], ...] = tuple(set() for _ in range(SWEEPS_OF_ALL))
        self._sweeps = 0
        self._unproven: Crowd = {}
        self._held: Counter[CountedConnection] = Counter()
        """How much of a body each of them makes us keep."""
        self._held_bytes = 0
        self._stopped: dict[CountedConnection, None] = {}
        """Whose bodies wait for room, the first to come first."""
        self._crowds: defaultdict[str, Crowd] = defaultdict(dict)
        self._mosts: dict[str, int] = {}
        self._crowded: set[str] = set()
        """Groups that were too many when somebody joined them, and may still be."""
        self._untold: Counter[str] = Counter()
        self._tells_at = 0.0

    def __len__(self) -> int:
        return len(self._groups)

    def is_asked(self) -> bool:
        """Whether a request came a moment ago that is not answered yet."""
        return self._elapsed() < self.asked_at + AWAITED_SECONDS

    def enter(self, connection: CountedConnection) -> None:
        """A connection was made."""
        self._swept.add(connection)
        self._unproven[connection] = self._elapsed()
        self._join(connection, *self._stranger(connection.address))
        if len(self._groups) > self.most:
            alone = len(self._unproven) == 1
            crowd = max(self._crowds.values(), key=len) if alone else self._unproven
            if not self._push_out(crowd, "too_many"):
                self._cut(connection, "too_many")

    def prove(self, connection: CountedConnection, who: str) -> None:
        """It has shown a valid credential."""
        if connection in self._unproven and connection.address is not None:
            self._part(connection)
            self._join(connection, f"credential {who}", self.most // PORTION_OF_CREDENTIAL)

    def hold(self, connection: CountedConnection, size: int) -> None:
        """It has sent so much more of a body. Where that is too much of all together, it waits for room.
        Whoever has shown a credential takes it before the body is read."""
        if connection not in self._unproven:
            return
        self._held[connection] += size
        self._held_bytes += size
        if self._held_bytes > self._body_bytes and self._held[connection] > SHORT_BODY_BYTES:
            self._stopped[connection] = None
            connection.stop_reading()

    async def take_room(self, connection: CountedConnection, size: int) -> None:
        """Before the rest of so long a body is read. TimeoutError where there is no room for it."""
        if connection in self._groups and connection not in self._unproven:
            await self._kept.take(connection, self._groups[connection], size)
            if connection not in self._groups:  # it has left meanwhile
                self._kept.let_go(connection)

    def shorten(self, connection: CountedConnection, size: int) -> None:
        """The body that it has room for is no longer than that."""
        if connection in self._kept.kept:
            self._kept.let_go(connection, size)

    def release(self, connection: CountedConnection) -> None:
        """It is answered."""
        if connection in self._kept.kept:
            self._kept.let_go(connection)
        self._held_bytes -= self._held.pop(connection, 0)
        if connection in self._stopped:
            self._go_on(connection)
        room = (self._body_bytes - self._held_bytes) // SHORT_BODY_BYTES
        for each in list(itertools.islice(self._stopped, max(room, 0))):
            self._go_on(each)

    def _go_on(self, connection: CountedConnection) -> None:
        del self._stopped[connection]
        connection.go_on_reading()

    def stay(self, connection: CountedConnection) -> None:
        """What it is answered has no end."""
        self.release(connection)
        self._swept.discard(connection)
        self._staying[len(self._groups) % SWEEPS_OF_ALL].add(connection)

    def leave(self, connection: CountedConnection) -> None:
        self._part(connection)
        self._swept.discard(connection)
        for each in self._staying:
            each.discard(connection)

    def _part(self, connection: CountedConnection) -> None:
        """It is of no group any more."""
        self._unproven.pop(connection, None)
        self.release(connection)
        if connection in self._groups:
            self._drop(connection)

    def sweep(self) -> None:
        """Cut off whoever lets us wait for too long."""
        now = self._elapsed()
        self._sweeps += 1
        looked_at = (*self._swept, *self._staying[self._sweeps % SWEEPS_OF_ALL])
        late = [(each, why) for each in looked_at if (why := each.overdue(now))]
        for each, why in late:
            self._cut(each, why)
        if self._stopped:
            self._make_room()
        for group in list(self._crowded):
            self._trim(group)
        if self._untold and now >= self._tells_at:
            self._tell(now)

    def _make_room(self) -> None:
        """Cut off whoever holds most, until half the room is free: others wait. Not at once, or a crowd that
        comes back would keep us reading what is thrown away."""
        for each, _ in self._held.most_common():
            if self._held_bytes <= self._body_bytes // 2:
                return
            self._cut(each, "too_much_of_bodies")

    def note(self, why: str, address: str | None) -> None:
        """Count a connection that was refused. The log has the first, and then how many more there were."""
        self.refused[why] += 1
        if why in USUAL_REASONS:
            return
        self._untold[why] += 1
        now = self._elapsed()
        if now >= self._tells_at:
            self._tell(now, address)

    def _tell(self, now: float, address: str | None = None) -> None:
        log.warning("connections_refused", port=self.name, address=address, **self._untold)
        self._untold.clear()
        self._tells_at = now + TELLING_SECONDS

    def _stranger(self, address: str | None) -> tuple[str, int]:
        """The group of somebody who has shown nothing yet, and how many it may have."""
        if address is None:
            return "socket", self.most
        if self._proxies:
            parsed = parsed_address(address)
            if any(parsed in network for network in self._proxies):
                return "proxy", self.most
        return f"address {sender_of(address)}", self.most // PORTION_OF_ADDRESS

    def _join(self, connection: CountedConnection, group: str, most: int) -> None:
        self._groups[connection] = group
        self._crowds[group][connection] = self._elapsed()
        self._mosts[group] = max(most, 1)
        self._trim(group)

    def _trim(self, group: str) -> None:
        """Cut off whoever is one too many of a group, unless they have only just come."""
        crowd, grown = self._crowds[group], self._elapsed() - YOUNG_SECONDS
        while len(crowd) > self._mosts[group]:
            if not self._push_out(crowd, "too_many_of_one", grown):
                self._crowded.add(group)
                return
        self._crowded.discard(group)

    def _drop(self, connection: CountedConnection) -> None:
        group = self._groups.pop(connection)
        self._crowds[group].pop(connection)
        if not self._crowds[group]:
            del self._crowds[group], self._mosts[group]
            self._crowded.discard(group)

    def _push_out(self, crowd: Crowd, why: str, grown: float = math.inf) -> bool:
        """Cut off one of a crowd who came no later than that, and not last; whether there is one."""
        others = itertools.islice(crowd.items(), len(crowd) - 1)
        older = (each for each, came in others if came <= grown)
        first = next(older, None)
        if first is None:
            return False
        self._cut(first if first.waits else next((each for each in older if each.waits), first), why)
        return True

    def _cut(self, connection: CountedConnection, why: str) -> None:
        self.leave(connection)
        self.note(why, connection.address)
        connection.cut()


class PortStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How it stands with a port, or with the owner's socket."""

    name: str
    connections: int
    most: int
    refused: dict[str, int]


class Listeners(msgspec.Struct, frozen=True, kw_only=True):
    """All that one process listens on."""

    limits: PortLimits = USUAL
    opened: list[PortConnections] = []

    @contextmanager
    def open(self, name: str, elapsed: Callable[[], float]) -> Iterator[PortConnections]:
        """The connections of one more, for as long as the block lasts."""
        connections = PortConnections(name, self.limits, elapsed)
        self.opened.append(connections)
        try:
            yield connections
        finally:
            self.opened.remove(connections)

    def somebody_waits(self) -> bool:
        """Whether somebody has just asked for something, and is not answered yet."""
        return any(each.is_asked() for each in self.opened)

    def status(self) -> list[PortStatus]:
        return [
            PortStatus(name=each.name, connections=len(each), most=each.most, refused=dict(each.refused))
            for each in self.opened
        ]


def most_files() -> int:
    """How many files this process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return ENOUGH_FILES if soft == resource.RLIM_INFINITY else soft


def files_to_have(limits: PortLimits) -> int:
    """How many it can have: as many as it needs, as far as the system lets it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(ENOUGH_FILES, limits.files)
    return max(most_files(), wanted if hard == resource.RLIM_INFINITY else min(wanted, hard))


def raise_files(limits: PortLimits) -> None:
    """Let this process have them. Many systems give fewer, unless asked."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = files_to_have(limits)
    if soft != resource.RLIM_INFINITY and soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    if (most := limits.places(files)) < limits.connections:
        log.warning("few_files", files=files, connections=most, wanted=limits.connections)


def prove(scope: MutableMapping[str, Any], who: str) -> None:
    """Whoever sent this request has shown a valid credential: their connection counts for it from now on."""
    if connection := scope.get(CONNECTION):
        connection.port.prove(connection, who)


async def take_room(scope: MutableMapping[str, Any], size: int) -> None:
    """Wait until there is room for the body of this request, which may be so long. TimeoutError when there is
    none in time."""
    if connection := scope.get(CONNECTION):
        await connection.port.take_room(connection, size)


def shorten(scope: MutableMapping[str, Any], size: int = 0) -> None:
    """The body of this request is no longer than that; of one that is done with, nothing is kept."""
    if connection := scope.get(CONNECTION):
        connection.port.shorten(connection, size)
