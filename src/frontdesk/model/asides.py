"""Turns that were set aside, and why some of them are not tried again."""

from enum import StrEnum

from frontdesk.model.platforms import ASKED_ONCE
from frontdesk.model.turns import Turn


class NotAgain(StrEnum):
    """Why a turn that was set aside is not tried again."""

    UNREADABLE = "unreadable"
    PART = "part"
    PROGRAM = "program"
    FORGOTTEN = "forgotten"


WHY_NOT_AGAIN = {
    NotAgain.UNREADABLE: "its row is damaged, so that nobody knows what it was",
    NotAgain.PART: "it was gathered into another turn, and goes with that one",
    NotAgain.PROGRAM: "a program asked, which was told that it failed, and waits no more",
    NotAgain.FORGOTTEN: "its conversation was forgotten",
}


def why_not_again(turn: Turn | None) -> NotAgain | None:
    """What its row alone says."""
    if turn is None:
        return NotAgain.UNREADABLE
    if turn.part_of is not None:
        return NotAgain.PART
    return NotAgain.PROGRAM if str(turn.source.platform) in ASKED_ONCE else None
