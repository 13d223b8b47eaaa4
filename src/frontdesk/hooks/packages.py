"""Hooks that installed packages bring: the entry points of one group."""

from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points

from frontdesk import errors
from frontdesk.contracts.hooks import HookEvent, Hooks

GROUP = "frontdesk.hooks"


def load_packages() -> Iterator[tuple[str, Hooks]]:
    """Name and hooks of each, in the order of the names; one that cannot be loaded is an error."""
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        yield point.name, _load(point)


def _load(point: EntryPoint) -> Hooks:
    """An entry point names a class, or a function without arguments, that makes the hooks."""
    try:
        hooks: Hooks = point.load()()
    except Exception as error:
        raise errors.BrokenHook(name=point.name, why=f"{type(error).__name__}: {error}") from error
    if missing := [event for event in HookEvent if not callable(getattr(hooks, event, None))]:
        raise errors.BrokenHook(name=point.name, why=f"there is no {missing[0]}")
    return hooks
