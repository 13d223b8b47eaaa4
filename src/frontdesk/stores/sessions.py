"""Sessions and the keys that point to them."""

from collections.abc import Callable
from datetime import datetime
from functools import partial

from msgspec.structs import asdict, replace

from frontdesk import errors
from frontdesk.contracts.store import Decide, Knowable, NewId, Work
from frontdesk.model import keys, lanes, moves
from frontdesk.model.chats import ChatBound
from frontdesk.model.feed import FeedKind
from frontdesk.model.people import Viewer
from frontdesk.model.policies import EndReason
from frontdesk.model.resuming import MOST_NUMBERED, Resumed, Resumption, Wanted
from frontdesk.model.sessions import Session, SessionEntry, SessionStatus, Usage
from frontdesk.model.titles import title_key
from frontdesk.stores import links, transcripts
from frontdesk.stores.columns import to_micros, to_minute
from frontdesk.stores.feed import announce, tell_session
from frontdesk.stores.routes import check_bound, leave, point, route_of
from frontdesk.stores.rows import SESSIONS, session_row
from frontdesk.stores.work import EVER, Noun, reads, value, writes

ID_ATTEMPTS = 8


class Sessions(Noun):
    @writes
    def settle(
        self,
        key: str,
        decide: Decide,
        *,
        now: datetime,
        new_id: NewId,
        peer: str | None = None,
        target: str | None = None,
        bound: ChatBound | None = None,
    ) -> Work[moves.Settled]:
        """Decide about a key's current session and carry the decision out.

        ``decide`` may be called more than once. The other session of the situation is ``target``, else, when
        the key has none, the newest one of ``peer`` that is open or merely closed. With a ``bound``
        TooManyChats where the key has none, and may have none yet.
        """
        if bound:
            yield from check_bound(key, bound)
        return (yield from settle(key, decide, now, new_id, peer, target))

    async def touch(self, key: str, lets_go_on: Callable[[Session], bool], now: datetime) -> Session | None:
        """The usual case, without a lock: the key's session simply goes on. When it does not, as far as can
        be seen from here, that is to be decided in a transaction."""
        session = await self._engine.glance(Knowable(SESSIONS.one, "current_session", key=key))
        if session is None or not lets_go_on(session):
            return None
        await self._engine.post(session.id, partial(_touch, session, now))
        return session.changed(updated_at=now)

    @reads
    def current(self, key: str) -> Work[Session | None]:
        return SESSIONS.one("current_session", key=key)

    @reads
    def find(self, session_id: str) -> Work[Session | None]:
        return SESSIONS.one("session", session_id=session_id)

    @reads
    def tip(self, session_id: str) -> Work[Session | None]:
        """The newest session that continues this one after compressions."""
        session = yield from SESSIONS.one("session", session_id=session_id)
        return (yield from _walk(session)) if session else None

    @writes
    def end(self, session_id: str, reason: EndReason, now: datetime) -> Work[bool]:
        values = {"session_id": session_id, "reason": str(reason), "now": to_micros(now)}
        is_forgotten = reason is EndReason.FORGOTTEN
        if not (yield "forget_session" if is_forgotten else "end_session", values):
            return False
        yield from announce(FeedKind.SESSION, now, session_id=session_id, state=str(SessionStatus.ENDED))
        return True

    @writes
    def add_usage(self, key: str, usage: Usage, now: datetime) -> Work[bool]:
        values = {"key": key, "now": to_micros(now), "active_minute": to_minute(now)}
        if not (yield "add_usage", {**values, **asdict(usage)}):
            return False
        yield from announce(FeedKind.SESSION, now, session_key=key)
        return True

    @reads
    def list_current(
        self, *, since: datetime | None = None, limit: int | None = None, after: SessionEntry | None = None
    ) -> Work[list[Session]]:
        """The keys' current sessions, latest activity first; ``after`` an entry of an earlier list."""
        return SESSIONS.many(
            "list_current",
            since=to_micros(since) if since else -EVER,
            since_minute=to_minute(since) if since else -EVER,
            before=to_micros(after.updated_at) if after else EVER,
            before_id=after.session_id if after else "",
            before_minute=to_minute(after.updated_at) if after else EVER,
            limit=EVER if limit is None else limit,
        )

    @reads
    def list_owned(self, viewer: Viewer, *, limit: int, titled: bool = False) -> Work[list[Session]]:
        """Sessions that the viewer may see, ended ones included, latest activity first."""
        return _list_owned(viewer, limit, titled)

    @reads
    def count(self, at_most: int) -> Work[int]:
        """How many sessions were ever created, counting no further than ``at_most``."""
        return value("count_sessions", limit=at_most)

    @reads
    def unfinalized(self, after: Session | None, limit: int) -> Work[list[Session]]:
        """Current open sessions whose end has not been dealt with, in the order of their ids."""
        return SESSIONS.many("unfinalized", after_id=after.id if after else "", limit=limit)

    @writes
    def finalize(self, session_id: str) -> Work[bool]:
        """Record that the end of a session was dealt with; False when it already was."""
        return bool((yield "finalize_session", {"session_id": session_id}))

    @writes
    def mark_recent(self, since: datetime, reason: str, now: datetime) -> Work[int]:
        values = {"since": to_micros(since), "since_minute": to_minute(since)}
        recent = yield from SESSIONS.many("recent_sessions", **values)
        for session in recent:
            yield "update_session", session_row(session.marked(reason, now))
            yield from tell_session(session, now)
        return len(recent)

    @reads
    def stale_keys(self, before: datetime) -> Work[list[str]]:
        """Keys whose session was last active before that time and is not suspended."""
        values = {"before": to_micros(before), "before_minute": to_minute(before)}
        return [key for (key,) in (yield "stale_keys", values) if keys.is_safe_key(key)]

    @writes
    def prune(self, key: str, before: datetime, now: datetime) -> Work[bool]:
        """End the key's session as pruned and forget the key, if it still is stale."""
        # Looked at again behind the lock: a message may have come in since the key was found stale.
        yield "lock_key", {"key": key}
        session = yield from _current_locked(key)
        if session is None or session.entry.suspended or session.entry.updated_at >= before:
            return False
        yield from leave(session, EndReason.PRUNED, now)
        yield "drop_route_to", {"session_id": session.id}
        yield from tell_session(session, now)
        return True

    @writes
    def set_title(self, session_id: str, title: str | None, now: datetime) -> Work[bool]:
        """Give the title to the session; TitleTaken when another conversation of its owner has it."""
        session = yield from SESSIONS.one("session_locked", session_id=session_id)
        if session is None:
            return False
        if title is not None:
            yield from _make_room(session, title)
        values = {"title": title, "title_key": None if title is None else title_key(title)}
        yield "set_title", {"session_id": session_id, **values}
        yield from tell_session(session, now)
        return True

    @writes
    def resume(self, key: str, wanted: Wanted, resumption: Resumption) -> Work[Resumed]:
        """Go on with another session under a key. What is wanted is looked up, and whether it can be had is
        decided, behind the key's lock: nobody takes it elsewhere, or ends it, in between."""
        resumption = yield from links.look_again(resumption)
        yield "lock_key", {"key": key}
        current = yield from _current_tip(key)
        target = yield from _wanted(wanted, resumption.viewer)
        elsewhere = (yield from route_of(target.id)) if target else None
        at_work = yield from _at_work(elsewhere, key)
        outcome, move = resumption.decide(current, target, at_work_elsewhere=at_work)
        if isinstance(move, moves.Switch):
            now = resumption.resolver.now
            switched = yield from _switch(move, key, current, now, drops=elsewhere is not None)
            yield from tell_session(switched, now)
        return Resumed(outcome=outcome, before=resumption.own(current), target=target)

    @reads
    def meant(self, key: str, wanted: Wanted, viewer: Viewer) -> Work[Session | None]:
        """The session that somebody would go on with under a key, if they can have it as things are now."""
        target = yield from _wanted(wanted, viewer, locks=False)
        if target is None or target.is_forgotten:
            return None
        return None if (yield from _at_work((yield from route_of(target.id)), key)) else target

    @reads
    def numbered(self, viewer: Viewer) -> Work[list[Session]]:
        """The conversations with a title as people number them, each as its newest generation."""
        return _numbered(viewer)

    @reads
    def find_title(self, viewer: Viewer, title: str) -> Work[Session | None]:
        for owner in sorted(viewer.owners):
            found = yield from SESSIONS.one("titled", owner=owner, title_key=title_key(title))
            if found and viewer.shows(found):
                return found
        return None


