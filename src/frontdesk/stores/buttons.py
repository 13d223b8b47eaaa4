"""Buttons: written with the message that they are under, and used up by one press."""

from collections.abc import Sequence
from datetime import datetime

from frontdesk.contracts.bells import Topic
from frontdesk.contracts.store import Admit, Work, ring
from frontdesk.model.buttons import Chooses, KeptButton, chat_of
from frontdesk.model.deliveries import Delivery
from frontdesk.model.sources import SessionSource
from frontdesk.model.turns import Accepted, Turn
from frontdesk.stores import deliveries
from frontdesk.stores.arrivals import accept, lane_of
from frontdesk.stores.columns import to_micros
from frontdesk.stores.rows import BUTTONS
from frontdesk.stores.work import Noun, glances, reads, writes, writes_lazily

NUMBER, LANE = -2, -1


class Buttons(Noun):
    @glances
    def find(self, token: str) -> Work[KeptButton | None]:
        return BUTTONS.one("button", token=token)

    @reads
    def by_number(
        self, source: SessionSource, session_key: str, number: str, now: datetime
    ) -> Work[str | None]:
        """The token that a number stands for where it answers a choice: the last thing that was said in the
        chat of a conversation."""
        values = {"chat": chat_of(source), "session_key": session_key, "now": to_micros(now)}
        for row in (yield "numbered_buttons", {**values, "number": number}):
            button = BUTTONS.read(row)
            if button and isinstance(button.does, Chooses):
                later = yield "said_since", {"number": row[NUMBER], "lane": row[LANE]}
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
