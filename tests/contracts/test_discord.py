"""The Discord channel holds the contract of chats."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar, cast

from frontdesk import errors
from frontdesk.channels import discord
from frontdesk.contracts import channels as contract
from frontdesk.testing import channels
from frontdesk.testing.benches import VisibleSign
from frontdesk.testing.channels import Act, Arrival, PlatformEvent, PlatformFile, Trouble
from frontdesk.testing.conversing import ChatContract
from frontdesk.testing.discord import DiscordApi, DiscordFault, visible
from tests.contracts.benching import ServedBench, started

TROUBLES = {
    Trouble.FAILS: DiscordFault(method="POST", status=429, retry_after=0.5, times=None),
    Trouble.HANGS: DiscordFault(method="POST", taken=True, hangs=True, times=None),
    Trouble.CUTS: DiscordFault(method="POST", taken=True, times=None),
}


class Watching:
    """A desk of which the platform can see what became of each event."""

    def __init__(self, desk: channels.RecordingDesk, api: DiscordApi) -> None:
        self._desk, self._api = desk, api
        self.taken: list[bool] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._desk, name)

    async def accept(self, happening: contract.Happening, **more: Any) -> contract.Receipt:
        taken = True
        try:
            return await self._desk.accept(happening, **more)
        except errors.StoreError:
            taken = False
            raise
        finally:
            self.taken.append(taken)
            await self._api.gateway.ring()


class DiscordBench(ServedBench[discord.Channel]):
    def __init__(self, api: DiscordApi, make: Callable[[float], discord.Channel], desk: Watching) -> None:
        super().__init__(make, cast("contract.Desk", desk))
        self.api, self.desk = api, desk
        self.messages: dict[str, dict[str, Any]] = {}

    async def connected(self) -> None:
        await self.api.connected()

    async def stop(self) -> None:
        await super().stop()
        await self.api.until(lambda: not self.api.gateway.live)

    async def inject(self, event: PlatformEvent) -> bool:
        before = len(self.desk.taken)
        if event.act is Act.PRESS:
            number = f"5000{event.id.removeprefix('event-')}"
            await self.api.press(event.user_id, event.token or "", self.ours(event.about), number)
            await self.api.until(lambda: len(self.desk.taken) > before)
            if self.desk.taken[-1]:
                await self.api.until(lambda: number in self.api.answered)
            return number in self.api.answered
        await self.happen(event)
        if event.act is Act.EXPEL:
            return True
        await self.api.until(lambda: len(self.desk.taken) > before)
        return self.desk.taken[-1]

    def ours(self, message_id: str | None) -> dict[str, Any]:
        return next(each for each in self.api.ours() if each["id"] == message_id)

    async def happen(self, event: PlatformEvent) -> None:
        about = self.messages.get(event.about or "")
        if event.act is Act.REACT:
            await self.api.react(event.user_id, event.emoji or "", self.ours(event.about))
        elif event.act is Act.EDIT:
            assert about
            await self.api.edit(about, event.text)
        elif event.act is Act.DELETE:
            assert about
            await self.api.delete(about)
        elif event.act is Act.EXPEL:
            self.api.hidden.add(event.chat_id)
        elif known := self.messages.get(event.id):
            await self.api.tell_message(known)
        else:
            more: dict[str, Any] = {**event.forged}
            if event.act is Act.QUOTE:
                more |= {"referenced_message": about, "type": 19}
            if event.act is Act.MENTION:
                more["mentions"] = [self.api.me]
            more["attachments"] = [self.api.upload(each.name, each.data, each.kind) for each in event.files]
            said = await self.api.say(event.user_id, event.text, event.chat_id, **more)
            self.messages[event.id] = said

    async def arrived(self) -> Sequence[Arrival]:
        return [
            Arrival(
                text=visible(each["content"]),
                chat_id=each["channel_id"],
                id=each["id"],
                about=(each["message_reference"] or {}).get("message_id"),
                buttons=tuple(
                    (button["label"], button["custom_id"])
                    for row in each["components"]
                    for button in row["components"]
                ),
                files=tuple(self.file(file["id"]) for file in each["attachments"]),
            )
            for each in self.api.ours()
        ]

    def file(self, number: str) -> PlatformFile:
        kept = self.api.files[number]
        return PlatformFile(name=kept.name, data=kept.data, kind=kept.kind)

    async def signs(self) -> Sequence[VisibleSign]:
        chats = {each["id"]: chat for chat, said in self.api.messages.items() for each in said}
        writing = [VisibleSign(chat_id=chat) for chat in self.api.typed]
        put = [(message_id, each) for message_id, signs in self.api.signs.items() for each in signs]
        return writing + [VisibleSign(chat_id=chats[each], message_id=each) for each, _ in put]

    async def trouble(self, trouble: Trouble | None) -> None:
        await self.face(trouble)
        self.api.faults = [TROUBLES[trouble]] if trouble in TROUBLES else []
        await (self.api.refuse() if trouble is Trouble.REFUSES else self.api.listen())


class TestDiscord(ChatContract):
    chats: ClassVar[tuple[str, str]] = ("1001", "1002")
    users: ClassVar[tuple[str, str]] = ("7", "8")
    brings: ClassVar[frozenset[Act]] = frozenset(Act) - {Act.ALBUM}

    @asynccontextmanager
    async def open_bench(
        self, desk: channels.RecordingDesk, account: str | None = None
    ) -> AsyncIterator[DiscordBench]:
        async with DiscordApi.open() as api:
            for chat in self.chats:
                api.channel(chat)

            def make(seconds: float) -> discord.Channel:
                options = discord.Options(
                    token=lambda: api.token,
                    api_url=api.url,
                    gateway_url=api.gateway_url,
                    timeout_seconds=seconds,
                )
                return discord.Channel(options, account)

            async with started(DiscordBench(api, make, Watching(desk, api))) as bench:
                yield bench
