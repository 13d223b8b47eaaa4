"""What an agent says while it runs a turn, and what it is told meanwhile."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.model.background import DEFAULT_NAME, DEFAULT_SECONDS
from frontdesk.model.messages import Plain
from frontdesk.model.sessions import Usage

MOST_OPTIONS = 20
MAX_OPTION_CHARACTERS = 100
MAX_CHOICE_CHARACTERS = 2_000
UNWRITTEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
"""Controls, and halves of characters."""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened in a turn."""


class Text(Event, frozen=True, kw_only=True):
    """A piece of the answer, as it comes."""

    text: str


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the agent calls; the arguments are JSON text, as the model wrote them."""

    id: str
    name: str
    arguments: str = "{}"

    @property
    def plain(self) -> Plain:
        """The call as a chat-completions message holds it."""
        return {
            "id": self.id,
            "type": "function",
            "function": {"name": self.name, "arguments": self.arguments},
        }


class Calls(Event, frozen=True, kw_only=True):
    """Tools called together. They are in the transcript before the agent is asked for its next event."""

    calls: tuple[Call, ...]


class Result(Event, frozen=True, kw_only=True):
    """What a tool gave back."""

    id: str
    content: str | list[dict[str, Any]]
    is_error: bool = False
    name: str | None = None


class Details(Event, frozen=True, kw_only=True):
    """Further fields of the assistant's message that comes next: reasoning and the like."""

    fields: Mapping[str, Any]


class Approval(Event, frozen=True, kw_only=True):
    """The agent asks to be allowed an action, and waits for the decision with this id."""

    id: str
    action: str
    description: str
    details: Mapping[str, Any] = {}


class File(Event, frozen=True, kw_only=True):
    """A file for the chat, which gets it with the answer: a path in the working directory, or the bytes."""

    path: str | None = None
    data: bytes | None = None
    name: str | None = None
    """What it is called there; else as in the path."""
    kind: str | None = None
    """Its media type; else as its name and its bytes say."""


class Choice(Event, frozen=True, kw_only=True):
    """Options for whoever reads the answer, which end it: buttons where the chat has them, else numbers. The
    one that is chosen comes as a message with its text. Of several choices in a turn, the last one counts."""

    options: tuple[str, ...]
    text: str = ""
    """What there is to choose."""

    def __post_init__(self) -> None:
        if not 1 <= len(self.options) <= MOST_OPTIONS or len(set(self.options)) < len(self.options):
            raise errors.InvalidInput(what="a choice", why=f"use 1 to {MOST_OPTIONS} different options")
        if len(self.text) > MAX_CHOICE_CHARACTERS or UNWRITTEN.search(self.text):
            why = f"its text is longer than {MAX_CHOICE_CHARACTERS} characters, or cannot be written"
            raise errors.InvalidInput(what="a choice", why=why)
        for option in self.options:
            one_line = option.strip() == option and len(option.splitlines()) == 1
            if not one_line or len(option) > MAX_OPTION_CHARACTERS or UNWRITTEN.search(option):
                why = f"an option is one line of 1 to {MAX_OPTION_CHARACTERS} characters"
                raise errors.InvalidInput(what="a choice", why=why)

    @property
    def numbered(self) -> str:
        """With the options as a list, for who cannot press anything."""
        listed = "\n".join(f"{number}. {option}" for number, option in enumerate(self.options, 1))
        return "\n\n".join(filter(None, (self.text, listed)))


class Used(Event, frozen=True, kw_only=True):
    """What a call to the model used; several are added up."""

    usage: Usage


class Summary(Event, frozen=True, kw_only=True):
    """The agent's own summary of the conversation, for the hand-over to the next session."""

    text: str


class Background(Event, frozen=True, kw_only=True):
    """Work goes on in the background, beyond the end of the turn, or has ended: the session is not reset by
    policy meanwhile."""

    name: str = DEFAULT_NAME
    running: bool = True
    seconds: float = DEFAULT_SECONDS
    """How long at most; said again, so long from then."""


class Send(Event, frozen=True, kw_only=True):
    """A message to a chat besides the answer. The agent hears whether it was taken when it gives an id; the
    same words to the same chat are sent once in a turn, or once for each id."""

    to: str
    """`origin`, a platform for its home channel, or `platform:chat_id[:thread_id]`."""
    text: str
    id: str = ""


class Done(Event, frozen=True, kw_only=True):
    """The turn is finished. An agent that simply stops is taken to be done, too."""

    finish_reason: str | None = None
    silent: bool = False
    """There is nothing to say: what was said stays in the transcript, and nothing is sent."""


class Failed(Event, frozen=True, kw_only=True):
    """The agent could not finish. A retryable failure is tried again from the rows written so far."""

    message: str
    """For people; nothing in it that the agent wrote by accident."""
    retryable: bool = False
    detail: str | None = None
    """What went wrong, for the log and the owner: it may hold anything that the agent wrote."""


class Restarted(Event, frozen=True, kw_only=True):
    """Only who follows a turn gets it: an attempt failed, and what it said counts no more."""


class Asked(Event, frozen=True, kw_only=True):
    """Only who follows a turn gets it: people are asked to decide, about all that the text shows."""

    id: str
    """Of the confirmation."""
    text: str


class Missed(Event, frozen=True, kw_only=True):
    """Only who follows a turn gets it: the rest of what is said is too much to be kept until it is read.

    Nothing follows it but the end. The whole answer is in the store.
    """


class Signal(msgspec.Struct, frozen=True, kw_only=True):
    """Something that an agent is told in the middle of a turn."""


class Decision(Signal, frozen=True, kw_only=True):
    """The answer to an approval request."""

    id: str
    approved: bool
    reason: str | None = None


class Steer(Signal, frozen=True, kw_only=True):
    """A message that came in meanwhile and is to be heeded now."""

    text: str
    id: str = ""
    """The turn that it would have been; once the agent heeds it, it is part of this one."""


class Handed(Signal, frozen=True, kw_only=True):
    """Whether a message that the agent sends besides its answer was taken: it is on disk then."""

    id: str
    taken: bool
    why: str | None = None
    """What it was not taken for."""


class Stop(Signal, frozen=True, kw_only=True):
    """Come to an end, now."""


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """A turn as an agent gets it."""

    turn_id: str
    session_id: str
    session_key: str
    attempt: int = 1
    """From the second on the turn was begun before; what it wrote then is at the end of the messages."""
    system: str = ""
    messages: Sequence[Plain] = ()
    """The whole conversation in the chat-completions form, the message to be answered included."""
    input: Plain
    """The message to be answered."""
    model: Mapping[str, str] | None = None
    """Model, provider and base_url chosen for this session, when they differ from the configured ones."""
    working_dir: str | None = None
