"""People: who was let in, which codes wait, whom we answered, and who is the same person."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial

from msgspec.structs import asdict

from frontdesk.contracts.confirmations import Persons
from frontdesk.contracts.store import Work
from frontdesk.logs import get_logger
from frontdesk.model import codes
from frontdesk.model.access import Grant, Role
from frontdesk.model.audit import AuditKind
from frontdesk.model.chats import Allowance, Quota, message_digest
from frontdesk.model.feed import FeedKind
from frontdesk.model.people import Person, bare_name, place_of_name, plain_name
from frontdesk.model.sources import SessionSource
from frontdesk.stores import access_log, links
from frontdesk.stores.columns import to_micros
from frontdesk.stores.feed import announce
from frontdesk.stores.learned_names import learned_names
from frontdesk.stores.rows import GRANT, GRANTS, LOCKOUT, PAIRING, PAIRINGS
from frontdesk.stores.work import Noun, glances, reads, value, writes

log = get_logger(__name__)

LATEST = 2**62
"""Later than every moment, in microseconds."""
A_DAY = timedelta(days=1)
TOLD = "told"
"""In place of an event: that somebody was told that no more is answered."""

Form = Callable[[str], str]
Step = Callable[[str], Work[list[str]]]
"""From a name to others of the same person."""


class People(Noun):
    """Who was let in, which codes wait, whom we answered, and who is the same person."""

    changes = 0
    """How often it was changed here who is let in, as what, and who is who."""

    @glances
    def grant_of(self, principal: str) -> Work[Grant | None]:
        return GRANTS.one("grant_of", principal=principal)

    async def grant(self, grant: Grant) -> None:
        """Let somebody in, or change what they may do; codes that they were shown count no more, nor passes
        with which they may do more."""
        await self._grant(grant)
        self.changes += 1

    @writes
    def _grant(self, grant: Grant) -> Work[None]:
        yield "put_grant", GRANT.values(asdict(grant))
        yield "drop_pairings_of", {"principal": grant.principal}
        greater = [role for role in Role if not grant.role.covers(role)]
        ended = yield from _end_passes(grant.principal, grant.granted_at, greater)
        yield from _tell(grant.principal, str(grant.role), grant.granted_at)
        yield from access_log.let_in(grant, ended, with_code=False)

    async def revoke(self, principal: str, now: datetime, *, by: str) -> bool:
        """Take back what somebody was granted, with their links, codes and passes; False when they had
        nothing of it."""
        had = await self._revoke(principal, now, by)
        self.changes += 1
        return had

    @writes
    def _revoke(self, principal: str, now: datetime, by: str) -> Work[bool]:
        taken = [(yield from links.unlink(principal, now))]
        ended = yield from _end_passes(principal, now, Role)
        taken.append(bool(ended))
        taken.append(bool((yield "drop_grant", {"principal": principal})))
        taken.append(bool((yield "drop_pairings_of", {"principal": principal})))
        if any(taken):
            yield from _tell(principal, "revoked", now)
            yield from access_log.revoked(principal, ended, by, now)
        return any(taken)

    @reads
    def list_grants(self, limit: int, after: tuple[int, str] = (LATEST, "")) -> Work[list[Grant]]:
        """Everybody who was let in, the latest first, behind one of them by the time in microseconds and the
        name."""
        return GRANTS.many("list_grants", granted_at=after[0], principal=after[1], limit=limit)

    async def answer_stranger(
        self,
        principal: str,
        platform: str,
        now: datetime,
        offer: tuple[codes.Pairing, codes.Seal] | None = None,
    ) -> codes.Meeting:
        """Note that a stranger is answered, at most once a day, and keep the offered code.

        Silent when they were answered lately or too many others were; answered without the code when too
        many people of the platform wait to be let in, which they may ask again soon.
        """
        if await self._was_answered(principal, now):
            return codes.Meeting.SILENT
        return await self._answer_stranger(principal, platform, now, offer)

    @glances
    def _was_answered(self, principal: str, now: datetime) -> Work[bool]:
        since = to_micros(now - codes.ANSWER_EVERY)
        return bool((yield "stranger", {"principal": principal, "since": since}))

    @writes
    def _answer_stranger(
        self,
        principal: str,
        platform: str,
        now: datetime,
        offer: tuple[codes.Pairing, codes.Seal] | None,
    ) -> Work[codes.Meeting]:
        yield "lock_key", {"key": f"people:{platform}"}
        since = to_micros(now - codes.ANSWER_EVERY)
        yield "forget_strangers", {"platform": platform, "since": since}
        if (yield "stranger", {"principal": principal, "since": since}):
            return codes.Meeting.SILENT
        answered = yield from value("count_answered", platform=platform, since=since)
        if answered >= codes.MOST_ANSWERS:
            return codes.Meeting.SILENT
        if answered + 1 == codes.MOST_ANSWERS:
            log.warning("strangers_capped", platform=platform)
        offered = offer is not None and (yield from _put_pairing(*offer, now))
        # Who found no place may ask again soon: as if they had been answered almost a day ago.
        at = now if offered or offer is None else now - codes.ANSWER_EVERY + codes.YIELDS_AFTER
        yield "put_stranger", {"principal": principal, "platform": platform, "now": to_micros(at)}
        return codes.Meeting.OFFERED if offered else codes.Meeting.ANSWERED

    @writes
    def take_quota(
        self, source: SessionSource, event_id: str, quotas: Sequence[Quota], now: datetime
    ) -> Work[Allowance]:
        """Count what somebody wrote, once for each event, if it may still be answered."""
        chat, event = (str(message_digest(source, each)) for each in (TOLD, event_id))
        yield "lock_key", {"key": f"answered:{chat}"}
        account = source.account or ""
        if (yield "turn_of_event", {"platform": source.platform, "account": account, "event_id": event_id}):
            return Allowance.WITHIN
        yield "forget_answered", {"before": to_micros(now - A_DAY)}
        if (yield "is_answered", {"chat": chat, "event": event, "since": 0}):
            return Allowance.WITHIN
        for quota in quotas:
            since = to_micros(now - timedelta(seconds=quota.seconds))
            if (yield from value("count_taken", chat=chat, since=since)) >= quota.most:
                if (yield "is_answered", {"chat": chat, "event": TOLD, "since": since}):
                    return Allowance.OVER
                yield "put_answered", {"chat": chat, "event": TOLD, "now": to_micros(now)}
                return Allowance.FULL
        yield "put_answered", {"chat": chat, "event": event, "now": to_micros(now)}
        return Allowance.WITHIN

    @writes
    def begin_pairing(self, pairing: codes.Pairing, seal: codes.Seal, now: datetime) -> Work[bool]:
        """Keep a code in place of the person's last one; False when too many wait to be let in."""
        yield "lock_key", {"key": f"people:{pairing.platform}"}
        return (yield from _put_pairing(pairing, seal, now))

    @reads
    def pending_pairings(self, now: datetime) -> Work[list[codes.Pairing]]:
        """Who waits to be let in, the longest waiting first."""
        return PAIRINGS.many("pending_pairings", kind=str(codes.CodeKind.PAIR), now=to_micros(now))

    @writes
    def approve_pairing(
        self, code: str, role: Role, *, place: str, by: str, now: datetime, within: str | None = None
    ) -> Work[codes.Trial]:
        """Let in whom the code was shown to, at any account of ours or within one; of several who type it,
        one does.

        Wrong codes are counted for the place where they are typed; after too many it is locked.
        """
        trial = yield from _try_code(codes.CodeKind.PAIR, code, place, now, within)
        if trial.pairing is None:
            return trial
        grant = Grant(
            principal=trial.pairing.principal,
            platform=trial.pairing.platform,
            role=role,
            granted_at=now,
            granted_by=by,
            name=trial.pairing.name,
        )
        yield "put_grant", GRANT.values(asdict(grant))
        yield from _tell(grant.principal, str(role), now)
        yield from access_log.let_in(grant, with_code=True)
        return codes.Trial(pairing=trial.pairing, grant=grant)

    @writes
    def refuse_pairing(self, principal: str, now: datetime, *, by: str) -> Work[bool]:
        """The code that somebody was shown to be let in counts no more; False when none waited."""
        found = yield "drop_pairing", {"kind": str(codes.CodeKind.PAIR), "principal": principal}
        if found:
            yield from _tell(principal, "refused", now)
            yield from access_log.about(AuditKind.PERSON_REFUSED, principal, by, now)
        return bool(found)

    async def link(self, code: str, principal: str, *, person: str, now: datetime) -> codes.Trial:
        """Whoever types the code and whom it was shown to are the same person: a known one, else a new one.

        Wrong codes are counted for whoever types them.
        """
        trial = await self._link(code, principal, person, now)
        self.changes += 1
        return trial

    @writes
    def _link(self, code: str, principal: str, person: str, now: datetime) -> Work[codes.Trial]:
        # Before the lock of codes, which nobody holds who wants this one; whoever learns a name has its own
        # lock, and then this one. So nobody waits in a circle.
        yield "lock_key", {"key": links.LOCK}
        trial = yield from _try_code(codes.CodeKind.LINK, code, principal, now)
        if trial.pairing:
            yield from links.make_one(trial.pairing.principal, principal, person)
            yield from _tell(principal, "linked", now)
            other = trial.pairing.principal
            yield from access_log.about(AuditKind.PEOPLE_LINKED, principal, principal, now, other=other)
        return trial

    async def unlink(self, principal: str, now: datetime, *, by: str) -> bool:
        """They are nobody else any more; False when they were not."""
        unlinked = await self._unlink(principal, now, by)
        self.changes += 1
        return unlinked

    @writes
    def _unlink(self, principal: str, now: datetime, by: str) -> Work[bool]:
        unlinked = yield from links.unlink(principal, now)
        if unlinked:
            yield from access_log.about(AuditKind.PEOPLE_UNLINKED, principal, by, now)
        return unlinked

    @reads
    def list_links(self, limit: int, after: str = "") -> Work[list[tuple[str, tuple[str, ...]]]]:
        """People who have several names, with these, behind one of them."""
        found = yield "list_links", {"person": after, "limit": limit}
        names: dict[str, tuple[str, ...]] = {}
        for person, principal in found:
            names[person] = (*names.get(person, ()), principal)
        return list(names.items())

    @glances
    def linked(self, principal: str) -> Work[frozenset[str]]:
        """Everybody who is the same person, the one asked about included."""
        found = yield "linked_principals", {"principal": principal}
        return frozenset({principal, *(other for (other,) in found)})

    @reads
    def behind(self, names: Iterable[str], persons: Persons, now: datetime) -> Work[Person]:
        """The person who goes by these names."""
        return person_behind(names, persons, now)


