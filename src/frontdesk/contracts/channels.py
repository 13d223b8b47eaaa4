"""The channel: brings messages from a platform and takes answers to it."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

import msgspec

from frontdesk.model import deliveries, events, turns
from frontdesk.model.chats import Attachment, ChatSign, Cursor, Quota, Quote, ReplyHandle, TextUnit
from frontdesk.model.people import Author
from frontdesk.model.sources import SessionSource


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a platform can do. The flow asks for these, never for a platform's name."""

    text_limit: int | None = None
    """The longest text of one message; longer ones are split."""
    text_unit: TextUnit = TextUnit.CHARACTERS
    """What the limit counts."""
    edits: bool = False
    """A sent message can be changed: an answer appears while it is written, and the channel is a `Drafts`."""
    edit_pause_seconds: float = 1.0
    """How long a message is left as it is before it is changed again."""
    send_pause_seconds: float = 0.0
    """How long a chat is left alone between two calls, whatever they are."""
    most_buttons: int = 0
    """How many buttons a message can have; 0: none."""
    reactions: bool = False
    """Signs that people put to a message come in, and we can put some."""
    most_files: int = 0
    """How many files a message can carry; 0: none."""
    most_file_bytes: int | None = None
    """The largest file that can be sent."""
    typing_seconds: float | None = None
    """How long it is shown that we are writing, unless it is said again; None: it is not shown at all."""
    idempotent_seconds: float = 0.0
    """So long after the first try, a send that is repeated with the same delivery id arrives once; 0: never,
    infinite: always."""
    reliable_sender_ids: bool = False
    """Nobody can claim another's user id."""
    authenticates: bool = False
    """Whoever gets through the channel has shown a credential of ours: allow-lists are not asked."""
    collects: bool = False
    """Answers are not sent: the other side comes and collects them."""
    on_page: bool = False
    """People read it on the gateway's own page, as it is in the store."""
    reads_alone: bool = False
    """One reader at a time gets what the platform keeps for us: of several nodes one receives."""
    notices: bool = True
    """People want to be told that their message is queued and the like."""
    quotas: tuple[Quota, ...] = ()
    """How much is answered in one chat: where a program may answer us without saying that it is one, two of
    them must not go on for ever."""


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """A message as the platform handed it over."""

    source: SessionSource
    text: str
    event_id: str | None = None
    """The platform's id of the event: the same id from the same account is the same message."""
    content: str | list[dict[str, Any]] | None = None
    """The message's parts in the chat-completions form, when it is more than its text."""
    observed: bool = False
    """Seen in a group, not meant for the agent: kept in the transcript, not answered."""
    sent_at: datetime | None = None
    history: list[dict[str, Any]] = []
    """Earlier messages that the other side brings along, in the chat-completions form: put into a fresh
    session's transcript before this one; passed over where the conversation has messages already."""
    files: tuple[Attachment, ...] = ()
    quote: Quote | None = None
    handle: ReplyHandle | None = None
    album: str | None = None
    """What messages have in common that the platform brings one by one and people see as one."""
    instructions: str | None = None
    """What the sender wants to be heeded in the answer to this message alone: the agent is told, and no
    transcript has it."""
    follows: str | None = None
    """The turn that it goes on from; GoneOn when something was said in the conversation since."""
    noted: dict[str, Any] = {}
    """What the channel wants to know of the turn later."""
    author: Author | None = None
    """Who wrote it, when it was not written in the source's chat: the people there are shown it, too. Whether
    they may was decided by whoever hands it in."""
    about: str | None = None
    """The session that a command is for; nothing is done when another one goes on there by then."""
    busy: turns.Busy | None = None
    """What is to become of it while a turn runs, when its sender says so."""
    addressed: bool | None = None
    """Whether the platform says that it is meant for us: we are mentioned, or it answers us. None where the
    platform has no such thing, as in a direct chat."""


