"""The desk of the tour: a session store, somebody who is talking, and a clock that can be moved on."""

from datetime import UTC, datetime, timedelta
from typing import Self

import msgspec
from msgspec.structs import replace

from frontdesk import errors, plugins
from frontdesk.app import SessionStore
from frontdesk.contracts.store import Store
from frontdesk.model.gateway import GatewayConfig
from frontdesk.model.people import Viewer
from frontdesk.model.platforms import Platform
from frontdesk.model.policies import EndReason
from frontdesk.model.sessions import Session, SessionEntry
from frontdesk.model.sources import SessionSource
from frontdesk.zones import machine_zone

FURTHEST = timedelta(days=3660)


class MovableClock:
    """The machine's clock, moved on by as much as was waited."""

    def __init__(self) -> None:
        self._ahead = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    def wait(self, time: timedelta) -> None:
        if self._ahead + time > FURTHEST:
            raise errors.InvalidInput(what="That wait", why=f"the tour goes {FURTHEST.days} days at most")
        self._ahead += time

    def catch_up(self, moment: datetime) -> None:
        """Be at that moment at least."""
        self._ahead = max(self._ahead, moment - datetime.now(UTC))


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a message."""

    reply: str
    entry: SessionEntry
    reset: EndReason | None


class Desk:
    """Every operation is the current person's, who sees only what is theirs."""

    def __init__(self, store: Store, gateway: GatewayConfig, clock: MovableClock) -> None:
        self._store = store
        self.clock = clock
        self.source = SessionSource(
            platform=Platform.TELEGRAM, chat_id="alice", user_id="alice", user_name="alice"
        )
        self.configure(gateway)

    @classmethod
    async def open(cls, url: str, gateway: GatewayConfig) -> Self:
        """Open a store; the clock goes on from where an earlier tour left it."""
        store: Store = await plugins.load_store(url)(url)
        desk = cls(store, gateway, MovableClock())
        for entry in await desk.sessions.list_sessions(limit=1):
            desk.clock.catch_up(entry.updated_at)
        return desk

    async def close(self) -> None:
        await self._store.close()

    def configure(self, gateway: GatewayConfig) -> None:
        """Other settings from here on, over the same conversations."""
        self.sessions = SessionStore(self._store, gateway, clock=self.clock, machine_zone=machine_zone())

    async def key(self) -> str:
        return await self.sessions.session_key_for(self.source)

    async def viewer(self) -> Viewer:
        return await self.sessions.viewer_for(self.source)

    async def current(self) -> Session | None:
        """The session that the person is in, as far as they may see it."""
        session_id = await self.sessions.peek_session_id(await self.key())
        return await self.sessions.find_session(session_id, await self.viewer()) if session_id else None

    async def say(self, text: str) -> Said:
        """A whole turn: find the session, store the message and its answer."""
        entry = await self.sessions.get_or_create_session(self.source)
        reset = await self.sessions.consume_reset(entry.session_key)
        reply = f"You said: {text}"
        turn = [
            {"role": "user", "content": await self._as_stored(text)},
            {"role": "assistant", "content": reply},
        ]
        await self.sessions.record_turn(entry.session_id, turn)
        return Said(reply=reply, entry=entry, reset=reset.auto_reset_reason if reset else None)

    async def _as_stored(self, text: str) -> str:
        """In a shared session every message begins with its sender's name."""
        shared = (await self.sessions.explain(self.source))["shared"]
        return f"[{self.source.user_name}] {text}" if shared else text

    def limit_chat(self, most: int) -> None:
        """Give this chat a message limit of its own."""
        source, gateway = self.source, self.sessions.config
        policy = gateway.get_reset_policy(source.platform, source.chat_type, source.chat_id)
        chat = f"{source.platform}:{source.chat_id}"
        policies = {**gateway.reset_by_chat, chat: replace(policy, max_messages=most)}
        self.configure(replace(gateway, reset_by_chat=policies))
