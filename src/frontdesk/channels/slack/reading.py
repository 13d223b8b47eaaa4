"""Handing over what happens in its order, and what happened while we were away.

The platform keeps no stream for us. How far each chat was read is stored with its messages; after every
connect its history is read from there on. A chat of which something could not be stored is read again, too.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from frontdesk import errors
from frontdesk.channels import streams
from frontdesk.channels.slack import inbound
from frontdesk.channels.slack.faults import PASSING, SlackError, SlackRefusal
from frontdesk.channels.slack.names import NameBook
from frontdesk.contracts.channels import Desk, Happening, Incoming, Receipt
from frontdesk.logs import get_logger
from frontdesk.model.chats import Cursor

if TYPE_CHECKING:
    from frontdesk.channels.slack.calls import SlackLine

PAGE = 200
MOST_PAGES = 5
THREAD_SECONDS = 24 * 3600
"""An answer in a thread is found by the message that began it, if that is not older than this."""
OVERLAP_SECONDS = 60
"""What our clock may differ from the platform's."""
TRIED_AGAIN = PASSING - {"missing_scope"}
"""Refusals after which a history is read again; any other stays as it is."""
UNREAD = (SlackError, errors.MissingSecret)
KINDS = "public_channel,private_channel,mpim,im"

log = get_logger(__name__)


