"""Looking through the whole file for damage."""

import contextlib
import time

import apsw

from frontdesk.stores.sqlite.faults import translated
from frontdesk.stores.sqlite.files import Place

STEPS = 10_000
"""Of SQLite's machine, between two looks at the time."""


def look_through(place: Place, seconds: float) -> bool:
    """Whether all of it could be looked through in the time. CorruptDatabase names what was found."""
    deadline = time.monotonic() + seconds
    with translated(place.name), contextlib.closing(_opened(place)) as db:
        db.set_progress_handler(lambda: time.monotonic() > deadline, STEPS)
        try:
            found = db.execute("PRAGMA quick_check(1)").get
        except apsw.InterruptError:
            return False
        if found != "ok":
            raise apsw.CorruptError(" ".join(str(found).split()))
    return True


def _opened(place: Place) -> apsw.Connection:
    return apsw.Connection(place.name, flags=apsw.SQLITE_OPEN_READONLY, vfs=place.vfs)
