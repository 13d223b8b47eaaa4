"""Going on with an earlier conversation: what is wanted, and what becomes of the wish."""

from enum import StrEnum
from functools import reduce

import msgspec
from msgspec.structs import replace

from frontdesk.model import keys, moves
from frontdesk.model.people import Viewer
from frontdesk.model.resolution import Resolver, goes_on
from frontdesk.model.sessions import Session, SessionStatus, with_boundary

MOST_NUMBERED = 10


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody may have meant: a number of their list, an id, a title; in this order."""

    number: int | None = None
    session_id: str | None = None
    titles: tuple[str, ...] = ()


class Resuming(StrEnum):
    """What became of it."""

    DONE = "done"
    HERE = "it is here"
    UNKNOWN = "unknown"
    FORGOTTEN = "forgotten"
    ELSEWHERE = "at work elsewhere"
    FOREIGN = "of another profile"
    ASK = "whether background work runs must be asked first"


class Resumed(msgspec.Struct, frozen=True, kw_only=True):
    outcome: Resuming
    before: Session | None = None
    """The one that was current before, when the viewer may see it and a message would have gone on in it."""
    target: Session | None = None
    """The one that was wanted, as it was."""


class Resumption(msgspec.Struct, frozen=True, kw_only=True):
    """Decides about the wish to go on with another session, by the rows that the transaction sees."""

    viewer: Viewer
    place: Session
    """What a new session would be here: where the other one goes on."""
    resolver: Resolver
    by: str | None = None
    """The name of who wants it."""

    def decide(
        self, current: Session | None, target: Session | None, *, at_work_elsewhere: bool
    ) -> tuple[Resuming, moves.Move]:
        if target is None:
            return Resuming.UNKNOWN, moves.Stay()
        if target.is_forgotten:
            return Resuming.FORGOTTEN, moves.Stay()
        if current and current.id == target.id and goes_on(current):
            if self.resolver.busy is None and self.resolver.policy_reason(current):
                return Resuming.ASK, moves.Stay()
            if not self._is_over(current):
                return Resuming.HERE, moves.Stay()
        there, here = target.entry.session_key, self.place.entry.session_key
        if keys.namespace_of(there) != keys.namespace_of(here):  # another agent is not told of it
            return Resuming.FOREIGN, moves.Stay()
        if at_work_elsewhere:
            return Resuming.ELSEWHERE, moves.Stay()
        return Resuming.DONE, moves.Switch(session=self._brought_here(current, target))

    def own(self, current: Session | None) -> Session | None:
        """The current session, when the viewer may see it and a message would go on in it."""
        return current if current and goes_on(current) and self.viewer.shows(current) else None

    def _is_over(self, session: Session) -> bool:
        """Whether the next message would not go on in it."""
        due = not self.resolver.busy and self.resolver.policy_reason(session) is not None
        return session.entry.suspended or session.status is SessionStatus.ENDED or due

    def _brought_here(self, current: Session | None, target: Session) -> Session:
        """It goes on where it is wanted, and stays its owner's."""
        now, here = self.resolver.now, self.place.entry
        again = target.reopened(now).renewed(now, self.by)
        if target.entry.session_key != here.session_key:
            again = again.changed(origin=here.origin, platform=here.platform, chat_type=here.chat_type)
            again = replace(again, peer=self.place.peer, unread_origin=None)
        # Whichever session a key goes on in, a boundary that it was reset for is not served again.
        return replace(again, served=reduce(with_boundary, current.served if current else (), target.served))
