"""Background work, one row for each that somebody has told of."""

from datetime import datetime

from frontdesk.contracts.store import Row, Work
from frontdesk.model.background import BackgroundTask
from frontdesk.stores.rows import clean, from_micros, to_micros
from frontdesk.stores.work import Noun, reads, writes, writes_lazily


class BackgroundWork(Noun):
    """What goes on for conversations when no turn runs, for as long as somebody says so."""

    @writes
    def begin(self, work: BackgroundTask) -> Work[None]:
        """It runs, or still runs."""
        times = {"begun_at": to_micros(work.begun_at), "until": to_micros(work.until)}
        yield "begin_background", {"session_key": work.session_key, "name": clean(work.name), **times}

    @writes
    def end(self, session_key: str, name: str) -> Work[bool]:
        """Whether it ran as far as anybody knew."""
        return bool((yield "end_background", {"session_key": session_key, "name": name}))

    @reads
    def runs(self, session_key: str, now: datetime) -> Work[bool]:
        return bool((yield "background_of", {"session_key": session_key, "now": to_micros(now)}))

    @reads
    def list(self, now: datetime, limit: int) -> Work[list[BackgroundTask]]:
        """All that runs, the latest first."""
        return [_read(found) for found in (yield "background", {"now": to_micros(now), "limit": limit})]

    @writes_lazily
    def prune(self, now: datetime) -> Work[None]:
        """Forget what was not said again in time."""
        yield "prune_background", {"now": to_micros(now)}


def _read(found: Row) -> BackgroundTask:
    session_key, name, begun_at, until = found
    times = {"begun_at": from_micros(begun_at), "until": from_micros(until)}
    return BackgroundTask(session_key=session_key, name=name, **times)
