"""The audit log: rows are added behind the newest one, and never changed.

What happens again and again is in it once in a while, with how often it did: an echo.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from frontdesk.contracts.store import Work
from frontdesk.model.audit import ECHO_SECONDS, GENESIS, AuditEntry, AuditKind, Row, body_of
from frontdesk.stores.columns import from_micros, to_micros
from frontdesk.stores.confirmation_rows import AUDIT_ROW
from frontdesk.stores.feed import tell_confirmation

LOCK = "audit"
FIRST = bytes.fromhex(GENESIS)
WINDOW = timedelta(seconds=ECHO_SECONDS)


def append(*entries: AuditEntry) -> Work[None]:
    """Write down what the transaction did, as the last thing that it does.

    All nodes wait for each other here until the commit, so that no number is left out. Whoever holds this
    lock asks for no other one: so nobody waits in a circle.
    """
    if not entries:
        return
    yield "lock_key", {"key": LOCK}
    for entry in entries:
        yield "append_audit", {"body": body_of(entry), "genesis": FIRST}
        yield from tell_confirmation(entry.confirmation_id, str(entry.kind), entry.at)


def read(query: str, **values: int) -> Work[Sequence[Row]]:
    return [Row(**AUDIT_ROW.facts(found)) for found in (yield query, values)]


def admit(entry: AuditEntry) -> Work[Sequence[AuditEntry]]:
    """The entry, with how many were left out before it. None when the same actor did the same to the same
    request, or to none, less than a minute ago: then it is counted. Whoever asks has locked the request, or
    the entrance."""
    about = {
        "confirmation_id": entry.confirmation_id or "",
        "kind": str(entry.kind),
        "why": entry.facts.get("why", ""),
        "actor": entry.actor,
    }
    found = yield "echo", about
    since, left_out = found[0] if found else (None, 0)
    if since is not None and abs(entry.at - from_micros(since)) < WINDOW:
        yield "count_echo", about
        return ()
    yield "begin_echo", {**about, "since": to_micros(entry.at)}
    return (replace(entry, facts={**entry.facts, "left_out": left_out}) if left_out else entry,)


def close_echoes(now: datetime, limit: int) -> Work[int]:
    """Write down how many were left out, where nothing more has come for a while; how many were looked at."""
    before, after = to_micros(now - WINDOW), to_micros(now + WINDOW)
    found = yield "close_echoes", {"before": before, "after": after, "limit": limit}
    yield from append(*[_closing(*each, at=now) for each in found if each[-1]])
    return len(found)


def _closing(
    confirmation_id: str, kind: str, why: str, actor: str, left_out: int, *, at: datetime
) -> AuditEntry:
    facts = {"left_out": left_out} | ({"why": why} if why else {})
    about = confirmation_id or None
    return AuditEntry(kind=AuditKind(kind), at=at, actor=actor, confirmation_id=about, facts=facts)
