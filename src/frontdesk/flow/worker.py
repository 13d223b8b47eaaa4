"""The worker: runs turns and sends answers on one node, and takes over what dead nodes left."""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import Context
from functools import partial
from typing import Any

from frontdesk import errors
from frontdesk.contracts.bells import Topic
from frontdesk.contracts.store import Admit
from frontdesk.flow import prompts
from frontdesk.flow.clockwatch import Setbacks
from frontdesk.flow.continuation import Continuation
from frontdesk.flow.crew import AskedAt, Crew, Held, Place, ask, until_stored
from frontdesk.flow.delivery import Sender, Sending
from frontdesk.flow.endings import set_aside_notices
from frontdesk.flow.expiry import Forgetting, order_expired
from frontdesk.flow.parts import Parts
from frontdesk.flow.rounds import going_on
from frontdesk.flow.runner import RunningTurn
from frontdesk.logs import get_logger
from frontdesk.model import lanes, messages, turns, whatsapp
from frontdesk.model.chats import Cursor
from frontdesk.model.resolution import Opening

RENEWALS = 3
"""In the time that a lease lasts."""
RECOVER_SECONDS = 2.0
SIGNAL_SECONDS = 1.0
TRIAL_CHECK_SECONDS = 0.5
LAST_SENDS_SECONDS = 1.0
"""What is being sent when the turns have used up the time to stop may go on for so long."""
PRUNE_SECONDS = 3600.0
FOLD_SECONDS = 60.0
BEGUN_TOGETHER = 4
"""So few turns are begun in the transaction that claims them. More are begun side by side."""
STORE_PAUSE_SECONDS = 0.5
TEMPORARY = (errors.StoreUnavailable, errors.StoreFull, errors.ReadOnlyStore, errors.StoreClosed)
"""What is the store's trouble and not the turn's: the attempt does not count."""
HOPELESS = (errors.StoreClosed, errors.StoreRefused, errors.CorruptDatabase)
"""What is not tried again: the lease runs out, and the attempt has counted."""

log = get_logger(__name__)