def _end_passes(principal: str, now: datetime, roles: Iterable[Role]) -> Work[list[str]]:
    """Nobody comes in over HTTP as more than they are. The ids of those that were ended."""
    names, ended = sorted({principal, *(yield from learned_names(principal))}), []
    for role in roles:
        values = {"role": str(role), "now": to_micros(now)}
        for name in names:
            ended += [row[0] for row in (yield "revoke_passes_of", {"person": plain_name(name), **values})]
    return ended


def person_behind(names: Iterable[str], persons: Persons, now: datetime) -> Work[Person]:
    """The person who goes by these names: by the settings, by what was learned about WhatsApp, and by links
    of accounts. Whoever counts or compares people asks here."""
    surely = yield from _follow(names, persons, plain_name, _surely_same)
    perhaps = yield from _follow(surely, persons, bare_name, partial(_perhaps_same, now - links.LINGERS))
    return Person(surely, perhaps)


def _follow(names: Iterable[str], persons: Persons, form: Form, step: Step) -> Work[frozenset[str]]:
    """All that the names lead to, by the settings and by steps."""
    found, looked_at = frozenset(map(form, names)), frozenset[str]()
    known = [frozenset(map(form, each)) for each in persons]
    while unseen := found - looked_at:
        looked_at |= unseen
        for name in sorted(unseen):
            found |= frozenset(map(form, (yield from step(name))))
        found = found.union(*(each for each in known if each & found))
    return found


