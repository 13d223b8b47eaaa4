"""Hooks as they are configured and installed: commands first, then those of packages by name."""

from collections.abc import Iterable, Iterator
from importlib.metadata import EntryPoint, entry_points

from frontdesk import errors
from frontdesk.contracts.hooks import Commands, HookEvent, Hooks
from frontdesk.hooks.chain import Chain, Guarded
from frontdesk.hooks.commands import CommandHooks

GROUP = "frontdesk.hooks"


def open_hooks(
    commands: Commands | None = None, packages: Iterable[tuple[str, Hooks]] | None = None
) -> Hooks:
    """Everything that is to be told, as one; without ``packages``, those that are installed."""
    commands = commands or Commands()
    parts: list[Guarded] = []
    if commands.has_active_processes or any(commands.command_for(event) for event in HookEvent):
        parts.append(Guarded("commands", CommandHooks(commands)))
    for name, hooks in load_packages() if packages is None else packages:
        parts.append(Guarded(name, hooks, commands.timeout_seconds))
    return Chain(parts)


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