class Worker:
    def __init__(self, parts: Parts, node: int) -> None:
        self._parts = parts
        self._node = node
        self._running: dict[str, RunningTurn] = {}
        self._begun_of: dict[lanes.LaneKind, deque[str]] = {
            lanes.LaneKind.TURN: deque(maxlen=parts.running.turns_at_once),
            lanes.LaneKind.CONTROL: deque(maxlen=parts.running.commands_at_once),
        }
        """Whose turns were begun last, as many as there are places."""
        self._suspects: dict[str, RunningTurn] = {}
        """Of those the suspects, for whom others may have to wait."""
        self._sending: dict[str, Sending] = {}
        self._sender = Sender(parts)
        self._setbacks = Setbacks()
        self._forgetting = Forgetting(parts)
        self._closing = asyncio.Event()
        self._draining = False
        self._continuation = Continuation(parts.conversations.config.freshness, parts.clock.now())
        parts.turnstile.accept = self.accept
        self._turns = self._crew_of(Topic.TURNS, lanes.LaneKind.TURN, parts.running.turns_at_once)
        self._control = self._crew_of(Topic.CONTROL, lanes.LaneKind.CONTROL, parts.running.commands_at_once)
        self._deliveries = Crew(
            parts,
            Topic.DELIVERIES,
            parts.running.deliveries_at_once,
            self._claim_deliveries,
            self._send,
            self._sender.put_back,
            parts.store.deliveries.next_due,
            is_handed_work=True,
        )

    def _crew_of(self, topic: Topic, kind: lanes.LaneKind, places: int) -> Crew[RunningTurn]:
        claim, next_due = partial(self._claim, kind), partial(self._parts.store.turns.next_due, kind)
        return Crew(self._parts, topic, places, claim, self._run_turn, RunningTurn.put_back, next_due)

    async def run(self) -> None:
        """Work until closed."""
        async with asyncio.TaskGroup() as group:
            for crew in (self._turns, self._control, self._deliveries):
                group.create_task(crew.run())
            for job, seconds in (
                (self._recover, RECOVER_SECONDS),
                (self._renew, self._parts.running.lease_seconds / RENEWALS),
                (self._acquit, TRIAL_CHECK_SECONDS),
                (self._expire, self._parts.running.expiry_check_seconds),
                (self._forgetting.sweep, PRUNE_SECONDS),
                (self._parts.store.usage.fold_all, FOLD_SECONDS),
            ):
                group.create_task(self._repeat(job, partial(self._pause, seconds)))
            bell = self._parts.store.bells.listen(Topic.SIGNALS)
            group.create_task(self._repeat(self._pass_signals, partial(bell.wait, SIGNAL_SECONDS)))

    async def close(self, hurried: asyncio.Event) -> None:
        """Claim no more, let turns finish for a while unless it is to be hurried, put the rest back; those
        that wait for a person, at once. Whatever cuts this short, no attempt counts that it cuts off."""
        self._draining = True
        # Deliveries are still claimed: turns that end now have something to say. That the node stops is noted
        # beside it, and not before: the store may be slow, and a turn that waits for a person should end at
        # once. Killed in between, an attempt counts at worst.
        self._turns.close()
        self._control.close()
        announce = partial(self._parts.store.nodes.announce_stop, self._node, self._parts.clock.now())
        announcing = asyncio.create_task(until_stored(announce, HOPELESS))
        try:
            await self._drain(hurried)
        finally:
            announcing.cancel()
            await asyncio.gather(announcing, return_exceptions=True)
        self._closing.set()
        self._parts.store.bells.ring(Topic.SIGNALS, far=False)

    async def _drain(self, hurried: asyncio.Event) -> None:
        """Turns and what they send have `drain_seconds` together."""
        running, time = self._parts.running, asyncio.get_running_loop().time
        end = time() + running.drain_seconds
        if not await self._turns.drained(running.drain_seconds, hurried):
            log.warning("turns_put_back", turns=len(self._running))
            await self._turns.abandon()
        await self._control.drained(STORE_PAUSE_SECONDS, hurried)
        await self._control.abandon()
        self._deliveries.close(empties=True)  # what a turn has just said may not be claimed yet
        left = max(end - time(), min(LAST_SENDS_SECONDS, running.drain_seconds))
        await self._deliveries.drained(min(left, running.send_seconds), hurried)
        await self._deliveries.abandon()

    async def _claim(self, kind: lanes.LaneKind, limit: int) -> list[RunningTurn]:
        parts, now = self._parts, self._parts.clock.now()
        due = await parts.store.turns.due(kind, now, BEGUN_TOGETHER + 1)
        if not due:
            return []
        few = due if len(due) <= BEGUN_TOGETHER else ()
        openings = {turn.id: opening for turn in few if turn and (opening := self._opening(turn))}
        suspects = [running.turn for running in self._suspects.values() if not running.is_waiting]
        # Where all that is due can be begun, nobody has to wait for anybody.
        crowded = len(due) > min(limit, BEGUN_TOGETHER)
        places = self._places(kind) if crowded else lanes.UNSHARED
        asked, seconds = ask(parts), parts.running.lease_seconds
        claim = partial(
            parts.store.turns.claim,
            self._node,
            kind,
            limit,
            now,
            partial(set_aside_notices, parts, now),
            beside=turns.Beside(suspects, places),
            lease_seconds=seconds,
        )
        try:
            claims = await claim(openings=openings)
        except (*TEMPORARY, errors.DatabaseGone, errors.CorruptDatabase):  # no trouble of the turn's
            raise
        except errors.StoreError as error:
            # One that cannot be begun must not keep the others from being claimed: it ends by itself then.
            log.warning("store_troubled", turns=len(openings), why=str(error))
            claims = await claim(openings={})
        return [self._begun(claim, asked, kind, openings.get(claim.turn.id)) for claim in claims]

    def _places(self, kind: lanes.LaneKind) -> lanes.Sharing:
        """Who has how many of the places for turns, or for commands."""
        running, commands = self._parts.running, kind is lanes.LaneKind.CONTROL
        taken = Counter(
            each.turn.party
            for each in self._running.values()
            if (each.turn.kind in turns.PROMPT) is commands and not each.is_waiting
        )
        # Those that all end at once, or have the only place, have nothing when it is claimed anew.
        taken |= Counter(self._begun_of[kind])
        return lanes.Sharing(running.commands_at_once if commands else running.turns_at_once, dict(taken))

    def _opening(self, turn: turns.Turn) -> Opening | None:
        """How a message begins that is about to be claimed for the first time. Another node may claim it
        first, and its session may change: the claim looks again whether it still fits."""
        if turn.kind is not turns.TurnKind.MESSAGE or turn.attempts or turn.parts:
            return None
        if turn.files:
            return None  # they are fetched first
        if turn.source.platform is whatsapp.PLATFORM:
            return None  # a name learned since it came in may have moved its conversation
        row = prompts.user_message(self._parts, turn, turn.content or turn.text)
        with suppress(errors.FrontdeskError):  # what cannot be written fails its own turn, later
            resolver = self._parts.conversations.resolver(turn.source)
            return Opening(resolver, messages.pack(row, turn.id, 0), turn.text, row)
        return None

    def _begun(
        self, claim: turns.TurnClaim, asked: AskedAt, kind: lanes.LaneKind, opening: Opening | None
    ) -> RunningTurn:
        """What is claimed counts as running at once: the next claim looks at what it would run beside."""
        turn = claim.turn
        interrupted = turn.interrupted_at is not None
        lapsed = interrupted and self._continuation.has_lapsed(turn, self._parts.clock.now())
        begun_by = opening if claim.begun else None
        running = RunningTurn(self._parts, claim, asked, self._deliveries, begun_by, has_lapsed=lapsed)
        # Its lease ran out while this node stood still, and it was put back and claimed here again: the
        # attempt before is still under way, under a token that counts no more.
        if lost := self._running.get(turn.id):
            lost.lose()
        self._running[turn.id] = running
        self._begun_of[kind].append(turn.party)
        if turn.is_suspect:
            self._suspects[turn.id] = running
        return running

    async def accept(
        self,
        turn: turns.Turn,
        admit: Admit,
        cursor: Cursor | None = None,
        gather: turns.Gathering | None = None,
    ) -> turns.Accepted:
        """Take a message in; where there is a place for it and nothing waits, it is begun as it is."""
        is_prompt = turn.kind in turns.PROMPT
        crew = self._control if is_prompt else self._turns
        if gather or not crew.has_room:
            return await self._parts.store.turns.accept(turn, admit, cursor, gather)
        accepted: list[turns.Accepted] = []
        kind = lanes.LaneKind.CONTROL if is_prompt else lanes.LaneKind.TURN
        # The write goes on when whoever brought the message leaves: what was claimed by it is run, and
        # whoever closes the crew waits for both.
        apart = Context()  # what comes of it is no part of the request that brought it
        claiming = self._accept_and_claim(accepted.append, kind, turn, admit, cursor)
        accepting = apart.run(asyncio.create_task, claiming)
        apart.run(crew.begin, None, accepting)
        await asyncio.shield(accepting)
        return accepted[0]

    async def _accept_and_claim(
        self,
        tell: Callable[[turns.Accepted], None],
        kind: lanes.LaneKind,
        turn: turns.Turn,
        admit: Admit,
        cursor: Cursor | None,
    ) -> RunningTurn | None:
        parts, asked = self._parts, ask(self._parts)
        taker = lanes.Taker(node=self._node, lease_seconds=parts.running.lease_seconds)
        accept, opening = partial(parts.store.turns.accept, turn, admit, cursor), self._opening(turn)
        try:
            accepted = await accept(taker=taker, opening=opening)
        except TEMPORARY:
            raise
        except errors.StoreError as error:
            # One that cannot be begun is taken in all the same: it ends by itself then.
            log.warning("store_troubled", turn=turn.id, why=str(error))
            accepted = await accept()
        tell(accepted)
        return self._begun(accepted.claim, asked, kind, opening) if accepted.claim else None

    async def _claim_deliveries(self, limit: int) -> list[Sending]:
        parts, asked = self._parts, ask(self._parts)
        seconds, now = parts.running.lease_seconds, parts.clock.now()
        claims = await parts.store.deliveries.claim(self._node, limit, now, lease_seconds=seconds)
        return [Sending(parts, claim, asked) for claim in claims]

    async def _run_turn(self, running: RunningTurn, place: Place) -> None:
        turn_id = running.turn.id
        try:
            await running.run(place)
        except asyncio.CancelledError:
            with suppress(errors.LeaseLost):  # it had just ended, and somebody else has the lane
                await running.put_back()
            raise
        except errors.LeaseLost:
            log.warning("lease_lost", turn=turn_id)
        except TEMPORARY as error:
            log.warning("store_troubled", turn=turn_id, why=str(error))
            await until_stored(partial(running.put_back, mark=False), HOPELESS, turn=turn_id)
        except errors.StoreFailed as error:
            log.warning("store_troubled", turn=turn_id, why=str(error))
            await until_stored(partial(running.put_back, mark=False, counts=True), HOPELESS, turn=turn_id)
        except errors.StoreError as error:
            log.warning("store_troubled", turn=turn_id, why=str(error))
            await until_stored(partial(running.give_up, error), HOPELESS, turn=turn_id)
        except Exception as error:
            log.exception("turn_crashed", turn=turn_id)
            await until_stored(partial(running.give_up, error), HOPELESS, turn=turn_id)
        finally:
            if self._running.get(turn_id) is running:  # a turn that was lost may be here again
                del self._running[turn_id]
                self._suspects.pop(turn_id, None)
            self._parts.live.tell(turn_id, None)

    async def _send(self, sending: Sending, _: Place) -> None:
        delivery_id = sending.claim.delivery.id
        if lost := self._sending.get(delivery_id):
            lost.lose()
        self._sending[delivery_id] = sending
        try:
            await self._sender.send(sending)
        finally:
            if self._sending.get(delivery_id) is sending:  # one that was lost may be here again
                del self._sending[delivery_id]

    async def _pass_signals(self) -> None:
        """Tell running turns to stop, and of messages that are to be steered into them."""
        for signals in await self._parts.store.turns.signals(self._node) if self._running else ():
            running = self._running.get(signals.turn_id)
            if running and signals.stop:
                running.stop()
            if running and signals.steering:
                running.steer(signals.steering)

    async def _repeat(
        self, job: Callable[[], Awaitable[object]], wait: Callable[[], Awaitable[object]]
    ) -> None:
        while not self._closing.is_set():
            with going_on():
                while not self._closing.is_set():
                    await job()
                    await wait()
                return
            await wait()

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closing.wait()

    async def _acquit(self) -> None:
        """Those that have run for a while are no longer on trial: others may be begun."""
        for running in list(self._running.values()):
            if running.turn.on_trial and running.seconds >= turns.TRIAL_SECONDS:
                with suppress(errors.LeaseLost):
                    await self._parts.store.turns.acquit(running.claim)
                    running.acquit()

    @property
    def _held(self) -> list[Held[Any]]:
        return [*self._running.values(), *self._sending.values()]

    async def _renew(self) -> None:
        held, asked = self._held, ask(self._parts)
        leases, seconds = [each.lease for each in held], self._parts.running.lease_seconds
        renewed = await self._parts.store.turns.renew(leases, lease_seconds=seconds) if held else ()
        for each in held:
            if each.lease in renewed:
                each.asked = asked

    async def _let_go(self) -> None:
        """Stop what is no longer ours: while we could not be seen, others may have taken it."""
        known = self._held
        held = await self._parts.store.turns.held(self._node) if known else ()
        for each in known:
            if each.lease not in held:
                each.lose()

    async def _recover(self) -> None:
        """Take over what nodes held that are gone, or have not renewed their leases."""
        # First what was taken from us: it may be due again, and is claimed here once more after this.
        await self._let_go()
        store, now = self._parts.store, self._parts.clock.now()
        gone, late = await store.nodes.left_behind(self._node)
        if self._setbacks.happened(now) or gone:  # theirs may have been another time
            await store.turns.hasten(now)
        for node in gone:
            recovered = await self._take_over(node, overdue=False)
            log.info("node_recovered", node=node, turns=len(recovered))
        if self._node in late:  # a claim was stored and its answer lost: renew what we know of first
            await self._renew()
        for node in late:
            await self._take_over(node, overdue=True)
            log.warning("lease_overdue", node=node)

    async def _take_over(self, node: int, *, overdue: bool) -> list[turns.Turn]:
        parts = self._parts
        now, seconds = parts.clock.now(), parts.running.lease_seconds
        return await parts.store.turns.recover(
            node, parts.try_again_at, now, overdue=overdue, lease_seconds=seconds
        )

    async def _expire(self) -> None:
        if not self._draining:
            await order_expired(self._parts)
