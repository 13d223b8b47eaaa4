"""One bot: what the gateway knows of it before the platform's library is loaded."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec

from frontdesk import plugins
from frontdesk.channels import streams
from frontdesk.channels.called import CalledChannel
from frontdesk.channels.telegram import limits
from frontdesk.channels.telegram import options as settings
from frontdesk.contracts import channels
from frontdesk.contracts.clock import Clock
from frontdesk.contracts.setups import Newcomer
from frontdesk.model import deliveries
from frontdesk.model.chats import Attachment, ChatSign, TextUnit
from frontdesk.model.findings import Finding
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import ChatType, SessionSource

if TYPE_CHECKING:
    from frontdesk.channels.telegram.connection import BotConnection

plugins.need("telegram")

CONNECTION = "frontdesk.channels.telegram.connection"
MOST_UPDATE_BYTES = 1024 * 1024
LATER = {"retry-after": "5"}

IN_PRIVATE = channels.Capabilities(
    text_limit=limits.TEXT_UNITS,
    text_unit=TextUnit.UTF16,
    edits=True,
    edit_pause_seconds=1.1,
    most_buttons=limits.MOST_BUTTONS,
    reactions=True,
    most_files=limits.MOST_FILES,
    most_file_bytes=limits.MOST_FILE_BYTES,
    typing_seconds=5.0,
    reliable_sender_ids=True,
)
IN_GROUPS = msgspec.structs.replace(IN_PRIVATE, edit_pause_seconds=3.1, send_pause_seconds=0.3)
"""Twenty messages and changes in a minute."""


class Channel(CalledChannel[settings.Options]):
    """A bot called ``account``. Messages are asked for, or come as requests where a webhook is set."""

    Options = settings.Options

    def __init__(
        self, options: settings.Options, account: str | None = None, *, clock: Clock | None = None
    ) -> None:
        super().__init__(Platform.TELEGRAM, options, account, clock)
        self._connection: streams.Lazily[BotConnection] = streams.Lazily(
            CONNECTION, lambda library: library.BotConnection(options, account)
        )
        self.capabilities = msgspec.structs.replace(IN_PRIVATE, reads_alone=options.public_url is None)

    def capabilities_in(self, chat: SessionSource) -> channels.Capabilities:
        return IN_PRIVATE if chat.chat_type is ChatType.DM else IN_GROUPS

    @property
    def routes(self) -> Sequence[channels.Route]:
        if self._options.public_url is None:
            return []
        path = f"/channels/telegram/{self.account}" if self.account else "/channels/telegram"
        return [
            channels.Route(method="POST", path=path, handle=self._handle, max_body_bytes=MOST_UPDATE_BYTES)
        ]

    def trouble(self) -> str | None:
        return self._connection.made.trouble if self._connection.made else None

    async def receive(self, desk: channels.Desk) -> None:
        await (await self._connection.get()).receive(desk)

    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        return await (await self._connection.get()).send(delivery)

    async def draft(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        return await (await self._connection.get()).draft(delivery)

    async def sign(self, to: SessionSource, sign: ChatSign) -> deliveries.Outcome:
        return await (await self._connection.get()).sign(to, sign)

    async def fetch(self, attachment: Attachment, most_bytes: int) -> AsyncIterator[bytes]:
        connection = await self._connection.get()
        async with aclosing(connection.fetch(attachment, most_bytes)) as pieces:
            async for piece in pieces:
                yield piece

    async def examine(self, *, in_use: bool, home: str | None = None) -> list[Finding]:
        return await (await self._connection.get()).examine(in_use=in_use, home=home)

    async def meet(self) -> AsyncGenerator[Newcomer, None]:
        async with aclosing((await self._connection.get()).meet()) as newcomers:
            async for newcomer in newcomers:
                yield newcomer

    async def close(self) -> None:
        if connection := self._connection.made:
            await connection.close()

    async def _handle(self, request: channels.Request) -> channels.Response:
        if self._connection.made is None:
            return channels.Response(status=HTTPStatus.SERVICE_UNAVAILABLE, headers=LATER)
        return await self._connection.made.handle(request)
