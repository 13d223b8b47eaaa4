"""One Matrix account: what it reads of its rooms, and what it says there."""

import asyncio
import hashlib
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from frontdesk import errors, plugins
from frontdesk.channels import streams
from frontdesk.channels.matrix import answers, inbound, outbound
from frontdesk.channels.matrix import options as settings
from frontdesk.channels.matrix.inbound import Event
from frontdesk.contracts import channels
from frontdesk.logs import get_logger
from frontdesk.model.chats import Attachment, ChatSign, Cursor, TextUnit
from frontdesk.model.deliveries import Delivery, NotSent, Outcome, Sent, Unknown
from frontdesk.model.findings import Finding
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import ChatType, SessionSource

if TYPE_CHECKING:
    from frontdesk.channels.matrix.connection import Connection

plugins.need("mautrix", "aiosqlite", "asyncpg")

CONNECTION = "frontdesk.channels.matrix.connection"
CHECKUP = "frontdesk.channels.matrix.checkup"
TEXT_BYTES = 13_000
"""Encrypted, a letter of two bytes takes eight; an event may have 64 KiB."""
TYPING_SECONDS = 25.0
REPEAT_SECONDS = 24 * 3600.0
"""So long a homeserver knows a repeated number again."""
MOST_FILE_BYTES = 50 * 1024 * 1024
MOST_ASKED = 10_000
NOT_CONNECTED = "the homeserver has not been reached yet"
SEND_AGAIN = "I could not read this message: its keys have not reached me. Please send it again."
SIGNS = {ChatSign.SEEN: "👀", ChatSign.WORKING: "⏳", ChatSign.DONE: "✅", ChatSign.FAILED: "❌"}

log = get_logger(__name__)


