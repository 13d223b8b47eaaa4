"""What the audit log says of who may come in: written in the transaction that it tells of. Passes are named
by their ids; neither a secret nor its digest is in it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from frontdesk.contracts.store import Work
from frontdesk.model.access import Grant
from frontdesk.model.audit import AuditEntry, AuditKind
from frontdesk.model.passes import Pass, PassKind
from frontdesk.stores import audit

MOST_NAMED = 20
"""Of passes that end together so many are named."""
BY_LINK, BY_SETTINGS, BY_PASS = "with a link", "with a token of the settings", "with {id}"


def pass_given(given: Pass, by: str) -> Work[None]:
    facts = _facts(given) | {"person": given.person, "until": given.expires_at.isoformat()}
    yield from _write(AuditKind.PASS_GIVEN, by, given.created_at, facts)


def link_used(page: Pass) -> Work[None]:
    """A link was turned into a page, which each is once."""
    yield from _write(AuditKind.SIGNED_IN, page.person, page.created_at, _facts(page) | {"why": BY_LINK})


def signed_in(page: Pass) -> Work[None]:
    """A page was begun with what may begin any number: once in a minute each. The lock of passes is held."""
    why = BY_SETTINGS if page.bound_to else BY_PASS.format(id=page.parent) if page.parent else None
    facts = _facts(page) | ({"why": why} if why else {})
    entry = AuditEntry(kind=AuditKind.SIGNED_IN, at=page.created_at, actor=page.person, facts=facts)
    yield from audit.append(*(yield from audit.admit(entry)))


def passes_ended(ended: Sequence[tuple[Pass, int]], by: str, now: datetime) -> Work[None]:
    """Somebody ended passes, each with so many pages that were begun with it; whoever leaves their own pages
    again and again is told of once in a minute. The lock of passes is held."""
    entries: list[AuditEntry] = []
    for each, pages in ended:
        facts = _facts(each) | {"person": each.person} | ({"pages": pages} if pages else {})
        entry = AuditEntry(kind=AuditKind.PASS_ENDED, at=now, actor=by, facts=facts)
        is_own = each.kind is PassKind.PAGE and each.person == by
        entries += (yield from audit.admit(entry)) if is_own else [entry]
    yield from audit.append(*entries)


def let_in(grant: Grant, ended: Sequence[str] = (), *, with_code: bool) -> Work[None]:
    """Somebody was let in, or may do something else from now on; what they came in with as more has ended."""
    facts = {"person": grant.principal, "role": str(grant.role), "with_code": with_code} | _named(ended)
    yield from _write(AuditKind.PERSON_LET_IN, grant.granted_by, grant.granted_at, facts)


def about(kind: AuditKind, person: str, by: str, now: datetime, **facts: Any) -> Work[None]:
    """Something else was done about a person."""
    yield from _write(kind, by, now, {"person": person} | facts)


def revoked(person: str, ended: Sequence[str], by: str, now: datetime) -> Work[None]:
    yield from about(AuditKind.PERSON_REVOKED, person, by, now, **_named(ended))


def _named(ended: Sequence[str]) -> dict[str, Any]:
    return {"passes": sorted(ended)[:MOST_NAMED], "passes_ended": len(ended)} if ended else {}


def _facts(given: Pass) -> dict[str, Any]:
    return {"pass": given.id, "pass_kind": str(given.kind), "name": given.name, "role": str(given.role)}


def _write(kind: AuditKind, actor: str, at: datetime, facts: dict[str, Any]) -> Work[None]:
    yield from audit.append(AuditEntry(kind=kind, at=at, actor=actor, facts=facts))
