"""Bringing a database file to the present schema, or refusing it."""

import apsw

from frontdesk import errors
from frontdesk.stores.sql import load_migrations

APPLICATION_ID = 0x66726473


def migrate(db: apsw.Connection, path: str) -> None:
    """Bring the database up to date, at once or not at all; refuse one that is not ours or newer than we."""
    migrations = load_migrations("sqlite")
    version = _check(db, path, len(migrations))
    if version == len(migrations):
        return
    with db:
        for script in migrations[version:]:
            db.execute(script)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {len(migrations)}")


def _check(db: apsw.Connection, path: str, known: int) -> int:
    application = db.pragma("application_id")
    version = int(db.pragma("user_version"))
    if application != APPLICATION_ID:
        if application or version or db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall():
            raise errors.ForeignDatabase(path=path, why="it belongs to another program")
        return 0
    if version > known:
        raise errors.NewerDatabase(path=path, found=version, known=known)
    return version
