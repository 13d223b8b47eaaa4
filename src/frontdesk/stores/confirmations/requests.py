"""Requests as they are looked up and written in a transaction, and what the log says of them.

Locks are taken in one order, so that nobody waits in a circle: the rows of confirmations, the entrance that
requests come in through or the denials of a requester, lanes, the audit log. Who joins a request locks it
behind the entrance; those who hold a row and want the entrance hold one that waits no longer.
"""

import hmac
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from frontdesk import errors
from frontdesk.contracts.bells import Topic
from frontdesk.contracts.confirmations import Tell
from frontdesk.contracts.store import TAKES_LONG, Row, Work, ring
from frontdesk.logs import get_logger
from frontdesk.model import confirmations
from frontdesk.model.audit import AuditEntry, AuditKind
from frontdesk.model.confirmations import (
    AskedAction,
    Confirmation,
    Status,
    Submission,
    Terms,
    credential_of,
)
from frontdesk.model.deliveries import Delivery
from frontdesk.model.precedents import MOST_COMPARED_BYTES, Precedent
from frontdesk.model.rules import Effect, Rule
from frontdesk.model.spellings import skeleton
from frontdesk.stores import audit, deliveries, learned_names
from frontdesk.stores.columns import SENSELESS, clean, maybe_micros, to_micros
from frontdesk.stores.confirmation_rows import CONFIRMATION, CONFIRMATIONS, PAYLOAD, read_callbacks
from frontdesk.stores.rows import DELIVERIES
from frontdesk.stores.work import value

ENTRANCE = "confirmations"
CLOCK_SLACK = timedelta(seconds=confirmations.CLOCK_SLACK_SECONDS)
ID, DIGEST = map(CONFIRMATION.names.index, ("id", "digest"))
"""Columns that are read also when the others make no sense."""
NO_DETAILS = b"{}"
SWIFT_BYTES = 1_000
"""Whoever tells people of an action shows all of it, which takes long where it is longer."""
LATEST = 2**62
MOST_CARDS = 100
"""Of the messages that ask about one request: home channels in a row, and a few chats."""
"""Later than everything."""
DESCRIPTION = PAYLOAD.names.index("description")

log = get_logger(__name__)


