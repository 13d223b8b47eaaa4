"""Records that were looked up by their key, for as long as the file says the same.

This process alone writes the file, over one connection. What is changed over it is changed here with the
commit, or forgotten; and nothing is learned but over that one: nobody learns what it is just changing.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from frontdesk.contracts.store import Change
from frontdesk.logs import get_logger
from frontdesk.model.sessions import Session

log = get_logger(__name__)

BY_ID = ("session_id",)
ALTERS: Mapping[str, tuple[str, ...]] = {
    "add_usage": ("key",),
    "advance_transcript": BY_ID,
    "advance_transcript_with_usage": BY_ID,
    "append_message": BY_ID,
    "copy_turns": ("target",),
    "count_dropped": BY_ID,
    "drop_route_to": BY_ID,
    "end_session": BY_ID,
    "finalize_session": BY_ID,
    "forget_session": BY_ID,
    "point_route": ("key", "session_id"),
    "rename_session": BY_ID,
    "revise_transcript": BY_ID,
    "set_title": BY_ID,
    "touch_session": BY_ID,
    "update_session": ("id",),
    "update_session_afresh": ("id",),
}
"""Every query that alters a session's record, or which session is at a key, and the values that name what is
to be forgotten then: sessions and keys."""

MOST_KNOWN = 4_096
"""About two kilobytes each: what is large is looked up again."""


class KnownRows:
    """Records by their keys, and the ids by which statements name them. Everybody may ask; whoever holds the
    connection that writes does the rest."""

    def __init__(self) -> None:
        self._records: dict[str, Session] = {}
        self._keys: dict[str, str] = {}
        self.changes: list[tuple[str, Change]] = []
        """What becomes of records with the commit."""

    def get(self, key: str) -> Session | None:
        """The record; None when it has to be looked up."""
        return self._records.get(key)

    def learn(self, key: str, record: Any) -> None:
        self.forget((key,))
        if record.entry.origin is None or record.entry.origin.is_long:
            return
        if len(self._records) >= MOST_KNOWN:
            self.forget((next(iter(self._records)),))
        self._records[key] = record
        self._keys[record.id] = key

    def change(self, row_id: str, change: Change) -> None:
        """Once it is committed, the record is another."""
        self.changes.append((row_id, change))

    def committed(self) -> None:
        """What was changed is so from now on. What fails here changes nothing of what is stored."""
        changes, self.changes = self.changes, []
        try:
            for row_id, change in changes:
                key = self._keys.get(row_id)
                if key is not None:
                    self._records[key] = change(self._records[key])
        except Exception:
            log.exception("known_rows_forgotten")
            self.forget_all()

    def rolled_back(self) -> None:
        self.changes.clear()

    def forget(self, names: Iterable[str]) -> None:
        """Whatever is known under these keys or ids: it is altered, and nobody says to what."""
        for name in names:
            record = self._records.pop(self._keys.get(name, name), None)
            if record is not None:
                del self._keys[record.id]

    def forget_all(self) -> None:
        """After a failure nobody knows what is in the file."""
        self._records.clear()
        self._keys.clear()
        self.changes.clear()
