"""Cursors: how far we have read what platforms keep for us."""

from frontdesk.contracts.store import Work
from frontdesk.model.chats import Cursor
from frontdesk.stores.work import Noun, reads, writes


class Cursors(Noun):
    @writes
    def move(self, platform: str, account: str | None, cursor: Cursor) -> Work[None]:
        yield from move(platform, account, cursor)

    @reads
    def of_account(self, platform: str, account: str | None) -> Work[dict[str, str]]:
        """How far each chat was read; the account's own stream stands under an empty name."""
        return dict((yield "cursors_of", {"platform": platform, "account": account or ""}))


def move(platform: str, account: str | None, cursor: Cursor) -> Work[None]:
    whose = {"platform": platform, "account": account or ""}
    yield "move_cursor", {**whose, "chat": cursor.chat, "value": cursor.value}
