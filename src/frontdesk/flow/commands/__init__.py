"""Commands: what people can ask of the gateway itself, the same in every chat and on the web."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from frontdesk.flow.parts import Parts
from frontdesk.model.access import Role
from frontdesk.model.people import Viewer
from frontdesk.model.turns import Busy, Turn, TurnKind


class CommandRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A command and who gave it."""

    turn: Turn
    argument: str
    viewer: Viewer
    """What may be shown to the caller where they ask."""

    @property
    def key(self) -> str:
        return self.turn.session_key

    @property
    def others_read(self) -> bool:
        """Whether what is answered is read by more people than the caller."""
        return self.turn.source.others_read

    @property
    def administrator(self) -> bool:
        return self.turn.role == Role.ADMINISTRATOR


class Refusal(str):
    """What the caller is told when nothing was done, and why."""


class Rerun(msgspec.Struct, frozen=True):
    """Go on as if this had been the message."""

    content: str | list[dict[str, Any]]
    note: str | None = None
    """What the caller is told before the answer."""


Handler = Callable[[Parts, CommandRequest], Awaitable[str | Rerun]]
"""What it gives is told to the caller."""


class Command(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    handle: Handler
    help: str
    usage: str = ""
    aliases: tuple[str, ...] = ()
    kind: TurnKind = TurnKind.COMMAND
    """CONTROL for what works while a turn runs and when it hangs."""
    stops_turn: bool = False
    """A turn that runs is stopped first."""
    stops_when: Callable[[Parts, Turn, str], Awaitable[bool]] | None = None
    """Unless this says that it is not worth it, given what follows the command."""
    is_personal: bool = False
    """It is about who the caller is, or takes their word: nobody gives it for them from elsewhere."""
    takes_in: Busy | None = None
    """What follows is a message for the agent, and becomes this while a turn runs."""


class CommandTable(list[Command]):
    """Commands in the order in which they are explained, each as a row above the function that obeys."""

    def add(self, form: str, help_text: str, **facts: Any) -> Callable[[Handler], Handler]:
        """``form`` is what people type."""
        name, _, usage = form.removeprefix("/").partition(" ")

        def keep(handle: Handler) -> Handler:
            self.append(Command(name=name, usage=usage, help=help_text, handle=handle, **facts))
            return handle

        return keep
