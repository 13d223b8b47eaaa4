"""Files: what became of each that came with a message or that an agent gave."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec.structs import asdict

from frontdesk.contracts.store import Row, Work
from frontdesk.model.files import FileWay, KeptFile
from frontdesk.model.policies import EndReason
from frontdesk.stores.columns import to_micros
from frontdesk.stores.rows import KEPT_FILE, KEPT_FILES
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
    def forget(self, session_id: str) -> Work[set[str]]:
        """Forget the files of a session; the digests that nobody has any more."""
        return (yield from _unwanted((yield "forget_files", {"session_id": session_id})))

    @writes
    def prune(self, before: datetime) -> Work[set[str]]:
        """Forget what came before that time, and what belongs to sessions that are forgotten; the digests
        that nobody has any more."""
        old = yield "prune_files", {"before": to_micros(before)}
        forgotten = yield "forget_forgotten_files", {"reason": str(EndReason.FORGOTTEN)}
        return (yield from _unwanted([*old, *forgotten]))

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
