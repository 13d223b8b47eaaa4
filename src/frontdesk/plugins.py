"""Parts found by name: built-ins and plug-ins take the same road, the packages' entry points."""

from importlib.metadata import entry_points
from typing import Any

from frontdesk import errors


def load_store(url: str) -> Any:
    """The function that opens a store for this kind of URL."""
    scheme = url.partition("://")[0] if isinstance(url, str) else ""
    name = "postgresql" if scheme == "postgres" else scheme
    found = list(entry_points(group="frontdesk.stores", name=name)) if name else []
    if not found:
        raise errors.UnknownStore(url=_without_password(url), hint="")
    try:
        return found[0].load()
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        hint = f" (install {error.name}: pip install 'frontdesk[postgres]')"
        raise errors.UnknownStore(url=_without_password(url), hint=hint) from error


def _without_password(url: object) -> str:
    text = str(url)
    scheme, separator, rest = text.partition("://")
    return f"{scheme}{separator}…{rest.rpartition('@')[1]}{rest.rpartition('@')[2]}" if "@" in rest else text
