"""One mailbox: its mail, and our answers."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from frontdesk import errors, plugins
from frontdesk.channels import streams
from frontdesk.channels.called import why_unusable
from frontdesk.channels.email import inbound
from frontdesk.channels.email import options as settings
from frontdesk.channels.email.addresses import ADDRESS
from frontdesk.channels.email.positions import MailboxTrouble, Position
from frontdesk.channels.email.shared import TROUBLES, SentMail, SharedMailbox
from frontdesk.contracts import channels
from frontdesk.logs import get_logger
from frontdesk.model import deliveries, findings
from frontdesk.model.chats import Attachment, Cursor
from frontdesk.model.findings import Finding
from frontdesk.model.platforms import Platform

if TYPE_CHECKING:
    from frontdesk.channels.email.mailbox import Mailbox

plugins.need("aiosmtplib", "imap_tools")

MAILBOX = "frontdesk.channels.email.mailbox"
OUTBOUND = "frontdesk.channels.email.outbound"
MOST_THREADS = 4
MOST_FILES = 10
MOST_FILE_BYTES = 15 * 1024 * 1024
PIECE_BYTES = 64 * 1024

UNPROVEN = (
    "No sender is proven: whoever knows an address that is let in can write in its name. Set authserv_id to"
    " the name that your mail server has in Authentication-Results."
)

Conversation = tuple[str, str | None]
"""An address, and a thread with it."""
Read = TypeVar("Read")

log = get_logger(__name__)


class Channel:
    """A mailbox called ``account``, if there are several."""

    Options = settings.Options

    def __init__(self, options: settings.Options, account: str | None = None) -> None:
        self.name: str = Platform.EMAIL
        self.account = account
        self._options = options
        self._trouble: str | None = None
        self._advanced = False
        """Whether something was read since the connection was opened."""
        self._open: set[Mailbox] = set()
        self._threads: ThreadPoolExecutor | None = None
        self._outbound: Any = None
        self._inbox = self._shared(None)
        self._sent = SentMail(self._shared(options.sent_folder)) if options.sent_folder else None
        self.capabilities = channels.Capabilities(
            text_limit=options.max_text_characters,
            most_files=MOST_FILES,
            most_file_bytes=MOST_FILE_BYTES,
            reliable_sender_ids=options.authserv_id is not None,
            reads_alone=True,
            notices=False,
            quotas=options.quotas,
        )

    @property
    def routes(self) -> Sequence[channels.Route]:
        return ()

    def trouble(self) -> str | None:
        return why_unusable([self._options.password]) or self._trouble

    async def receive(self, desk: channels.Desk) -> None:
        pauses = streams.GrowingPauses()
        while True:
            self._advanced = False
            try:
                await self._read(desk)
            except TROUBLES as error:
                self._trouble = str(error)
                log.warning("mailbox_troubled", account=self.account, why=error)
            except streams.LATER as error:
                log.warning("mail_not_stored", account=self.account, why=error)
            if self._advanced:
                pauses.forget()
            await pauses.wait()

    async def _read(self, desk: channels.Desk) -> None:
        """Take in what is new, for ever."""
        box = await self._opened()
        try:
            position, held = Position.parse((await desk.cursors()).get("")), dict[int, Conversation]()
            while True:
                begins = await self._position(desk, box, position)
                if begins is not position:  # other mails have those numbers now
                    held = {}
                newer = await self._off_loop(box.newer, begins.uid)
                before, held = held, await self._take_all(desk, box, held, newer)
                position = _position(box, max([begins.uid, *newer]))
                if before and not held:
                    await desk.move_cursor(Cursor(value=str(position)))
                self._trouble = None
                if held:
                    await asyncio.sleep(streams.HELD_SECONDS)
                elif box.tells:
                    await self._off_loop(box.wait)
                else:
                    await asyncio.sleep(self._options.idle_seconds)
                await self._off_loop(box.look)
        finally:
            self._close(box)

    async def _opened(self, folder: str | None = None) -> "Mailbox":
        opening = asyncio.ensure_future(self._off_loop(_open_mailbox, self._options, folder))
        try:
            box = await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_cut)
            raise
        self._open.add(box)
        return box

    def _close(self, box: "Mailbox") -> None:
        self._open.discard(box)
        box.cut()

    def _shared(self, folder: str | None) -> SharedMailbox:
        return SharedMailbox(partial(self._opened, folder), self._close, self._off_loop)

    async def _position(self, desk: channels.Desk, box: "Mailbox", known: Position | None) -> Position:
        """Where to go on. A mailbox that is read for the first time is read from now on; one whose mails are
        numbered anew, whether or not the server says so, from the day before: what was taken in is known
        again."""
        if known and known.validity == box.validity and known.uid < box.next_uid:
            return known
        if known is None:
            begins = _position(box, box.next_uid - 1)
            await desk.move_cursor(Cursor(value=str(begins)))
            return begins
        log.warning("mailbox_numbered_anew", account=self.account)
        for uid in await self._off_loop(box.since, known.at):
            if await self._take(desk, box, uid, moves=False):
                raise MailboxTrouble("a conversation has too many mails waiting")
        begins = _position(box, box.next_uid - 1)
        await desk.move_cursor(Cursor(value=str(begins)))
        return begins

    async def _take_all(
        self, desk: channels.Desk, box: "Mailbox", held: dict[int, Conversation], newer: Sequence[int]
    ) -> dict[int, Conversation]:
        """Hand mails over in their order: first those that were held, then the newer ones. Those that are
        held now: a conversation that has too many waiting holds up itself alone."""
        still: dict[int, Conversation] = {}
        for uid in (*held, *newer):
            if held.get(uid) in still.values():
                still[uid] = held[uid]
                continue
            full = await self._take(desk, box, uid, moves=not still, held=still.values())
            if full:
                still[uid] = full
        return still

    async def _take(
        self,
        desk: channels.Desk,
        box: "Mailbox",
        uid: int,
        *,
        moves: bool = True,
        held: Collection[Conversation] = (),
    ) -> Conversation | None:
        """Hand a mail over; it is read when it is stored, or when it is none of ours. The conversation when
        it has too many waiting, or has mails that are held before this one."""
        position = _position(box, uid)
        cursor = Cursor(value=str(position)) if moves else None
        raw = await self._off_loop(box.read, uid)
        try:
            if raw is None:
                raise errors.InvalidInput(what="The mail", why="it is gone")
            place = f"{position.validity}:{uid}"
            incoming = await self._off_loop(inbound.read_mail, raw, place, self._options, self.account)
            conversation = incoming.source.chat_id, incoming.source.thread_id
            if conversation in held:
                return conversation
            try:
                await desk.accept(incoming, cursor=cursor)
            except errors.TooManyWaiting as error:
                log.warning("mail_not_stored", account=self.account, uid=uid, why=error)
                return conversation
        except streams.REFUSED as error:
            log.info("mail_passed_over", account=self.account, uid=uid, why=error)
            if cursor:
                await desk.move_cursor(cursor)
        self._advanced = True
        return None

    def _off_loop(self, call: Callable[..., Read], *args: object) -> "asyncio.Future[Read]":
        """On a thread of its own: waiting for a server must not keep others from theirs."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="email")
        return asyncio.get_running_loop().run_in_executor(self._threads, call, *args)

    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        outbound = await self._sending()
        sent: deliveries.Outcome = await outbound.send(delivery, self._options)
        return sent

    async def _sending(self) -> Any:
        """What sends mail: its library is loaded when it is needed, and holds up nobody."""
        if self._outbound is None:
            self._outbound = await self._off_loop(import_module, OUTBOUND)
        return self._outbound

    async def find(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        if self._sent is None:
            return deliveries.Unknown(why="nobody keeps what we send: email.sent_folder", hopeless=True)
        named = (await self._sending()).message_id(delivery, self._options.address)
        try:
            found = await self._sent.has(named)
        except TROUBLES as error:
            return deliveries.Unknown(why=str(error))
        if found:
            return deliveries.Sent(message_id=named)
        return deliveries.NotSent(why="it is not among what was sent")

    async def fetch(self, attachment: Attachment, most_bytes: int) -> AsyncIterator[bytes]:
        data = await self._file(attachment)
        if len(data) > most_bytes:
            raise errors.FileUnavailable(why=f"it is larger than {most_bytes} bytes")
        for start in range(0, len(data), PIECE_BYTES):
            yield data[start : start + PIECE_BYTES]

    async def _file(self, attachment: Attachment) -> bytes:
        try:
            validity, uid, number = map(int, attachment.id.split(":"))
        except ValueError:
            raise errors.FileUnavailable(why="there is no such file") from None
        try:
            raw = await self._inbox.ask(lambda box: box.read(uid) if box.validity == validity else None)
        except TROUBLES as error:
            raise errors.FileLater(why=str(error)) from error
        data = await self._off_loop(inbound.read_file, raw, number) if raw else None
        if data is None:
            raise errors.FileUnavailable(why="the mail is gone")
        return data

    async def examine(self, *, in_use: bool, home: str | None = None) -> Sequence[Finding]:  # noqa: ARG002
        options = self._options
        try:
            self._close(await self._opened())
        except TROUBLES as error:
            return [findings.failed(f"The mailbox of {options.address} cannot be read: {error}")]
        found = [Finding(text=f"This is {options.address}; its folder {options.folder} can be read.")]
        if why := await (await self._sending()).why_refused(options):
            found.append(findings.failed(f"No mail can be sent: {why}"))
        if home and not ADDRESS.fullmatch(home):
            found.append(findings.failed(f"The home channel {home} is no address."))
        if options.authserv_id is None:
            found.append(findings.warning(UNPROVEN))
        return found

    async def close(self) -> None:
        self._inbox.close()
        if self._sent:
            self._sent.close()
        for box in list(self._open):
            self._close(box)
        threads, self._threads = self._threads, None
        if threads:
            threads.shutdown(wait=False)


def _open_mailbox(options: settings.Options, folder: str | None) -> "Mailbox":
    box: Mailbox = import_module(MAILBOX).Mailbox(options, folder)
    return box


def _position(box: "Mailbox", uid: int) -> Position:
    return Position(validity=box.validity, uid=uid, at=int(datetime.now(UTC).timestamp()))


def _cut(opening: "asyncio.Future[Mailbox]") -> None:
    """Whoever wanted it is gone."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().cut()
