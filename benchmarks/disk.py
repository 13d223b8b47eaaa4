"""What SQLite asks of the disk, counted below it."""

from types import TracebackType
from typing import Self

import apsw

NAME = "counting"
SMALLEST_PAGE_BYTES = 512


class CountingVFS(apsw.VFS):
    """Counts how often the log and the database are forced to disk, and the pages written to the log. A store
    takes part with ``?vfs=counting``."""

    def __init__(self) -> None:
        self.log_syncs = self.database_syncs = self.pages = 0
        super().__init__(NAME, "")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self.unregister()

    def xOpen(self, name: object, flags: list[int]) -> "CountingFile":
        return CountingFile(self, name, flags)


class CountingFile(apsw.VFSFile):
    def __init__(self, counter: CountingVFS, name: object, flags: list[int]) -> None:
        self._counter = counter
        self._is_log = bool(flags[0] & apsw.SQLITE_OPEN_WAL)
        super().__init__("", name, flags)  # type: ignore[arg-type]

    def xSync(self, flags: int) -> None:
        if self._is_log:
            self._counter.log_syncs += 1
        else:
            self._counter.database_syncs += 1
        super().xSync(flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._counter.pages += self._is_log and len(data) >= SMALLEST_PAGE_BYTES
        super().xWrite(data, offset)
