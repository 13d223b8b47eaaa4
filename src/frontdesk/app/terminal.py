"""Talking to the agent from the owner's terminal: what is said and heard, as plain data."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec

from frontdesk import errors
from frontdesk.app.office import Plain, picked
from frontdesk.app.shown import plain_events
from frontdesk.contracts.channels import Incoming
from frontdesk.flow.confirmations import deciding
from frontdesk.model import deliveries, turns
from frontdesk.model.confirmations import Caller, Status
from frontdesk.model.platforms import TERMINAL
from frontdesk.model.sources import SessionSource

if TYPE_CHECKING:
    from frontdesk.app.gateway import Gateway

CLI = SessionSource.local_cli().chat_id
MAX_NAME_CHARACTERS = 64
MOST_TITLES = 200
LOOK_FIRST = "Have it shown first."


class Terminal:
    """A chat of the terminal is known by its name."""

    def __init__(self, gateway: "Gateway") -> None:
        self._desk = gateway.desk
        self._parts = gateway.parts

    async def accept(self, text: str, chat: str = CLI, event_id: str | None = None) -> Plain:
        """Hand in a message; it is on disk when this returns."""
        async with aclosing(self.say(text, chat, event_id)) as happening:
            return await anext(happening)

    async def say(
        self, text: str, chat: str = CLI, event_id: str | None = None, follow: bool = False
    ) -> AsyncGenerator[Plain, None]:
        """Hand in a message: that it was accepted, and is on disk. With ``follow`` also what happens in its
        turn, up to how it ended."""
        incoming = Incoming(source=source_of(chat), text=text, event_id=event_id)
        receipt = await self._desk.accept(incoming)
        yield {"type": "accepted", "turn_id": receipt.turn_id, "waiting": receipt.waiting}
        if not follow:
            return
        if receipt.waiting or text.startswith("/"):
            for each in await self._desk.uncollected(source_of(chat), turn_id=receipt.turn_id):
                if each.kind is deliveries.DeliveryKind.NOTICE:  # its answer may be there by now, too
                    yield {"type": "notice"} | _plain_delivery(each)
        async with aclosing(self.follow(receipt.turn_id)) as following:
            async for happened in following:
                yield happened

    async def follow(self, turn_id: str) -> AsyncGenerator[Plain, None]:
        """What happens in a turn, and at the end what was said in it."""
        async with aclosing(self._desk.follow(turn_id)) as steps:
            async for step in steps:
                if isinstance(step, turns.Turn):
                    said = await self._desk.answers(turn_id)
                    told = [_plain_delivery(each) for each in said]
                    yield {"type": "end", "state": str(step.state), "error": step.error, "deliveries": told}
                for each in plain_events(step):
                    yield each

    async def uncollected(self, chat: str = CLI) -> list[Plain]:
        """What was said to a chat and nobody has seen, oldest first."""
        return [_plain_delivery(each) for each in await self._desk.uncollected(source_of(chat))]

    async def collected(self, ids: Sequence[str], chat: str = CLI) -> None:
        """Somebody has seen these answers, if they are of this chat."""
        waiting = await self._desk.uncollected(source_of(chat))
        await self._desk.collected([each.id for each in waiting if each.id in ids])

    async def titles(self, chat: str = CLI) -> list[str]:
        """The titles of conversations that whoever writes in a chat may resume, newest activity first."""
        conversations = self._parts.conversations
        viewer = await conversations.viewer_for(source_of(chat))
        found = await conversations.list_own_sessions(viewer, limit=MOST_TITLES, titled=True)
        return [each.title for each in found if each.title]

    async def question(self, confirmation_id: str, chat: str = CLI, reveal: bool = False) -> Plain:
        """What somebody at the terminal is shown of a request before they decide. With ``reveal`` what is
        hidden, too, where they may decide; the log says who looked."""
        confirmations = self._parts.confirmations
        if reveal:
            asked = await confirmations.reveal(
                confirmation_id, await self._caller(chat, "reveal", confirmation_id)
            )
        else:
            asked = await confirmations.find(confirmation_id)
        card = await confirmations.card(asked, reveal=reveal)
        told = picked(asked, "id", "status", "digest", "expires_at")
        needs = {"needs_reason": asked.terms.needs_reason}
        return told | needs | {"card": msgspec.to_builtins(card) if card else None}

    async def decide(
        self,
        confirmation_id: str,
        digest: str,
        approves: bool,
        chat: str = CLI,
        looked: bool = False,
        target: str | None = None,
        reason: str | None = None,
    ) -> str:
        """Decide about the action with this digest; what became of it. ``looked``: at what is hidden."""
        caller = await self._caller(chat, "approve" if approves else "deny", confirmation_id)
        confirmations = self._parts.confirmations
        asked = await confirmations.find(confirmation_id)
        if approves and asked.status is Status.PENDING:
            card = await confirmations.card(asked)
            if card:
                card.check_looked(asked.id, looked, LOOK_FIRST)
                card.check_typed(asked.id, target)
        act = confirmations.approve if approves else confirmations.deny
        return await deciding.told(
            self._parts, await act(confirmation_id, caller, reason=reason, digest=digest)
        )

    async def _caller(self, chat: str, what: str, confirmation_id: str) -> Caller:
        """Whoever sits at the terminal."""
        source = source_of(chat)
        verdict = await self._parts.authorization.look(source, authenticates=True)
        return await deciding.caller_of(self._parts, source, verdict.role, what, confirmation_id)


def source_of(chat: str) -> SessionSource:
    if chat == CLI:
        return SessionSource.local_cli()
    if not chat.strip() or not chat.isprintable() or len(chat) > MAX_NAME_CHARACTERS:
        why = f"use 1 to {MAX_NAME_CHARACTERS} visible characters"
        raise errors.InvalidInput(what=f"Chat name {chat!r}", why=why)
    return SessionSource(platform=TERMINAL, chat_id=chat, chat_name=chat)


def _plain_delivery(delivery: deliveries.Delivery) -> Plain:
    return picked(
        delivery, "id", "kind", "state", "text", "final", "turn_id", "confirmation_id", "created_at"
    )
