"""Cursors: how far we have read what platforms keep for us."""

from frontdesk import errors
from frontdesk.contracts.store import Work
from frontdesk.model import lanes
from frontdesk.model.chats import Cursor
from frontdesk.stores.lanes import fence, hold, take_lane
from frontdesk.stores.work import Noun, reads, writes


class Cursors(Noun):
    @writes
    def move(self, platform: str, account: str | None, cursor: Cursor) -> Work[None]:
        yield from move(platform, account, cursor)

    @reads
    def of_account(self, platform: str, account: str | None) -> Work[dict[str, str]]:
        """How far each chat was read; the account's own stream stands under an empty name."""
        return dict((yield "cursors_of", {"platform": platform, "account": account or ""}))

    @writes
    def take(self, lane: str, taker: lanes.Taker) -> Work[lanes.Lease | None]:
        """The right to read on where nobody reads; None where another node does."""
        return take_lane(lane, taker)

    @writes
    def release(self, lease: lanes.Lease) -> Work[None]:
        """Let another node read on."""
        try:
            yield from hold(lease)
        except errors.LeaseLost:
            return
        yield from fence(lease.lane)


def move(platform: str, account: str | None, cursor: Cursor) -> Work[None]:
    whose = {"platform": platform, "account": account or ""}
    yield "move_cursor", {**whose, "chat": cursor.chat, "value": cursor.value}
