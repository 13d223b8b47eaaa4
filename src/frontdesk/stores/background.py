"""Background work, one row for each that somebody has told of."""

from datetime import datetime

from msgspec.structs import asdict

from frontdesk.contracts.store import Work
from frontdesk.model.background import BackgroundTask
from frontdesk.model.feed import FeedKind
from frontdesk.stores.columns import to_micros
from frontdesk.stores.feed import announce
from frontdesk.stores.rows import BACKGROUND, BACKGROUND_TASK
from frontdesk.stores.work import Noun, reads, writes, writes_lazily

BEGUN, ENDED = "begun", "ended"


class BackgroundWork(Noun):
    """What goes on for conversations when no turn runs, for as long as somebody says so."""

    @writes
    def begin(self, work: BackgroundTask) -> Work[None]:
        """It runs, or still runs."""
        values = BACKGROUND_TASK.values(asdict(work))
        ((begun_at, *_),) = yield "begin_background", values
        if begun_at == values["begun_at"]:
            yield from announce(FeedKind.BACKGROUND, work.begun_at, session_key=work.session_key, state=BEGUN)

    @writes
    def end(self, session_key: str, name: str, now: datetime) -> Work[bool]:
        """Whether it ran as far as anybody knew."""
        if not (yield "end_background", {"session_key": session_key, "name": name}):
            return False
        yield from announce(FeedKind.BACKGROUND, now, session_key=session_key, state=ENDED)
        return True

    @reads
    def runs(self, session_key: str, now: datetime) -> Work[bool]:
        return bool((yield "background_of", {"session_key": session_key, "now": to_micros(now)}))

    @reads
    def list(self, now: datetime, limit: int) -> Work[list[BackgroundTask]]:
        """All that runs, the latest first."""
        return BACKGROUND.many("background", now=to_micros(now), limit=limit)

    @writes_lazily
    def prune(self, now: datetime) -> Work[None]:
        """Forget what was not said again in time."""
        yield "prune_background", {"now": to_micros(now)}
