"""The office: everything that the owner of the gateway can ask about it, as plain data."""

import asyncio
import os
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec

from frontdesk import errors
from frontdesk.app.health import find_troubles
from frontdesk.contracts.channels import Capabilities, Channel, capabilities_in
from frontdesk.contracts.clock import Clock, SystemClock
from frontdesk.contracts.snapshots import Snapshots
from frontdesk.flow.authorization import Authorization, Refusals, owner_of_terminal
from frontdesk.flow.conversations import Conversations
from frontdesk.flow.sending import Outlets
from frontdesk.formats import exports
from frontdesk.model import access, background, checkpoints, inputs, routing
from frontdesk.model.checkpoints import Checkpoint
from frontdesk.model.deliveries import Delivery, DeliveryState
from frontdesk.model.people import Viewer
from frontdesk.model.sessions import Session
from frontdesk.model.sources import ChatType, SessionSource
from frontdesk.stores.store import Store

if TYPE_CHECKING:
    from frontdesk.app.gateway import Gateway

WORK_SECONDS = 10.0
"""How long a store in trouble is asked what it knows."""
LIST_LIMIT = 50
SEARCH_LIMIT = 20
KEY_BYTES = 16
MINUTE = timedelta(minutes=1)

Choice = TypeVar("Choice", bound=StrEnum)
Plain = dict[str, Any]
Channels = Callable[[], Awaitable[Sequence[Channel]]]
Workplace = Callable[[], tuple[Snapshots | None, str | None]]
"""The checkpoints that are made, and of which directory."""


async def _no_channels() -> Sequence[Channel]:
    return ()


