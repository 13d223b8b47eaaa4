"""What the people of a workspace are called, as the agent is told of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from frontdesk import errors
from frontdesk.channels import slack
from frontdesk.contracts import channels
from frontdesk.contracts.setups import Newcomer
from frontdesk.testing.channels import RecordingDesk
from frontdesk.testing.slack import TeamFault, Workspace
from tests.integration import teams
from tests.integration.teams import ADA, BOB, GENERAL, at_work, options


@pytest.fixture
async def team() -> AsyncIterator[Workspace]:
    async with teams.opened() as opened:
        opened.names |= {ADA: "Ada Lovelace", BOB: "Bob"}
        yield opened


def names(desk: RecordingDesk) -> list[str | None]:
    return [happening.source.user_name for happening in desk.happened]


def asked(team: Workspace) -> list[str]:
    return [call.fields["user"] for call in team.calls if call.method == "users.info"]


async def test_people_are_told_by_their_names_and_asked_for_once(team: Workspace) -> None:
    desk = RecordingDesk()
    async with at_work(team, desk):
        message = team.written(ADA, "Hello", GENERAL)
        await team.tell(message, GENERAL)
        await team.say(BOB, "Hi", GENERAL)
        await team.edit(message, "Hello all", GENERAL)
        await team.react(BOB, "+1", GENERAL, message["ts"])
        await team.say("U0NOBODY", "Hm", GENERAL)
        await team.say("U0NOBODY", "Hm, hm", GENERAL)
        await team.until(lambda: len(desk.happened) == 6)
    assert names(desk) == ["Ada Lovelace", "Bob", "Ada Lovelace", "Bob", None, None]
    assert asked(team) == [ADA, BOB, "U0NOBODY"]


async def test_two_people_of_one_name_are_told_apart(team: Workspace) -> None:
    desk = RecordingDesk()
    team.names[BOB] = "ada lovelace"
    async with at_work(team, desk):
        for user in (ADA, BOB, ADA):
            await team.say(user, "Hello", GENERAL)
        await team.until(lambda: len(desk.happened) == 3)
    assert names(desk) == ["Ada Lovelace", f"ada lovelace ({BOB})", f"Ada Lovelace ({ADA})"]


@pytest.mark.parametrize(
    "fault",
    [
        TeamFault(error="missing_scope"),
        TeamFault(status=429, retry_after=60),
        TeamFault(status=500),
        TeamFault(cut=True),
        TeamFault(hangs=True),
        TeamFault(body=b'{"ok": true, "user": {"profile": {"display_name": 7, "real_name": []}}}'),
    ],
)
async def test_name_that_cannot_be_learnt_holds_up_no_message(team: Workspace, fault: TeamFault) -> None:
    desk = RecordingDesk()
    fault.method, fault.times = "users.info", None
    team.faults = [fault]
    async with at_work(team, desk):
        for number in range(20):
            await team.say(ADA, f"text {number}", GENERAL)
        await team.until(lambda: len(desk.happened) == 20)
    assert names(desk) == [None] * 20
    assert asked(team) == [ADA]


async def test_command_and_message_of_a_person_have_the_same_name(team: Workspace) -> None:
    desk = RecordingDesk()
    async with at_work(team, desk):
        await team.say(ADA, "Hello", GENERAL)
        await team.command(ADA, "status", GENERAL)
        await team.until(lambda: len(desk.happened) == 2)
    assert names(desk) == ["Ada Lovelace"] * 2
    assert all(isinstance(each, channels.Incoming) for each in desk.happened)


async def test_whoever_writes_in_private_meanwhile_is_met_once_and_their_message_is_left(
    team: Workspace,
) -> None:
    channel = slack.Channel(options(team))
    async with aclosing(channel.meet()) as newcomers:
        met = asyncio.ensure_future(anext(newcomers))
        await team.until(lambda: team.connected)
        await team.say(BOB, "in a channel", GENERAL)
        await team.say("U0BOT", "from a bot", team.direct("U0BOT"), bot_id="B1")
        left = [await team.say(ADA, text, team.direct(ADA)) for text in ("Hello", "Hello?")]
        assert await met == Newcomer(user_id=ADA, chat_id=team.direct(ADA), name="Ada Lovelace")
        met = asyncio.ensure_future(anext(newcomers))
        await team.hang_up()
        await team.until(lambda: not team.connected)
        await team.until(lambda: team.connected)
        await team.say(BOB, "Hi", team.direct(BOB))
        assert (await met).user_id == BOB
    assert [envelope and envelope.acknowledged.is_set() for envelope in left] == [False, False]
    await channel.close()


async def test_why_nobody_can_be_met_is_said(team: Workspace) -> None:
    wrong: list[dict[str, Any]] = [
        {"app_token": lambda: "xapp-another"},
        {"signing_secret": lambda: "x" * 32},
    ]
    for more in wrong:
        channel = slack.Channel(options(team, **more))
        with pytest.raises(errors.PlatformUnreachable):
            await anext(channel.meet())
        await channel.close()
