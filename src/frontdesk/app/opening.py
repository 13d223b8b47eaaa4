"""Opening the store that an address names."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

from frontdesk import errors, plugins
from frontdesk.stores.store import Store

SQLITE = "sqlite:///"
IN_MEMORY = "sqlite:///:memory:"


async def open_store(url: str, *, upgrade: bool = True, guarded: bool = True) -> Store:
    """A database of an older version is brought up to date, or refused without ``upgrade``. One whose audit
    log anybody can change is refused (AuditUnguarded), unless it need not be ``guarded``."""
    opened: Callable[..., Awaitable[Store]] = plugins.load_store(url)
    with beginning():
        store = await opened(url, upgrade=upgrade)
    try:
        if guarded:
            await _check_guarded(store, url)
    except BaseException:
        await store.close()
        raise
    return store


async def _check_guarded(store: Store, url: str) -> None:
    if missing := await store.confirmations.unguarded():
        raise errors.AuditUnguarded(path=_name_of(url), missing=", ".join(missing))


def _name_of(url: str) -> str:
    """What people know the database by, without a password."""
    return str(file_of(url) or url.partition("?")[0].rpartition("@")[2])


@contextmanager
def beginning() -> Iterator[None]:
    """Before anything runs, nothing goes on by itself when there is room again."""
    try:
        yield
    except errors.StoreFull as error:
        if isinstance(error, errors.NoRoomForCopy):
            raise
        raise errors.NoRoomToOpen(path=vars(error)["path"]) from error


def without_creating(url: str) -> str:
    """An empty store in memory when there is no file yet: a question makes none."""
    path = file_of(url)
    is_there = path is None or path.exists() or path.with_name(f"{path.name}-wal").exists()
    return url if is_there else IN_MEMORY


def file_of(url: str) -> Path | None:
    """The file that a store is in, if it is in one."""
    if not url.startswith(SQLITE) or url == IN_MEMORY:
        return None
    return Path(unquote(url.removeprefix(SQLITE).partition("?")[0])).expanduser()