def settle(
    key: str,
    decide: Decide,
    now: datetime,
    new_id: NewId,
    peer: str | None = None,
    target: str | None = None,
) -> Work[moves.Settled]:
    """Decide about a key's current session and carry the decision out."""
    # The lock before the look: no other node decides on what this one is about to change.
    yield "lock_key", {"key": key}
    current = yield from _current_tip(key)
    other = None
    if target is not None:
        other = yield from SESSIONS.one("session_locked", session_id=target)
    elif current is None and peer is not None:
        other = yield from SESSIONS.one("newest_of_peer", key=key, peer=peer)
    move = decide(moves.Situation(current, other))
    after = yield from _carry_out(move, key, current, now, new_id)
    if after and isinstance(move, moves.Change | moves.Start | moves.Switch):
        yield from tell_session(after, now)
    return moves.Settled(session=after, before=current, move=move)


def _current_tip(key: str) -> Work[Session | None]:
    """The key's session, to be changed; when it was compressed, the one that continues it."""
    current = yield from _current_locked(key)
    if current is None or current.reason is not EndReason.COMPRESSED:
        return current
    tip = yield from _walk(current)
    if tip.id == current.id:
        return current
    tip = (yield from SESSIONS.one("session_locked", session_id=tip.id)) or tip
    yield from point(key, tip)
    return (yield from _change(moves.Change(session=tip.changed(session_key=key))))


