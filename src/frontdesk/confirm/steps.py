"""What a client says to the service and makes of the answers, without the network.

A conversation is a generator: it yields a call or a pause, is sent the reply, and returns what came of it.
When the service does not answer, ServiceUnreachable is thrown into it. So it is written once, for clients
that wait and clients that await.
"""

import math
import secrets
import time
from collections.abc import Generator, Mapping
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from frontdesk import errors
from frontdesk.confirm import answers
from frontdesk.confirm.answers import Reply
from frontdesk.confirm.records import Decision, Redeemed, Ticket
from frontdesk.formats import canonical
from frontdesk.model.confirmations import Status

CALL_SECONDS = 20.0
POLL_SECONDS = 25
"""How long the service may keep a question about what is pending."""
LATE_SECONDS = 120.0
"""So long after its time nothing is pending any more; a service that says so is not believed."""
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.1, 2.0
AWAY = frozenset({502, 503, 504})
"""Answers of a service that is starting, stopping or cut off from its store."""
KEY_BYTES = 16

T = TypeVar("T")


class Call(msgspec.Struct, frozen=True, kw_only=True):
    method: str = "POST"
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = {}
    seconds: float = CALL_SECONDS


class Pause(msgspec.Struct, frozen=True):
    seconds: float


Steps = Generator[Call | Pause, Reply | None, T]


class Talk(Generic[T]):
    """A conversation under way."""

    result: T

    def __init__(self, conversation: Steps[T]) -> None:
        self._conversation = conversation

    def go_on(self, heard: Reply | errors.ServiceUnreachable | None) -> Call | Pause | None:
        """What is to be done next; None at the end, when there is a result."""
        try:
            if isinstance(heard, errors.ServiceUnreachable):
                return self._conversation.throw(heard)
            return self._conversation.send(heard)
        except StopIteration as end:
            self.result = end.value
            return None


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for."""

    action: str
    description: str
    details: Mapping[str, Any] = {}
    timeout_seconds: int | None = None
    session_key: str | None = None
    requester: str | None = None
    callback_url: str | None = None
    idempotency_key: str | None = None


def ask(wish: Wish, patience_seconds: float) -> Steps[Ticket]:
    """Hand a request in, as often as it takes: its key makes one of all attempts."""
    payload = canonical.payload(wish.action.strip(), wish.details)
    fields = msgspec.structs.asdict(wish) | canonical.read_strict(payload)
    key = fields.pop("idempotency_key") or secrets.token_hex(KEY_BYTES)
    said = canonical.canonical({name: value for name, value in fields.items() if value is not None})
    call = Call(path="/confirm", body=said, headers={"idempotency-key": key})
    reply = yield from _patiently(call, patience_seconds)
    return answers.read_ticket(reply, wish.action, canonical.digest(payload))


def look(confirmation_id: str, patience_seconds: float, wait: int = 0) -> Steps[Decision]:
    """What has become of a request; with ``wait``, as soon as it is decided or so many seconds later."""
    prefer = {"prefer": f"wait={wait}"} if wait else {}
    call = Call(method="GET", path=path_of(confirmation_id), headers=prefer, seconds=CALL_SECONDS + wait)
    return answers.read_decision((yield from _patiently(call, patience_seconds)), confirmation_id)


def wait(ticket: Ticket, patience_seconds: float, seconds: float | None = None) -> Steps[Decision]:
    """The decision. With ``seconds``, what is known then, which may be that it is pending."""
    most = ticket.timeout_seconds + LATE_SECONDS if seconds is None else seconds
    deadline = time.monotonic() + most
    while True:
        left = max(0, min(POLL_SECONDS, math.ceil(deadline - time.monotonic())))
        decision = yield from look(ticket.id, patience_seconds, left)
        if decision.status is not Status.PENDING:
            return decision
        if time.monotonic() < deadline:
            yield Pause(FIRST_PAUSE_SECONDS)
        elif seconds is None:
            raise errors.NotConfirmed(confirmation_id=ticket.id, action=ticket.action)
        else:
            return decision


def redeem(ticket: Ticket, patience_seconds: float) -> Steps[Redeemed]:
    """Use the approval up. The bytes that come back are those that were asked for, or it is refused.

    An answer that got lost on the way may have used it up: then GrantUnusable, and nothing is carried out.
    """
    call = Call(path=f"{path_of(ticket.id)}/redeem", body=canonical.canonical({"digest": ticket.digest}))
    payload = answers.read_payload((yield from _patiently(call, patience_seconds)), ticket.id)
    if canonical.digest(payload) != ticket.digest:
        raise errors.DigestMismatch(confirmation_id=ticket.id)
    return Redeemed(id=ticket.id, payload=payload)


def obtain(wish: Wish, patience_seconds: float) -> Steps[Redeemed]:
    """Ask, wait and redeem. Denied or Expired; an approval that lapsed in between is waited for once more."""
    ticket = yield from ask(wish, patience_seconds)
    return (yield from collect(ticket, patience_seconds))


def collect(ticket: Ticket, patience_seconds: float) -> Steps[Redeemed]:
    """Wait for the decision about a ticket and redeem it."""
    (yield from wait(ticket, patience_seconds)).check()
    try:
        return (yield from redeem(ticket, patience_seconds))
    except errors.GrantUnusable as lapsed:
        if lapsed.renewal is None:
            raise
        again = msgspec.structs.replace(ticket, id=lapsed.renewal)
    (yield from wait(again, patience_seconds)).check()
    return (yield from redeem(again, patience_seconds))


def say(method: str, path: str, said: Mapping[str, Any] | None = None, *, about: str = "") -> Steps[Any]:
    """The answer to a single question, as plain data; ``about`` is the confirmation that it names."""
    body = None if said is None else canonical.canonical(said)
    reply = yield Call(method=method, path=path, body=body)
    assert reply is not None
    return answers.read_plain(reply, about)


def path_of(confirmation_id: str) -> str:
    return f"/confirm/{quote(confirmation_id, safe='')}"


def _patiently(call: Call, patience_seconds: float) -> Steps[Reply]:
    """The reply; a service that is away is tried again for that long."""
    deadline = time.monotonic() + patience_seconds
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            reply = yield call
            assert reply is not None
            if reply.status not in AWAY or time.monotonic() >= deadline:
                return reply
        except errors.ServiceUnreachable:
            if time.monotonic() >= deadline:
                raise
        yield Pause(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