def _surely_same(name: str) -> Work[list[str]]:
    linked = yield "linked_principals", {"principal": name}
    return [*(yield from learned_names(name)), *(other for (other,) in linked)]


def _perhaps_same(since: datetime, name: str) -> Work[list[str]]:
    """Under any account of ours, and by links that ended since then."""
    platform, _, person = name.partition(":")
    place = {"place": f"{platform}@", "tail": f":{person}", "since": to_micros(since)}
    linked = yield "perhaps_linked", {"principal": name, **place}
    return [*(yield from learned_names(name)), *(other for (other,) in linked)]


def _put_pairing(pairing: codes.Pairing, seal: codes.Seal, now: datetime) -> Work[bool]:
    """Keep the code, unless too many people of the platform wait to be let in; its lock is held."""
    yield "drop_expired", {"platform": pairing.platform, "now": to_micros(now)}
    values = PAIRING.values(asdict(pairing))
    pending = yield from value("count_pending", **values, now=to_micros(now))
    if pairing.kind is codes.CodeKind.PAIR and pending >= codes.MOST_PENDING:
        oldest = yield "drop_oldest_pairing", {**values, "before": to_micros(now - codes.YIELDS_AFTER)}
        if not oldest:
            return False
        yield "forget_stranger", {"principal": oldest[0][0]}  # they may ask anew
    yield "put_pairing", {**values, **asdict(seal)}
    if pairing.kind is codes.CodeKind.PAIR:
        yield from _tell(pairing.principal, "asks", now)
    return True


