"""The parts of a gateway that everything in the flow works with."""

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any, cast

import msgspec

from frontdesk import errors
from frontdesk.contracts.agents import Abilities, Agent
from frontdesk.contracts.channels import Capabilities, Channel, PerChat, Seeking
from frontdesk.contracts.clock import Clock
from frontdesk.contracts.hooks import Hooks
from frontdesk.contracts.snapshots import Snapshots
from frontdesk.flow.authorization import Authorization, Refusals
from frontdesk.flow.carrying import Carrying
from frontdesk.flow.clockwatch import Elapsed
from frontdesk.flow.confirmations.approvals import Gate
from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.flow.confirmations.notifying import DIGEST, Notifier
from frontdesk.flow.conversations import Conversations
from frontdesk.flow.files import Filing, described
from frontdesk.flow.following import Following
from frontdesk.flow.pacing import Pacing
from frontdesk.flow.presses import Presses
from frontdesk.flow.signs import Signs
from frontdesk.flow.speech import Live
from frontdesk.flow.turnstile import Turnstile
from frontdesk.formats.markdown import splitting
from frontdesk.model import deliveries, lanes, routing
from frontdesk.model.chats import StoredFile
from frontdesk.model.confirmations import Status
from frontdesk.model.deliveries import Delivery
from frontdesk.model.feed import FeedEvent
from frontdesk.model.gateway import GatewayConfig
from frontdesk.model.platforms import READ_BY_PROGRAMS
from frontdesk.model.running import Running
from frontdesk.model.sessions import SessionEntry
from frontdesk.model.sources import SessionSource
from frontdesk.model.turns import Turn, TurnKind
from frontdesk.stores.store import Store

