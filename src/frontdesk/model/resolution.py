"""Which session a message belongs to: the decision, without the reading and writing."""

from datetime import datetime, timedelta, tzinfo

import msgspec

from frontdesk.model import moves
from frontdesk.model.messages import Message, Plain
from frontdesk.model.policies import AUTOMATIC, EndReason, SessionResetPolicy, latest_passing
from frontdesk.model.sessions import Reopening, Session, SessionEntry, SessionStatus, with_boundary
from frontdesk.model.turns import Turn

HELD_BACK_BY_WORK = AUTOMATIC - {EndReason.SUSPENDED, EndReason.RESUME_PENDING_EXPIRED}
"""Reasons that wait for background work to end."""


class Resolver(msgspec.Struct, frozen=True, kw_only=True):
    """Decides what happens to a key's session when a message arrives."""

    now: datetime
    policy: SessionResetPolicy
    machine_zone: tzinfo
    freshness: timedelta | None
    newborn: Session | None = None
    """What a new session of the place is; without it, only `lets_go_on` can be asked."""
    force_new: bool = False
    busy: bool | None = None

    def decide(self, situation: moves.Situation) -> moves.Move:
        current = situation.current
        if self.force_new:
            return self._start(current, EndReason.NEW, flags=False)
        if current is None:
            return self._recover(situation.other)
        if not goes_on(current):
            return self._after_end(current)
        if self.lets_go_on(current):
            return moves.Touch()
        reason = self._fresh_reason(current)
        if reason is None:
            return self._resume(current)
        if self.busy is None and reason in HELD_BACK_BY_WORK:
            return moves.Ask()
        return self._start(current, reason)

    def lets_go_on(self, current: Session) -> bool:
        """Whether a message simply goes on in the session: the usual case."""
        # One that was finalized is to be finalized again at its end.
        untouched = current.ended_at is None and not current.entry.expiry_finalized
        return untouched and self._fresh_reason(current) is None

    def policy_reason(self, session: Session) -> EndReason | None:
        """The policy's verdict alone."""
        return self.policy.due_reason(
            session.as_limited(), now=self.now, machine_zone=self.machine_zone, served=session.served
        )

    def _fresh_reason(self, session: Session) -> EndReason | None:
        entry = session.entry
        if entry.suspended:
            return EndReason.SUSPENDED
        reason = None if self.busy else self.policy_reason(session)
        if reason is None and entry.resume_pending and mark_expired(entry, self.now, self.freshness):
            return EndReason.RESUME_PENDING_EXPIRED
        return reason

    def _recover(self, other: Session | None) -> moves.Move:
        if other is None:
            return moves.Start(session=self._stamp(self._newborn), ends=EndReason.NEW)
        return self._start(other, EndReason.SUSPENDED) if other.entry.suspended else self._resume(other)

    def _resume(self, session: Session) -> moves.Move:
        """Open again and active now, with the marks and flags it had."""
        active = session.changed(updated_at=self.now, expiry_finalized=False)
        reopened = msgspec.structs.replace(active, ended_at=None, end_reason=None)
        return moves.Switch(session=reopened, fresh_allowance=False)

    def _after_end(self, session: Session) -> moves.Move:
        """The session was ended elsewhere, and not merely closed: it is over."""
        if session.reason in AUTOMATIC:
            return self._start(session, session.reason)
        return self._start(session, EndReason.NEW, flags=False)

    def _start(self, old: Session | None, reason: EndReason, flags: bool = True) -> moves.Move:
        if old is None:
            return moves.Start(session=self._stamp(self._newborn), ends=reason)
        newborn = self._newborn
        session = old.successor(newborn.id, self.now, reason)
        # The old one may have been somebody's private session that they went on with here.
        session = msgspec.structs.replace(session, owner=newborn.owner, peer=newborn.peer)
        if session.entry.origin is None:
            session = session.changed(origin=newborn.entry.origin, platform=newborn.entry.platform)
        if not flags:
            session = session.consumed()
        return moves.Start(session=self._stamp(session), ends=reason)

    @property
    def _newborn(self) -> Session:
        assert self.newborn is not None, "whoever may start a session says what it is"
        return self.newborn

    def _stamp(self, session: Session) -> Session:
        """The session begins after the latest daily boundary, which needs no reset any more."""
        zone = self.policy.zone(self.machine_zone)
        passed = latest_passing(self.now, self.policy.at_hour, zone)
        return msgspec.structs.replace(session, served=with_boundary(session.served, passed))


def mark_expired(entry: SessionEntry, now: datetime, freshness: timedelta | None) -> bool:
    """Whether it was to be resumed, and that is too long ago."""
    marked = entry.last_resume_marked_at or entry.updated_at
    return entry.resume_pending and freshness is not None and now - marked > freshness


def goes_on(session: Session) -> bool:
    """Whether nothing but policy and state keep a message from going on in the session."""
    return session.status is SessionStatus.OPEN or session.reopening is Reopening.BY_A_MESSAGE


class Opening(msgspec.Struct, frozen=True):
    """How a turn begins if its session simply goes on: known before it is claimed."""

    resolver: Resolver
    message: Message
    text: str
    """What the turn said when this was worked out: while it waits, its sender may change it."""
    row: Plain
    """The message, before it was packed."""

    def fits(self, turn: Turn, session: Session) -> bool:
        """Whether nothing but the message is to be written, and nobody has to be told of anything first."""
        untouched = turn.attempts == 1 and turn.session_id is None
        untouched = untouched and turn.text == self.text and not turn.parts
        return untouched and session.started and session.reset_told and self.resolver.lets_go_on(session)