class Edited(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody changed the message that the source names."""

    source: SessionSource
    text: str
    event_id: str | None = None


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody deleted the message that the source names."""

    source: SessionSource
    event_id: str | None = None


class Reacted(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody put a sign to the message that the source names, or took it away."""

    source: SessionSource
    emoji: str
    removed: bool = False
    event_id: str | None = None


class Pressed(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody pressed a button under the message that the source names. Who that is, the platform says."""

    source: SessionSource
    token: str
    event_id: str | None = None


Happening = Incoming | Edited | Deleted | Reacted | Pressed
"""What people do in a chat."""


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """The message is on disk."""

    turn_id: str
    session_key: str
    repeated: bool = False
    """It was there before: nothing happened."""
    waiting: int = 0
    """How many messages are before it."""
    received_at: datetime | None = None
    """When it came in, the first time."""


class CommandHint(msgspec.Struct, frozen=True, kw_only=True):
    """A command that people can type, for platforms that list them."""

    name: str
    usage: str = ""
    help: str = ""


class Desk(Protocol):
    """What a channel hands its messages to."""

    async def accept(self, happening: Happening, *, cursor: Cursor | None = None) -> Receipt:
        """Store what happened, and with it how far the platform was read; only then may the platform be told
        that we have it.

        Raises InvalidInput, Unroutable, NotAllowed, TooManyWaiting, GoneOn, or a StoreError when it could not
        be stored: then the cursor has not moved.
        """

    async def admits(self, source: SessionSource) -> bool:
        """Whether somebody may talk there. Nothing comes of the question: they are told nothing."""

    async def move_cursor(self, cursor: Cursor) -> None:
        """Note how far the platform was read where that brought nothing to store."""

    async def cursors(self) -> Mapping[str, str]:
        """How far this account was read, by the chat; its own stream stands under an empty name."""

    def commands(self) -> Sequence[CommandHint]:
        """What people can have done by a word behind a slash, whatever the agent."""

    def follow(self, turn_id: str) -> AsyncGenerator[events.Event | turns.Turn, None]:
        """What happens in a turn as far as it happens on this node, and at the end the finished turn.

        Either every event from the turn's first on, whenever this is called, or none: who joins late
        never gets the second half of an answer. Restarted says that a new attempt begins, Missed that the
        rest is only in the store.
        """

    async def find(self, turn_id: str) -> turns.Turn | None:
        """What became of a message of this account, as long as it is kept."""

    async def has_begun(self, source: SessionSource) -> bool:
        """Whether anything was ever said in a conversation."""

    async def said_until(self, turn: turns.Turn) -> list[dict[str, Any]]:
        """What an agent that goes on from the end of a turn is given, in the chat-completions form; nothing,
        where what was said in it has been taken back, or its conversation forgotten."""

    async def interrupt(self, turn_id: str) -> None:
        """A turn is to stop, if it runs."""

    async def uncollected(
        self, source: SessionSource, *, turn_id: str | None = None
    ) -> list[deliveries.Delivery]:
        """What lies ready for a chat that collects its answers, oldest first; of one turn, if named."""

    async def answers(self, turn_id: str) -> list[deliveries.Delivery]:
        """All that was said in answer to a message, oldest first, collected before or not."""

    async def collected(self, delivery_ids: Sequence[str]) -> None:
        """The other side has these."""


def _prove_nothing(_: str) -> None:
    """Where nobody counts connections."""


Recognise = Callable[[], str | None]
"""Whose token of the channel's own a request has."""


async def _own_alone(own: Recognise) -> str | None:
    """Where nobody has a token of the gateway's, and nobody counts wrong ones."""
    return own()


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP request for a channel, read whole."""

    method: str
    path: str
    """What follows the channel's own prefix, with its parameters in braces filled in."""
    params: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes
    client: str | None = None
    prove: Callable[[str], None] = _prove_nothing
    """To be called with the sender's name once they have shown a valid credential: connections of others are
    bounded for each address."""
    visitor: Callable[[Recognise], Awaitable[str | None]] = _own_alone
    """Who sends it, by a token of the channel's own, or by one that the gateway has given out: a name that no
    user of a channel has. After too many wrong ones nothing is compared for a while. NotAllowed for somebody
    who may only look."""


class Response(msgspec.Struct, frozen=True, kw_only=True):
    status: int
    body: bytes | AsyncIterator[bytes] = b""
    headers: Mapping[str, str] = {}


class RouteAbout(msgspec.Struct, frozen=True, kw_only=True):
    """What an address takes and gives, for the description of the port that it is on."""

    name: str
    summary: str
    gives: Any
    """The type of what comes back as JSON."""
    refusal: Any
    """The type of what comes back when it is refused."""
    statuses: tuple[int, ...] = ()
    """Statuses of refusals that not every address has."""
    body: type[msgspec.Struct] | None = None
    query: type[msgspec.Struct] | None = None
    headers: type[msgspec.Struct] | None = None
    streams: bool = False
    """Whether it may come as server-sent events instead."""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """An address that a channel answers."""

    method: str
    path: str
    handle: Callable[[Request], Awaitable[Response]]
    admit: Callable[[Request], Awaitable[Response | None]] | None = None
    """Asked before the body is read, where its sender is known without it: why they are refused; None when
    they are not."""
    max_body_bytes: int = 1024 * 1024
    short: str | None = None
    """The address that it would have without the account's name, where it is not merely ``path`` without it.
    Where the account is a profile's, it is reached there behind ``/p/<profile>``, too."""
    about: RouteAbout | None = None


class Channel(Protocol):
    @property
    def name(self) -> str:
        """The platform."""

    @property
    def account(self) -> str | None:
        """Which of our accounts or endpoints it serves, where the platform has several."""

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def routes(self) -> Sequence[Route]:
        """The addresses it answers over HTTP, if any."""

    async def receive(self, desk: Desk) -> None:
        """Hand messages to the desk until cancelled; one that is called over HTTP just keeps the desk."""

    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        """Take an answer to the platform. Never raises for what the platform or the network does."""

    async def close(self) -> None: ...


@runtime_checkable
class Watchful(Protocol):
    """What a channel has besides that knows whether it can work."""

    def trouble(self) -> str | None:
        """Why it can take no messages now, or send none, and what to do; None when it can. Asked often: it
        calls nobody."""


@runtime_checkable
class PerChat(Protocol):
    """What a channel has besides whose chats differ."""

    def capabilities_in(self, chat: SessionSource) -> Capabilities:
        """What can be done in one chat. Asked often: it calls nobody, and never raises."""


def capabilities_in(channel: Channel, chat: SessionSource) -> Capabilities:
    return channel.capabilities_in(chat) if isinstance(channel, PerChat) else channel.capabilities


@runtime_checkable
class Signing(Protocol):
    """What a channel has besides that shows more than messages. Nothing depends on it."""

    async def sign(self, to: SessionSource, sign: ChatSign) -> deliveries.Outcome:
        """Show that we are writing, where ``typing_seconds`` says so, or how far we are with the message that
        the source names, where there are ``reactions``. Never raises for what the platform or the network
        does; hopeless where it makes no sense to show that sign there."""


@runtime_checkable
class Seeking(Protocol):
    """What a channel has besides that can look whether a send arrived of which nobody knows."""

    async def find(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        """Sent: it is there. NotSent: it surely is not, and may be sent again. Unknown: that cannot be told
        now. Never raises for what the platform or the network does."""


@runtime_checkable
class Fetching(Protocol):
    """What a channel has besides whose messages bring files."""

    def fetch(self, attachment: Attachment, most_bytes: int) -> AsyncIterator[bytes]:
        """The bytes of a file, from the platform's own hosts alone. Raises a FrontdeskError that says why it
        cannot be had, or that it is larger."""


class Drafts(Protocol):
    """What a channel whose capabilities say ``edits`` has besides.

    Its ``send`` changes the message that ``delivery.draft`` names into the delivery. Doing so twice is the
    same as once; where that message is gone, the outcome says so.
    """

    async def draft(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        """Show an answer as far as it is written: in a new message, whose id the outcome tells, or, when
        ``delivery.draft`` names one, by changing that. Never raises for what the platform or the network
        does."""
