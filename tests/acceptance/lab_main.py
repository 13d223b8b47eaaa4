"""A gateway of the laboratory: the real parts, put together as `frontdesk run` does, around a planned death.

It writes what the agent begins and ends to its standard output, line by line, so that somebody else knows
after it died.

    python -m tests.acceptance.lab_main frontdesk.toml 'after:turns.finish:3'
"""

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, cast

import msgspec
import uvloop

from frontdesk import config as settings
from frontdesk.app.build import make_agent, make_channels
from frontdesk.app.gateway import Gateway
from frontdesk.app.sessions import SessionStore
from frontdesk.contracts.agents import Abilities, Agent, Line
from frontdesk.model import events
from frontdesk.model.turns import Accepted, Turn, TurnClaim
from frontdesk.stores.store import Store
from frontdesk.stores.turns import Turns
from frontdesk.testing import crashes
from frontdesk.testing.crashes import When
from frontdesk.web import server


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened in a node, at a time that all processes of the machine share."""

    what: str
    """``ready``, ``began``, ``went on``, ``ended`` or ``died``; ``claimed`` and ``taken``: somebody got the
    turn, or took it from whoever had that attempt."""
    at: float
    key: str = ""
    turn: str = ""
    attempt: int = 0


def tell(what: str, **fields: object) -> None:
    note = msgspec.convert({"what": what, "at": time.monotonic()} | fields, Note)
    os.write(sys.stdout.fileno(), msgspec.json.encode(note) + b"\n")


def die() -> None:
    tell("died")
    crashes.kill_self()


class ToldAgent:
    """An agent whose beginnings and ends are told."""

    def __init__(self, agent: Agent, crash: crashes.Crash) -> None:
        self._agent = agent
        self._crash = crash

    @property
    def abilities(self) -> Abilities:
        return self._agent.abilities

    async def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event, None]:
        facts = {"key": turn.session_key, "turn": turn.turn_id, "attempt": turn.attempt}
        tell("began", **facts)
        self._crash.meet(When.BEFORE, "agent.run")
        try:
            async with aclosing(self._agent.run(turn, line)) as stream:
                async for event in stream:
                    yield event
                    tell("went on", **facts)
                    self._crash.meet(When.AFTER, "agent.run")
        finally:
            tell("ended", **facts)

    async def release(self, session_id: str) -> None:
        await self._agent.release(session_id)

    async def close(self) -> None:
        await self._agent.close()


class ToldTurns:
    """Turns of a store whose claims and recoveries are told."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def __getattr__(self, name: str) -> Any:
        return getattr(self._turns, name)

    async def accept(self, *arguments: Any, **named: Any) -> Accepted:
        accepted = await self._turns.accept(*arguments, **named)
        if accepted.claim:
            tell("claimed", turn=accepted.turn.id, attempt=accepted.turn.attempts)
        return accepted

    async def claim(self, *arguments: Any, **named: Any) -> list[TurnClaim]:
        claims = await self._turns.claim(*arguments, **named)
        for claim in claims:
            tell("claimed", turn=claim.turn.id, attempt=claim.turn.attempts)
        return claims

    async def recover(self, *arguments: Any, **named: Any) -> list[Turn]:
        recovered = await self._turns.recover(*arguments, **named)
        for turn in recovered:
            tell("taken", turn=turn.id, attempt=turn.attempts)
        return recovered


class ToldStore:
    def __init__(self, store: Store) -> None:
        self._store = store
        self.turns = ToldTurns(store.turns)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def run(config: settings.Config, crash: crashes.Crash) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    async with await SessionStore.open(config.store_url, config.gateway) as opened:
        told = cast("Store", ToldStore(opened.store))
        sessions = SessionStore(crashes.fragile_store(told, crash), config.gateway)
        gateway = Gateway(
            sessions,
            ToldAgent(make_agent(config), crash),
            crashes.fragile_channels(make_channels(config), crash),
            running=config.running,
        )
        async with gateway.started(), server.serving(gateway, host=config.host, port=config.port):
            tell("ready")
            await stopping.wait()
            await gateway.close()


def main(file: str, order: str) -> None:
    logging.basicConfig(level=logging.WARNING)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run(settings.load(file), crashes.Crash(order or None, die)))


if __name__ == "__main__":
    main(*sys.argv[1:])
