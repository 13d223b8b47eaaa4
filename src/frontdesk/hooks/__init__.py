"""Hooks as they are configured and installed: commands first, then those of packages by name."""

from collections.abc import Iterable

from frontdesk.contracts.hooks import Commands, HookEvent, Hooks
from frontdesk.hooks.chain import Chain, Guarded
from frontdesk.hooks.commands import CommandHooks
from frontdesk.hooks.packages import load_packages


def open_hooks(
    commands: Commands | None = None, packages: Iterable[tuple[str, Hooks]] | None = None
) -> Hooks:
    """Everything that is to be told, as one; without ``packages``, those that are installed."""
    commands = commands or Commands()
    parts: list[Hooks] = []
    if commands.has_active_processes or any(commands.command_for(event) for event in HookEvent):
        parts.append(Guarded("commands", CommandHooks(commands)))
    for name, hooks in load_packages() if packages is None else packages:
        parts.append(Guarded(name, hooks, commands.timeout_seconds))
    return Chain(parts)
