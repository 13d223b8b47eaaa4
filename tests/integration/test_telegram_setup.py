"""Connecting a Telegram bot, and what can be found out about one: against the strict stand-in."""

import asyncio
from datetime import timedelta

import pytest
from telegram.error import TelegramError

from frontdesk import errors
from frontdesk.channels.telegram.calls import Bots
from frontdesk.channels.telegram.channel import Channel
from frontdesk.channels.telegram.options import Options
from frontdesk.contracts.setups import Examined, Welcoming
from frontdesk.testing.telegram import ApiFault, BotApi, Member

ANN, BOB = Member(id=7, first_name="Ann"), Member(id=8, first_name="Bob")


def options_of(api: BotApi, token: str | None = None) -> Options:
    return Options(token=lambda: token or api.token, api_url=api.url, timeout_seconds=5.0)


def channel_of(api: BotApi, token: str | None = None) -> Channel:
    return Channel(options_of(api, token))


async def verdicts(
    channel: Channel, *, in_use: bool = False, home: str | None = None
) -> list[tuple[str, str]]:
    try:
        return [(str(each.verdict), each.text) for each in await channel.examine(in_use=in_use, home=home)]
    finally:
        await channel.close()


async def test_good_bot_is_named_and_its_privacy_mode_explained() -> None:
    async with BotApi.open() as api:
        channel = channel_of(api)
        assert isinstance(channel, Examined)
        assert isinstance(channel, Welcoming)
        api.say(ANN, "hello")
        (who, privacy) = await verdicts(channel, home="7")
        assert who == ("ok", "@desk_bot (Desk)")
        assert (privacy[0], "/setprivacy" in privacy[1]) == ("note", True)
        api.can_read_all = True
        assert await verdicts(channel_of(api)) == [who]
        assert api.confirmed == []


async def test_revoked_token_and_a_platform_that_is_away_are_told_apart() -> None:
    async with BotApi.open() as api:
        ((verdict, why),) = await verdicts(channel_of(api, "110201543:BBHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"))
        assert (verdict, "@BotFather" in why) == ("failed", True)
        api.faults.append(ApiFault(cut=True))
        ((verdict, why),) = await verdicts(channel_of(api))
        assert (verdict, why.startswith("Telegram cannot be reached")) == ("failed", True)
    ((verdict, why),) = await verdicts(channel_of(api))
    assert (verdict, why.startswith("Telegram cannot be reached")) == ("failed", True)


async def test_second_program_with_the_same_bot_is_found_and_our_own_gateway_left_in_peace() -> None:
    async with BotApi.open() as api:
        api.can_read_all = True
        bots = Bots(options_of(api))
        other = await bots.now()

        async def poll() -> None:
            while True:
                try:
                    await other.fetch_updates(None, 10, ["message"])
                except TelegramError:  # it is cut off, and asks again
                    await asyncio.sleep(0.05)

        polling = asyncio.create_task(poll())
        await api.until(lambda: api.polled)
        assert len(await verdicts(channel_of(api), in_use=True)) == 1
        assert any("another program" in why for _, why in await verdicts(channel_of(api)))
        polling.cancel()
        await asyncio.gather(polling, return_exceptions=True)
        await bots.close()


async def test_webhook_of_somebody_else_is_told_by_its_host_alone() -> None:
    async with BotApi.open() as api:
        api.can_read_all, api.webhook_url = True, "https://elsewhere.example/secret-path"
        (_, (verdict, why)) = await verdicts(channel_of(api))
        assert (verdict, "elsewhere.example" in why, "secret-path" in why) == ("warning", True, False)


async def test_clock_that_is_wrong_is_told_with_by_how_much() -> None:
    async with BotApi.open() as api:
        api.can_read_all = True
        for ahead, told in ((timedelta(seconds=-3600), "ahead of"), (timedelta(seconds=3600), "behind")):
            api.wire.ahead = ahead
            (_, (verdict, why)) = await verdicts(channel_of(api), in_use=True)
            assert (verdict, told in why, "36" in why or "35" in why) == ("warning", True, True)


@pytest.mark.parametrize(("home", "good"), [("7", True), ("99", False), ("-100", False)])
async def test_home_channel_that_the_bot_does_not_know_is_named(home: str, good: bool) -> None:
    async with BotApi.open() as api:
        api.can_read_all = True
        api.private(ANN)
        found = await verdicts(channel_of(api), in_use=True, home=home)
        assert [verdict for verdict, _ in found] == (["ok"] if good else ["ok", "failed"])
        assert good or home in found[1][1]


async def test_people_who_write_are_met_and_their_messages_stay() -> None:
    async with BotApi.open() as api:
        api.say(ANN, "I was here before")
        channel = channel_of(api)
        people = channel.meet()
        first = await anext(people)
        api.say(BOB, "in a group", chat=api.group(5))
        api.say(Member(id=9, first_name="Robot", is_bot=True), "beep")
        api.put({"message": "no message"})
        api.say(ANN, "again")
        api.say(BOB, "hello")
        second = await anext(people)
        assert [(each.user_id, each.chat_id, each.name) for each in (first, second)] == [
            ("7", "7", "Ann"),
            ("8", "8", "Bob"),
        ]
        await people.aclose()
        await channel.close()
        assert (len(api.pending), api.confirmed) == (6, [])


async def test_meeting_with_a_token_that_is_refused_says_so() -> None:
    async with BotApi.open() as api:
        channel = channel_of(api, "110201543:BBHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw")
        with pytest.raises(errors.PlatformUnreachable, match="@BotFather"):
            await anext(channel.meet())
        await channel.close()
