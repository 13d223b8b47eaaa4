"""Messages that were not taken in, counted by what refused them."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from frontdesk import errors

REFUSALS = (errors.InvalidInput, errors.Unroutable, errors.NotAllowed, errors.TooManyWaiting)


class Refusals:
    """What this gateway has refused since it began."""

    def __init__(self, since: datetime) -> None:
        self.since = since
        self.counts: Counter[str] = Counter()
        """By the rule that did not let the sender in, else by the name of the error."""

    @contextmanager
    def counting(self) -> Iterator[None]:
        try:
            yield
        except REFUSALS as refusal:
            self.counts[_reason(refusal)] += 1
            raise


def _reason(refusal: errors.FrontdeskError) -> str:
    return str(refusal.rule) if isinstance(refusal, errors.NotAllowed) else type(refusal).__name__
