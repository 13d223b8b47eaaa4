"""What is held: a lease as its holder knows it.

A node that stood still does not notice. So before it does what cannot be taken back, it looks how much time
has passed since it was given the lease: as long as that cannot have run out, nobody else has it; after that,
the store is asked.
"""

from typing import NamedTuple

from frontdesk import errors
from frontdesk.flow.parts import Parts
from frontdesk.model.lanes import Lease

CERTAIN_SHARE = 2 / 3
"""Of a lease. The rest is for what is begun in that certainty."""


class AskedAt(NamedTuple):
    """When the store was asked for a lease, taken before it was: the lease lasts at least from then on."""

    at: float
    standing: int | None


def ask(parts: Parts) -> AskedAt:
    return AskedAt(parts.elapsed(), parts.store.nodes.standing)


class Held:
    """Something that was claimed, while it is worked on here."""

    def __init__(self, parts: Parts, lease: Lease, asked: AskedAt) -> None:
        self._parts = parts
        self._asked = asked
        self.lease = lease
        self.is_lost = False
        self._certain_seconds = parts.running.lease_seconds * CERTAIN_SHARE

    def lose(self) -> None:
        """Somebody else has it."""
        self.is_lost = True

    def go_on(self, asked: AskedAt) -> None:
        """The store has renewed it."""
        self._asked = asked

    async def confirm(self) -> None:
        """Return while the lease is ours; LeaseLost when somebody else may have it.

        Nothing is waited for while that is certain: whoever begins something right after this begins it in
        the same breath. What remains is a process that is stopped in exactly between, for longer than the
        third of a lease that is left then.
        """
        while not self._is_certain:
            asked = ask(self._parts)
            if self.is_lost or self.lease not in await renew(self._parts, [self.lease]):
                self.is_lost = True  # whoever asks ends by this error: nobody has to be told
                raise errors.LeaseLost(lane=self.lease.lane)
            self.go_on(asked)
            if not self.is_lost and self._parts.elapsed() - asked.at < self._certain_seconds:
                return  # while the others may take us for gone, this is all that can be known

    @property
    def _is_certain(self) -> bool:
        if self.is_lost or self._parts.elapsed() - self._asked.at >= self._certain_seconds:
            return False
        standing = self._parts.store.nodes.standing
        return standing is not None and standing == self._asked.standing


async def renew(parts: Parts, leases: list[Lease]) -> set[Lease]:
    """Those of the leases that are still ours, and last from now on."""
    return await parts.store.turns.renew(leases, lease_seconds=parts.running.lease_seconds)
