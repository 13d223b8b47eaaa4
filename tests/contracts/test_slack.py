"""The Slack channel holds the contract of chats, over its socket and called with events."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from msgspec.structs import replace

from frontdesk.channels import slack
from frontdesk.contracts.channels import Desk
from frontdesk.contracts.secrets import Secret
from frontdesk.testing import channels
from frontdesk.testing.benches import VisibleSign
from frontdesk.testing.channels import Act, Arrival, PlatformEvent, PlatformFile, Trouble
from frontdesk.testing.conversing import ChatContract
from frontdesk.testing.slack import Envelope, TeamFault, Workspace
from tests.contracts.benching import ServedBench, started

SILENT_SECONDS = 5.0
"""So long a press is waited for that may not be acknowledged."""
NAMES = {"👍": "+1"}
AWAY = "C0AWAY"
"""A channel that we are not in."""
UNHEARD = {"type": "emoji_changed"}
TROUBLES = {
    Trouble.FAILS: TeamFault(method="chat.postMessage", error="internal_error", times=None),
    Trouble.HANGS: TeamFault(method="chat.postMessage", taken=True, hangs=True, times=None),
    Trouble.CUTS: TeamFault(method="chat.postMessage", taken=True, cut=True, times=None),
}


class SlackBench(ServedBench[slack.Channel]):
    def __init__(self, team: Workspace, make: Callable[[float], slack.Channel], desk: Desk) -> None:
        super().__init__(make, desk)
        self.team = team
        self.messages: dict[str, dict[str, Any]] = {}

    async def connected(self) -> None:
        if not self.channel.routes:
            await self.team.until(lambda: self.team.connected)
            return
        self.team.request_url = f"{self.url}{self.channel.routes[0].path}"
        while not (tried := await self.team.event(UNHEARD)) or not tried.acknowledged.is_set():
            pass  # it does not know yet who we are

    async def stop(self) -> None:
        self.team.request_url = None
        await super().stop()
        await self.team.until(lambda: not self.team.connected)

    async def inject(self, event: PlatformEvent) -> bool:
        envelope = await self.happen(event)
        if envelope is None:
            return True
        if self.team.request_url is None:
            if envelope.kind == "interactive":  # waits behind nothing
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(envelope.acknowledged.wait(), SILENT_SECONDS)
            behind = await self.team.event(UNHEARD)
            assert behind is not None
            await behind.acknowledged.wait()
        return envelope.acknowledged.is_set()

    async def happen(self, event: PlatformEvent) -> Envelope | None:
        team, chat, user = self.team, event.chat_id, event.user_id
        match event.act:
            case Act.PRESS:
                post = next(each for each in team.posts if each.ts == event.about)
                return await team.press(user, post, event.token or "")
            case Act.REACT:
                return await team.react(user, NAMES[event.emoji or ""], chat, event.about or "")
            case Act.EDIT:
                return await team.edit(self.messages[event.about or ""], event.text, chat)
            case Act.DELETE:
                return await team.delete(self.messages[event.about or ""], chat)
            case Act.EXPEL:
                team.chats[chat].is_member = False
                return None
        if chat == AWAY:
            return await team.command(user, event.text, chat)
        if event.id not in self.messages:
            more: dict[str, Any] = dict(event.forged)
            if event.files:
                files = [team.keep_file(each.name, each.data, each.kind) for each in event.files]
                more |= {"files": files, "subtype": "file_share"}
            called = f"<@{team.user_id}> " if event.act is Act.MENTION else ""
            self.messages[event.id] = team.written(user, f"{called}{event.text}", chat, **more)
        return await team.tell(self.messages[event.id], chat)

    async def arrived(self) -> Sequence[Arrival]:
        said = [
            Arrival(
                text=post.shown,
                chat_id=post.channel,
                buttons=post.buttons,
                files=tuple(PlatformFile(name=f.name, data=f.data, kind=f.kind) for f in post.files),
            )
            for post in self.team.posts
        ]
        whispered = [
            Arrival(text=post.shown, chat_id=post.channel, about=post.response_url)
            for post in self.team.whispers
        ]
        return said + whispered

    async def signs(self) -> Sequence[VisibleSign]:
        writing = [VisibleSign(chat_id=chat) for chat, *_ in self.team.statuses]
        put = [VisibleSign(chat_id=chat, message_id=stamp) for chat, stamp, _ in self.team.signs]
        return writing + put

    async def trouble(self, trouble: Trouble | None) -> None:
        await self.face(trouble)
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

    def asking(self, number: int) -> PlatformEvent:
        """A command, given where we are not."""
        return replace(self.event(number, "status"), chat_id=AWAY)

    @asynccontextmanager
    async def open_bench(
        self, desk: channels.RecordingDesk, account: str | None = None
    ) -> AsyncIterator[SlackBench]:
        async with Workspace.open() as team:
            for chat in (*self.chats, AWAY):
                team.channel(chat)
            team.chats[AWAY].is_member = False

            def make(seconds: float) -> slack.Channel:
                given: dict[str, Any] = {"bot_token": lambda: team.bot_token, **self.called_by(team)}
                options = slack.Options(api_url=team.url, timeout_seconds=seconds, **given)
                return self.channel(options, account)

            async with started(SlackBench(team, make, desk)) as bench:
                yield bench

    def called_by(self, team: Workspace) -> dict[str, Secret]:
        return {"app_token": lambda: team.app_token}


class TestSlackThatCalls(TestSlack):
    def called_by(self, team: Workspace) -> dict[str, Secret]:
        return {"signing_secret": lambda: team.signing_secret}
