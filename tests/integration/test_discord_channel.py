"""The Discord channel against its stand-in: what it misses, where messages belong, and what is sent once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from frontdesk import Platform, errors
from frontdesk.channels import discord
from frontdesk.contracts import channels
from frontdesk.model.chats import Button, ChatSign, StoredFile
from frontdesk.model.deliveries import Delivery, NotSent, Sent, Unknown
from frontdesk.model.findings import Finding
from frontdesk.model.sources import ChatType, SessionSource
from frontdesk.testing.desks import RecordingDesk
from frontdesk.testing.discord import DiscordApi, DiscordFault
from tests import loopback

TEAM, OTHER, PRIVATE, THREAD = "1001", "1002", "2001", "3001"


class Ringing(RecordingDesk):
    """A desk that the stand-in hears."""

    api: DiscordApi
    tries = 0

    async def accept(self, happening: channels.Happening, **more: Any) -> channels.Receipt:
        self.tries += 1
        try:
            return await super().accept(happening, **more)
        finally:
            await self.api.gateway.ring()

    async def move_cursor(self, cursor: Any) -> None:
        await super().move_cursor(cursor)
        await self.api.gateway.ring()


@pytest.fixture
async def api() -> AsyncIterator[DiscordApi]:
    async with DiscordApi.open() as opened:
        opened.channel(TEAM)
        opened.channel(OTHER)
        opened.channel(PRIVATE, guild_id=None)
        opened.channel(THREAD, type=11, parent_id=TEAM)
        yield opened


@pytest.fixture
def desk(api: DiscordApi) -> Ringing:
    made = Ringing()
    made.api = api
    return made


def channel_of(api: DiscordApi, seconds: float = 5) -> discord.Channel:
    return discord.Channel(
        discord.Options(
            token=lambda: api.token,
            api_url=api.url,
            gateway_url=api.gateway_url,
            timeout_seconds=seconds,
        )
    )


@asynccontextmanager
async def receiving(api: DiscordApi, desk: Ringing) -> AsyncIterator[discord.Channel]:
    channel = channel_of(api)
    async with loopback.receiving(channel, cast("channels.Desk", desk)):
        await api.connected()
        await api.until(lambda: "100/" in desk.read_until)
        yield channel


def texts(desk: RecordingDesk) -> list[str]:
    return [each.text for each in desk.stored]


def answer(to: SessionSource, text: str = "Hello", **more: Any) -> Delivery:
    return Delivery(id="d1", lane="x", to=to, text=text, created_at=datetime.now(UTC), **more)


def at(channel: str, **more: Any) -> SessionSource:
    return SessionSource(platform=Platform.DISCORD, chat_id=channel, chat_type=ChatType.GROUP, **more)


async def test_what_was_said_while_we_were_away_comes_once_and_in_order(
    api: DiscordApi, desk: Ringing
) -> None:
    api.keep(api.person("7"), "before we came", TEAM)
    async with receiving(api, desk):
        await api.say("7", "one", TEAM)
        await api.say("7", "private", PRIVATE)
        await api.until(lambda: len(desk.stored) == 2)
    api.members["100", "7"] = {"roles": ["55"]}
    expected = [f"away {number}" for number in range(120)]
    for text in expected:
        api.keep(api.person("7"), text, TEAM)
    for chat, text in ((PRIVATE, "private, away"), (OTHER, "elsewhere"), (THREAD, "in a thread")):
        api.keep(api.person("7"), text, chat)
    async with receiving(api, desk):
        await api.say("7", "back", TEAM)
        await api.until(lambda: "back" in texts(desk) and len(desk.stored) >= 126)
    assert [
        each.text for each in desk.stored if each.source.chat_id == TEAM and not each.source.thread_id
    ] == [
        "one",
        *expected,
        "back",
    ]
    assert sorted(texts(desk)) == sorted(
        ["one", "private", *expected, "private, away", "elsewhere", "in a thread", "back"]
    )
    assert {each.source.roles for each in desk.stored if each.text in expected} == {("55",)}


async def test_line_that_breaks_loses_and_doubles_nothing(api: DiscordApi, desk: Ringing) -> None:
    async with receiving(api, desk):
        for number in range(20):
            if number == 12:
                await api.until(lambda: api.gateway.resumed)
            if number in (5, 12):
                await api.gateway.cut()
            if number == 12:
                api.gateway.forget()
            await api.say("7", str(number), TEAM)
        await api.until(lambda: len(desk.stored) >= 20, seconds=30)
    assert texts(desk) == [str(number) for number in range(20)]
    assert (api.gateway.resumed, api.gateway.identified) == (1, 2)


async def test_message_that_cannot_be_stored_is_read_again_with_those_after_it(
    api: DiscordApi, desk: Ringing
) -> None:
    async with receiving(api, desk):
        desk.refusal = errors.StoreFull(path="x")
        for text in ("one", "two"):
            await api.say("7", text, TEAM)
        await api.until(lambda: desk.offered)
        desk.refusal = None
        await api.say("7", "three", TEAM)
        await api.until(lambda: len(desk.stored) == 3)
    assert texts(desk) == ["one", "two", "three"]


async def test_what_people_do_to_messages_waits_for_a_store_that_fails(
    api: DiscordApi, desk: Ringing
) -> None:
    async with receiving(api, desk):
        said = await api.say("7", "one", TEAM)
        await api.until(lambda: desk.stored)
        desk.refusal = errors.StoreFull(path="x")
        await api.edit(said, "two")
        await api.react("7", "👍", said)
        await api.delete(said)
        await api.until(lambda: desk.tries > 2)
        desk.refusal = None
        await api.until(lambda: len(desk.happened) == 4)
    assert [type(each).__name__ for each in desk.happened] == ["Incoming", "Edited", "Reacted", "Deleted"]


async def test_each_message_is_known_by_its_place_and_its_sender(api: DiscordApi, desk: Ringing) -> None:
    api.members["100", "7"] = {"roles": ["55", "56"], "nick": "Ada"}
    me = api.me["id"]
    async with receiving(api, desk):
        await api.say("7", f"<@{me}> /status", TEAM, mentions=[api.me])
        await api.say("7", "the role", TEAM, mention_roles=["1009"])
        await api.say("7", "to nobody", TEAM)
        await api.say("7", "deep", THREAD)
        await api.say("7", "alone", PRIVATE)
        await api.say("8", "beep", TEAM, author=api.person("8", bot=True))
        await api.say("9", "hook", TEAM, webhook_id="9")
        await api.say("7", "joined", TEAM, type=7)
        await api.say("7", "end", PRIVATE)
        await api.until(lambda: "end" in texts(desk))
    said = {each.text: each for each in desk.stored}
    assert list(said) == ["/status", "the role", "to nobody", "deep", "alone", "beep", "hook", "end"]
    assert [said[text].addressed for text in ("/status", "the role", "to nobody", "alone")] == [
        True,
        True,
        False,
        None,
    ]
    source = said["/status"].source
    assert (source.chat_type, source.scope_id, source.roles) == (ChatType.GROUP, "100", ("55", "56"))
    assert source.user_name == "Ada"
    deep = said["deep"].source
    assert (deep.chat_type, deep.chat_id, deep.thread_id) == (ChatType.THREAD, TEAM, THREAD)
    alone = said["alone"].source
    assert (alone.chat_type, alone.chat_id, alone.roles) == (ChatType.DM, PRIVATE, ())
    assert [text for text, each in said.items() if each.source.is_bot] == ["beep", "hook"]


async def test_command_from_the_list_is_stored_and_heard(api: DiscordApi, desk: Ringing) -> None:
    async with receiving(api, desk):
        await api.until(lambda: api.commands)
        number = await api.command("7", "status", TEAM, "now")
        await api.until(lambda: number in api.answered)
        heard = api.answered[number]
    assert [each["name"] for each in api.commands] == ["status"]
    assert (heard["type"], heard["data"]["flags"]) == (4, 64)
    (command,) = desk.stored
    assert (command.text, command.addressed, command.source.user_id) == ("/status now", True, "7")
    async with receiving(api, desk):
        await api.until(lambda: ("GET", "/applications/901/commands") in api.calls[-3:])
    assert api.commands_set == 1


async def test_answer_whose_connection_was_cut_is_there_once(api: DiscordApi) -> None:
    channel = channel_of(api)
    api.faults = [DiscordFault(method="POST", taken=True)]
    assert isinstance(await channel.send(answer(at(TEAM))), Unknown)
    assert isinstance(await channel.send(answer(at(TEAM))), Sent)
    await channel.close()
    assert [each["content"] for each in api.ours()] == ["Hello"]


async def sent_unseen(api: DiscordApi, channel: discord.Channel, delivery: Delivery, *, taken: bool) -> None:
    api.faults = [DiscordFault(method="POST", taken=taken)]
    assert isinstance(await channel.send(delivery), Unknown)


async def test_answer_of_which_nobody_knows_is_found_where_that_is_certain(api: DiscordApi) -> None:
    channel = channel_of(api)
    for place, chat_type in ((TEAM, ChatType.GROUP), (PRIVATE, ChatType.DM)):
        asked = await api.say("7", "please", place)
        to = SessionSource(
            platform=Platform.DISCORD, chat_id=place, chat_type=chat_type, message_id=asked["id"]
        )
        lost, kept = answer(to, "*One*, two."), answer(to, "Three")
        card = answer(to, "Four", buttons=(Button(label="Yes", token=f"token-{place}"),))
        await sent_unseen(api, channel, lost, taken=False)
        await sent_unseen(api, channel, kept, taken=True)
        api.forget_numbers()
        await sent_unseen(api, channel, card, taken=True)
        assert isinstance(await channel.find(lost), NotSent)
        assert await channel.find(card) == Sent(message_id=api.ours(place)[-1]["id"])
        found = await channel.find(kept)
        if chat_type is ChatType.GROUP:
            assert found == Sent(message_id=api.ours(place)[0]["id"])
        else:  # the same text may be another answer
            assert isinstance(found, Unknown)
            assert found.hopeless
    api.faults = [DiscordFault(status=500)]
    assert isinstance(await channel.find(answer(at(TEAM))), Unknown)
    api.no_history.add(TEAM)  # nothing is given then, and nothing is said
    unreadable = await channel.find(answer(at(TEAM), "Nobody said this."))
    assert isinstance(unreadable, Unknown)
    assert unreadable.hopeless
    api.no_history.clear()
    assert isinstance(await channel.find(answer(at(OTHER), "Nobody said this.")), Unknown)
    assert isinstance(await channel.find(answer(at(TEAM), "Nobody said this.")), NotSent)
    for _ in range(1_000):
        api.keep(api.person("7"), "chat", TEAM)
    too_much = await channel.find(answer(at(TEAM)))
    assert isinstance(too_much, Unknown)
    assert too_much.hopeless
    await channel.close()


async def test_outcomes_say_what_the_platform_said(api: DiscordApi) -> None:
    channel = channel_of(api)
    api.faults = [
        DiscordFault(status=429, retry_after=7.5),
        DiscordFault(status=429, retry_after=2, everywhere=True),
    ]
    waits = [await channel.send(answer(at(TEAM))) for _ in range(2)]
    assert [
        (each.retry_after_seconds, each.whole_account) for each in waits if isinstance(each, NotSent)
    ] == [
        (7.5, False),
        (2, True),
    ]
    api.hidden.add(OTHER)
    for place in (OTHER, "999", "no id"):
        outcome = await channel.send(answer(at(place)))
        assert isinstance(outcome, NotSent)
        assert outcome.hopeless
    gone = await channel.send(answer(at(TEAM), extra={"draft": "12345"}))
    assert isinstance(gone, NotSent)
    assert gone.gone
    await channel.close()
    channel = channel_of(api)
    api.faults = [DiscordFault(status=401)]
    refused = await channel.send(answer(at(TEAM)))
    assert isinstance(refused, NotSent)
    assert refused.whole_account
    await channel.close()


async def test_answer_goes_to_its_thread_with_its_files_and_signs(api: DiscordApi, tmp_path: Path) -> None:
    channel = channel_of(api)
    asked = await api.say("7", "please", THREAD)
    files = []
    for number in range(3):
        path = tmp_path / str(number)
        path.write_bytes(bytes([number]) * 9 * 1024 * 1024)
        size = path.stat().st_size
        files.append(
            StoredFile(digest=str(number), name=f'{number}".bin', kind="image/png", size=size, path=str(path))
        )
    to = at(TEAM, thread_id=THREAD, message_id=asked["id"])
    assert isinstance(
        await channel.send(answer(to, "**Here** @everyone", is_markdown=True, files=tuple(files))), Sent
    )
    for sign in (ChatSign.TYPING, ChatSign.SEEN, ChatSign.WORKING, ChatSign.DONE):
        assert isinstance(await channel.sign(to, sign), Sent)
    await channel.close()
    said = api.ours(THREAD)
    assert [len(each["attachments"]) for each in said] == [2, 1]
    assert said[0]["content"] == "**Here** \\@everyone"
    assert said[0]["message_reference"]["message_id"] == asked["id"]
    assert [api.files[each["id"]].name for each in said[0]["attachments"]] == ["0_.bin", "1_.bin"]
    assert (api.typed, api.signs[asked["id"]]) == ([THREAD], ["✅"])


@pytest.mark.parametrize(
    "text", ["*" * 1980, "a_b\n# c\n> d\n- e\n`f`\n1. g", "@everyone <@7> [x](https://y.example)"]
)
async def test_text_that_is_no_markdown_is_shown_as_it_is(api: DiscordApi, text: str) -> None:
    channel = channel_of(api)
    assert isinstance(await channel.send(answer(at(TEAM), text)), Sent)
    await channel.close()
    (said,) = api.ours()
    shown = said["content"]
    assert shown == f"```\n{text}\n```" or (shown.replace("\\", "") == text and shown != text)


async def test_bot_without_its_intent_says_what_to_turn_on(api: DiscordApi, desk: Ringing) -> None:
    api.gateway.content_intent = False
    channel = channel_of(api)
    async with loopback.receiving(channel, cast("channels.Desk", desk)):
        await api.until(lambda: 4014 in api.gateway.closed_with)
        for _ in range(500):
            if "Message Content Intent" in (channel.trouble() or ""):
                return
            await asyncio.sleep(0.01)
    raise AssertionError(channel.trouble())


async def examined(api: DiscordApi, home: str | None = None) -> list[Finding]:
    channel = channel_of(api)
    try:
        return list(await channel.examine(in_use=False, home=home))
    finally:
        await channel.close()


async def test_doctor_tells_what_is_wrong(api: DiscordApi) -> None:
    assert [each.text for each in await examined(api, TEAM)] == ["desk (id 900)"]
    api.application |= {"flags": 0, "interactions_endpoint_url": "https://example.com"}
    found = " ".join(each.text for each in await examined(api, "999"))
    for words in ("Message Content Intent", "Interactions Endpoint URL", "home channel 999"):
        assert words in found
    api.guilds.clear()
    assert "oauth2/authorize?client_id=901" in " ".join(each.text for each in await examined(api))
    api.faults = [DiscordFault(status=401)]
    (refused,) = await examined(api)
    assert "Reset Token" in refused.text
