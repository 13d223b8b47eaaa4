"""Collecting: who wrote comes back for what became of it, and goes on from there."""

from collections.abc import AsyncGenerator, Sequence

from frontdesk import errors
from frontdesk.contracts.channels import Channel
from frontdesk.flow import exhibits, prompts
from frontdesk.flow.following import has_ended
from frontdesk.flow.parts import Parts
from frontdesk.model import deliveries, events, lanes, messages, turns
from frontdesk.model.sources import SessionSource
from frontdesk.model.turns import Turn

MOST_COLLECTED = 1_000


class Collecting:
    """The half of the desk that gives back."""

    def __init__(self, parts: Parts, channel: Channel | None = None) -> None:
        """With a channel, only what comes from that channel's own platform and account is taken."""
        self._parts = parts
        self._channel = channel

    async def follow(self, turn_id: str) -> AsyncGenerator[events.Event | turns.Turn, None]:
        """What happens in a turn, and at the end the finished turn."""
        live, following = self._parts.live, self._parts.following
        async with following.about(turn_id) as follower:  # before the first look: what happens since comes
            with self._parts.carrying.wanted(turn_id), live.listening(turn_id, follower.ring) as heard:
                ended = await self._ended(turn_id)
                while not ended:
                    await follower.wait()
                    for event in heard.drain():
                        yield event
                    if heard.is_over() or has_ended(follower.take()):
                        ended = await self._ended(turn_id)
                await self._parts.carrying.rest(turn_id)
                for event in heard.drain():
                    yield event
                yield ended

    async def _ended(self, turn_id: str) -> Turn | None:
        turn = await self._parts.store.turns.find(turn_id)
        if turn is None:
            raise errors.UnknownTurn(turn_id=turn_id)
        return turn if turn.state in turns.FINISHED else None

    async def find(self, turn_id: str) -> Turn | None:
        turn, mine = await self._parts.store.turns.find(turn_id), self._channel
        if turn and mine and (turn.source.platform, turn.source.account) != (mine.name, mine.account):
            return None
        return turn

    async def has_begun(self, source: SessionSource) -> bool:
        key = await self._parts.conversations.route(self._parts.conversations.directed(source))
        return await self._parts.store.turns.has_come(key)

    async def said_until(self, turn: Turn) -> list[messages.Plain]:
        tip = await self._parts.store.sessions.tip(turn.session_id) if turn.session_id else None
        if turn.session_id is None or tip is None or tip.is_forgotten:
            return []
        rows = await self._parts.store.transcripts.load_until(turn.session_id, turn.id)
        return [exhibits.brought(row) for row in prompts.given_rows(messages.conversation(rows))]

    async def interrupt(self, turn_id: str) -> None:
        await self._parts.store.turns.interrupt(turn_id)

    async def uncollected(
        self, source: SessionSource, *, turn_id: str | None = None
    ) -> list[deliveries.Delivery]:
        lane = lanes.chat_lane(source, collects=True)
        waiting = await self._parts.store.deliveries.waiting(lane, MOST_COLLECTED)
        wanted = [each for each in waiting if turn_id in (None, each.turn_id)]
        return [await self._parts.as_it_stands(each) for each in wanted]

    async def answers(self, turn_id: str) -> list[deliveries.Delivery]:
        said = await self._parts.store.deliveries.of_turn(turn_id)
        return [await self._parts.as_it_stands(each) for each in said]

    async def collected(self, delivery_ids: Sequence[str]) -> None:
        await self._parts.store.deliveries.collect(delivery_ids, self._parts.clock.now())
