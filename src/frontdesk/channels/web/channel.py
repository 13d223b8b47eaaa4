"""The page's own chats: what is written there comes through the office, what is said there is in the store,
which the page shows."""

import asyncio
import math
from collections.abc import Sequence

from frontdesk import errors
from frontdesk.channels.web import options as settings
from frontdesk.contracts import channels
from frontdesk.contracts.clock import Clock
from frontdesk.model import deliveries
from frontdesk.model.platforms import Platform

MOST_FILES = 100
"""Of one answer: each has a link on the page."""


class Channel:
    """There is one, and whoever writes has signed in on the page or shown a token."""

    Options = settings.Options

    def __init__(
        self,
        options: settings.Options,  # noqa: ARG002
        account: str | None = None,
        *,
        clock: Clock | None = None,  # noqa: ARG002
    ) -> None:
        if account is not None:
            raise errors.InvalidSetting(key="web name", value=account, allowed="none: there is one page")
        self.name: str = Platform.WEB
        self.account: str | None = None

    @property
    def capabilities(self) -> channels.Capabilities:
        return channels.Capabilities(
            on_page=True,
            authenticates=True,
            reliable_sender_ids=True,
            idempotent_seconds=math.inf,
            most_files=MOST_FILES,
        )

    @property
    def routes(self) -> Sequence[channels.Route]:
        return ()

    async def receive(self, desk: channels.Desk) -> None:  # noqa: ARG002
        """Wait: what is written is handed to the desk by the office."""
        await asyncio.Event().wait()

    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        """It is there: its row is what the page shows."""
        return deliveries.Sent(message_id=delivery.id)

    async def close(self) -> None:
        """There is nothing to close."""