class ChatReader:
    """What is handed to the desk from one connect to the next."""

    def __init__(self, line: "SlackLine", desk: Desk, parser: inbound.Parser, account: str | None) -> None:
        self._line = line
        self._names = NameBook(line, account)
        self._desk = desk
        self._parser = parser
        self._account = account
        self._order = asyncio.Lock()
        self._until: dict[str, str] = {}
        self._read: set[str] = set()
        self._behind: set[str] = set()
        self._ahead: set[str] = set()
        """Chats that are behind, and in which something newer was handed over."""
        self._listed = True
        self._more = asyncio.Event()
        self._began = ""

    async def begin(self) -> None:
        """Note which chats are to be read; one of LATER when the store cannot be asked."""
        self._until = dict(await self._desk.cursors())
        now = self._line.now()
        self._began = f"{now - OVERLAP_SECONDS:.6f}"
        self._behind, self._read, self._ahead = set(self._until) - {""}, set(), set()
        self._listed = "" not in self._until
        if self._listed:
            await self._move("", f"{now:.6f}")

    async def take(self, happening: Happening) -> None:
        """Hand over what happens now, after all that happened before in its chat; one of LATER."""
        async with self._order:
            if not isinstance(happening, Incoming) or happening.source.message_id is None:
                await streams.hand_over(self._desk, await self._names.named(happening))
                return
            chat, stamp = happening.source.chat_id, happening.source.message_id
            if not self._listed and chat not in self._read:
                self._behind.add(chat)
            if chat in self._behind:
                try:
                    if stamp in await self._catch_up(chat):
                        return
                except UNREAD as error:
                    log.warning("history_not_read", account=self._account, chat=chat, why=str(error))
                    self._ahead.add(chat)
                    self._more.set()
            await self._hand_over(chat, happening, moves=chat not in self._behind)

    async def press(self, happening: Happening) -> None:
        """A press waits for nothing; one of LATER."""
        await streams.hand_over(self._desk, self._names.known(happening))

    async def catch_up(self) -> None:
        """Read what we have missed, without end: of chats of which something could not be stored as well.
        Begun when what happens is brought to us: what happened before is in the history."""
        pauses, noted = streams.GrowingPauses(), False
        while True:
            if not self._listed and (wait := await self._list()) is not None:
                await pauses.wait(wait)
            for chat in sorted(self._behind):
                if (wait := await self._try(chat)) is not None:
                    await pauses.wait(wait)
            if self._behind or not self._listed:
                continue
            try:
                if not noted:
                    await self._move("", self._began)
            except streams.LATER as error:
                log.warning("update_not_stored", account=self._account, why=str(error))
                await pauses.wait()
                continue
            noted = True
            pauses.forget()
            self._more.clear()
            await self._more.wait()

    async def _list(self) -> float | None:
        """Note the chats that we are in; how long to wait before that is tried again."""
        try:
            self._behind |= await self._ours() - self._read
        except UNREAD as error:
            log.warning("chats_not_listed", account=self._account, why=str(error))
            if _may_pass(error):
                return (error.wait if isinstance(error, SlackRefusal) else None) or 0.0
        self._listed = True
        return None

    async def _try(self, chat: str) -> float | None:
        """Read one chat; how long to wait before the next, where that did not work."""
        try:
            async with self._order:
                if chat in self._behind:
                    await self._catch_up(chat)
        except UNREAD as error:
            log.warning("history_not_read", account=self._account, chat=chat, why=str(error))
            return (error.wait if isinstance(error, SlackRefusal) else None) or 0.0
        except streams.LATER as error:
            log.warning("update_not_stored", account=self._account, why=str(error))
            return 0.0
        return None

    async def _catch_up(self, chat: str) -> set[str]:
        """Hand over what was said meanwhile; which messages that were."""
        since = self._until.get(chat) or self._until.get("")
        try:
            missed = await self._history(chat, since) if since else []
        except SlackRefusal as error:
            if _may_pass(error):
                raise
            log.warning("history_closed", account=self._account, chat=chat, since=since, why=error.why)
            missed = []
        handed, late = set(), 0
        for message in missed:
            incoming = self._parser.message(message, chat)
            if incoming is not None:
                receipt = await self._hand_over(chat, incoming, moves=True)
                late += receipt is not None and not receipt.repeated
                handed.add(str(incoming.source.message_id))
        if chat in self._ahead and late:
            log.warning("history_late", account=self._account, chat=chat, since=since, messages=late)
        self._ahead.discard(chat)
        self._behind.discard(chat)
        self._read.add(chat)
        return handed

    async def _hand_over(self, chat: str, incoming: Incoming, *, moves: bool) -> Receipt | None:
        stamp = incoming.source.message_id or ""
        newer = moves and inbound.is_newer(stamp, self._until.get(chat))
        cursor = Cursor(chat=chat, value=stamp) if newer else None
        try:
            receipt = await streams.hand_over(self._desk, await self._names.named(incoming), cursor)
        except streams.LATER:
            self._behind.add(chat)
            self._more.set()
            raise
        if cursor:
            self._until[chat] = stamp
        return receipt

    async def _move(self, chat: str, stamp: str) -> None:
        await self._desk.move_cursor(Cursor(chat=chat, value=stamp))
        self._until[chat] = stamp

    async def _ours(self) -> set[str]:
        """The chats that we are in."""
        listed = self._pages("users.conversations", "channels", types=KINDS, exclude_archived="true")
        return {chat["id"] async for chat in listed if inbound.is_id(chat.get("id"))}

    async def _history(self, chat: str, since: str) -> list[inbound.Table]:
        """Messages after that time, oldest first, those in threads included."""
        oldest = f"{max(float(since) - THREAD_SECONDS, 0.0):.6f}"
        found: dict[str, inbound.Table] = {}
        roots: list[str] = []
        async for message in self._pages("conversations.history", "messages", channel=chat, oldest=oldest):
            stamp, latest = message.get("ts"), message.get("latest_reply")
            if not inbound.is_stamp(stamp):
                continue
            if inbound.is_newer(stamp, since):
                found[stamp] = message
            if inbound.is_stamp(latest) and inbound.is_newer(latest, since):
                roots.append(stamp)
        for root in roots:
            found |= await self._thread(chat, root, since)
        return [found[stamp] for stamp in sorted(found, key=inbound.order)]

    async def _thread(self, chat: str, root: str, since: str) -> dict[str, inbound.Table]:
        found: dict[str, inbound.Table] = {}
        try:
            async for reply in self._pages(
                "conversations.replies", "messages", channel=chat, ts=root, oldest=since
            ):
                stamp = reply.get("ts")
                if inbound.is_stamp(stamp) and inbound.is_newer(stamp, since):
                    found[stamp] = reply
        except SlackRefusal as error:
            if error.code != "thread_not_found":  # its first message was just deleted
                raise
        return found

    async def _pages(self, method: str, name: str, **fields: str) -> AsyncIterator[inbound.Table]:
        """What a method lists, page by page, as far as we read."""
        page: str | None = None
        for _ in range(MOST_PAGES):
            answer = await self._line.call(method, limit=str(PAGE), cursor=page, **fields)
            listed = answer.get(name)
            for each in listed if isinstance(listed, list) else ():
                yield inbound.table(each)
            page = inbound.table(answer.get("response_metadata")).get("next_cursor")
            if not isinstance(page, str) or not page:
                return
        log.warning("history_cut", account=self._account, method=method, read=PAGE * MOST_PAGES, **fields)


def _may_pass(error: SlackError | errors.MissingSecret) -> bool:
    """Whether what was refused may be given later."""
    if not isinstance(error, SlackRefusal):
        return True
    return error.wait is not None or error.token_refused or error.code in TRIED_AGAIN
