"""Links: accounts of one person, and what becomes of their sessions when they are that no more."""

from collections.abc import Collection
from datetime import datetime, timedelta

from msgspec.structs import replace

from frontdesk.contracts.store import Work
from frontdesk.model import whatsapp
from frontdesk.model.feed import FeedKind
from frontdesk.model.people import Principal
from frontdesk.model.policies import EndReason
from frontdesk.model.resuming import Resumption
from frontdesk.model.sessions import Session, SessionStatus
from frontdesk.stores import attempts
from frontdesk.stores.columns import to_micros
from frontdesk.stores.feed import announce
from frontdesk.stores.learned_names import canonical
from frontdesk.stores.routes import leave, route_of
from frontdesk.stores.rows import SESSIONS
from frontdesk.stores.work import value

LOCK = "links"
"""Whoever changes who is the same person holds it, and whoever takes a session to another chat. It is taken
before the locks of keys and lanes, and after that of aliases: so nobody waits in a circle."""
LINGERS = timedelta(hours=3)
"""How long those who were linked stay one person where people are counted: longer than a request waits, and
the one that is asked after it."""


def make_one(one: str, other: str, person: str) -> Work[None]:
    """Both are the same person, and so is everybody they were linked to."""
    person = (yield from value("person_of", principal=one)) or person
    before = yield from value("person_of", principal=other)
    if before:
        yield from _merge(person, before)
    for principal in (one, other):
        yield "put_link", {"principal": principal, "person": person}


def _merge(person: str, old: str) -> Work[None]:
    yield "merge_people", {"person": person, "old": old}
    yield "merge_former_people", {"person": person, "old": old}


def unlink(principal: str, now: datetime) -> Work[bool]:
    """They are nobody else any more; False when they were not."""
    yield "lock_key", {"key": LOCK}
    yield "forget_former_links", {"before": to_micros(now - LINGERS)}
    person = yield from value("person_of", principal=principal)
    if person is None:
        return False
    names = [name for (name,) in (yield "linked_principals", {"principal": principal})]
    yield "keep_former_links", {"person": person, "now": to_micros(now)}
    yield "drop_link", {"principal": principal}
    yield "drop_last_link", {"person": person}
    yield from announce(FeedKind.PERSON, now, owner=principal, state="unlinked")
    for owner in names:
        others = set(names) - {owner} if owner == principal else {principal}
        yield from _part(owner, others, now)
    return True


def look_again(resumption: Resumption) -> Work[Resumption]:
    """The wish of somebody who may have been unlinked since it was known what they see; nobody is from here
    on, until the transaction ends."""
    yield "lock_key", {"key": LOCK}
    parted = yield "parted_from", {"principal": resumption.place.owner}
    viewer = resumption.viewer
    seen = replace(viewer, owners=viewer.owners - {name for (name,) in parted})
    return replace(resumption, viewer=seen)


def _part(owner: str, others: Collection[str], now: datetime) -> Work[None]:
    """What one of them owns no longer goes on in a chat of the others: whoever writes there would write into
    the conversation of somebody else."""
    for session in (yield from SESSIONS.many("current_of_owner", owner=owner)):
        if (yield from _host_of(session)) in others and (key := (yield from route_of(session.id))):
            yield from _leave(key, owner, now)


def _host_of(session: Session) -> Work[str | None]:
    """Whose the chat is that a session goes on in, as far as it is one person's."""
    origin = session.entry.origin
    if origin is None:
        return None
    told = {whatsapp.normalize_whatsapp_identifier(each) for each in (origin.chat_id, origin.participant)}
    is_known = origin.platform is whatsapp.PLATFORM
    principal = Principal.of(origin, (yield from canonical(sorted(told - {""}))) if is_known else {})
    return principal.id if principal else None


def _leave(key: str, owner: str, now: datetime) -> Work[None]:
    yield from attempts.stop_turn(key, now, owner=owner)
    yield "lock_key", {"key": key}
    current = yield from SESSIONS.one("current_session_locked", key=key)
    if current is None or current.owner != owner:
        return
    yield from leave(current, EndReason.UNLINKED, now)
    yield "drop_route_to", {"session_id": current.id}
    named = {"session_key": key, "session_id": current.id}
    yield from announce(FeedKind.SESSION, now, state=str(SessionStatus.ENDED), **named)


def rename(old: str, principal: str) -> Work[None]:
    if person := (yield from value("drop_link", principal=old)):
        known = yield from value("person_of", principal=principal)
        if known:
            yield from _merge(person, known)
        yield "put_link", {"principal": principal, "person": person}
