"""Sessions that somebody has ended before their time."""

import hashlib
from datetime import datetime
from pathlib import Path

MARK = "ended"


class Endings:
    """Each is a file beside the key that signs sessions: a restart forgets none, and every node that takes
    the session, because it has that key in the same folder, knows that it has ended."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, session: str, expires: int, now: datetime) -> None:
        """Remember it for as long as it would have lasted. OSError when it cannot be."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._forget_lapsed(now)
        self._file(session, expires).touch(mode=0o600)

    def has(self, session: str, expires: int) -> bool:
        return self._file(session, expires).exists()

    def _file(self, session: str, expires: int) -> Path:
        digest = hashlib.sha256(session.encode()).hexdigest()
        return self._folder / f"{expires}.{digest}.{MARK}"

    def _forget_lapsed(self, now: datetime) -> None:
        for file in self._folder.glob(f"*.{MARK}"):
            expires = file.name.partition(".")[0]
            if expires.isdecimal() and int(expires) <= now.timestamp():
                file.unlink(missing_ok=True)
