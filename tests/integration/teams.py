"""A workspace that the tests of the Slack channel play in, and the channel at work in it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from frontdesk.channels import slack
from frontdesk.contracts import channels
from frontdesk.model import deliveries
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import ChatType, SessionSource
from frontdesk.testing.channels import RecordingDesk
from frontdesk.testing.slack import Workspace
from tests import loopback

ADA, BOB, GENERAL, RANDOM = "U0ADA", "U0BOB", "C0GENERAL", "C0RANDOM"


def options(team: Workspace, **more: Any) -> slack.Options:
    given: dict[str, Any] = {"bot_token": lambda: team.bot_token, "api_url": team.url, "timeout_seconds": 2.0}
    if "signing_secret" not in more:
        given["app_token"] = lambda: team.app_token
    return slack.Options(**{**given, **more})


@asynccontextmanager
async def at_work(team: Workspace, desk: channels.Desk, **more: Any) -> AsyncIterator[slack.Channel]:
    channel = slack.Channel(options(team, **more))
    async with loopback.receiving(channel, desk):
        await team.until(lambda: team.connected)
        yield channel


@asynccontextmanager
async def opened() -> AsyncIterator[Workspace]:
    async with Workspace.open() as team:
        for chat in (GENERAL, RANDOM):
            team.channel(chat)
        team.direct(ADA)
        yield team


def delivery(text: str = "Hello", **more: Any) -> deliveries.Delivery:
    place = {"chat_id": GENERAL, "chat_type": ChatType.GROUP, "user_id": ADA, **more.pop("to", {})}
    source = SessionSource(platform=Platform.SLACK, **place)
    given = {"id": "d1", "lane": "l", "created_at": datetime.now(UTC), "is_markdown": True}
    return deliveries.Delivery(to=source, text=text, **{**given, **more})


def texts(desk: RecordingDesk) -> list[str]:
    return [incoming.text for incoming in desk.stored]


async def verdicts(team: Workspace, home: str | None = None, **more: Any) -> list[tuple[str, str]]:
    channel = slack.Channel(options(team, **more))
    try:
        return [(str(each.verdict), each.text) for each in await channel.examine(in_use=False, home=home)]
    finally:
        await channel.close()
