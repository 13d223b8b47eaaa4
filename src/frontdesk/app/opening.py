"""Opening the store that an address names."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from frontdesk import errors, plugins
from frontdesk.contracts.store import Store


async def open_store(url: str, *, upgrade: bool = True) -> Store:
    """A database of an older version is brought up to date, or refused without ``upgrade``."""
    opened: Callable[..., Awaitable[Store]] = plugins.load_store(url)
    with beginning():
        return await opened(url, upgrade=upgrade)


@contextmanager
def beginning() -> Iterator[None]:
    """Before anything runs, nothing goes on by itself when there is room again."""
    try:
        yield
    except errors.StoreFull as error:
        if isinstance(error, errors.NoRoomForCopy):
            raise
        raise errors.NoRoomToOpen(path=vars(error)["path"]) from error
