"""The terminal: its messages come through the owner-only socket, its answers are collected there."""

import asyncio
from collections.abc import Sequence

from frontdesk import errors
from frontdesk.channels.local import options as settings
from frontdesk.contracts import channels
from frontdesk.contracts.clock import Clock
from frontdesk.model import deliveries
from frontdesk.model.platforms import Platform


class Channel:
    """There is one, and nobody but the owner of the machine's account gets through it."""

    Options = settings.Options

    def __init__(
        self,
        options: settings.Options,  # noqa: ARG002
        account: str | None = None,
        *,
        clock: Clock | None = None,  # noqa: ARG002
    ) -> None:
        if account is not None:
            raise errors.InvalidSetting(
                key="local name", value=account, allowed="none: there is one terminal"
            )
        self.name: str = Platform.LOCAL
        self.account: str | None = None

    @property
    def capabilities(self) -> channels.Capabilities:
        return channels.Capabilities(
            collects=True, authenticates=True, notices=True, reliable_sender_ids=True
        )

    @property
    def routes(self) -> Sequence[channels.Route]:
        return ()

    async def receive(self, desk: channels.Desk) -> None:  # noqa: ARG002
        """Wait: what is typed is handed to the desk by whoever reads the socket."""
        await asyncio.Event().wait()

    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        return deliveries.NotSent(why=f"answer {delivery.id} is to be collected")

    async def close(self) -> None:
        """There is nothing to close."""