def _current_locked(key: str) -> Work[Session | None]:
    """The key's session, to be changed. Another key may have taken it while its lock was waited for."""
    session = yield from SESSIONS.one("current_session_locked", key=key)
    while session and session.entry.session_key != key and (yield from route_of(session.id)) != key:
        session = yield from SESSIONS.one("current_session_locked", key=key)
    return session


def _walk(session: Session) -> Work[Session]:
    """Follow compressions to the newest continuation."""
    seen = {session.id}
    while session.reason is EndReason.COMPRESSED:
        following = yield from SESSIONS.one("continuation", session_id=session.id)
        if following is None or following.id in seen:
            break
        seen.add(following.id)
        session = following
    return session


def _carry_out(
    move: moves.Move, key: str, current: Session | None, now: datetime, new_id: NewId
) -> Work[Session | None]:
    match move:
        case moves.Stay() | moves.Ask():
            return current
        case moves.Touch():
            assert current is not None, "only a current session can be touched"
            yield from _touch(current, now)
            return current.changed(updated_at=now)
        case moves.Change():
            return (yield from _change(move))
        case moves.Start():
            return (yield from _start(move, key, current, now, new_id))
        case moves.Switch():
            return (yield from _switch(move, key, current, now))


def _touch(session: Session, now: datetime) -> Work[None]:
    yield "touch_session", {"session_id": session.id, "now": to_micros(now)}
    if to_minute(now) != to_minute(session.entry.updated_at):
        yield "move_forward", {"session_id": session.id, "active_minute": to_minute(now)}


def _change(move: moves.Change) -> Work[Session]:
    if not move.fresh_allowance:
        yield "update_session", session_row(move.session)
        return move.session
    ((counted_from,),) = yield "update_session_afresh", session_row(move.session)
    return replace(move.session.changed(message_count=0), counted_from=counted_from)


def _start(
    move: moves.Start, key: str, current: Session | None, now: datetime, new_id: NewId
) -> Work[Session]:
    yield from leave(current, move.ends, now)
    session = yield from _insert(move.session, new_id)
    yield from point(key, session)
    if move.copies_parent and session.parent_id:
        yield from transcripts.copy(session.parent_id, session.id, now)
    if move.messages:
        yield from transcripts.begin(session.parent_id or session.id, session.id, move.messages, now)
    if move.copies_parent or move.messages:
        yield "copy_files", {"session_id": session.id, "parent_id": session.parent_id}
        return (yield from SESSIONS.one("session", session_id=session.id)) or session
    return session


