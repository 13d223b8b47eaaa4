"""Requests with an idempotency key, each kept for a day."""

from datetime import datetime

from frontdesk.contracts.store import Work
from frontdesk.model.repeats import KEPT, MOST_OF_ONE, WHO_CHARACTERS, KeyedCall
from frontdesk.stores.columns import to_micros
from frontdesk.stores.work import Noun, writes

FORGOTTEN_AT_ONCE = 10
"""With each request that is added so many old ones go: they never become more."""
BEYOND = "g"
"""Follows every digit of an id."""


class KeyedCalls(Noun):
    @writes
    def claim(self, call: KeyedCall, now: datetime) -> Work[KeyedCall | None]:
        """None: it is the first with this key, and to be carried out. Else the one that there was."""
        sender = call.id[:WHO_CHARACTERS]
        forgotten = {"before": to_micros(now - KEPT), "limit": FORGOTTEN_AT_ONCE, "most": MOST_OF_ONE - 1}
        yield "forget_calls", {**forgotten, "first": sender, "end": sender + BEYOND}
        values = {"id": call.id, "request": call.request, "now": to_micros(now)}
        if (yield "claim_call", values):
            return None
        ((request, status, answer),) = yield "keyed_call", {"id": call.id}
        return KeyedCall(id=call.id, request=request, status=status, answer=answer and bytes(answer))

    @writes
    def answer(self, call_id: str, status: int, answer: bytes | None) -> Work[None]:
        """It was carried out."""
        yield "answer_call", {"id": call_id, "status": status, "answer": answer}

    @writes
    def drop(self, call_id: str) -> Work[None]:
        """Nothing became of it: the key is free."""
        yield "drop_call", {"id": call_id}
