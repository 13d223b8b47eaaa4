"""Links to one confirmation: for whom one was made, and that they have looked at what is hidden."""

from datetime import timedelta

import msgspec

from frontdesk import errors
from frontdesk.contracts.clock import Clock
from frontdesk.formats import links
from frontdesk.model.confirmations import Caller, Confirmation
from frontdesk.web.credentials import Credentials

LINGERS = timedelta(minutes=1)


class DecisionLinks(msgspec.Struct, frozen=True, kw_only=True):
    """What was signed with our key, about one request and exactly the action in it."""

    credentials: Credentials
    key: bytes
    clock: Clock

    def caller(self, token: str, asked: Confirmation) -> Caller:
        """For whom a link about exactly this request was made. LinkRefused."""
        about, now = (asked.id, asked.digest), self.clock.now()
        # Whoever said yes in the last moment sees what becomes of it: nothing else can be done then.
        used = asked.resolved_at if asked.grant_until and now < asked.grant_until + LINGERS else None
        approver = links.check(self.key, token, links.Purpose.DECIDE, about, used or now)
        caller = self.credentials.approver(approver)
        if caller is None:
            raise errors.LinkRefused()
        return caller

    def note_look(self, caller: Caller, asked: Confirmation) -> str:
        """The proof that somebody has looked at what is hidden; it ends with the request."""
        return links.sign(self.key, links.look(asked.id, asked.digest, caller.id, asked.expires_at))

    def has_looked(self, token: str | None, caller: Caller, asked: Confirmation) -> bool:
        """Whether the proof is this person's, of exactly this request."""
        try:
            about = (asked.id, asked.digest)
            looker = links.check(self.key, token or "", links.Purpose.LOOK, about, self.clock.now())
        except errors.LinkRefused:
            return False
        return looker == caller.id