def _list_owned(viewer: Viewer, limit: int, titled: bool) -> Work[list[Session]]:
    if viewer.administrator:
        return SESSIONS.many("list_all", limit=limit, titled=int(titled))
    owners = sorted(viewer.owners)
    return SESSIONS.many("list_owned", owners=owners, chat=viewer.chat, titled=int(titled), limit=limit)


def _numbered(viewer: Viewer) -> Work[list[Session]]:
    numbered: dict[str, Session] = {}
    for each in (yield from _list_owned(viewer, MOST_NUMBERED, titled=True)):
        tip = yield from _walk(each)
        if not tip.is_forgotten and (tip.id == each.id or viewer.shows(tip)):
            numbered.setdefault(tip.id, replace(tip, title=tip.title or each.title))
    return list(numbered.values())


def _wanted(wanted: Wanted, viewer: Viewer, *, locks: bool = True) -> Work[Session | None]:
    """The newest generation of the session that somebody means; ``locks`` when it is to be changed."""
    by_id, by_title = ("session_locked", "titled_locked") if locks else ("session", "titled")
    if wanted.number:
        listed = yield from _numbered(viewer)
        if wanted.number <= len(listed):
            found = yield from SESSIONS.one(by_id, session_id=listed[wanted.number - 1].id)
            # It may have been taken to another chat while its lock was waited for.
            return found if found and viewer.shows(found) else None
    if wanted.session_id:
        found = yield from SESSIONS.one(by_id, session_id=wanted.session_id)
        if found and viewer.shows(found) and (tip := (yield from _shown_tip(found, viewer, by_id))):
            return tip
    for title in wanted.titles:
        for owner in sorted(viewer.owners):
            found = yield from SESSIONS.one(by_title, owner=owner, title_key=title_key(title))
            if found and viewer.shows(found) and (tip := (yield from _shown_tip(found, viewer, by_id))):
                return tip
    return None


def _at_work(route: str | None, key: str) -> Work[bool]:
    """Whether a turn is under way in the conversation of another key."""
    if route is None or route == key:
        return False
    return bool((yield "at_work", {"lane": lanes.turn_lane(route), "control": lanes.control_lane(route)}))


def _shown_tip(session: Session, viewer: Viewer, by_id: str) -> Work[Session | None]:
    """The newest generation, when the viewer may see that one, too: it may have been taken elsewhere."""
    tip = yield from _walk(session)
    if tip.id != session.id:
        tip = (yield from SESSIONS.one(by_id, session_id=tip.id)) or tip
    return tip if viewer.shows(tip) else None


def _switch(
    move: moves.Switch, key: str, current: Session | None, now: datetime, *, drops: bool = True
) -> Work[Session]:
    """``drops``: the session may be current for another key."""
    session = move.session.changed(session_key=key)
    if current is None or current.id != session.id:
        yield from leave(current, move.ends, now)
    if drops:
        yield from point(key, session)
    else:
        yield "point_route", {"key": key, "session_id": session.id}
    return (yield from _change(moves.Change(session=session, fresh_allowance=move.fresh_allowance)))


def _insert(session: Session, new_id: NewId) -> Work[Session]:
    """An id that somebody else has taken meanwhile is followed by another."""
    for _ in range(ID_ATTEMPTS):
        if (yield "insert_session", session_row(session)):
            return session
        session = session.changed(session_id=new_id())
    raise errors.StoreFailed(path=session.entry.session_key, why="no free session id")


def _make_room(session: Session, title: str) -> Work[None]:
    """Take the title from earlier generations of the same conversation; refuse when another one has it."""
    holder = yield from SESSIONS.one("titled", owner=session.owner, title_key=title_key(title))
    if holder is None or holder.id == session.id:
        return
    tip = yield from _walk(holder)
    if tip.id != session.id:
        raise errors.TitleTaken(title=title)
    yield "set_title", {"session_id": holder.id, "title": None, "title_key": None}