class Office:
    """Whoever can read the database is its administrator, so that everything is seen here. Each public method
    is a question that commands ask, here or through the owner's socket."""

    def __init__(
        self,
        store: Store,
        conversations: Conversations,
        gateway: "Gateway | None" = None,
        *,
        clock: Clock | None = None,
        channels: Channels = _no_channels,
        workplace: Workplace = lambda: (None, None),
        ports: Callable[[], Sequence[msgspec.Struct]] = tuple,
    ) -> None:
        """Without a gateway, ``channels`` gives those that one would have, ``workplace`` its checkpoints;
        ``ports`` tells of each that a gateway listens on."""
        self._store = store
        self._conversations = conversations
        self._gateway = gateway
        self._channels = channels
        self._workplace = workplace
        self._ports = ports
        self._clock = clock or SystemClock()
        self._people = Authorization(store, conversations.config, clock=self._clock)
        self._viewer = Viewer.everything()
        self._owner = owner_of_terminal()

    @classmethod
    def of_gateway(cls, gateway: "Gateway", ports: Callable[[], Sequence[msgspec.Struct]] = tuple) -> Self:
        parts = gateway.parts
        return cls(
            parts.store,
            parts.conversations,
            gateway,
            clock=parts.clock,
            workplace=lambda: (parts.snapshots, parts.running.working_dir),
            ports=ports,
        )

    async def status(self) -> Plain:
        """What runs, and how much waits."""
        gateway = self._gateway
        channels = gateway.parts.channels.values() if gateway else ()
        troubles = [trouble.why for trouble in await find_troubles(gateway)] if gateway else []
        return {
            "running": gateway is not None,
            "ready": gateway is not None and not troubles,
            "troubles": troubles,
            "warnings": list(gateway.warnings()) if gateway else [],
            "node": gateway.node if gateway else None,
            "process": os.getpid() if gateway else None,
            "version": version("frontdesk"),
            "channels": [{"platform": str(channel.name), "account": channel.account} for channel in channels],
            "profiles": list(gateway.parts.connected.profiles) if gateway else [],
            "refused": _plain_refusals(gateway.parts.refusals) if gateway else None,
            "ports": msgspec.to_builtins(self._ports()),
            **(await self._work() if not troubles or gateway is None else await self._work_in_trouble()),
        }

    async def _work(self) -> Plain:
        return {
            "turns": await self._store.turns.counts(),
            "held_back": await self._store.turns.held_back(),
            "deliveries": await self._store.deliveries.counts(),
            "callbacks": msgspec.to_builtins(await self._store.confirmations.backlog(self._clock.now())),
        }

    async def _work_in_trouble(self) -> Plain:
        """What is known; a store in trouble may know nothing, and then the trouble has been said."""
        try:
            async with asyncio.timeout(WORK_SECONDS):
                return await self._work()
        except (errors.StoreError, TimeoutError):
            return {"turns": {}, "held_back": 0, "deliveries": {}, "callbacks": {"owed": 0, "overdue": 0}}

    async def explain(self, source: Plain) -> Plain:
        """Where a message from there would go, and why, and whether its sender is let in; changes nothing."""
        place = SessionSource.from_dict(source)
        found = await self._conversations.explain(place)
        plain: Plain = msgspec.to_builtins(found, enc_hook=str)
        return plain | {"access": await self._access(place)}

    async def _access(self, source: SessionSource) -> Plain:
        channels = self._gateway.parts.channels.values() if self._gateway else await self._channels()
        named = (str(source.platform), source.account)
        channel = next((each for each in channels if (each.name, each.account) == named), None)
        known = capabilities_in(channel, source) if channel else Capabilities()
        verdict = await self._people.look(source, known.authenticates, reliable_ids=known.reliable_sender_ids)
        return {"channel": channel is not None} | picked(verdict, "allowed", "rule", "role", "who")

    async def list_sessions(
        self,
        limit: int = LIST_LIMIT,
        active_minutes: float | None = None,
        all: bool = False,
    ) -> list[Plain]:
        """Sessions, newest activity first: the current one of each conversation, or ended ones too."""
        since = None
        if active_minutes is not None:
            since = inputs.ago(self._clock.now(), "active_minutes", active_minutes, MINUTE)
        found = await self._sessions(inputs.check_limit(limit), since, all)
        return [await self._facts(session) for session in found]

    async def _facts(self, session: Session) -> Plain:
        return _plain_session(session, await self._conversations.count_messages(session))

    async def _sessions(self, limit: int, since: datetime | None, ended: bool) -> list[Session]:
        if not ended:
            return await self._store.sessions.list_current(since=since, limit=limit)
        found = await self._conversations.list_own_sessions(self._viewer, limit=limit)
        return [each for each in found if since is None or each.entry.updated_at >= since]

    async def show_session(self, session_id: str) -> Plain:
        """A session's facts and its messages, as they are stored."""
        session = await self._find(session_id)
        transcript = await self._conversations.load_records(session.id)
        return await self._facts(session) | {"transcript": transcript}

    async def _find(self, session_id: str) -> Session:
        session = await self._conversations.find_session(session_id, self._viewer)
        if session is None:
            raise errors.SessionNotFound(session_id=session_id)
        return session

    async def search(self, query: str, limit: int = SEARCH_LIMIT) -> list[Plain]:
        """Messages of all sessions with these words, the best first."""
        hits = await self._conversations.search(query, self._viewer, limit=limit)
        return [_plain(hit) for hit in hits]

    async def export_session(
        self,
        session_id: str,
        format: str = exports.Format.JSONL,
        ancestors: bool = False,
    ) -> AsyncGenerator[str, None]:
        """A session as text, piece by piece; with its ancestors what was said before compressions, too."""
        form = _chosen(exports.Format, format)
        session = await self._find(session_id)
        transcript = await self._conversations.load_records(session.id, ancestors)
        for piece in exports.export(form, await self._facts(session), transcript):
            yield piece

    async def begin_background(
        self,
        conversation: str,
        name: str = background.DEFAULT_NAME,
        seconds: float = background.DEFAULT_SECONDS,
    ) -> Plain:
        """Work runs for a conversation, given by a session's id or its key; at most so long."""
        key = await self._key_of(conversation)
        return _plain(await self._conversations.begin_background(key, name, seconds))

    async def end_background(self, conversation: str, name: str = background.DEFAULT_NAME) -> bool:
        """It has ended; False when none of that name ran."""
        return await self._conversations.end_background(await self._key_of(conversation), name)

    async def list_background(self, limit: int = LIST_LIMIT) -> list[Plain]:
        """The work that runs, the latest first."""
        found = await self._store.background.list(self._clock.now(), inputs.check_limit(limit))
        return [_plain(work) for work in found]

    async def _key_of(self, conversation: str) -> str:
        """The key of a conversation that is given by it or by the id of one of its sessions."""
        if await self._store.sessions.current(conversation):
            return conversation
        return (await self._find(conversation)).entry.session_key

    async def list_deliveries(self, limit: int = LIST_LIMIT) -> list[Plain]:
        """Answers that did not arrive, or not yet at the first attempt, or may not have; newest first."""
        most = inputs.check_limit(limit)
        found = [*await self._store.deliveries.troubled(most), *await self._store.deliveries.late(most)]
        found.sort(key=lambda each: each.number, reverse=True)
        return [_plain_delivery(each) for each in found[:most]]

    async def resend_delivery(self, delivery_id: str) -> Plain:
        """Send an answer again that is in trouble; whether it was, and what it is now."""
        resent = await self._store.deliveries.revive(delivery_id, self._clock.now())
        delivery = await self._store.deliveries.find(delivery_id)
        if delivery is None:
            raise errors.UnknownDelivery(delivery_id=delivery_id)
        return _plain_delivery(delivery) | {"resent": resent}

    async def send(
        self,
        to: str,
        text: str,
        session_id: str | None = None,
        key: str | None = None,
        markdown: bool = False,
    ) -> Plain:
        """Say something in a chat unprompted: a platform's home channel, `platform:chat_id[:thread_id]`, or
        with a session the `origin` of that. The same key to the same chat is sent once."""
        origin = (await self._find(session_id)).entry.origin if session_id else None
        channels = self._gateway.parts.channels.values() if self._gateway else await self._channels()
        named = {(str(each.name), each.account): each for each in channels}
        outlets = Outlets(named, self._conversations.config, self._clock)
        place, key = outlets.find(to, origin), key or secrets.token_hex(KEY_BYTES)
        written = outlets.write(place, text, key, is_markdown=markdown)
        fresh = await self._store.deliveries.add(written)
        first = await self._store.deliveries.find(written[0].id) or written[0]
        return _plain_delivery(first) | {"pieces": len(written), "repeated": not fresh}

    async def list_people(self) -> list[Plain]:
        """Everybody who was let in by an administrator; the settings may let in others."""
        return [_plain(grant) for grant in await self._people.list_people(self._owner)]

    async def pending_people(self) -> list[Plain]:
        """Who waits to be let in."""
        return [_plain(pairing) for pairing in await self._people.pending(self._owner)]

    async def approve_person(self, code: str, role: str = access.Role.USER) -> Plain:
        """Let in whom the code was shown to."""
        return _plain(await self._people.approve(code, self._owner, _chosen(access.Role, role)))

    async def revoke_person(self, principal: str) -> bool:
        """Somebody who was let in is a stranger again; False when they were not."""
        return await self._people.revoke(principal, self._owner)

    async def list_checkpoints(self, profile: str | None = None) -> list[Plain]:
        """The checkpoints of an agent's working directory, newest first."""
        snapshots, directory = self._checkpoints(profile)
        return [_plain(each) for each in await snapshots.list_checkpoints(directory)]

    async def show_checkpoint(self, checkpoint: str, profile: str | None = None) -> Plain:
        """The checkpoint with this number or id."""
        return _plain(await self._checkpoint(checkpoint, profile))

    async def diff_checkpoint(self, checkpoint: str, profile: str | None = None) -> Plain:
        """What has changed since."""
        snapshots, directory = self._checkpoints(profile)
        return _plain(await snapshots.diff(directory, (await self._checkpoint(checkpoint, profile)).id))

    async def restore_checkpoint(
        self, checkpoint: str, path: str | None = None, profile: str | None = None
    ) -> Plain:
        """Make the working directory, or one path in it, what it was."""
        snapshots, directory = self._checkpoints(profile)
        return _plain(
            await snapshots.restore(directory, (await self._checkpoint(checkpoint, profile)).id, path)
        )

    async def prune_checkpoints(self, profile: str | None = None) -> int:
        """Drop the oldest past the maximum and free their room; how many were dropped."""
        snapshots, directory = self._checkpoints(profile)
        return await snapshots.prune(directory)

    async def _checkpoint(self, name: str, profile: str | None) -> Checkpoint:
        snapshots, directory = self._checkpoints(profile)
        found = checkpoints.find_named(await snapshots.list_checkpoints(directory), name)
        if found is None:
            raise errors.UnknownCheckpoint(checkpoint_id=name, directory=directory)
        return found

    def _checkpoints(self, profile: str | None) -> tuple[Snapshots, str]:
        """Where the agent of a profile works; that of the default one, unless another is named."""
        config = self._conversations.config
        config.check_profile(profile)
        own = config.profiles.get(profile or "", routing.PLAIN).working_dir
        snapshots, usual = self._workplace()
        directory = own or usual
        if snapshots is None or directory is None:
            raise errors.CheckpointsOff()
        return snapshots, directory


