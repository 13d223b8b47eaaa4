"""The life of sessions: found, reset, switched, suspended, resumed, pruned."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import reduce
from typing import Any

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.flow.finding import Finder
from frontdesk.flow.service import peer_of
from frontdesk.logs import get_logger
from frontdesk.model import inputs, keys, limits, messages, moves, people, whatsapp
from frontdesk.model.moves import Move, Settled, Situation
from frontdesk.model.policies import EndReason
from frontdesk.model.resolution import Resolver
from frontdesk.model.resuming import Resumed, Resuming, Resumption, Wanted
from frontdesk.model.sessions import (
    RESTART_INTERRUPTED,
    RESTART_TIMEOUT,
    Relation,
    Reopening,
    Session,
    SessionEntry,
    SessionStatus,
    Usage,
    clean_override,
    read_reason,
    with_boundary,
)
from frontdesk.model.sources import SessionSource, readable

log = get_logger(__name__)

Changed = Callable[[Session], Session | None]
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)


class Lifecycle(Finder):
    async def get_or_create_session(self, source: SessionSource, force_new: bool = False) -> SessionEntry:
        """The session that a message belongs to, started afresh when policy or state ask for it."""
        inputs.check_kind("source", source, SessionSource)
        return (await self.resolve_session(source, force_new)).entry

    async def resolve_session(
        self, source: SessionSource, force_new: bool = False, *, known_key: str | None = None
    ) -> Session:
        """The same, as it is stored; ``known_key`` is what was worked out for the source before."""
        # A name learned since then may have moved what is under the key.
        known = known_key if known_key and source.platform is not whatsapp.PLATFORM else None
        key = known or await self.route(source)
        resolver = self.resolver(source)
        if not force_new:
            # Looked at without a lock: whatever is not a mere touch is decided again below, under the lock.
            going_on = await self._store.sessions.touch(key, resolver.lets_go_on, resolver.now)
            if going_on:
                return going_on
        newborn = await self._newborn(key, source, resolver.now)
        resolver = replace(resolver, newborn=newborn, force_new=force_new)
        settled = await self._resolve(key, resolver, newborn.peer)
        if isinstance(settled.move, moves.Ask):
            resolver = replace(resolver, busy=await self.is_busy(key))
            settled = await self._resolve(key, resolver, newborn.peer)
        assert settled.session is not None
        if isinstance(settled.move, moves.Start):
            _log_start(settled, settled.move)
        return settled.session

    async def _resolve(self, key: str, resolver: Resolver, peer: str) -> Settled:
        return await self._store.sessions.settle(
            key, resolver.decide, now=resolver.now, new_id=self.new_id, peer=peer
        )

    async def _newborn(self, key: str, source: SessionSource, now: datetime) -> Session:
        """The first session that the place of a message would have."""
        aliases = await self._aliases(source)
        where = self._address(source, aliases)
        entry = SessionEntry(
            session_key=key,
            session_id=self.new_id(),
            created_at=now,
            updated_at=now,
            origin=source,
            display_name=source.chat_name,
            platform=source.platform,
            chat_type=source.chat_type,
        )
        owner = people.owner_of(source, where, aliases)
        return Session(entry=entry, owner=owner, peer=peer_of(source, where))

    async def reset_reason(
        self, entry: SessionEntry, source: SessionSource | None = None
    ) -> EndReason | None:
        """Why the policy would start afresh now, or None; changes nothing."""
        known = await self._store.sessions.find(entry.session_id)
        if known is None:
            return await self._reset_reason(entry, (), source)
        return await self._reset_reason(known.as_limited(entry), known.served, source)

    async def due_reason(self, session: Session) -> EndReason | None:
        """The same of a session as it was read."""
        return await self._reset_reason(session.as_limited(), session.served)

    async def _reset_reason(
        self, entry: SessionEntry, served: tuple[datetime, ...], source: SessionSource | None = None
    ) -> EndReason | None:
        """``entry`` is what the limits see."""
        reason = self.policy_for(entry, source).due_reason(
            entry, now=self._clock.now(), machine_zone=self._machine_zone, served=served
        )
        return None if reason is None or await self.is_busy(entry.session_key) else reason

    async def is_session_finalizable(self, entry: SessionEntry) -> bool:
        """Whether time alone will expire it."""
        return self.policy_for(entry).expires

    async def _settle(self, key: str, decide: Callable[[Session], Move]) -> Settled:
        """Decide about a key's session; nothing happens when it has none."""

        def only_when_known(situation: Situation) -> Move:
            return moves.Stay() if situation.current is None else decide(situation.current)

        return await self._store.sessions.settle(
            keys.asked_key(key), only_when_known, now=self._clock.now(), new_id=self.new_id
        )

    async def _change(self, key: str, changed: Changed, fresh_allowance: bool = False) -> Settled:
        """Change facts of a key's session; None leaves it as it is."""

        def decide(session: Session) -> Move:
            after = changed(session)
            if after is None:
                return moves.Stay()
            return moves.Change(session=after, fresh_allowance=fresh_allowance)

        return await self._settle(key, decide)

    async def _changes(self, key: str, changed: Changed) -> bool:
        """The same; whether something changed."""
        return isinstance((await self._change(key, changed)).move, moves.Change)

    async def update_session(
        self,
        key: str,
        input_tokens: int = 0,
        output_tokens: int = 0,
        cache_read_tokens: int = 0,
        cache_write_tokens: int = 0,
        last_prompt_tokens: int | None = None,
        estimated_cost_usd: float = 0.0,
        cost_status: str | None = None,
    ) -> None:
        """The session was active; add what was used, replace the prompt size when it is given."""
        usage = Usage(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cache_read_tokens=cache_read_tokens,
            cache_write_tokens=cache_write_tokens,
            cost_usd=estimated_cost_usd,
            cost_status=cost_status,
            last_prompt_tokens=last_prompt_tokens,
        )
        await self._store.sessions.add_usage(keys.asked_key(key), usage.checked(), self._clock.now())

    async def reset_session(
        self, key: str, display_name: str | None = None, *, by: str | None = None
    ) -> SessionEntry | None:
        """End the key's session by hand and start a new one; ``by`` is the name of who wants it."""
        inputs.check_kind("display_name", display_name, str, type(None))
        now = self._clock.now()
        current = await self.get_session(key)
        aliases = await self._aliases(current.origin) if current and current.origin else {}

        fresh_id = self.new_id()

        def decide(session: Session) -> Move:
            fresh = self._at_home(session.successor(fresh_id, now, EndReason.NEW, by=by), aliases)
            if display_name is not None:
                fresh = fresh.changed(display_name=readable(display_name))
            return moves.Start(session=fresh, ends=EndReason.NEW)

        return _entry(await self._settle(key, decide))

    async def switch_session(
        self, key: str, session_id: str, viewer: people.Viewer | None = None
    ) -> SessionEntry | None:
        """Make an earlier session the key's current one; None when key or session are unknown, or not shown
        to the viewer by then."""
        now = self._clock.now()
        keys.asked_session_id(session_id)

        def decide(situation: Situation) -> Move:
            current, other = situation.current, situation.other
            if current is None or other is None or other.reopening is Reopening.NEVER:
                return moves.Stay()
            if viewer is not None and not viewer.shows(other):  # taken to another chat meanwhile
                return moves.Stay()
            if current.id == other.id and current.status is SessionStatus.OPEN:
                return moves.Stay()
            # Whichever session a key goes on in, a boundary that it was reset for is not served again.
            served = reduce(with_boundary, current.served, other.served)
            again = _brought_to(current, other.reopened(now).renewed(now))
            return moves.Switch(session=replace(again, served=served))

        settled = await self._store.sessions.settle(
            keys.asked_key(key), decide, now=now, new_id=self.new_id, target=session_id
        )
        after = settled.session
        landed = after is not None and after.id == session_id and after.status is SessionStatus.OPEN
        return after.entry if after and landed else None

    async def resume_session(
        self,
        source: SessionSource,
        wanted: Wanted,
        viewer: people.Viewer,
        *,
        known_key: str | None = None,
        by: str | None = None,
    ) -> Resumed:
        """Go on with another session where a message came from, if the viewer may."""
        inputs.check_kind("source", source, SessionSource)
        key = known_key or await self.route(source)
        resolver = self.resolver(source)
        place = await self._newborn(key, source, resolver.now)
        resumption = Resumption(viewer=viewer, place=place, resolver=resolver, by=by)
        resumed = await self._store.sessions.resume(key, wanted, resumption)
        if resumed.outcome is Resuming.ASK:
            resolver = replace(resolver, busy=await self.is_busy(key))
            resumed = await self._store.sessions.resume(key, wanted, replace(resumption, resolver=resolver))
        return resumed

    async def branch_session(self, key: str, *, by: str | None = None) -> SessionEntry | None:
        """Go on in a copy of the key's session; the original ends and can be resumed."""
        now, fresh_id = self._clock.now(), self.new_id()

        def decide(session: Session) -> Move:
            branch = session.successor(fresh_id, now, EndReason.BRANCH, relation=Relation.BRANCH, by=by)
            return moves.Start(session=branch, ends=EndReason.BRANCH, copies_parent=True)

        return _entry(await self._settle(key, decide))

    async def compress_session(
        self, key: str, transcript: Sequence[Mapping[str, Any]], *, by: str | None = None
    ) -> SessionEntry | None:
        """Go on in a session that starts from a shorter transcript; the longer one stays as its ancestor."""
        now = self._clock.now()
        inputs.check_kind("transcript", transcript, list, tuple)
        packed, fresh_id = tuple(messages.pack(message) for message in transcript), self.new_id()

        def decide(session: Session) -> Move:
            relation = Relation.COMPRESSED
            shorter = session.successor(fresh_id, now, EndReason.COMPRESSED, relation=relation, by=by)
            return moves.Start(session=shorter, ends=EndReason.COMPRESSED, messages=packed)

        return _entry(await self._settle(key, decide))

    async def end_session(self, session_id: str, reason: EndReason) -> bool:
        """End an open session, or forget any; the next message to its key finds it ended."""
        known = read_reason(reason)
        if known is None:
            raise errors.InvalidInput(what=f"End reason {reason!r}", why=f"use {', '.join(EndReason)}")
        return await self._store.sessions.end(keys.asked_session_id(session_id), known, self._clock.now())

    async def close_session(self, session_id: str) -> bool:
        """End a session so that the next message takes it up again."""
        return await self.end_session(session_id, EndReason.CLOSED)

    async def suspend_session(self, key: str) -> bool:
        """The next message starts afresh, whatever else holds."""

        def suspend(session: Session) -> Session | None:
            return None if session.entry.suspended else session.changed(suspended=True)

        return await self._changes(key, suspend)

    async def mark_resume_pending(self, key: str, reason: str = RESTART_TIMEOUT) -> bool:
        """The session was interrupted and is to be continued; never over a suspended one."""
        inputs.check_kind("reason", reason, str)
        now = self._clock.now()

        def mark(session: Session) -> Session | None:
            if session.entry.suspended:
                return None
            return session.marked(readable(reason), now)

        return await self._changes(key, mark)

    async def clear_resume_pending(self, key: str) -> bool:

        def clear(session: Session) -> Session | None:
            return session.unmarked() if session.entry.resume_pending else None

        return await self._changes(key, clear)

    async def suspend_recently_active(self, max_age_seconds: float = 120) -> int:
        """After a crash: mark recently active sessions to be resumed; how many were."""
        now = self._clock.now()
        since = inputs.ago(now, "max_age_seconds", max_age_seconds, SECOND)
        return await self._store.sessions.mark_recent(since, RESTART_INTERRUPTED, now)

    async def prune_old_entries(
        self, max_age_days: float, leave: Callable[[str], Awaitable[object]] | None = None
    ) -> int:
        """Forget keys that have rested so long, except suspended and busy ones; how many were. ``leave`` is
        called with each before."""
        inputs.check_kind("max_age_days", max_age_days, int, float)
        if max_age_days <= 0:
            return 0
        now = self._clock.now()
        before = inputs.ago(now, "max_age_days", max_age_days, DAY)
        pruned = 0
        for key in await self._store.sessions.stale_keys(before):
            if await self.is_busy(key):
                continue
            # Leave is taken first: that can be done again after a crash, and a key that is gone is not found
            # again. A message that comes in between keeps the key.
            if leave:
                await leave(key)
            pruned += await self._store.sessions.prune(key, before, now)
        return pruned

    async def consume_reset(self, key: str) -> SessionEntry | None:
        """The entry with its reset flags, which are durably taken from it: each is seen by one turn."""

        def take(session: Session) -> Session | None:
            entry = session.entry
            return session.consumed() if entry.was_auto_reset or entry.is_fresh_reset else None

        settled = await self._change(key, take)
        return settled.before.entry if settled.before and isinstance(settled.move, moves.Change) else None

    async def mark_expiry_finalized(self, key: str) -> bool:
        """Record that the end of this session was dealt with; False when it already was."""

        def finalize(session: Session) -> Session | None:
            return None if session.entry.expiry_finalized else session.changed(expiry_finalized=True)

        return await self._changes(key, finalize)

    async def set_model_override(self, key: str, override: Mapping[str, Any] | None) -> None:
        """Model, provider and base_url for this session alone; nothing else is kept."""
        cleaned = clean_override(override)
        await self._change(key, lambda session: session.changed(model_override=cleaned))

    async def get_message_limit_info(self, key: str) -> dict[str, Any]:
        entry = await self.get_session(key)
        if entry is None:
            return dict(limits.UNKNOWN)
        return limits.limit_info(entry.message_count, self.policy_for(entry).max_messages)

    async def reset_message_count(self, key: str) -> None:
        """A fresh message allowance from here on."""
        await self._change(key, lambda session: session, fresh_allowance=True)

    async def explain(self, source: SessionSource) -> dict[str, Any]:
        """Where a message would go and why; changes nothing."""
        where = self._address(source, await self._aliases(source))
        refused = None
        try:
            self._config.check_profile(source.profile)
            keys.check_routable(source, where)
        except (errors.Unroutable, errors.UnsafeKey, errors.UnknownProfile) as error:
            refused = str(error)
        session = await self._store.sessions.current(where.key)
        return {
            "session_key": where.key,
            "rule": str(where.rule),
            "shared": where.shared,
            "refused": refused,
            **self._explain_route(source),
            "policy": self.policy_at(source).to_dict(),
            "session": session.entry.to_dict() if session else None,
            "reset_reason": await self.reset_reason(session.entry, source) if session else None,
        }


def _brought_to(current: Session, session: Session) -> Session:
    """A session to go on with where the current one is; it stays its owner's."""
    here = current.entry
    if session.entry.session_key == here.session_key:
        return session
    moved = session.changed(origin=here.origin, platform=here.platform, chat_type=here.chat_type)
    return replace(moved, peer=current.peer, unread_origin=current.unread_origin)


def _entry(settled: Settled) -> SessionEntry | None:
    return settled.session.entry if settled.session else None


def _log_start(settled: Settled, move: moves.Start) -> None:
    before = settled.before
    log.info(
        "session_started",
        session=settled.session.id if settled.session else None,
        replaces=before.id if before else None,
        reason=str(move.ends) if before else None,
        ended_elsewhere=bool(before and before.status is SessionStatus.ENDED),
    )
