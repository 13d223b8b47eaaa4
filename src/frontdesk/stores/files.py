"""Files: what became of each that came with a message or that an agent gave."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec.structs import asdict

from frontdesk.contracts.store import Row, Work
from frontdesk.model.files import FileWay, KeptFile
from frontdesk.model.policies import EndReason
from frontdesk.model.sources import SessionSource
from frontdesk.model.turns import Turn
from frontdesk.stores.arrivals import event_of
from frontdesk.stores.columns import to_micros
from frontdesk.stores.rows import KEPT_FILE, KEPT_FILES, TURNS
from frontdesk.stores.work import Noun, reads, value, writes


class Files(Noun):
    @writes
    def keep(self, files: Sequence[KeptFile]) -> Work[None]:
        for each in files:
            yield "keep_file", KEPT_FILE.values(asdict(each))

    @reads
    def of_turn(self, turn_id: str, session_id: str, way: FileWay) -> Work[list[KeptFile]]:
        return KEPT_FILES.many("files_of_turn", turn_id=turn_id, session_id=session_id, way=str(way))

    @writes
    def bring(self, file: KeptFile, most: int) -> Work[set[str]]:
        """Keep what somebody brought before the message that it is for. Of more than so many the oldest gives
        way; the digests that nobody has any more."""
        yield "keep_file", KEPT_FILE.values(asdict(file))
        held = yield from KEPT_FILES.many("files_brought", brought_by=file.brought_by)
        dropped: list[Row] = []
        for each in held[: max(len(held) - most, 0)]:
            dropped += yield "drop_brought", {"file_id": each.turn_id, "brought_by": file.brought_by}
        return (yield from _unwanted(dropped))

    @reads
    def brought(self, brought_by: str) -> Work[list[KeptFile]]:
        """What somebody brought and has sent with no message yet, oldest first."""
        return KEPT_FILES.many("files_brought", brought_by=brought_by)

    @writes
    def drop(self, file_id: str, brought_by: str) -> Work[set[str] | None]:
        """Forget what somebody brought; the digests that nobody has any more, None where there is no such
        file of theirs."""
        dropped = yield "drop_brought", {"file_id": file_id, "brought_by": brought_by}
        return (yield from _unwanted(dropped)) if dropped else None

    @writes
    def assign(self, turn_id: str, session_id: str) -> Work[list[KeptFile]]:
        """The files that were brought for a message are those of the session that it is said in."""
        values = {"turn_id": turn_id, "session_id": session_id, "way": str(FileWay.IN)}
        if not (yield "assign_files", values):
            yield "copy_turn_files", values
        return (yield from KEPT_FILES.many("files_of_turn", **values))

    @reads
    def sent_with(self, source: SessionSource, event_id: str) -> Work[Turn | None]:
        """The message that an event became: the files that were brought for it are its own by now."""
        return TURNS.one("turn_of_event", **event_of(source, event_id))

    @reads
    def of_session(self, session_id: str, digest: str) -> Work[KeptFile | None]:
        return KEPT_FILES.one("file_of_session", session_id=session_id, digest=digest)

    @writes
    def forget(self, session_id: str) -> Work[set[str]]:
        """Forget the files of a session; the digests that nobody has any more."""
        return (yield from _unwanted((yield "forget_files", {"session_id": session_id})))

    @writes
    def prune(self, before: datetime, unsent_before: datetime) -> Work[set[str]]:
        """Forget what came before that time, what was brought before the other one and sent with no message,
        and what belongs to sessions that are forgotten; the digests that nobody has any more."""
        old = yield "prune_files", {"before": to_micros(before)}
        unsent = yield "prune_brought", {"before": to_micros(unsent_before)}
        forgotten = yield "forget_forgotten_files", {"reason": str(EndReason.FORGOTTEN)}
        return (yield from _unwanted([*old, *unsent, *forgotten]))

    @reads
    def unwanted(self, digests: Sequence[str]) -> Work[set[str]]:
        """Those of the digests that nobody has."""
        return _without_owner(digests)

    @reads
    def count(self) -> Work[int]:
        """How many there are, by their bytes."""
        return value("count_files")


def _unwanted(rows: Iterable[Row]) -> Work[set[str]]:
    return _without_owner({row[0] for row in rows if row[0]})


def _without_owner(digests: Iterable[str]) -> Work[set[str]]:
    unwanted = set()
    for digest in digests:
        if not (yield "has_digest", {"digest": digest}):
            unwanted.add(digest)
    return unwanted
