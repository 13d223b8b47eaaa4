"""Setting up a platform: what has to be asked for, and what a channel can find out about itself."""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from frontdesk.model.findings import Finding


class SetupQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """An option of the channel that a person has to give."""

    name: str
    """The option's name."""
    prompt: str
    """What is asked for, in a few words."""
    where: str = ""
    """Where it is found, and which rights it needs."""
    secret: bool = False
    default: str | None = None
    """What holds when nobody says otherwise: it is not asked for then."""
    optional: bool = False
    """It is asked for, and may be left out."""
    is_number: bool = False


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """How a platform is connected: the module ``connect`` in its folder has it as ``SETUP``."""

    title: str
    steps: str
    """What to do on the platform first, step by step."""
    questions: tuple[SetupQuestion, ...]
    people: str
    """How somebody finds the id by which they are let in."""
    person_form: str = ""
    """The pattern of such an id: whoever types something else is asked again."""
    home: str = ""
    """How the id of a chat is found: the home channel is asked for by it."""


class Newcomer(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who has written while the channel was being set up. They have chosen their name themselves."""

    user_id: str
    chat_id: str
    name: str


@runtime_checkable
class Examined(Protocol):
    """What a channel has besides that can say what is wrong with it."""

    async def examine(self, *, in_use: bool, home: str | None = None) -> Sequence[Finding]:
        """Ask the platform whether everything is there: the credential and its rights, also in the home
        channel, who else uses it, the clock. The first finding says who we are there, or why not even that is
        known. ``in_use``: a gateway works with the same account now, and must not be disturbed. Raises
        nothing for what the platform or the network does, and takes seconds at most: people wait for it."""


@runtime_checkable
class Welcoming(Protocol):
    """What a channel has besides that can see who writes to it without taking the message."""

    def meet(self) -> AsyncGenerator[Newcomer, None]:
        """People who write to us in private from now on, each once. Their messages are left for the gateway.
        Raises a FrontdeskError that says why they cannot be seen."""
