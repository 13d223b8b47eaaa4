"""Buttons: written with the message that they are under, and used up by one press."""

from collections.abc import Sequence
from datetime import datetime

from frontdesk.contracts.bells import Topic
from frontdesk.contracts.store import Admit, Row, Work, ring
from frontdesk.model.buttons import Chooses, KeptButton, chat_of, plain_sign
from frontdesk.model.deliveries import Delivery
from frontdesk.model.sources import SessionSource
from frontdesk.model.turns import Accepted, Turn
from frontdesk.stores import deliveries
from frontdesk.stores.arrivals import accept, lane_of
from frontdesk.stores.columns import to_micros
from frontdesk.stores.rows import BUTTON, BUTTONS
from frontdesk.stores.work import Noun, glances, reads, writes, writes_lazily

MOST_SIGNS_SEEN = 500
"""Of the buttons in a chat that are open and have a sign: the latest."""
SHOWN_IN = slice(len(BUTTON.names), len(BUTTON.names) + 2)
NUMBER, LANE = -2, -1


class Buttons(Noun):
    @glances
    def find(self, token: str) -> Work[KeptButton | None]:
        return BUTTONS.one("button", token=token)

    @reads
    def by_reaction(self, source: SessionSource, sign: str, now: datetime) -> Work[str | None]:
        """The token that a sign stands for under the message that the source names."""
        for row in (yield from _signed(source, now)):
            button = BUTTONS.read(row)
            if source.message_id in row[SHOWN_IN] and button and button.sign == plain_sign(sign):
                return button.token
        return None

    @reads
    def by_number(self, source: SessionSource, lane: str, number: str, now: datetime) -> Work[str | None]:
        """The token that a number stands for where it answers a choice: the last thing said in that lane."""
        signed = [(row, BUTTONS.read(row)) for row in (yield from _signed(source, now)) if row[LANE] == lane]
        for row, button in signed:
            if button and isinstance(button.does, Chooses) and button.sign == number:
                later = yield "said_since", {"number": row[NUMBER], "lane": lane}
                return None if later else button.token
        return None

    @writes
    def choose(
        self,
        token: str,
        pressed: Turn,
        chosen: Turn,
        admit: Admit,
        now: datetime,
        *,
        told: Sequence[Delivery] = (),
    ) -> Work[Accepted | None]:
        """What was chosen becomes a message, once; None when the button was used before, or its time is over.
        ``told`` shows the choice where it was offered."""
        if not (yield from use(token, pressed.id, now)):
            return None
        accepted = yield from accept(chosen, lane_of(chosen), admit)
        yield from deliveries.add(told)
        if told:
            yield ring(Topic.DELIVERIES)
        return accepted

    @writes_lazily
    def prune(self, before: datetime, limit: int) -> Work[int]:
        """Forget those whose time was over before then, no more than so many; how many."""
        return len((yield "prune_buttons", {"before": to_micros(before), "limit": limit}))


def use(token: str, pressed: str, now: datetime) -> Work[bool]:
    """Use up the buttons of a message by a press of one; whether it could still be pressed."""
    used = yield "use_buttons", {"token": token, "used_by": pressed, "now": to_micros(now)}
    return token in [row[0] for row in used]


def _signed(source: SessionSource, now: datetime) -> Work[list[Row]]:
    values = {"chat": chat_of(source), "now": to_micros(now), "limit": MOST_SIGNS_SEEN}
    return (yield "buttons_with_sign", values)
