"""What every part of the session service works with."""

import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, timedelta, tzinfo

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.contracts.clock import Clock, SystemClock
from frontdesk.logs import get_logger
from frontdesk.model import background, inputs, keys, people, routing, sessions, whatsapp
from frontdesk.model.background import BackgroundTask
from frontdesk.model.gateway import GatewayConfig
from frontdesk.model.policies import SessionResetPolicy
from frontdesk.model.resolution import Resolver
from frontdesk.model.sources import ChatType, SessionSource
from frontdesk.stores.store import Store

log = get_logger(__name__)

HasActiveProcesses = Callable[[str], bool | Awaitable[bool]]


class Service:
    """A store with a configuration, a clock and somebody to ask about background work."""

    def __init__(
        self,
        store: Store,
        config: GatewayConfig | None = None,
        *,
        clock: Clock | None = None,
        has_active_processes_fn: HasActiveProcesses | None = None,
        machine_zone: tzinfo = UTC,
    ) -> None:
        self._store = store
        self._config = config or GatewayConfig()
        self._freshness = self._config.freshness
        self._clock = clock or SystemClock()
        self._has_active_processes = has_active_processes_fn
        self._machine_zone = machine_zone
        self.refused: Counter[str] = Counter()
        """How many messages were refused, by the rule that refused them."""

    @property
    def config(self) -> GatewayConfig:
        return self._config

    def new_id(self) -> str:
        """An id for a new session."""
        return sessions.new_session_id(self._clock.now())

    async def _aliases(self, source: SessionSource) -> Mapping[str, str]:
        """The learned WhatsApp names that matter for this source."""
        inputs.check_kind("source", source, SessionSource)
        return await aliases_of(self._store, source)

    def _address(self, source: SessionSource, aliases: Mapping[str, str]) -> keys.Address:
        config = self._config
        profile = config.profile_of(source)[0] if config.multiplex_profiles else None
        return keys.address(
            source, config.group_sessions_per_user, config.thread_sessions_per_user, profile, aliases
        )

    def directed(self, source: SessionSource) -> SessionSource:
        """The source of a message that comes in, with the profile that deals with it; UnknownProfile when it
        names one that is not there. From here on the profile is carried, whatever becomes of the settings."""
        config = self._config
        if not source.profile and not config.profiles:
            return source
        config.check_profile(source.profile)
        if not config.profiles:
            return source
        return replace(source, profile=config.profile_of(source)[0] or routing.DEFAULT)

    async def session_key_for(self, source: SessionSource) -> str:
        """The key of the conversation that a message belongs to."""
        return self._address(source, await self._aliases(source)).key

    async def route(self, source: SessionSource) -> str:
        """The key of the conversation that a message belongs to; Unroutable when it has no address."""
        return self._routed(source, await aliases_of(self._store, source)).key

    async def place(self, source: SessionSource) -> tuple[str, str]:
        """The same, and the party that its turns count for."""
        named = source.platform is whatsapp.PLATFORM
        where = self._routed(source, await aliases_of(self._store, source) if named else {})
        return where.key, people.party_of(source, where)

    def _routed(self, source: SessionSource, aliases: Mapping[str, str]) -> keys.Address:
        where = self._address(source, aliases)
        try:
            if source.profile and self._config.profiles:
                self._config.check_profile(source.profile)
            keys.check_routable(source, where)
        except errors.FrontdeskError as refusal:
            self.refused[type(refusal).__name__] += 1
            log.warning("event_unroutable", platform=str(source.platform), why=str(refusal))
            raise
        return where

    def policy_at(self, source: SessionSource) -> SessionResetPolicy:
        """The policy that holds where a message came from."""
        config = self._config
        if config.profiles or config.routes:
            return config.policy_at(source)
        return config.get_reset_policy(source.platform, source.chat_type, source.chat_id)

    def zone_of(self, policy: SessionResetPolicy) -> tzinfo:
        return policy.zone(self._machine_zone)

    def policy_for(
        self, entry: sessions.SessionEntry, source: SessionSource | None = None
    ) -> SessionResetPolicy:
        """The policy that holds for an entry, seen from a source when there is one."""
        config, origin = self._config, source or entry.origin
        if origin is not None and (source or config.profiles or config.routes):
            return self.policy_at(origin)
        chat_id = origin.chat_id if origin else None
        return config.get_reset_policy(entry.platform, entry.chat_type, chat_id)

    def _explain_route(self, source: SessionSource) -> dict[str, object]:
        """The profile of a message, what is routed for its place, and which rows say so."""
        profile, why = self._config.profile_of(source)
        directions = self._config.directions(source)
        return {
            "profile": {"name": routing.named(profile) or routing.DEFAULT, "why": why},
            "routes": dict(directions.rows),
            "model": directions.model,
        }

    def resolver(self, source: SessionSource) -> Resolver:
        """What decides about sessions where a message came from, as long as none has to be started."""
        return Resolver(
            now=self._clock.now(),
            policy=self.policy_at(source),
            machine_zone=self._machine_zone,
            freshness=self._freshness,
        )

    def is_shared(self, source: SessionSource) -> bool:
        """Whether several people talk in the conversation that a message belongs to."""
        return source.chat_type is not ChatType.DM and self._address(source, {}).shared

    async def viewer_for(self, source: SessionSource) -> people.Viewer:
        """What the sender of a message may see: what is theirs, under every account they linked."""
        aliases = await self._aliases(source)
        viewer = people.viewer_of(source, self._address(source, aliases), aliases)
        principal = people.Principal.of(source, aliases)
        return viewer.with_owners(await self._store.people.linked(principal.id)) if principal else viewer

    async def shown_in(self, source: SessionSource) -> people.Viewer:
        """What may be shown in the chat that a message came from: what its sender may see, and of that only
        what belongs to the chat when others read it."""
        viewer = await self.viewer_for(source)
        if not source.others_read:
            return viewer
        where = self._address(source, await self._aliases(source))
        return people.Viewer(frozenset({where.key}) if where.shared else viewer.owners, chat=where.key)

    async def is_busy(self, key: str) -> bool:
        """Whether background work runs for the key, as somebody has said or the callback says; one that fails
        counts as yes."""
        if await self._store.background.runs(keys.asked_key(key), self._clock.now()):
            return True
        if self._has_active_processes is None:
            return False
        try:
            answer = self._has_active_processes(key)
            return bool(await answer if inspect.isawaitable(answer) else answer)
        except Exception:
            log.exception("has_active_processes_failed", session_key=key)
            return True

    async def begin_background(
        self, key: str, name: str = background.DEFAULT_NAME, seconds: float = background.DEFAULT_SECONDS
    ) -> BackgroundTask:
        """Work of the conversation runs in the background, at most so long; said again, so long from then."""
        now = self._clock.now()
        work = BackgroundTask(
            session_key=keys.check_key(key),
            name=background.check_name(name),
            begun_at=now,
            until=now + timedelta(seconds=background.check_seconds(seconds)),
        )
        if await self._store.sessions.current(key) is None:
            raise errors.UnknownSession(session_id=key)
        await self._store.background.begin(work)
        return work

    async def end_background(self, key: str, name: str = background.DEFAULT_NAME) -> bool:
        """It has ended; False when none of that name ran."""
        return await self._store.background.end(
            keys.check_key(key), background.check_name(name), self._clock.now()
        )

    def _rename(self, session: sessions.Session, aliases: Mapping[str, str]) -> tuple[str, str, str]:
        """Key, owner and peer of a person's session under another table of aliases."""
        source = session.entry.origin
        head, colon, person = session.owner.rpartition(":")
        owner = f"{head}{colon}{whatsapp.canonical_whatsapp_identifier(person, aliases)}"
        if source is None:
            return session.entry.session_key, owner, session.peer
        where = self._address(source, aliases)
        return where.key, owner, peer_of(source, where)

    def _readdress(self, source: SessionSource, aliases: Mapping[str, str]) -> str | None:
        """The key of a message's conversation under these names, when it has one of them."""
        key = self._address(source, aliases).key
        return None if key == self._address(source, {}).key else key

    def _at_home(self, session: sessions.Session, aliases: Mapping[str, str]) -> sessions.Session:
        """A new session belongs to whom its origin says, whoever owned the one before it."""
        source = session.entry.origin
        where = self._address(source, aliases) if source else None
        if source is None or where is None or where.key != session.entry.session_key:
            return session
        owner, peer = people.owner_of(source, where, aliases), peer_of(source, where)
        return replace(session, owner=owner, peer=peer)

    async def learn_whatsapp_alias(self, lid: str, phone: str) -> bool:
        """Learn that a LID and a phone number are one person; False when that was known.

        What the person had under the LID is found under the phone number from now on.
        """
        identifier, person = map(whatsapp.check_whatsapp_identifier, (lid, phone))
        now = self._clock.now()
        return await self._store.aliases.learn(identifier, person, self._rename, self._readdress, now)


async def aliases_of(store: Store, source: SessionSource) -> Mapping[str, str]:
    """Who somebody is, for keys, permissions and votes alike: the learned names that matter for a source."""
    if source.platform is not whatsapp.PLATFORM:
        return {}
    names = {whatsapp.normalize_whatsapp_identifier(name) for name in (source.chat_id, source.participant)}
    return await store.aliases.canonical(sorted(names - {""}))


def peer_of(source: SessionSource, where: keys.Address) -> str:
    """Who and where, to recognise a conversation by whose key is not known."""
    person = "" if where.shared else where.person or ""
    parts = (source.platform, source.chat_type, source.chat_id, source.thread_id or "", person)
    if source.platform is whatsapp.PLATFORM:
        parts = (*parts[:2], where.key, *parts[3:])
    return ":".join(keys.encode_part(str(part)) for part in parts)