ID_BYTES = 8
ARRIVAL_SECONDS = 5.0
"""What is under way has arrived by then, and can be looked for."""
QUICK_CHARACTERS = 20_000
"""A text that is parted in no time."""
NO_CHANNEL = Capabilities()
NO_AGENT = Abilities()
UNTAKEN = "[{file}: this chat does not take it]"
FORGOTTEN = "{id} waits for nobody any more."
UNHEARD = frozenset({TurnKind.EXPIRY, TurnKind.HOOK, TurnKind.OBSERVED})
"""Nobody waits for an answer to these."""


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    store: Store
    conversations: Conversations
    agent: Agent
    """Of the default profile."""
    agents: Mapping[str, Agent] = {}
    """Of the other profiles, by their names."""
    channels: Mapping[tuple[str, str | None], Channel]
    connected: GatewayConfig
    """The configuration with the platforms that have a channel: what the agent is told of them."""
    authorization: Authorization
    hooks: Hooks
    snapshots: Snapshots | None
    running: Running
    clock: Clock
    elapsed: Elapsed
    live: Live
    following: Following[FeedEvent]
    carrying: Carrying
    confirmations: ConfirmationService
    notifier: Notifier
    gate: Gate
    refusals: Refusals
    presses: Presses = msgspec.field(default_factory=Presses)
    pacing: Pacing
    signs: Signs
    filing: Filing
    turnstile: Turnstile
    places: dict[SessionSource, tuple[str, str]] = {}
    """What agents are told of the places of messages, as far as it was made."""

    def agent_of(self, source: SessionSource) -> Agent:
        """The agent of a message's profile; UnknownProfile when there is none by now."""
        if not source.profile:
            return self.agent
        self.connected.check_profile(source.profile)
        return self.agents.get(source.profile, self.agent)

    def abilities_of(self, source: SessionSource) -> Abilities:
        """What the agent of a message's profile can do; nothing, where there is none."""
        try:
            return self.agent_of(source).abilities
        except errors.UnknownProfile:
            return NO_AGENT

    async def release(self, entry: SessionEntry) -> None:
        """Free what an agent holds for a session. One whose profile is gone holds nothing."""
        with suppress(errors.UnknownProfile):
            await self.agent_of(entry.origin or SessionSource.local_cli()).release(entry.session_id)

    def connected_for(self, source: SessionSource) -> GatewayConfig:
        """What an agent is told to be connected: the accounts of its own profile, and where it is asked."""
        config = self.connected
        if not config.profiles:
            return config
        profile, here = config.profile_of(source)[0] or routing.DEFAULT, str(source.platform)
        own = [name for name, at in self.channels if config.profile_of_account(name, at) == profile]
        if here in own or here not in config.platforms:
            return config.connected_to(own)
        homeless = {here: msgspec.structs.replace(config.platforms[here], home_channel=None)}
        return msgspec.structs.replace(config, platforms={**config.connected_to(own).platforms, **homeless})

    def working_dir_of(self, source: SessionSource) -> str | None:
        """Where the agent of a message works."""
        own = self.connected.profile_at(source).working_dir if self.connected.profiles else None
        return own or self.running.working_dir

    def keeps_files_of(self, source: SessionSource) -> bool:
        """Whether there are checkpoints of where the agent of a message works."""
        return bool(self.running.checkpoints and self.snapshots and self.working_dir_of(source))

    def channel_of(self, source: SessionSource) -> Channel | None:
        return self.channels.get((str(source.platform), source.account))

    def capabilities_of(self, source: SessionSource) -> Capabilities:
        channel = self.channels.get((str(source.platform), source.account))
        if channel is None:
            return NO_CHANNEL
        # What isinstance says of a protocol takes longer, and this is asked several times for each message.
        per_chat = cast("PerChat", channel) if hasattr(channel, "capabilities_in") else None
        return per_chat.capabilities_in(source) if per_chat else channel.capabilities

    def repeatable(self, delivery: Delivery, now: datetime) -> bool:
        """Whether sending it again does no harm, though it may have arrived. One that changes a message knows
        which."""
        capabilities = self.capabilities_of(delivery.to)
        if capabilities.edits and delivery.draft is not None and not delivery.files:
            return True
        since = delivery.unsure_since or delivery.due_at or delivery.created_at
        return (now - since).total_seconds() < capabilities.idempotent_seconds

    def try_again_at(self, delivery: Delivery, now: datetime) -> datetime | None:
        """When a send that may have arrived is tried again, or looked for; None: not by itself."""
        if self.repeatable(delivery, now):
            return now
        can_look = isinstance(self.channel_of(delivery.to), Seeking)
        return now + timedelta(seconds=ARRIVAL_SECONDS) if can_look else None

    def answers(
        self,
        turn: Turn,
        text: str,
        *,
        kind: deliveries.DeliveryKind = deliveries.DeliveryKind.REPLY,
        final: bool = True,
        is_markdown: bool = True,
        delivery_id: str | None = None,
        at: datetime | None = None,
        files: Sequence[StoredFile] = (),
    ) -> tuple[Delivery, ...]:
        """The answer to a message as its chat takes it: in as many pieces as its limit asks for.

        An agent writes Markdown, the gateway itself plain text. What ends the turn begins in the place of
        what was shown of it meanwhile. What is decided in a transaction, which may be run again, is given its
        id and the time.
        """
        capabilities = self.capabilities_of(turn.source)
        draft = turn.draft if final else None
        changes = draft is not None
        pieces = pieces_of(text, files, capabilities, is_markdown=is_markdown, changes=changes)
        first, at = delivery_id or new_id("d"), at or self.clock.now()
        said = []
        for number, (piece, carried) in enumerate(pieces, 1):
            delivery = Delivery(
                id=first if number == 1 else f"{first}-{number}",
                kind=kind,
                lane=lanes.chat_lane(turn.source, collects=capabilities.collects or is_for_page(turn)),
                to=turn.source,
                text=piece,
                is_markdown=is_markdown,
                files=carried,
                final=final and number == len(pieces),
                turn_id=turn.id,
                session_key=turn.session_key,
                event_id=turn.event_id,
                handle=turn.handle,
                extra={deliveries.DRAFT: draft} if draft and number == 1 else {},
                created_at=at,
            )
            said.append(delivery)
        return tuple(said)

    async def answers_beside(
        self, turn: Turn, text: str, files: Sequence[StoredFile] = ()
    ) -> tuple[Delivery, ...]:
        """The same as answers. Where a long text is parted may take seconds to find: beside the loop."""
        if len(text) <= QUICK_CHARACTERS:
            return self.answers(turn, text, files=files)
        return await asyncio.to_thread(self.answers, turn, text, files=files)

    def notices(self, turn: Turn, text: str, *, final: bool = False, **fields: Any) -> tuple[Delivery, ...]:
        """Something that the gateway itself has to say: nothing where the chat takes answers alone, unless it
        stands for the answer."""
        if not final and (is_for_page(turn) or not self.capabilities_of(turn.source).notices):
            return ()
        kind = deliveries.DeliveryKind.NOTICE
        return self.answers(turn, text, kind=kind, final=final, is_markdown=False, **fields)

    def last_word(self, turn: Turn, text: str, **fields: Any) -> tuple[Delivery, ...]:
        """What is said of a turn that was not answered, where somebody waits for an answer."""
        return () if turn.kind in UNHEARD else self.notices(turn, text, final=True, **fields)

    async def as_it_stands(self, delivery: Delivery) -> Delivery:
        """The delivery; a question to people that was decided meanwhile says so, and has no digest that
        buttons could decide about. One that changes a message knows that message."""
        delivery = await _in_its_place(self.store, delivery)
        if delivery.confirmation_id is None:
            return delivery
        try:
            asked = await self.confirmations.find(delivery.confirmation_id)
        except errors.UnknownConfirmation:
            text = FORGOTTEN.format(id=delivery.confirmation_id)
        else:
            if asked.status is Status.PENDING:
                return delivery
            text = self.notifier.ended(asked, delivery.to)
        extra = {name: value for name, value in delivery.extra.items() if name != DIGEST}
        return msgspec.structs.replace(delivery, text=text, extra=extra, buttons=())