class Channel:
    Options = settings.Options
    routes: Sequence[channels.Route] = ()

    def __init__(self, options: settings.Options, account: str | None = None) -> None:
        self.name: str = Platform.MATRIX
        self.account = account
        self._options = options
        self._connection: Connection | None = None
        self._former: Connection | None = None
        self._asked: set[tuple[str, str]] = set()
        self._is_reading = False
        self._opening = asyncio.Lock()
        self._library: Any = None
        self._trouble: str | None = NOT_CONNECTED
        self.capabilities = channels.Capabilities(
            text_limit=TEXT_BYTES,
            text_unit=TextUnit.BYTES,
            edits=True,
            edit_pause_seconds=options.edit_pause_seconds,
            reactions=True,
            most_files=1,
            most_file_bytes=MOST_FILE_BYTES,
            typing_seconds=TYPING_SECONDS,
            idempotent_seconds=REPEAT_SECONDS,
            reliable_sender_ids=True,
            reads_alone=True,
        )

    def trouble(self) -> str | None:
        return self._trouble

    async def receive(self, desk: channels.Desk) -> None:
        """Read on from where the store says. What could not be stored is read again."""
        await self._let_go()
        self._is_reading = True
        self._library = await streams.load(CONNECTION)
        connection: Connection = self._library.Connection(self._options, self.account)
        ended = NOT_CONNECTED
        try:
            await self._open(connection)
            self._connection, self._trouble = connection, None
            since, pauses = (await desk.cursors()).get(""), streams.GrowingPauses()
            while True:
                reached = await self._read_on(desk, connection, since)
                if reached is None:
                    await pauses.wait()
                else:
                    since = reached
                    pauses.forget()
        except errors.InvalidInput as error:
            ended = str(error)
            raise
        finally:
            self._connection, self._trouble, self._is_reading = None, ended, False
            await connection.close()

    async def _open(self, connection: "Connection") -> None:
        pauses = streams.GrowingPauses()
        while True:
            try:
                return await connection.open()
            except self._library.FAILURES as error:
                self._note(error)
            await pauses.wait()

    async def _read_on(self, desk: channels.Desk, connection: "Connection", since: str | None) -> str | None:
        """Where it ends; where it began when not all of it could be stored, None when it could not be had."""
        try:
            synced = await connection.sync(since)
            stored = await self._take(desk, connection, synced, since)
        except self._library.FAILURES as error:
            if since and self._library.is_lost(error):
                log.warning("matrix_place_lost", account=self.account, why=str(error))
                return await self._read_on(desk, connection, None)
            self._note(error)
            return None
        self._trouble = None
        reached = synced.get("next_batch")
        if not stored:
            await asyncio.sleep(streams.HELD_SECONDS)
            return since
        if not isinstance(reached, str):
            return None
        try:
            await desk.move_cursor(Cursor(value=reached))
        except errors.StoreError as error:
            self._note_held(error)
            return None
        return reached

    async def _take(
        self, desk: channels.Desk, connection: "Connection", synced: Mapping[str, Any], since: str | None
    ) -> bool:
        """Whether all of it is stored. When a room's message is not, those after it wait as well; other rooms
        do not, and neither do presses and commands that need not. What was said before we were ever here is
        not ours to answer."""
        for room_id, invited in answers.rooms_in(synced, "invite"):
            inviter, is_direct = answers.invitation(connection.us, invited)
            if inviter:
                await self._join(desk, connection, room_id, inviter, is_direct=is_direct)
        stored = await self._take_late(desk, connection)
        for room_id, joined in answers.rooms_in(synced, "join"):
            said, all_stored = await connection.timeline(room_id, joined, since), True
            for event in said if since else ():
                if "state_key" in event:
                    if all_stored:
                        await self._follow(desk, connection, event)
                elif not await self._hand_over(desk, connection, room_id, event, is_behind=not all_stored):
                    all_stored = False
            stored = stored and all_stored
        return stored

    async def _take_late(self, desk: channels.Desk, connection: "Connection") -> bool:
        """What came before its keys: known under another id than as what could not be read."""
        for room_id, event in await connection.come_late():
            happening = await connection.read(room_id, event)
            if happening is not None and not _is_unread(happening):
                late = replace(happening, event_id=f"{happening.event_id}-late")
                try:
                    await streams.hand_over(desk, late)
                except streams.LATER as error:
                    self._note_held(error)
                    return False
            connection.forget_late(room_id, event)
        return True

    async def _hand_over(
        self,
        desk: channels.Desk,
        connection: "Connection",
        room_id: str,
        event: Event,
        *,
        is_behind: bool = False,
    ) -> bool:
        happening = await connection.read(room_id, event)
        if happening is None:
            return True
        if is_behind and streams.waits_its_turn(happening):
            return False
        try:
            receipt = await streams.hand_over(desk, happening)
        except streams.LATER as error:
            self._note_held(error)
            return False
        if _is_unread(happening) and receipt and not receipt.repeated:
            await self._ask_again(connection, room_id, event)
        return True

    async def _ask_again(self, connection: "Connection", room_id: str, event: Event) -> None:
        """Whoever wrote it is told, and their device is asked for the key: once for all that it would open.
        The homeserver knows the number again, also after a restart."""
        key = str(answers.table(event.get("content")).get("session_id") or event.get("event_id"))
        number = f"unread-{hashlib.sha256(key.encode(errors='replace')).hexdigest()[:32]}"
        if (room_id, number) in self._asked:
            return
        said = {"msgtype": "m.notice", "body": SEND_AGAIN, "m.mentions": {}}
        answered = outbound.reply(str(event.get("event_id")))
        try:
            await connection.ask_for_key(room_id, event)
            await connection.put(room_id, number, said | answered)
        except (self._library.RoomClosed, *self._library.FAILURES) as error:
            log.warning("matrix_not_told", account=self.account, room=room_id, why=str(error))
        if len(self._asked) >= MOST_ASKED:
            self._asked.clear()
        self._asked.add((room_id, number))

    async def _follow(self, desk: channels.Desk, connection: "Connection", event: Event) -> None:
        """To where a room goes on that is over."""
        room_id, sender = answers.replacement(event), event.get("sender")
        if room_id and answers.is_id(sender):
            await self._join(desk, connection, room_id, sender)

    async def _join(
        self,
        desk: channels.Desk,
        connection: "Connection",
        room_id: str,
        inviter: str,
        *,
        is_direct: bool = False,
    ) -> None:
        """A room, when whoever wants us there may talk."""
        if not self._options.join_invites:
            return
        source = SessionSource(
            platform=Platform.MATRIX,
            account=self.account,
            chat_id=room_id,
            chat_type=ChatType.DM if is_direct else ChatType.GROUP,
            user_id=inviter,
            scope_id=connection.us.server,
        )
        if not await desk.admits(source):
            log.warning("matrix_invitation_ignored", account=self.account, room=room_id, by=inviter)
            return
        if is_direct:  # first: once we have joined, nobody says so any more
            await connection.rooms.note_invitation(room_id, inviter)
        try:
            await connection.server.join(room_id)
        except self._library.REFUSALS as error:  # or nothing would be read ever after
            log.warning("matrix_not_joined", account=self.account, room=room_id, why=str(error))

    def _note_held(self, error: Exception) -> None:
        log.warning("update_not_stored", platform=self.name, account=self.account, why=str(error))

    def _note(self, error: Exception) -> None:
        """What goes wrong with the homeserver, for whoever asks how we are."""
        trouble = f"the homeserver cannot be used now: {type(error).__name__} {error}"
        if isinstance(error, self._library.NotSigned):
            trouble = str(error)
        elif isinstance(error, sqlite3.Error):
            trouble = f"the file with the keys of this device cannot be used: {error}"
        elif self._library.is_revoked(error):
            trouble = self._library.LOGGED_OUT
        if trouble != self._trouble:
            log.warning("channel_troubled", platform=self.name, account=self.account, why=trouble)
        self._trouble = trouble

    async def _to_send(self) -> "Connection | None":
        """Where another node reads, a connection that only sends: the keys of the device are that node's."""
        async with self._opening:
            if self._connection is None and not self._is_reading:
                module = await streams.load(CONNECTION)
                connection: Connection = module.Connection(self._options, self.account)
                self._library = module
                try:
                    await connection.open(keys=False)
                except module.FAILURES as error:
                    await connection.close()
                    self._note(error)
                    return None
                if self._is_reading:  # by now
                    await connection.close()
                else:
                    self._connection = connection
            return self._connection

    async def _let_go(self) -> None:
        """Of what only sends. Something may be under way there: it is closed the next time."""
        former, self._former = self._former, None if self._is_reading else self._connection
        self._connection = None
        if former is not None:
            await former.close()

    async def send(self, delivery: Delivery) -> Outcome:
        connection = self._connection or await self._to_send()
        if connection is None:
            return NotSent(why=self._trouble or NOT_CONNECTED)
        try:
            async with asyncio.timeout(self._options.timeout_seconds):
                return await self._send(connection, delivery)
        except TimeoutError:
            return Unknown(why=f"no answer within {self._options.timeout_seconds:g} seconds")
        except self._library.RoomClosed as error:
            return NotSent(why=str(error), hopeless=self._is_reading)  # else another node has the keys
        except (errors.FileUnavailable, OSError) as error:
            return NotSent(why=str(error), hopeless=True)
        except self._library.FAILURES as error:
            outcome: Outcome = self._library.judge(error)
            return outcome

    async def draft(self, delivery: Delivery) -> Outcome:
        return await self.send(delivery)

    async def _send(self, connection: "Connection", delivery: Delivery) -> Outcome:
        """Each part under a number of its own: whatever is tried again is there once."""
        room_id, number, message_id = delivery.to.chat_id, delivery.id, delivery.draft
        if delivery.text or not delivery.files:
            room = await connection.rooms.find(room_id)
            said = outbound.message(delivery, is_encrypted=room.is_encrypted)
            sent = await connection.put(room_id, number, said)
            message_id = message_id or sent
        for place, file in enumerate(delivery.files, 1):
            said = await connection.put_file(room_id, file) | outbound.relates_to(delivery.to)
            sent = await connection.put(room_id, f"{number}-file-{place}", said)
            message_id = message_id or sent
        for button in delivery.buttons:
            if button.sign and message_id:
                shown = outbound.reaction(message_id, button.sign)
                # The same sign under the same message is refused: another card of it has the same ones.
                once = f"{message_id}-{button.sign.encode().hex()}"
                await connection.put(room_id, once, shown, self._library.REACTION)
        return Sent(message_id=message_id)

    async def sign(self, to: SessionSource, sign: ChatSign) -> Outcome:
        connection = self._connection
        if connection is None:
            return NotSent(why=NOT_CONNECTED)
        try:
            async with asyncio.timeout(self._options.timeout_seconds):
                if sign is ChatSign.TYPING:
                    await connection.server.show_typing(connection.us, to.chat_id, TYPING_SECONDS)
                elif to.message_id:
                    await connection.put_sign(to.chat_id, to.message_id, sign, SIGNS[sign])
        except TimeoutError:
            return Unknown(why="no answer in time")
        except self._library.FAILURES as error:
            outcome: Outcome = self._library.judge(error)
            return outcome
        return Sent()

    async def fetch(self, attachment: Attachment, most_bytes: int) -> AsyncIterator[bytes]:
        connection = self._connection
        if connection is None:
            raise errors.FileLater(why=NOT_CONNECTED)
        try:
            async for piece in connection.fetch(attachment, most_bytes):
                yield piece
        except self._library.FAILURES as error:
            raise errors.FileLater(why=f"{type(error).__name__} {error}") from None

    async def examine(self, *, in_use: bool, home: str | None = None) -> Sequence[Finding]:  # noqa: ARG002
        """The keys are left alone: a gateway may have them."""
        checkup = await streams.load(CHECKUP)
        found: Sequence[Finding] = await checkup.examine(self._options, self.account, home)
        return found

    async def close(self) -> None:
        """What is read with is closed where it was opened, at the end of receiving."""
        await self._let_go()
        await self._let_go()


def _is_unread(happening: channels.Happening) -> bool:
    return isinstance(happening, channels.Incoming) and happening.text == inbound.UNREADABLE