def hash_text(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


def hash_key(key: str) -> bytes:
    return bytes.fromhex(hash_text(key))


def new_confirmation(submission: Submission, terms: Terms, new_id: str, now: datetime) -> Confirmation:
    """A request as it waits from now on."""
    asked = {name: getattr(submission, name) for name in AskedAction.__struct_fields__}
    return Confirmation(
        **asked | {"description": clean(submission.description) or ""},
        id=new_id,
        payload=submission.payload,
        callbacks=read_callbacks(clean(submission.callback_url)),
        terms=terms,
        created_at=now,
        expires_at=now + timedelta(seconds=submission.timeout_seconds),
    )


def renewed(lapsed: Confirmation, new_id: str, now: datetime) -> Confirmation:
    """The same request, asked again."""
    return replace(
        lapsed,
        id=new_id,
        status=Status.PENDING,
        created_at=now,
        expires_at=now + timedelta(seconds=lapsed.timeout_seconds),
        resolved_at=None,
        resolved_by=None,
        resolved_as=None,
        reason=None,
        lapsed_at=None,
        renewal_of=lapsed.id,
        approvals=(),
    )


def _row(asked: Confirmation) -> dict[str, Any]:
    """The values of ``insert_confirmation``."""
    return {
        **CONFIRMATION.values(asdict(asked)),
        "asked": int(asked.status is Status.PENDING),
        "escalates_at": maybe_micros(_escalates_at(asked)),
        "reads_as": skeleton(asked.action),
        "credential": credential_of(asked.requester),
        "subject": subject_of(asked),
    }


def subject_of(asked: Submission | Confirmation) -> str:
    """What is asked for, whatever it is called: its details, or what its name reads like where it has none.
    Of what is kept without a payload, which mutes nothing, the digest."""
    if asked.payload is None:
        return asked.digest
    details = msgspec.json.decode(asked.payload, type=dict[str, msgspec.Raw])["details"]
    return skeleton(asked.action) if bytes(details) == NO_DETAILS else sha256(details).hexdigest()


def _escalates_at(asked: Confirmation) -> datetime | None:
    """None when it never does: what has ended is not passed on."""
    seconds = asked.terms.escalate_after_seconds
    if seconds is None or seconds >= asked.timeout_seconds:
        return None
    return asked.created_at + timedelta(seconds=max(seconds, 0))


def listed(query: str, **values: Any) -> Work[Sequence[Confirmation]]:
    """The confirmations of a list, each of which says so when its payload was left out."""
    return read_listed((yield query, values))


def read_listed(found: Iterable[Row]) -> list[Confirmation]:
    read = [(CONFIRMATIONS.read(each), each[DESCRIPTION] is None) for each in found]
    return [
        replace(asked, left_out=asked.payload is None and not is_erased) for asked, is_erased in read if asked
    ]


def locked(confirmation_id: str) -> Work[Confirmation]:
    """The confirmation, which nobody else changes until the transaction ends."""
    found = yield from CONFIRMATIONS.one("confirmation_locked", confirmation_id=confirmation_id)
    if found is None:
        raise errors.UnknownConfirmation(confirmation_id=confirmation_id)
    return found


def pass_entrance() -> Work[None]:
    """Requests come in one after the other, on however many nodes."""
    yield "lock_key", {"key": ENTRANCE}


def insert(asked: Confirmation) -> Work[None]:
    yield "insert_confirmation", _row(asked)
    if asked.payload is not None:
        yield "insert_payload", {"confirmation_id": asked.id, **PAYLOAD.values(asdict(asked))}


def precedent_of(asked: Submission | Confirmation) -> Work[Precedent | None]:
    """What people approved of this kind before they decided about it; None when its kind is not known."""
    if asked.kind_digest is None:
        return None
    values = {
        "kind_digest": asked.kind_digest,
        "target_digest": asked.target_digest,
        "credential": credential_of(asked.requester),
        "confirmation_id": asked.id if isinstance(asked, Confirmation) else "",
        "before": _decided_at(asked),
        "most_bytes": MOST_COMPARED_BYTES,
    }
    ((last, payload, target),) = yield "precedent", values
    return Precedent(
        is_first_for_requester=last is None,
        is_first_for_target=asked.target_digest is not None and target is None,
        payload=payload,
    )


def _decided_at(asked: Submission | Confirmation) -> int:
    resolved_at = asked.resolved_at if isinstance(asked, Confirmation) else None
    return LATEST if resolved_at is None else to_micros(resolved_at)


def tell_of(
    told: Iterable[Confirmation], tell: Tell, *, looks: bool = True, anew: bool = False
) -> Work[None]:
    """Tell people, and programs that want to hear of it. Lanes are locked in the order of their names.
    ``looks``: for what was approved before, which people are told with what waits. ``anew``: whatever shows
    it already."""
    found: list[Delivery] = []
    for each in told:
        shown: Sequence[Delivery] = ()
        if len(each.payload or b"") > SWIFT_BYTES:
            yield TAKES_LONG
        if not anew and (each.approvals or each.status is not Status.PENDING):
            shown = yield from _cards_of(each)
        if each.status is not Status.PENDING:
            yield from _owe(each)
            found += tell(each, shown)
        elif looks:
            found += tell(replace(each, precedent=(yield from precedent_of(each))), shown)
        else:
            found += tell(each, shown)
    yield from deliveries.add(sorted(found, key=lambda delivery: delivery.lane))


def _cards_of(asked: Confirmation) -> Work[list[Delivery]]:
    """The messages that ask about it, as they were sent or will be."""
    about = yield from DELIVERIES.many("cards_about", confirmation_id=asked.id, limit=MOST_CARDS)
    return [each for each in about if each.brought_by == each.id]


def _owe(ended: Confirmation) -> Work[None]:
    """To whoever wants to hear of it by now: somebody may have joined while its row was waited for."""
    for url in read_callbacks((yield from value("callbacks_of", confirmation_id=ended.id))):
        owed = {"confirmation_id": ended.id, "url": url}
        yield "owe_callback", {**owed, "now": maybe_micros(ended.resolved_at)}


def write_down(*entries: AuditEntry, told: bool = False) -> Work[None]:
    """Add to the log what happened, if anything did, as the last thing that the transaction does, and ring
    for whoever waits; ``told`` when people were told of it."""
    if entries:
        yield from audit.append(*entries)
        yield ring(Topic.CONFIRMATIONS)
        if told:
            yield ring(Topic.DELIVERIES)


def at(now: datetime) -> dict[str, int]:
    """By which times a query tells what waits: now, and what is too far after it to be true."""
    return {"now": to_micros(now), "latest": to_micros(now + CLOCK_SLACK)}


def same_digest(known: str, given: str) -> bool:
    """In a time that tells nothing about where they differ."""
    return hmac.compare_digest(known.encode(), given.encode(errors="replace"))


def entry_of(kind: AuditKind, asked: Confirmation, actor: str, at: datetime, **facts: Any) -> AuditEntry:
    known = {name: value for name, value in facts.items() if value is not None}
    return AuditEntry(
        kind=kind,
        at=at,
        actor=actor,
        confirmation_id=asked.id,
        digest=asked.digest,
        facts={"status": str(asked.status), **known},
    )


def holding_rules(now: datetime) -> Work[Sequence[Rule]]:
    """The rules that hold, oldest first."""
    return [_read_rule(found) for found in (yield "rules", {"now": to_micros(now)})]


def rules_to_ask(now: datetime) -> Work[Sequence[Rule]]:
    """The rules that hold, for a request; those that deny or ask in a conversation also under the name that
    it has by now."""
    holding = yield from holding_rules(now)
    renamed = []
    for rule in holding:
        if rule.session_key is not None and rule.effect is not Effect.ALLOW:
            key = yield from learned_names.present_key(rule.session_key)
            if key != rule.session_key:
                renamed.append(replace(rule, session_key=key))
    return [*holding, *renamed]


def _read_rule(found: Row) -> Rule:
    """The rule. One that cannot be read, which may have denied anything, has everything asked."""
    rule_id, body = found
    try:
        return msgspec.json.decode(body, type=Rule)
    except SENSELESS as error:
        log.warning("rule_unreadable", rule=rule_id, why=str(error))
        return Rule(id=rule_id, effect=Effect.ASK)
