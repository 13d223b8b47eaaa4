"""A gateway in this process: a channel that remembers, the scripted agent, a real store."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from frontdesk import GatewayConfig, Platform, SessionSource, SessionStore
from frontdesk.agents import scripted
from frontdesk.app.gateway import Gateway
from frontdesk.contracts.agents import Agent, Line
from frontdesk.contracts.channels import Capabilities, Channel, Desk, Incoming, Receipt, Route
from frontdesk.model import deliveries, events, turns
from frontdesk.model.running import Running
from tests import patience

PATIENCE_SECONDS = patience.PATIENCE_SECONDS
POLL_SECONDS = 0.01

T = TypeVar("T")


async def poll(look: Callable[[], Awaitable[T | None]]) -> T:
    """What is looked for, as soon as it is there."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            found = await look()
            if found is not None:
                return found
            await asyncio.sleep(POLL_SECONDS)


class Resting(scripted.Driver):
    """The scripted agent, with ``!rest``: it goes on when it may, or when it is stopped."""

    def __init__(self, **options: Any) -> None:
        super().__init__(scripted.Options(**options))
        self.may_go_on = asyncio.Event()

    def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event, None]:
        return RestingPerformance(turn, line, self._options, self.may_go_on).run()


class RestingPerformance(scripted.Performance):
    def __init__(self, *given: Any) -> None:
        *others, self._may_go_on = given
        super().__init__(*others)

    async def do_rest(self, step: scripted.Step) -> Sequence[events.Event]:
        going_on = asyncio.ensure_future(self._may_go_on.wait())
        stopped = asyncio.ensure_future(self._wait(None))
        await asyncio.wait({going_on, stopped}, return_when=asyncio.FIRST_COMPLETED)
        for each in (going_on, stopped):
            each.cancel()
        return []


class Notebook:
    """A channel that writes down what it is given to send; its outcomes can be chosen."""

    def __init__(self, name: str = "matrix", account: str | None = None, **capabilities: Any) -> None:
        self.name = name
        self.account = account
        self.capabilities = Capabilities(**({"authenticates": True} | capabilities))
        self.sent: list[deliveries.Delivery] = []
        self.outcomes: list[deliveries.Outcome | Exception] = []
        self.arrived = asyncio.Event()

    @property
    def routes(self) -> Sequence[Route]:
        return ()

    async def receive(self, desk: Desk) -> None:
        await asyncio.Event().wait()

    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        outcome = self.outcomes.pop(0) if self.outcomes else deliveries.Sent(message_id=f"m{len(self.sent)}")
        if isinstance(outcome, Exception):
            raise outcome
        if isinstance(outcome, deliveries.Sent):
            self.sent.append(delivery)
            self.arrived.set()
        return outcome

    async def close(self) -> None:
        pass

    @property
    def replies(self) -> list[str]:
        return [each.text for each in self.sent if each.kind is deliveries.DeliveryKind.REPLY]

    @property
    def notices(self) -> list[str]:
        return [each.text for each in self.sent if each.kind is deliveries.DeliveryKind.NOTICE]

    async def wait_for(self, count: int, kind: str = "reply") -> list[str]:
        """The texts of that kind, as soon as there are so many."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(texts := self.replies if kind == "reply" else self.notices) < count:
                self.arrived.clear()
                await self.arrived.wait()
        return texts


class House:
    """A gateway with its notebook, and people who write to it."""

    def __init__(self, gateway: Gateway, notebook: Notebook) -> None:
        self.gateway = gateway
        self.notebook = notebook
        self.sessions = gateway.parts.conversations
        self.store = gateway.parts.store
        self._events = 0

    def source(self, user: str = "ann", chat: str | None = None, **fields: Any) -> SessionSource:
        values = {"platform": Platform(self.notebook.name), "account": self.notebook.account}
        values |= {"chat_id": chat or f"chat-{user}", "user_id": user, "user_name": user.title()}
        return SessionSource(**(values | fields))

    async def say(self, text: str, user: str = "ann", event_id: str | None = None, **fields: Any) -> Receipt:
        """Hand in a message."""
        return await self.gateway.desk.accept(self.incoming(text, user, event_id, **fields))

    async def bring(self, text: str, user: str = "ann", **fields: Any) -> turns.Turn:
        """A message that another node has taken in, and left to whoever claims it."""
        source, now = self.source(user), self.gateway.parts.clock.now()
        self._events += 1
        turn = turns.Turn(
            id=f"t_brought{self._events}",
            session_key=await self.key(user),
            source=source,
            text=text,
            received_at=now,
            **fields,
        )
        return (await self.store.turns.accept(turn, lambda *_: turns.Admission())).turn

    def incoming(self, text: str, user: str = "ann", event_id: str | None = None, **fields: Any) -> Incoming:
        self._events += 1
        source = fields.pop("source", None) or self.source(user)
        return Incoming(source=source, text=text, event_id=event_id or f"e{self._events}", **fields)

    async def ask(self, text: str, user: str = "ann", **fields: Any) -> str:
        """Hand in a message and wait for what is said to it at the end."""
        receipt = await self.say(text, user, **fields)
        await self.finished(receipt.turn_id)
        said = [each for each in await self.store.deliveries.of_turn(receipt.turn_id) if each.final]
        return said[-1].text if said else ""

    async def finished(self, turn_id: str) -> turns.Turn:
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for happened in self.gateway.desk.follow(turn_id):
                if isinstance(happened, turns.Turn):
                    return happened
        raise AssertionError("the turn never ended")

    async def until(self, turn_id: str, state: turns.TurnState) -> turns.Turn:
        """Wait until a turn is in a state."""

        async def look() -> turns.Turn | None:
            turn = await self.store.turns.find(turn_id)
            return turn if turn and turn.state is state else None

        return await poll(look)

    async def rows(self, count: int, user: str = "ann") -> list[dict[str, Any]]:
        """The transcript, as soon as it has so many rows."""

        async def look() -> list[dict[str, Any]] | None:
            rows = await self.transcript(user)
            return rows if len(rows) >= count else None

        return await poll(look)

    async def troubled(self) -> list[deliveries.Delivery]:
        """The deliveries in trouble, as soon as there are some."""

        async def look() -> list[deliveries.Delivery] | None:
            return await self.store.deliveries.troubled(100) or None

        return await poll(look)

    async def transcript(self, user: str = "ann", **fields: Any) -> list[dict[str, Any]]:
        key = await self.sessions.session_key_for(self.source(user, **fields))
        session_id = await self.sessions.peek_session_id(key)
        return await self.sessions.load_transcript(session_id) if session_id else []

    async def key(self, user: str = "ann", **fields: Any) -> str:
        return await self.sessions.session_key_for(self.source(user, **fields))


@asynccontextmanager
async def open_house(
    url: str,
    *,
    config: GatewayConfig | None = None,
    running: Running | None = None,
    agent: Agent | None = None,
    notebook: Notebook | None = None,
    others: Sequence[Channel] = (),
    **parts: Any,
) -> AsyncIterator[House]:
    notebook = notebook or Notebook()
    clock = parts.get("clock")
    busy = parts.pop("has_active_processes_fn", None)
    async with await SessionStore.open(url, config, clock=clock, has_active_processes_fn=busy) as sessions:
        driver = agent or scripted.Driver(scripted.Options())
        gateway = Gateway(
            sessions, driver, [notebook, *others], running=running or Running(drain_seconds=1.0), **parts
        )
        async with gateway.started():
            yield House(gateway, notebook)
