"""Grants: an approved action is given out once, within its time; a lapsed one is asked again once."""

from datetime import datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.contracts.confirmations import Redemption, Renewing, Tell
from frontdesk.contracts.store import Work
from frontdesk.model.audit import AuditEntry, AuditKind
from frontdesk.model.confirmations import DIGEST, GRANT_SECONDS, Confirmation, Status, Terms
from frontdesk.model.rules import Effect
from frontdesk.model.turns import TurnClaim
from frontdesk.stores import audit
from frontdesk.stores.columns import to_micros
from frontdesk.stores.confirmations import budgets, echoes, rules, submissions, votes
from frontdesk.stores.confirmations.asked import (
    NewId,
    entry_of,
    insert,
    locked,
    pass_door,
    same_digest,
    tell_of,
)
from frontdesk.stores.confirmations.requests import renewed
from frontdesk.stores.lanes import hold
from frontdesk.stores.rows import CONFIRMATIONS
from frontdesk.stores.work import first

GRANT = timedelta(seconds=GRANT_SECONDS)
LAPSED, STOPPED = "lapsed", "stopped"


class Wish(NamedTuple):
    """Who redeems, and how a lapsed grant is asked for wish."""

    by: str
    new_id: NewId
    tell: Tell
    renewing: Renewing | None
    claim: TurnClaim | None = None
    """Of the turn that asked, for as long as it goes on."""


def redeem(confirmation_id: str, digest: str, now: datetime, wish: Wish) -> Work[Redemption]:
    by = wish.by
    asked = yield from locked(confirmation_id)
    if asked.is_overdue(now):
        asked = yield from votes.time_out(asked, now, wish.tell)
    refused = _refusal(asked, digest, now)
    if refused is None and wish.claim:
        refused = yield from _stopped(wish.claim)
    if refused is None:
        return (yield from _use_up(asked, by, now))
    renewal, entries = (yield from _renew(asked, now, wish)) if refused == LAPSED else (None, [])
    given = digest if DIGEST.fullmatch(digest) else None
    refusal = entry_of(AuditKind.REDEEM_REFUSED, asked, by, now, why=refused, given=given)
    yield from audit.append(*(yield from echoes.admit(refusal)), *entries)
    return Redemption(confirmation=asked, refused=refused, renewal=renewal)


def _refusal(asked: Confirmation, digest: str, now: datetime) -> str | None:
    """Why the grant cannot be used: also when the bytes are not those that were approved. By a clock that was
    set back far it counts as lapsed, too."""
    if not same_digest(asked.digest, digest):
        return "digest"
    if asked.status is not Status.APPROVED or asked.resolved_at is None:
        return str(asked.status)
    if asked.redeemed_at is not None:
        return "redeemed"
    if asked.payload is None:
        return "erased"
    if not same_digest(asked.digest, sha256(asked.payload).hexdigest()):
        return "digest"
    return None if abs(now - asked.resolved_at) < GRANT else LAPSED


def _stopped(claim: TurnClaim) -> Work[str | None]:
    """A turn that was told to stop, or that somebody else has, carries nothing out."""
    yield from hold(claim.lease)
    goes_on = first((yield "turn_goes_on", {"turn_id": claim.turn.id}))
    return None if goes_on else STOPPED


def _use_up(asked: Confirmation, by: str, now: datetime) -> Work[Redemption]:
    values = {"confirmation_id": asked.id, "now": to_micros(now), "by": by}
    if not (yield "redeem_confirmation", values):
        refusal = entry_of(AuditKind.REDEEM_REFUSED, asked, by, now, why="redeemed")
        yield from audit.append(*(yield from echoes.admit(refusal)))
        return Redemption(confirmation=asked, refused="redeemed")
    used = replace(asked, redeemed_at=now, redeemed_by=by)
    yield from audit.append(entry_of(AuditKind.REDEEMED, used, by, now))
    return Redemption(confirmation=used, payload=used.payload)


def _renew(
    lapsed: Confirmation, now: datetime, wish: Wish
) -> Work[tuple[Confirmation | None, list[AuditEntry]]]:
    """Ask again, once, as the rules of today say, unless it waits already or was denied."""
    if lapsed.renewal_of is not None:
        return None, []
    yield from pass_door()
    known = yield from CONFIRMATIONS.one("renewal_of", confirmation_id=lapsed.id)
    if known:
        return known, []
    same = yield from submissions.alike(lapsed, now)
    if same:
        muted = any(each.status is Status.DENIED for each in same)
        return None if muted else same[-1], []
    terms = yield from _terms_again(lapsed, now, wish)
    if terms is None:
        return None, []
    asked = replace(renewed(lapsed, wish.new_id(), now), terms=terms)
    yield from insert(asked)
    yield from tell_of([asked], wish.tell)
    return asked, [entry_of(AuditKind.RENEWED, asked, wish.by, now, renewal_of=lapsed.id)]


def _terms_again(lapsed: Confirmation, now: datetime, wish: Wish) -> Work[Terms | None]:
    """On which terms it is asked again; None when a rule denies it, or too much is asked already."""
    if wish.renewing is None:
        return lapsed.terms
    ruling = wish.renewing.rules((yield from rules.holding(now)))
    try:
        yield from budgets.check_load(lapsed.action, wish.renewing.settings, now)
    except (errors.RateLimited, errors.TooManyPending):
        return None
    if ruling.effect is Effect.ASK:
        return ruling.terms
    return None if ruling.effect is Effect.DENY else Terms()
