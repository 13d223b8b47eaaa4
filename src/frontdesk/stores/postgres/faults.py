"""PostgreSQL's errors, and those of the network before it, in our words."""

from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from frontdesk import errors

FOREIGN = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)

CONFLICTS = {"40001", "40P01", "23505"}
"""Serialization failure, deadlock, unique violation: run again, the work sees what the others did."""

OUTDATED = (asyncpg.InvalidCachedStatementError, asyncpg.OutdatedSchemaCacheError)
"""The tables changed after a statement was prepared: run again, it is prepared anew."""

DISK_FULL = "53100"
REFUSED = ("22", "23")
"""A value that no text, number or constraint allows; a unique violation is a conflict."""
UNWRITABLE = {"25006", "42501"}

UNAVAILABLE = (
    "08",  # the connection
    "25P03",  # idle for too long in a transaction
    "28",  # authentication
    "3D000",  # no such database
    "53",  # out of connections or memory
    "57014",  # cancelled, by a timeout
    "57P",  # the server stops, starts or cut the connection
)

LOCKED = "55P03"
UNUSUAL = "22012"
"""A division by zero, with which a question fails that was not answered as usual."""

ADVICE = {
    "28000": "check the user and the password in the address",
    "28P01": "check the user and the password in the address",
    "3D000": "create it with createdb, or correct the address",
    "53300": "lower ?pool= in the address, or raise the server's max_connections",
}


class Surprise(errors.StoreRefused):
    """A question to {path} was not answered as usual ({why}); nothing was changed."""


class Conflict(errors.StoreFailed):
    """Other work in {path} kept coming first ({why}); the write was not kept."""


class Locked(errors.StoreUnavailable):
    """Others have had something in {path} for too long ({why}); nothing was changed. Try again."""


def translate(error: Exception, path: str) -> errors.StoreError:
    state = getattr(error, "sqlstate", None) or ""
    why = _explain(error, state)
    match error:
        case asyncpg.ClientConfigurationError():
            return errors.UnknownStore(url=path, hint=f" ({why})")
        case _ if state in CONFLICTS or isinstance(error, OUTDATED):
            return Conflict(path=path, why=why)
        case _ if state == LOCKED:
            return Locked(path=path, why=why)
        case _ if state == DISK_FULL:
            return errors.StoreFull(path=path)
        case _ if state.startswith(REFUSED):
            kind = Surprise if state == UNUSUAL else errors.StoreRefused
            return kind(path=path, why=why)
        case _ if state in UNWRITABLE:
            return errors.ReadOnlyServer(path=path, why=why)
        case _ if not state or state.startswith(UNAVAILABLE):
            return errors.StoreUnavailable(path=path, why=why)
        case _:
            return errors.StoreFailed(path=path, why=why)


def _explain(error: Exception, state: str) -> str:
    """The error's first line; the others may quote what people wrote."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    what = str(error).partition("\n")[0] or type(error).__name__
    return f"{what}; {ADVICE[state]}" if state in ADVICE else what


@contextmanager
def translated(path: str) -> Iterator[None]:
    try:
        yield
    except FOREIGN as error:
        raise translate(error, path) from error
