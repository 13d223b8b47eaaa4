"""Messages that were not taken in, counted by what refused them."""

from collections import Counter
from datetime import datetime

from frontdesk import errors

REFUSALS = (errors.InvalidInput, errors.Unroutable, errors.NotAllowed, errors.TooManyWaiting)


class Refusals:
    """What this gateway has refused since it began."""

    def __init__(self, since: datetime) -> None:
        self.since = since
        self.counts: Counter[str] = Counter()
        """By the rule that did not let the sender in, else by the name of the error."""

    def count(self, refusal: errors.FrontdeskError) -> None:
        rule = refusal.rule if isinstance(refusal, errors.NotAllowed) else type(refusal).__name__
        self.counts[str(rule)] += 1
