"""One bot: what it hears of its chats, and what it says there."""

import asyncio
import importlib
import warnings
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from frontdesk import errors, plugins
from frontdesk.channels import streams
from frontdesk.channels.discord import checkup, finding, inbound, outbound, presses, reading, verdicts
from frontdesk.channels.discord import options as settings
from frontdesk.contracts import channels
from frontdesk.logs import get_logger
from frontdesk.model import deliveries
from frontdesk.model.chats import Attachment, ChatSign, TextUnit
from frontdesk.model.findings import Finding
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import SessionSource

if TYPE_CHECKING:
    from frontdesk.channels.discord.calls import RestCalls

plugins.need("discord", "aiohttp")

LIBRARY = "frontdesk.channels.discord.gateway"
CALLS = "frontdesk.channels.discord.calls"
NOT_CONNECTED = "Discord has not been reached yet"
NONCE_SECONDS = 60.0
"""The platform knows a repeated number again "within a few minutes"."""
TYPING_SECONDS = 9.0
FILE_PARTS = 3

log = get_logger(__name__)


class Channel:
    Options = settings.Options
    routes: Sequence[channels.Route] = ()
    capabilities = channels.Capabilities(
        text_limit=outbound.TEXT_UNITS,
        text_unit=TextUnit.UTF16,
        edits=True,
        edit_pause_seconds=1.2,
        most_buttons=outbound.MOST_BUTTONS,
        reactions=True,
        most_files=outbound.MOST_FILES,
        most_file_bytes=outbound.MOST_FILE_BYTES,
        typing_seconds=TYPING_SECONDS,
        idempotent_seconds=NONCE_SECONDS,
        reliable_sender_ids=True,
        reads_alone=True,
    )

    def __init__(self, options: settings.Options, account: str | None = None) -> None:
        self.name: str = Platform.DISCORD
        self.account = account
        self._options = options
        self._calls: streams.Lazily[RestCalls] = streams.Lazily(
            CALLS, lambda library: library.RestCalls(options)
        )
        self._trouble: str | None = None

    def trouble(self) -> str | None:
        return self._trouble

    async def receive(self, desk: channels.Desk) -> None:
        calls = await self._calls.get()
        library = await asyncio.to_thread(_load_library)
        self._trouble = NOT_CONNECTED
        reader = reading.Reader(calls, self.account, desk, self._be_fine)
        try:
            await reader.begin()
            async with asyncio.TaskGroup() as tasks:

                def hear(name: str, data: Any, number: str) -> None:
                    if name == "INTERACTION_CREATE":
                        tasks.create_task(presses.take(calls, reader, desk, data, self.account))
                        return
                    if name == "READY":
                        tasks.create_task(self._offer(calls, desk, data))
                    reader.hear(name, data, number)

                tasks.create_task(reader.take_events())
                tasks.create_task(reader.catch_up())
                await library.DiscordLine(calls, self._options, hear, self._note).stay()
        finally:
            self._trouble = None

    async def _offer(self, calls: "RestCalls", desk: channels.Desk, data: Any) -> None:
        if not self._options.slash_commands:
            return
        try:
            ready = inbound.read_as(presses.ReadyFacts, data)
            await presses.offer(calls, ready.application.id, desk.commands())
        except (verdicts.RestFailure, errors.InvalidInput, errors.MissingSecret) as error:
            log.warning("commands_not_offered", account=self.account, why=str(error))

    def _be_fine(self) -> None:
        self._trouble = None

    def _note(self, error: str | Exception) -> None:
        """Keep why nothing comes in, for whoever asks."""
        trouble = error if isinstance(error, str) else verdicts.why_troubled(error)
        if trouble != self._trouble:
            log.warning("channel_troubled", platform=self.name, account=self.account, why=trouble)
        self._trouble = trouble

    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        try:
            return await outbound.send(await self._calls.get(), delivery)
        except errors.MissingSecret as error:
            return deliveries.NotSent(why=str(error))

    async def draft(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        return await self.send(delivery)

    async def find(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        try:
            return await finding.find(await self._calls.get(), delivery)
        except errors.MissingSecret as error:
            return deliveries.Unknown(why=str(error))

    async def sign(self, to: SessionSource, sign: ChatSign) -> deliveries.Outcome:
        try:
            return await outbound.sign(await self._calls.get(), to, sign)
        except errors.MissingSecret as error:
            return deliveries.NotSent(why=str(error))

    async def fetch(self, attachment: Attachment, most_bytes: int) -> AsyncIterator[bytes]:
        """The bytes of a file, by a link that is made for it now."""
        try:
            calls = await self._calls.get()
            pieces = calls.download(await self._link(calls, attachment.id))
            async for piece in streams.at_most(pieces, most_bytes):
                yield piece
        except errors.MissingSecret as error:
            raise errors.FileUnavailable(why=str(error)) from error
        except verdicts.RestFailure as error:
            hopeless = isinstance(error, verdicts.RestRefused) and error.is_for_good
            raise (errors.FileUnavailable if hopeless else errors.FileLater)(why=str(error)) from error

    async def _link(self, calls: "RestCalls", attachment_id: str) -> str:
        parts = attachment_id.split("/")
        if len(parts) != FILE_PARTS or not all(map(outbound.is_id, parts)):
            raise errors.FileUnavailable(why="Discord has no such file")
        channel, message, wanted = parts
        told = await calls.ask("GET", f"/channels/{channel}/messages/{message}")
        try:
            written = inbound.read_as(inbound.DiscordMessage, told)
        except errors.InvalidInput as error:
            raise errors.FileUnavailable(why=str(error)) from None
        for file in written.attachments:
            if file.id == wanted:
                return file.url
        raise errors.FileUnavailable(why="the file was taken out of its message")

    async def examine(self, *, in_use: bool, home: str | None = None) -> list[Finding]:  # noqa: ARG002
        return await checkup.examine(await self._calls.get(), home)

    async def close(self) -> None:
        if calls := self._calls.take():
            await calls.close()


def _load_library() -> Any:
    """Its voices, of which nothing is used, take a module that goes with Python 3.13."""
    warnings.filterwarnings("ignore", "'audioop' is deprecated", DeprecationWarning)
    return importlib.import_module(LIBRARY)
