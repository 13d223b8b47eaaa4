"""The names of WhatsApp people: what somebody had under one name is found under the others."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from frontdesk.contracts.bells import Topic
from frontdesk.contracts.store import Readdress, Rename, Work, ring
from frontdesk.model import lanes, whatsapp
from frontdesk.model.feed import FeedKind
from frontdesk.model.policies import EndReason
from frontdesk.model.titles import title_key
from frontdesk.model.turns import PROMPT, Turn, TurnState
from frontdesk.stores import learned_names, links, people, search
from frontdesk.stores.columns import to_micros
from frontdesk.stores.feed import announce, tell_turn
from frontdesk.stores.lanes import fence, line_up, unlined
from frontdesk.stores.routes import leave, point, route_of
from frontdesk.stores.rows import SESSIONS, TURNS
from frontdesk.stores.work import Noun, glances, reads, writes

PAUSE = timedelta(seconds=3)
"""Before a turn that ran under the old name goes on: by then whoever ran it has let go of it."""

MOST_TURNS = 2**62

Table = Mapping[str, str]


class Aliases(Noun):
    @reads
    def canonical(self, identifiers: Sequence[str]) -> Work[dict[str, str]]:
        """The canonical identifier of each one that has another."""
        return learned_names.canonical(identifiers)

    @glances
    def names_of(self, person: str) -> Work[list[str]]:
        """The other identifiers of a person, who is given by the canonical one."""
        return [name for (name,) in (yield "names_of", {"canonical": person})]

    @writes
    def learn(
        self, identifier: str, person: str, rename: Rename, readdress: Readdress, now: datetime
    ) -> Work[bool]:
        """From now on ``identifier`` is another name of ``person``; False when that was known.

        What the person had under the old name, and all its other names, is found under the new one, in the
        same transaction. Messages that wait are moved; a turn that runs is taken from its holder and goes on.
        """
        learned = yield from _learn(identifier, person, rename, readdress, now)
        if learned:
            for topic in (Topic.TURNS, Topic.CONTROL, Topic.SIGNALS):
                yield ring(topic)
        return learned


def _learn(identifier: str, person: str, rename: Rename, readdress: Readdress, now: datetime) -> Work[bool]:
    yield "lock_key", {"key": "aliases"}  # of two that are learned at once, the second sees the first
    yield "lock_key", {"key": links.LOCK}
    known = yield from learned_names.canonical([identifier, person])
    canonical = known.get(person, person)
    if known.get(identifier, identifier) == canonical:
        return False
    if identifier in known:  # a name that moves to another person takes nothing of the first along
        yield "learn_alias", {"identifier": identifier, "canonical": canonical}
        return True
    names = [identifier, *(name for (name,) in (yield "names_of", {"canonical": identifier}))]
    others = [name for (name,) in (yield "names_of", {"canonical": canonical})]
    for name in names:
        yield "learn_alias", {"identifier": name, "canonical": canonical}
    table = dict.fromkeys([*names, *others], canonical)
    yield from _move_turns(table, readdress, now)
    for name in names:
        yield from _rename_sessions(name, table, rename, now)
        yield from people.rename_whatsapp(name, canonical)
    return True


def _move_turns(table: Table, readdress: Readdress, now: datetime) -> Work[None]:
    """What waits or runs under another name of the person goes on in the one conversation."""
    waiting = yield from TURNS.many("open_turns_of", platform=str(whatsapp.PLATFORM))
    moving = [turn for turn in waiting if readdress(turn.source, table) not in (None, turn.session_key)]
    for lane in sorted({_lane(turn, turn.session_key) for turn in moving}):
        # The lane is locked first: whoever claims a turn of it has done so, or will find it moved.
        yield "lock_lane", {"lane": lane}
        for turn in (yield from TURNS.many("open_turns", lane=lane, control=lane, limit=MOST_TURNS)):
            key = readdress(turn.source, table)
            if key is not None:
                yield from _move_turn(turn, key, now)
        yield from fence(lane)


def _lane(turn: Turn, key: str) -> str:
    return lanes.control_lane(key) if turn.kind in PROMPT else lanes.turn_lane(key)


def _move_turn(turn: Turn, key: str, now: datetime) -> Work[None]:
    lane, due_at = _lane(turn, key), turn.received_at
    if turn.state is not TurnState.QUEUED:
        due_at = now + PAUSE
        values = {"due_at": to_micros(due_at), "interrupted_at": to_micros(now), "error": None}
        yield "requeue_turn", {"turn_id": turn.id, "uncounted": 1, "doubted": 0, **values}
        yield from tell_turn(turn, TurnState.QUEUED, now)
    yield "readdress_turn", {"turn_id": turn.id, "session_key": key, "lane": lane}
    yield from line_up(lane, due_at, turn.party)
    yield from unlined(lane)


def _rename_sessions(old: str, table: Table, rename: Rename, now: datetime) -> Work[None]:
    for session in (yield from SESSIONS.many("sessions_of_whatsapp", name=old)):
        key, owner, peer = rename(session, table)
        route = yield from route_of(session.id)
        if session.title and (yield "titled", {"owner": owner, "title_key": title_key(session.title)}):
            yield "set_title", {"session_id": session.id, "title": None, "title_key": None}
        yield "rename_session", {"session_id": session.id, "session_key": key, "owner": owner, "peer": peer}
        yield from search.reindex_session(session.id)
        yield from announce(FeedKind.SESSION, now, session_id=session.id)
        if route is None or route == key:
            continue
        rival = yield from SESSIONS.one("current_session_locked", key=key)
        if rival is None or rival.entry.updated_at < session.entry.updated_at:
            yield from leave(rival, EndReason.CLOSED, now)
            yield from point(key, session)
        else:
            yield "drop_route_to", {"session_id": session.id}
            yield from leave(session, EndReason.CLOSED, now)