async def _in_its_place(store: Store, delivery: Delivery) -> Delivery:
    """The delivery with the platform's id of the message that it changes, which came before it in its
    lane; where nobody knows of that, a message of its own."""
    if delivery.brought_by == delivery.id:
        return delivery
    card = await store.deliveries.find(delivery.brought_by)
    if card is None or card.platform_message_id is None:
        return delivery
    draft = {deliveries.DRAFT: card.platform_message_id}
    return msgspec.structs.replace(delivery, extra=delivery.extra | draft)


def new_id(letter: str) -> str:
    return f"{letter}_{secrets.token_hex(ID_BYTES)}"


Piece = tuple[str, tuple[StoredFile, ...]]
"""A message: its text, and the files that it carries."""


def pieces_of(
    text: str,
    files: Sequence[StoredFile],
    capabilities: Capabilities,
    *,
    is_markdown: bool,
    changes: bool = False,
) -> list[Piece]:
    """An answer as messages of a chat. Where one carries several files, the first ones go with the end of the
    text, unless that ``changes`` a message which is there; where it carries one, each goes alone. A file that
    the chat does not take is named."""
    if not files and capabilities.text_limit is None:
        return [(text, ())]
    split = partial(
        splitting.split, limit=capabilities.text_limit, unit=capabilities.text_unit, is_markdown=is_markdown
    )
    if not files:
        return [(piece, ()) for piece in split(text)]
    most, largest = capabilities.most_files, capabilities.most_file_bytes
    taken = [file for file in files if most and (largest is None or file.size <= largest)]
    named = [UNTAKEN.format(file=described(file)) for file in files if file not in taken]
    whole = "\n\n".join(filter(None, (text, *named)))
    pieces: list[Piece] = [(piece, ()) for piece in split(whole) if piece]
    loads = [tuple(taken[start : start + most]) for start in range(0, len(taken), most or 1)]
    if loads and most > 1 and pieces and not changes:
        pieces[-1] = pieces[-1][0], loads.pop(0)
    return [*pieces, *(("", load) for load in loads)]


def is_for_page(turn: Turn) -> bool:
    """Whether it was given from the page, about a chat that only a program reads: what is answered is for
    whoever gave it, and is sent to nobody."""
    return turn.author is not None and str(turn.source.platform) in READ_BY_PROGRAMS
