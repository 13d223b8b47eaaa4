"""What a client says to the service and makes of the answers, without the network.

A conversation is a generator: it yields a call or a pause, is sent the reply, and returns what came of it. So
it is written once, for clients that wait and clients that await.
"""

import math
import secrets
import time
from collections.abc import Generator, Mapping
from typing import Any, TypedDict, TypeVar, Unpack
from urllib.parse import quote

import msgspec

from frontdesk import errors
from frontdesk.confirm import answers
from frontdesk.confirm.answers import ServiceReply
from frontdesk.confirm.records import Decision, Redeemed, Ticket
from frontdesk.formats import canonical
from frontdesk.model.confirmations import Status

CALL_SECONDS = 20.0
QUIET_SECONDS = 60.0
"""A stream of events in which not even a sign of life comes for so long is broken."""
POLL_SECONDS = 25
"""How long the service may keep a question about what is pending."""
LATE_SECONDS = 120.0
"""So long after its time nothing is pending any more; a service that says so is not believed."""
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.1, 2.0
AWAY = frozenset({502, 503, 504})
"""Answers of a service that is starting, stopping or cut off from its store."""
KEY_BYTES = 16

T = TypeVar("T")


class Options(TypedDict, total=False):
    """What may be said about a request besides what it is for; None is as good as nothing."""

    timeout_seconds: int | None
    """How long people may take: 30 to 3600, 300 unless told."""
    session_key: str | None
    """The conversation it belongs to."""
    requester: str | None
    """What the agent calls itself; one that has a token is known by that."""
    callback_url: str | None
    """Where the decision is sent to, signed, as soon as it falls."""
    idempotency_key: str | None
    """The same request under the same key, after a crash perhaps, is the one that was made before."""


class ServiceCall(msgspec.Struct, frozen=True, kw_only=True):
    method: str = "POST"
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = {}
    seconds: float = CALL_SECONDS
    again: bool = True
    """Whether it is tried again when the service is away."""


class Pause(msgspec.Struct, frozen=True):
    seconds: float


Heard = ServiceReply | errors.ServiceUnreachable | None
"""What comes of a call; nothing, of a pause."""
Steps = Generator[ServiceCall | Pause, Heard, T]


def patient(conversation: Steps[T], patience_seconds: float) -> Steps[T]:
    """The same conversation with each call repeated, if that is allowed, until it is answered, or the
    patience is over: then it ends with what was heard last."""
    reply: Heard = None
    while True:
        try:
            step = conversation.send(reply)
        except StopIteration as end:
            result: T = end.value
            return result
        again = isinstance(step, ServiceCall) and step.again
        reply = yield from _answered(step, patience_seconds if again else 0)


def _answered(step: ServiceCall | Pause, patience_seconds: float) -> Steps[ServiceReply | None]:
    deadline, pause = time.monotonic() + patience_seconds, FIRST_PAUSE_SECONDS
    while True:
        heard = yield step
        over = time.monotonic() >= deadline
        if isinstance(heard, errors.ServiceUnreachable):
            if over:
                raise heard
        elif heard is None or over or heard.status not in AWAY:
            return heard
        yield Pause(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def _hear(call: ServiceCall) -> Steps[ServiceReply]:
    reply = yield call
    assert isinstance(reply, ServiceReply)
    return reply


def request(
    action: str, description: str, details: Mapping[str, Any] | None = None, **options: Unpack[Options]
) -> Steps[Ticket]:
    """Ask for an action; ``details`` is everything that it depends on. The request is on disk then.

    Its key makes one request of all attempts.
    """
    payload = canonical.payload(action.strip(), details or {})
    said = {name: value for name, value in options.items() if value is not None}
    key = said.pop("idempotency_key", None) or secrets.token_hex(KEY_BYTES)
    body = canonical.canonical({"description": description, **said, **canonical.read_strict(payload)})
    reply = yield from _hear(ServiceCall(path="/confirm", body=body, headers={"idempotency-key": str(key)}))
    return answers.read_ticket(reply, action, canonical.digest(payload))


def look(confirmation_id: str, wait: int = 0) -> Steps[Decision]:
    """What has become of a request; with ``wait``, as soon as it is decided or so many seconds later."""
    prefer = {"prefer": f"wait={wait}"} if wait else {}
    path, seconds = path_of(confirmation_id), CALL_SECONDS + wait
    reply = yield from _hear(ServiceCall(method="GET", path=path, headers=prefer, seconds=seconds))
    return answers.read(reply, Decision, confirmation_id)


def wait(ticket: Ticket, seconds: float | None = None) -> Steps[Decision]:
    """The decision. With ``seconds``, what is known then: perhaps that it is pending."""
    most = ticket.timeout_seconds + LATE_SECONDS if seconds is None else seconds
    deadline = time.monotonic() + most
    while True:
        left = max(0, min(POLL_SECONDS, math.ceil(deadline - time.monotonic())))
        decision = yield from look(ticket.id, left)
        if decision.status is not Status.PENDING:
            return decision
        if time.monotonic() < deadline:
            yield Pause(FIRST_PAUSE_SECONDS)
        elif seconds is None:
            raise errors.NotConfirmed(confirmation_id=ticket.id, action=ticket.action)
        else:
            return decision


def redeem(ticket: Ticket) -> Steps[Redeemed]:
    """Use an approval up, once: what comes back is to be carried out, exactly. It is what was asked for, or
    it is refused.

    An answer that got lost on the way may have used it up: then GrantUnusable, and nothing is carried out.
    """
    body = canonical.canonical({"digest": ticket.digest})
    reply = yield from _hear(ServiceCall(path=f"{path_of(ticket.id)}/redeem", body=body))
    redeemed = answers.read(reply, Redeemed, ticket.id)
    if redeemed.id != ticket.id or canonical.digest(redeemed.payload) != ticket.digest:
        raise errors.DigestMismatch(confirmation_id=ticket.id)
    return redeemed


def collect(ticket: Ticket) -> Steps[Redeemed]:
    """Wait for the decision and redeem it. Denied or Expired when there is nothing to redeem; what lapsed in
    between is waited for once more."""
    (yield from wait(ticket)).check()
    try:
        return (yield from redeem(ticket))
    except errors.GrantUnusable as lapsed:
        if lapsed.renewal is None:
            raise
        again = msgspec.structs.replace(ticket, id=lapsed.renewal)
    (yield from wait(again)).check()
    return (yield from redeem(again))


def obtain(
    action: str, description: str, details: Mapping[str, Any] | None = None, **options: Unpack[Options]
) -> Steps[Redeemed]:
    """Ask, wait and redeem."""
    ticket = yield from request(action, description, details, **options)
    return (yield from collect(ticket))


def say(method: str, path: str, said: Mapping[str, Any] | None = None, *, about: str = "") -> Steps[Any]:
    """The answer to a single question, asked once, as plain data; ``about`` is the confirmation that it
    names."""
    body = None if said is None else canonical.canonical(said)
    reply = yield from _hear(ServiceCall(method=method, path=path, body=body, again=False))
    return answers.read(reply, object, about) if reply.body else None


def following(after: int) -> ServiceCall:
    """The question for the rows of the audit log after that one, whose answer goes on."""
    return ServiceCall(
        method="GET", path="/events", headers={"last-event-id": str(after)}, seconds=QUIET_SECONDS
    )


def path_of(confirmation_id: str) -> str:
    """Where the service has it."""
    if not confirmation_id:
        raise errors.InvalidInput(what="The id of the confirmation", why="it is empty")
    return f"/confirm/{quote(confirmation_id, safe='')}"