def _try_code(
    kind: codes.CodeKind, code: str, place: str, now: datetime, within: str | None = None
) -> Work[codes.Trial]:
    """Use the code up, if it waits; a wrong one is counted, and after too many nobody looks for a while."""
    yield "lock_key", {"key": f"codes:{place}"}
    found = yield "lockout", {"place": place}
    lockout = codes.Lockout(**LOCKOUT.facts(found[0])) if found else codes.Lockout(since=now)
    if lockout.holds(now):
        return codes.Trial(locked_until=lockout.locked_until)
    pairing = yield from _take(kind, code, place, now, within)
    if pairing is None:
        lockout = lockout.failed(now)
        yield "put_lockout", {"place": place, **LOCKOUT.values(asdict(lockout))}
    return codes.Trial(pairing=pairing, locked_until=None if pairing else lockout.locked_until)


def _take(
    kind: codes.CodeKind, code: str, place: str, now: datetime, within: str | None
) -> Work[codes.Pairing | None]:
    """The code's row, taken; nobody takes their own."""
    waiting = yield "pending_pairings", {"kind": str(kind), "now": to_micros(now)}
    waiting = [each for each in waiting if within in (None, place_of_name(each[0]))]
    fitting = [each for each in waiting if codes.Seal(*map(bytes, each[-2:])).fits(code)]
    for each in (each for each in fitting if each[0] != place):
        values = {"kind": str(kind), "principal": each[0], "digest": each[-1]}
        if (yield "take_pairing", {**values, "now": to_micros(now)}):  # of several who try, one
            return PAIRINGS.read(each)
    return None


def _tell(principal: str, state: str, at: datetime) -> Work[None]:
    """What changed about somebody."""
    yield from announce(FeedKind.PERSON, at, owner=principal, state=state)


def rename_whatsapp(name: str, person: str) -> Work[None]:
    """What somebody was granted, linked to and shown under one name is theirs under the other. The lock of
    links is held."""
    for (old,) in (yield "principals_of_whatsapp", {"name": name}):
        principal = f"{old.rpartition(':')[0]}:{person}"
        yield from _rename_grant(old, principal)
        yield from links.rename(old, principal)
        yield "rename_pairings", {"principal": principal, "old": old}
        yield "drop_pairings_of", {"principal": old}


def _rename_grant(old: str, principal: str) -> Work[None]:
    """The greater of two roles stays."""
    here = yield from GRANTS.one("grant_of", principal=principal)
    there = yield from GRANTS.one("grant_of", principal=old)
    yield "drop_grant", {"principal": old}
    if there and not (here and here.role.covers(there.role)):
        yield "put_grant", GRANT.values(asdict(there.under(principal)))
