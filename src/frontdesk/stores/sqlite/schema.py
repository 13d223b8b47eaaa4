"""Bringing a database file to the present schema, or refusing it."""

import apsw

from frontdesk import errors
from frontdesk.contracts.store import Upgrade
from frontdesk.logs import get_logger
from frontdesk.stores.sql import load_migrations
from frontdesk.stores.sqlite import copies
from frontdesk.stores.sqlite.files import Place
from frontdesk.stores.sqlite.threads import drive
from frontdesk.stores.upgrades import load_step_queries, steps_after

APPLICATION_ID = 0x66726473

log = get_logger(__name__)


def migrate(db: apsw.Connection, place: Place, *, upgrade: bool = True) -> Upgrade | None:
    """Bring the database up to date, at once or not at all, with a copy of how it was; refuse one that is not
    ours, newer than we, or older where it is to be left as it is."""
    migrations = load_migrations("sqlite")
    version, known = _check(db, place.name, len(migrations)), len(migrations)
    if version == known:
        return None
    if version and not upgrade:
        raise errors.OlderDatabase(path=place.name, found=version, known=known)
    copy = str(copies.keep(db, place.path, version)) if version and place.path else None
    with db:
        for script in migrations[version:]:
            db.execute(script)
            for step in steps_after(script):
                drive(db.cursor(), load_step_queries("sqlite"), step())
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {known}")
    if not version:
        return None
    log.warning("database_upgraded", path=place.name, found=version, known=known, copy=copy)
    return Upgrade(found=version, known=known, copy=copy)


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
