"""How often somebody presses: in a group everybody can, and each press is stored, run and answered."""

from collections import OrderedDict, deque
from datetime import datetime, timedelta

from frontdesk import errors
from frontdesk.model import buttons

MOST_PRESSES = 20
WINDOW = timedelta(minutes=1)
MOST_REMEMBERED = 2_000
"""People. Of more, those are forgotten who have not pressed for longest."""
TOO_MANY = "too many presses"
SIGNS = frozenset(
    {buttons.plain_sign(each) for each in (buttons.APPROVE_SIGN, buttons.DENY_SIGN)}
    | {str(number) for number in range(1, buttons.MOST_SIGNS + 1)}
)
"""Reactions that may stand for a button."""


class Presses:
    """Who has pressed how often of late, on this node."""

    def __init__(self) -> None:
        self._pressed: OrderedDict[str, deque[datetime]] = OrderedDict()

    def check(self, who: str, now: datetime) -> None:
        """NotAllowed for whoever presses too often: nothing is kept of that press, and nobody is told."""
        times = self._pressed.pop(who, None) or deque(maxlen=MOST_PRESSES)
        self._pressed[who] = times
        if len(times) == MOST_PRESSES and abs(now - times[0]) < WINDOW:
            raise errors.NotAllowed(who=who, rule=TOO_MANY)
        times.append(now)
        if len(self._pressed) > MOST_REMEMBERED:
            self._pressed.popitem(last=False)


def is_sign(emoji: str) -> bool:
    return buttons.plain_sign(emoji) in SIGNS
