"""Intake: a message is checked, addressed and stored; only then does the platform hear that we have it."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.contracts.channels import (
    Capabilities,
    CommandHint,
    Deleted,
    Edited,
    Happening,
    Incoming,
    Pressed,
    Reacted,
    Receipt,
)
from frontdesk.contracts.store import Admit
from frontdesk.flow import authors, checks, happenings, offering, presses
from frontdesk.flow.authorization import REFUSALS
from frontdesk.flow.collecting import Collecting
from frontdesk.flow.commands import Command, registry
from frontdesk.flow.parts import new_id
from frontdesk.logs import get_logger
from frontdesk.model import access, deliveries, lanes, turns
from frontdesk.model.chats import Allowance, ChatSign, Cursor, Quota
from frontdesk.model.sources import ChatType, SessionSource
from frontdesk.model.turns import Admission, Busy, Turn, TurnKind

ALBUM_SECONDS = 1.0
"""How long the next picture of an album is waited for."""

BUSY_NOTICES = {
    Busy.QUEUE: "I am still working on something. Your message is queued and comes next.",
    Busy.STEER: "I am working, and pass your message on right away.",
    Busy.INTERRUPT: "I stop what I was doing and turn to your message.",
}

WAITING_NOTICE = (
    "I wait for somebody to allow what I asked for. Your message is queued and comes next;"
    " /approve and /deny decide, /stop ends the waiting."
)

NOTHING_TO_STEER = "Nothing is running that could be steered. I take it as your next message."
CANNOT_STEER = "What runs now cannot be steered. Your message is queued and comes next."
BEHIND_OTHERS = "Your message is queued behind {count} before it."

FULL = (
    "{waiting} messages wait for me here, and I may not take in more."
    " Wait for an answer, or end what runs with /stop."
)
FULL_ELSEWHERE = (
    "{waiting} messages of yours wait for me in all your chats, and I may not take in more."
    " Wait for an answer, or end what runs with /stop."
)
TELL_FULL_SECONDS = 600
ENOUGH = (
    "I have answered so much here lately that I make a pause: two programs might be answering each other."
    " This message and those that follow are not read. Please write again later."
)
NO_WORDS = "(something other than a message)"

log = get_logger(__name__)


class Intake(Collecting):
    """The desk that channels hand their messages to."""

    async def accept(self, happening: Happening, *, cursor: Cursor | None = None) -> Receipt:
        try:
            checks.check_event(happening.event_id, happening.source.message_id)
            self._check_origin(happening.source)
            if happening.source.is_bot and isinstance(happening, Edited | Reacted | Pressed):
                return await self._pass_over(happening.source, cursor)
            source = self._parts.conversations.directed(happening.source)
            if source is not happening.source:
                happening = replace(happening, source=source)
            match happening:
                case Incoming():
                    return await self._accept(happening, cursor)
                case Pressed():
                    checks.check_token(happening.token)
                    return await self._press(happening, cursor)
                case Edited():
                    checks.check_text(happening.text)
            return await self._change(happening, cursor)
        except REFUSALS as refusal:
            self._parts.refusals.count(refusal)
            raise

    async def admits(self, source: SessionSource) -> bool:
        self._check_origin(source)
        try:
            await self._admitted(source, self._parts.capabilities_of(source), answers=False)
        except errors.NotAllowed:
            return False
        return True

    async def move_cursor(self, cursor: Cursor) -> None:
        if self._channel:
            await self._parts.store.cursors.move(self._channel.name, self._channel.account, cursor)

    async def cursors(self) -> Mapping[str, str]:
        channel = self._channel
        return await self._parts.store.cursors.of_account(channel.name, channel.account) if channel else {}

    def commands(self) -> Sequence[CommandHint]:
        return [CommandHint(name=each.name, usage=each.usage, help=each.help) for each in registry.COMMANDS]

    async def _pass_over(self, source: SessionSource, cursor: Cursor | None) -> Receipt:
        """Bots write in a stream of edits, and a sign that we put comes back as if somebody had."""
        if cursor:
            await self._parts.store.cursors.move(str(source.platform), source.account, cursor)
        return Receipt(turn_id="", session_key="")

    async def _change(self, happening: Edited | Deleted | Reacted, cursor: Cursor | None) -> Receipt:
        """Take in what was done to a message that may be here."""
        role = None
        if not isinstance(happening, Deleted):  # what is gone is gone, whoever took it away
            able = self._parts.capabilities_of(happening.source)
            verdict = await self._admitted(happening.source, able, answers=False)
            role = verdict.role
            if isinstance(happening, Reacted) and presses.is_sign(happening.emoji):
                self._parts.presses.check(verdict.who, self._parts.clock.now())
        event = await self._event(happening, TurnKind.OBSERVED, role)
        decide = partial(happenings.change, self._parts, happening, event)
        accepted = await self._parts.store.turns.change(event, decide, cursor)
        if accepted is None:
            return Receipt(turn_id="", session_key=event.session_key)
        return Receipt(
            turn_id=accepted.turn.id, session_key=accepted.turn.session_key, repeated=accepted.repeated
        )

    async def _press(self, pressed: Pressed, cursor: Cursor | None) -> Receipt:
        able = self._parts.capabilities_of(pressed.source)
        verdict = await self._admitted(pressed.source, able, answers=False)
        self._parts.presses.check(verdict.who, self._parts.clock.now())
        turn = replace(await self._event(pressed, TurnKind.PRESS, verdict.role), token=pressed.token)
        accepted = await self._parts.turnstile.accept(turn, lambda *_: Admission(), cursor)
        return Receipt(turn_id=accepted.turn.id, session_key=turn.session_key, repeated=accepted.repeated)

    async def _event(self, happening: Happening, kind: TurnKind, role: access.Role | None) -> Turn:
        key, party = await self._parts.conversations.place(happening.source)
        return Turn(
            id=new_id("t"),
            kind=kind,
            session_key=key,
            source=happening.source,
            party=party,
            text=NO_WORDS,
            role=str(role) if role else None,
            event_id=happening.event_id,
            received_at=self._parts.clock.now(),
        )

    async def _accept(self, incoming: Incoming, cursor: Cursor | None) -> Receipt:
        checks.check_message(incoming)
        meant = await self._is_meant(incoming)
        source, author = incoming.source, incoming.author
        able = self._parts.capabilities_of(source)
        verdict = authors.verdict(incoming) if author else await self._admitted(source, able, answers=meant)
        if meant and not author and able.quotas:
            await self._keep_quotas(incoming, able.quotas, verdict)
        key, party = await self._parts.conversations.place(source)
        digits = incoming.text.strip().isdigit() and not source.is_bot and not author
        if digits and (token := await offering.chosen_by(self._parts, incoming, key)):
            pressed = Pressed(source=incoming.source, token=token, event_id=incoming.event_id)
            return await self._press(pressed, cursor)
        turn, command, argument = self._turn(incoming, key, party, verdict, meant)
        admit: Admit = partial(self._admit, turn, command, incoming.busy)
        if author:
            admit = authors.shown_before(self._parts, turn, command, admit)
        gather = self._gathering(turn, command)
        try:
            accepted = await self._parts.turnstile.accept(turn, admit, cursor, gather)
        except errors.TooManyWaiting as refusal:
            await self._tell_full(turn, refusal)
            raise
        if accepted.running and command and command.stops_when:
            try:
                # By now the other turn may have ended: then there is nothing to stop.
                if await command.stops_when(self._parts, turn, argument):
                    await self._parts.store.turns.interrupt(accepted.running, by=turn.sender)
                elif (
                    self._parts.running.busy_notice
                    and not author
                    and (waits := self._parts.notices(turn, BUSY_NOTICES[Busy.QUEUE]))
                ):
                    await self._parts.store.deliveries.add(waits)
            except errors.StoreError as error:  # the message is ours by now, and its sender hears so
                log.warning("store_troubled", turn=turn.id, why=str(error))
        key = accepted.turn.session_key
        facts = {"turn": accepted.turn.id, "session_key": key, "repeated": accepted.repeated or None}
        log.info("message_accepted", platform=str(incoming.source.platform), **facts)
        fresh = not accepted.repeated and accepted.turn.part_of is None
        if self._parts.running.status_reactions and turn.kind is TurnKind.MESSAGE and fresh:
            self._parts.signs.show(turn.source, ChatSign.SEEN)
        return Receipt(
            turn_id=accepted.turn.id,
            session_key=key,
            repeated=accepted.repeated,
            waiting=accepted.waiting,
            received_at=accepted.turn.received_at,
        )

    async def _tell_full(self, turn: Turn, refusal: errors.TooManyWaiting) -> None:
        """Tell whoever writes on, once in a while; a program sees it from what it is answered."""
        capabilities = self._parts.capabilities_of(turn.source)
        if capabilities.authenticates or not capabilities.notices:
            return
        text = FULL_ELSEWHERE if isinstance(refusal, errors.TooManyOfOne) else FULL
        told = self._notice(turn.source, text.format(waiting=vars(refusal)["waiting"]))
        spell = f"{told.lane} {turn.received_at.timestamp() // TELL_FULL_SECONDS}"
        known = hashlib.sha256(spell.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        await self._parts.store.deliveries.add([replace(told, id=f"d_{known}")])

    async def _keep_quotas(
        self, incoming: Incoming, quotas: Sequence[Quota], verdict: access.AccessVerdict
    ) -> None:
        """Refuse what would be answered too often; the first who is, is told."""
        source, parts = incoming.source, self._parts
        event = incoming.event_id or new_id("e")
        allowance = await parts.store.people.take_quota(source, event, quotas, parts.clock.now())
        if allowance is Allowance.WITHIN:
            return
        if allowance is Allowance.FULL:
            log.warning(
                "answers_capped", platform=str(source.platform), account=source.account, who=verdict.who
            )
            await parts.store.deliveries.add([self._notice(source, ENOUGH)])
        raise errors.NotAllowed(who=verdict.who, rule="too many answers")

    async def _is_meant(self, incoming: Incoming) -> bool:
        """Whether it is for the agent to answer: not what is merely said in a group, and not what bots say,
        who would answer in turn."""
        source, parts = incoming.source, self._parts
        if incoming.observed or (source.is_bot and not parts.capabilities_of(source).authenticates):
            return False
        if incoming.addressed is not False or (incoming.quote and incoming.quote.is_ours):
            return True
        listening = parts.connected.get_listening(str(source.platform), source.account)
        if listening.answers_always(source):
            return True
        own_thread = source.chat_type is ChatType.THREAD and source.thread_id
        return bool(own_thread) and await parts.store.deliveries.has_spoken(lanes.chat_lane(source))

    def _check_origin(self, source: SessionSource) -> None:
        """No channel speaks for another: whose message it is decides who may do what."""
        channel = self._channel
        if channel and (str(source.platform), source.account) != (channel.name, channel.account):
            claimed = f"{source.platform}@{source.account}" if source.account else str(source.platform)
            raise errors.InvalidSource(why=f"the channel {channel.name} cannot bring messages of {claimed}")

    async def _admitted(
        self, source: SessionSource, able: Capabilities, *, answers: bool
    ) -> access.AccessVerdict:
        """Refuse strangers; some are told how they can be let in, where they are answered at all."""
        authorization = self._parts.authorization
        verdict = await authorization.look(source, able.authenticates, reliable_ids=able.reliable_sender_ids)
        if verdict.allowed:
            return verdict
        authorization.note(verdict)
        answer = await authorization.answer_stranger(source, verdict) if answers else None
        if answer:
            await self._parts.store.deliveries.add([self._notice(source, answer)])
        raise errors.NotAllowed(who=verdict.who, rule=str(verdict.rule))

    def _notice(self, source: SessionSource, text: str) -> deliveries.Delivery:
        collects = self._parts.capabilities_of(source).collects
        return deliveries.Delivery(
            id=new_id("d"),
            kind=deliveries.DeliveryKind.NOTICE,
            lane=lanes.chat_lane(source, collects=collects),
            to=source,
            text=text,
            created_at=self._parts.clock.now(),
        )

    def _turn(
        self, incoming: Incoming, key: str, party: str, verdict: access.AccessVerdict, meant: bool
    ) -> tuple[Turn, Command | None, str]:
        """The turn, with the command that its text begins with and what follows that."""
        kind, text, command, argument = TurnKind.MESSAGE, incoming.text, None, ""
        if not meant:
            kind = TurnKind.OBSERVED
        elif incoming.content is None and text.lstrip().startswith("/") and (found := registry.parse(text)):
            command, argument = found
            kind = command.kind
            if command.takes_in and argument:  # it is a message after all
                kind, text = TurnKind.MESSAGE, argument
        turn = Turn(
            id=new_id("t"),
            kind=kind,
            session_key=key,
            source=incoming.source,
            party=party,
            text=text,
            content=incoming.content,
            history=incoming.history or None,
            role=str(verdict.role) if verdict.role else None,
            author=incoming.author,
            about=incoming.about,
            files=incoming.files,
            quote=checks.shortened(incoming.quote) if incoming.quote else None,
            handle=incoming.handle,
            album=incoming.album,
            instructions=incoming.instructions,
            follows=incoming.follows,
            noted=incoming.noted,
            sent_at=incoming.sent_at,
            event_id=incoming.event_id,
            received_at=self._parts.clock.now(),
        )
        return turn, command, argument

    def _gathering(self, turn: Turn, command: Command | None) -> turns.Gathering | None:
        """How it waits for what its sender writes next, or belongs to what they wrote before; if it does."""
        source = turn.source
        seconds = self._parts.connected.get_listening(source.platform, source.account).gather_seconds
        if seconds is None:
            seconds = self._parts.running.gather_seconds
        burst = seconds > 0 and turn.kind is TurnKind.MESSAGE and command is None and turn.author is None
        if not burst and turn.album is None:
            return None
        plain = turn.content is None and turn.history is None
        if not plain or len(turn.text) > turns.MAX_GATHERED_CHARACTERS:
            return None
        if self._parts.capabilities_of(source).collects:  # a program waits for each answer by itself
            return None
        least = ALBUM_SECONDS if turn.album is not None else 0.0
        return turns.Gathering(seconds=max(seconds, least), is_burst=burst, begins=turn.quote is not None)

    def _admit(
        self,
        turn: Turn,
        command: Command | None,
        busy: Busy | None,
        running: Turn | None,
        queued: int,
        crowd: int,
    ) -> Admission:
        """What becomes of a message when something runs or waits before it. It is decided in the transaction
        that stores the message, so nothing here waits, or looks at the clock."""
        wanted = command.takes_in if command and turn.kind is TurnKind.MESSAGE else busy
        unhurried = turn.kind in turns.PROMPT or turn.kind is TurnKind.OBSERVED
        if not unhurried and crowd >= self._parts.running.most_waiting_per_person:
            raise errors.TooManyOfOne(waiting=crowd)
        alone = unhurried or (running is None and not queued)
        if alone and not wanted:
            return Admission()
        if queued >= self._parts.running.most_waiting:
            raise errors.TooManyWaiting(waiting=queued)
        if turn.kind is TurnKind.COMMAND and command and command.stops_turn:
            return Admission(interrupts=command.stops_when is None)
        usual = Busy.QUEUE if turn.kind is TurnKind.COMMAND else self._parts.running.busy_mode
        mode = self._mode(wanted or usual, running, queued)
        if turn.files and mode is Busy.STEER:  # in the middle of a turn an agent hears texts
            mode = Busy.QUEUE
        # Whoever gives an order from elsewhere is told by what it answers that it waits.
        is_order = turn.kind is TurnKind.COMMAND and turn.author is not None
        text = None if is_order else self._told(wanted, mode, running, queued)
        notices: tuple[deliveries.Delivery, ...] = ()
        if text:
            notices = self._parts.notices(turn, text, delivery_id=f"{turn.id}-busy", at=turn.received_at)
        return Admission(steers=mode is Busy.STEER, interrupts=mode is Busy.INTERRUPT, notices=notices)

    def _told(self, wanted: Busy | None, mode: Busy, running: Turn | None, queued: int) -> str | None:
        """What the sender is told of that: always who said what should become of it, else the first that has
        to wait, not each of many."""
        before = queued + (running is not None)
        if wanted is None and not (self._parts.running.busy_notice and before == 1):
            return None
        if not before:
            return NOTHING_TO_STEER if wanted is Busy.STEER else None
        if wanted and queued:
            return BEHIND_OTHERS.format(count="another" if before == 1 else f"{before} others")
        if running and running.state is turns.TurnState.WAITING:
            return WAITING_NOTICE
        return CANNOT_STEER if wanted and wanted is not mode else BUSY_NOTICES[mode]

    def _mode(self, mode: Busy, running: Turn | None, queued: int) -> Busy:
        """A turn that is not running cannot be steered, and what waits before a message goes first. One that
        waits for people is not disturbed."""
        if running is not None and running.state is turns.TurnState.WAITING:
            return Busy.QUEUE
        able = running is not None and running.kind is TurnKind.MESSAGE and not queued
        if mode is Busy.STEER and not (running and able and self._parts.abilities_of(running.source).steers):
            return Busy.QUEUE
        return mode