def _chosen(kind: type[Choice], name: str) -> Choice:
    try:
        return kind(name)
    except ValueError:
        allowed = ", ".join(kind)
        raise errors.InvalidInput(what=f"{kind.__name__} {name!r}", why=f"there is {allowed}") from None


def _plain(record: Any) -> Plain:
    data: Plain = msgspec.to_builtins(record, enc_hook=str)
    return data


def picked(record: object, *names: str) -> Plain:
    """These fields of it as plain data, times in ISO format."""
    fields = {name: getattr(record, name) for name in names}
    times = {name: field.isoformat() for name, field in fields.items() if isinstance(field, datetime)}
    return _plain(fields | times)


def _plain_refusals(refusals: Refusals) -> Plain:
    return {"since": refusals.since.isoformat(), "counts": dict(sorted(refusals.counts.items()))}


def _plain_session(session: Session, messages: int) -> Plain:
    entry, origin = session.entry, session.entry.origin
    return {
        "id": session.id,
        "key": entry.session_key,
        **picked(session, "owner", "title"),
        **picked(entry, "platform", "chat_type"),
        "account": origin.account if origin else None,
        "chat_id": origin.chat_id if origin else None,
        "where": _where(origin) if origin else entry.session_key,
        "state": str(session.status),
        "end_reason": session.end_reason,
        **picked(entry, "suspended", "resume_pending"),
        **picked(session, "parent_id", "relation"),
        "messages": messages,
        **picked(entry, "input_tokens", "output_tokens"),
        "cost_usd": entry.estimated_cost_usd,
        **picked(entry, "created_at", "updated_at"),
        **picked(session, "ended_at"),
    }


def _where(source: SessionSource) -> str:
    """A place for people; with the chat, where one person may have several."""
    place, chat = source.description, source.chat_name or source.chat_id
    usual = (place, source.user_name, source.user_id, source.user_id_alt, "")
    direct = source.chat_type is ChatType.DM and chat not in usual
    return f"{place} ({chat})" if direct else place


def _next_try(delivery: Delivery) -> str | None:
    """When it is tried again by itself; what waits behind another one goes when that has arrived."""
    retried = delivery.state is DeliveryState.PENDING and delivery.error is not None
    return delivery.due_at.isoformat() if retried and delivery.due_at else None


def _plain_delivery(delivery: Delivery) -> Plain:
    to = picked(delivery.to, "platform", "account", "chat_id") | {"where": _where(delivery.to)}
    tries = picked(delivery, "text", "error", "attempts") | {"next_try_at": _next_try(delivery)}
    about = picked(delivery, "turn_id", "session_id", "created_at", "sent_at")
    return picked(delivery, "id", "kind", "state") | to | tries | about
