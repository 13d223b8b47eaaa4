"""The Slack channel holds the contract of chats, over its socket and called with events."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar

from frontdesk.channels import slack
from frontdesk.testing import channels
from frontdesk.testing.channels import Act, Arrival, PlatformEvent, PlatformFile, Trouble
from frontdesk.testing.conversing import ChatContract
from frontdesk.testing.slack import Envelope, TeamFault, Workspace
from tests import loopback

TIMEOUT_SECONDS = 5.0
NAMES = {"👍": "+1"}
TROUBLES = {
    Trouble.FAILS: TeamFault(method="chat.postMessage", error="internal_error", times=None),
    Trouble.HANGS: TeamFault(method="chat.postMessage", taken=True, hangs=True, times=None),
    Trouble.CUTS: TeamFault(method="chat.postMessage", taken=True, cut=True, times=None),
}


class SlackBench:
    def __init__(self, team: Workspace, channel: slack.Channel) -> None:
        self.team = team
        self.channel = channel
        self.messages: dict[str, dict[str, Any]] = {}

    async def inject(self, event: PlatformEvent) -> bool:
        envelope = await self.bring(event)
        assert envelope is not None
        if self.team.request_url is None:
            if envelope.kind == "interactive":  # waits behind nothing
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(envelope.acknowledged.wait(), TIMEOUT_SECONDS)
            behind = await self.team.event({"type": "emoji_changed"})
            assert behind is not None
            await behind.acknowledged.wait()
        return envelope.acknowledged.is_set()

    async def bring(self, event: PlatformEvent) -> Envelope | None:
        team, chat, user = self.team, event.chat_id, event.user_id
        if event.act is Act.PRESS:
            post = next(each for each in team.posts if each.ts == event.about)
            return await team.press(user, post, event.token or "")
        if event.act is Act.REACT:
            return await team.react(user, NAMES[event.emoji or ""], chat, event.about or "")
        if event.act is Act.EDIT:
            return await team.edit(self.messages[event.about or ""], event.text, chat)
        if event.act is Act.DELETE:
            return await team.delete(self.messages[event.about or ""], chat)
        if event.id not in self.messages:
            more: dict[str, Any] = dict(event.forged)
            if event.files:
                files = [team.keep_file(each.name, each.data, each.kind) for each in event.files]
                more |= {"files": files, "subtype": "file_share"}
            self.messages[event.id] = team.written(user, event.text, chat, **more)
        return await team.tell(self.messages[event.id], chat)

    async def arrived(self) -> Sequence[Arrival]:
        return [
            Arrival(
                text=post.shown,
                chat_id=post.channel,
                buttons=post.buttons,
                files=tuple(PlatformFile(name=f.name, data=f.data, kind=f.kind) for f in post.files),
            )
            for post in self.team.posts
        ]

    async def trouble(self, trouble: Trouble | None) -> None:
        self.team.faults = [TROUBLES[trouble]] if trouble in TROUBLES else []
        if trouble is Trouble.REFUSES:
            await self.team.refuse()
        else:
            await self.team.listen()


class TestSlack(ChatContract):
    chats: ClassVar[tuple[str, str]] = ("C0ONE", "C0TWO")
    users: ClassVar[tuple[str, str]] = ("U0ADA", "U0BOB")
    brings: ClassVar[frozenset[Act]] = frozenset(Act) - {Act.QUOTE, Act.ALBUM}
    channel: ClassVar[type[slack.Channel]] = slack.Channel

    def open_bench(
        self, desk: channels.RecordingDesk, account: str | None = None
    ) -> AbstractAsyncContextManager[SlackBench]:
        return self._opened(desk, account)

    @asynccontextmanager
    async def _opened(self, desk: channels.RecordingDesk, account: str | None) -> AsyncIterator[SlackBench]:
        async with Workspace.open() as team:
            for chat in self.chats:
                team.channel(chat)
            options = slack.Options(
                bot_token=lambda: team.bot_token,
                app_token=lambda: team.app_token,
                api_url=team.url,
                timeout_seconds=TIMEOUT_SECONDS,
            )
            channel = self.channel(options, account)
            async with loopback.receiving(channel, desk):
                await team.until(lambda: team.connected)
                yield SlackBench(team, channel)


class TestSlackThatCalls(TestSlack):
    @asynccontextmanager
    async def _opened(self, desk: channels.RecordingDesk, account: str | None) -> AsyncIterator[SlackBench]:
        async with Workspace.open() as team:
            for chat in self.chats:
                team.channel(chat)
            options = slack.Options(
                bot_token=lambda: team.bot_token,
                signing_secret=lambda: team.signing_secret,
                api_url=team.url,
                timeout_seconds=TIMEOUT_SECONDS,
            )
            channel = self.channel(options, account)
            async with loopback.receiving(channel, desk) as url:
                team.request_url = f"{url}{channel.routes[0].path}"
                while (
                    not (tried := await team.event({"type": "emoji_changed"}))
                    or not tried.acknowledged.is_set()
                ):
                    pass  # it does not know yet who we are
                yield SlackBench(team, channel)
