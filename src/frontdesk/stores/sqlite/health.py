"""The store's health: what its threads met last, for whoever asks whether messages can be stored."""

import math
import time

import apsw

from frontdesk import errors
from frontdesk.stores.sqlite.faults import HURTS_EVERYBODY, translate

FRESH_SECONDS = 1.0


class WriteHealth:
    """What writes experience. Damage stays until it is opened again, a full disk until there is room."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._written_at = -math.inf
        self._trouble: errors.StoreError | None = None
        self._damage: errors.CorruptDatabase | None = None

    @property
    def damage(self) -> errors.CorruptDatabase | None:
        return self._damage

    @property
    def is_full(self) -> bool:
        return isinstance(self._trouble, errors.StoreFull)

    @property
    def is_known_good(self) -> bool:
        """Something was written just now, and nothing failed since."""
        return self._trouble is None and time.monotonic() - self._written_at < FRESH_SECONDS

    def note(self, error: apsw.Error, *, writing: bool) -> errors.StoreError:
        """Keep what an operation met, and give it in our words."""
        if isinstance(error, apsw.NotADBError):  # it was one when it was opened
            error = apsw.CorruptError(str(error))
        met = translate(error, self._name)
        if isinstance(met, errors.CorruptDatabase):
            self._damage = self._damage or met
        if writing and isinstance(error, HURTS_EVERYBODY):
            self._trouble = met
        return met

    def wrote(self) -> None:
        """A commit is on disk. A small one says nothing about a disk that was too full for a large one."""
        self._written_at = time.monotonic()
        if not self.is_full:
            self._trouble = None

    def found_room(self) -> None:
        self._trouble = None
