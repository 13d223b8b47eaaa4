"""Requests with an idempotency key, each kept for a day."""

from datetime import datetime

from frontdesk.contracts.store import Work
from frontdesk.model.repeats import KEPT, KeyedCall
from frontdesk.stores.columns import to_micros
from frontdesk.stores.work import Noun, writes

FORGOTTEN_AT_ONCE = 10
"""With each request that is added so many old ones go: they never become more."""


class KeyedCalls(Noun):
    @writes
    def claim(self, call: KeyedCall, now: datetime) -> Work[KeyedCall | None]:
        """None: it is the first with this key, and to be carried out. Else the one that there was."""
        yield "forget_calls", {"before": to_micros(now - KEPT), "limit": FORGOTTEN_AT_ONCE}
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
