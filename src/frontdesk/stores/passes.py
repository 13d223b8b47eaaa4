"""Passes: given out once, found by their digests, ended by whoever may."""

from datetime import datetime

from msgspec.structs import asdict

from frontdesk import errors
from frontdesk.contracts.confirmations import Persons
from frontdesk.contracts.store import Work
from frontdesk.model.feed import FeedKind
from frontdesk.model.passes import KEPT_FOR, MOST_PAGES, Pass, PassKind
from frontdesk.model.people import Person
from frontdesk.stores import access_log
from frontdesk.stores.columns import to_micros
from frontdesk.stores.feed import announce
from frontdesk.stores.pass_rows import PASS, PASSES
from frontdesk.stores.people import person_behind
from frontdesk.stores.work import Noun, reads, writes, writes_lazily

LOCK = "passes"
LAST = 2**62
"""Later than every moment."""
ENDED = "what they came with has ended"


class Passes(Noun):
    """What lets people in over HTTP."""

    @writes
    def add(self, given: Pass, now: datetime, *, by: str) -> Work[None]:
        """Keep a new one that somebody gives out, and forget those that are long over. PassTaken for the name
        of another token, NotAllowed for a page that is begun with what has ended."""
        yield "lock_key", {"key": LOCK}
        yield "drop_old_passes", {"before": to_micros(now - KEPT_FOR)}
        named = {"name": given.name, "now": to_micros(now)}
        if given.kind is PassKind.TOKEN and (yield "named_token", named):
            raise errors.PassTaken(name=given.name)
        if given.parent and not (yield "pass_holds", {"id": given.parent, "now": to_micros(now)}):
            raise errors.NotAllowed(who=given.person, rule=ENDED)
        yield "insert_pass", PASS.values(asdict(given))
        is_page = given.kind is PassKind.PAGE
        if not (is_page and (yield from _make_room(given.person, now))):  # else there are as many as before
            yield from announce(FeedKind.PERSON, now, owner=given.person, state="pass given")
        yield from access_log.signed_in(given) if is_page else access_log.pass_given(given, by)

    @writes
    def redeem(
        self, link: bytes, *, digest: bytes, proof: bytes, now: datetime, until: datetime
    ) -> Work[Pass | None]:
        """A link becomes a page; None for one that was used, is over, or never was."""
        values = {"link": link, "digest": digest, "proof": proof}
        found = yield from PASSES.one(
            "redeem_pass", **values, now=to_micros(now), expires_at=to_micros(until)
        )
        if found:
            yield from _make_room(found.person, now)
            yield from announce(FeedKind.PERSON, now, owner=found.person, state="signed in")
            yield from access_log.link_used(found)
        return found

    @reads
    def find(self, digest: bytes, persons: Persons, now: datetime) -> Work[tuple[Pass, Person] | None]:
        """A pass that holds, and the person whose it is."""
        found = yield from PASSES.one("pass_of_digest", digest=digest, now=to_micros(now))
        if found is None or not found.holds(now):
            return None
        return found, (yield from person_behind([found.person], persons, now))

    @writes
    def revoke(self, name: str, now: datetime, *, by: str) -> Work[bool]:
        """End a token by its name or any pass by its id, with the pages that were begun with it; False when
        nothing of that name holds."""
        moment = to_micros(now)
        yield "lock_key", {"key": LOCK}
        ended: list[tuple[Pass, int]] = []
        for each in (yield from PASSES.many("passes_named", name=name, now=moment)):
            over = {row[0] for row in (yield "revoke_pass", {"id": each.id, "now": moment})}
            ended.append((each, len(over - {each.id})))
            # Whoever follows with it is woken by this, and looks no longer.
            yield from announce(FeedKind.PERSON, now, owner=each.person, state="pass ended")
        yield from access_log.passes_ended(ended, by, now)
        return bool(ended)

    @reads
    def list(
        self, limit: int, now: datetime, after: tuple[int, str] | None = None, *, over: bool = False
    ) -> Work[list[Pass]]:
        """Those that hold, or with ``over`` all that are remembered, the latest first; after the one that
        was made at that microsecond, and has that id."""
        made, last = after or (LAST, "")
        values = {"created_at": made, "id": last, "now": to_micros(now), "over": int(over), "limit": limit}
        return PASSES.many("list_passes", **values)

    @writes_lazily
    def touch(self, pass_id: str, now: datetime) -> Work[None]:
        """It was used."""
        yield "touch_pass", {"id": pass_id, "now": to_micros(now)}


def _make_room(person: str, now: datetime) -> Work[bool]:
    """Forget pages that somebody has too many of: first those that are over, then those that rested longest.
    Whether one of these was still good."""
    values = {"person": person, "now": to_micros(now), "most": MOST_PAGES}
    dropped = yield "drop_pages", values
    return any(good for (good,) in dropped)
