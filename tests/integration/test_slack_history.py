"""What was said while the gateway was away: what is read, in which order, and what is told of the rest."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from frontdesk import errors
from frontdesk.contracts import channels
from frontdesk.testing.channels import RecordingDesk
from frontdesk.testing.slack import TeamCall, TeamFault, Workspace
from tests.integration import teams
from tests.integration.teams import ADA, BOB, GENERAL, RANDOM, at_work, texts, verdicts


@pytest.fixture
async def team() -> AsyncIterator[Workspace]:
    async with teams.opened() as opened:
        yield opened


async def test_what_was_said_before_we_were_ever_there_is_not_answered(team: Workspace) -> None:
    team.written(ADA, "long ago", GENERAL)
    desk = RecordingDesk()
    async with at_work(team, desk):
        await team.say(ADA, "now", GENERAL)
        await team.until(lambda: desk.stored)
    assert texts(desk) == ["now"]


async def test_what_was_said_while_we_were_away_is_read_in_its_order(team: Workspace) -> None:
    desk = RecordingDesk()
    async with at_work(team, desk):
        for chat in (GENERAL, RANDOM):
            await team.say(ADA, f"first in {chat}", chat)
        await team.until(lambda: len(desk.stored) == 2)
    root = next(iter(team.messages[GENERAL]))
    for number in range(250):
        team.written(ADA, f"text {number}", GENERAL)
    team.written(ADA, "in a thread", GENERAL, thread_ts=root)
    team.written(ADA, "a first word in private", team.direct(ADA))
    async with at_work(team, desk):
        await team.say(ADA, "back", GENERAL)
        await team.until(lambda: len(desk.stored) == 255)
    general = [incoming.text for incoming in desk.stored if incoming.source.chat_id == GENERAL]
    assert general == [f"first in {GENERAL}", *(f"text {n}" for n in range(250)), "in a thread", "back"]
    assert {"a first word in private", f"first in {RANDOM}"} < set(texts(desk))
    assert desk.read_until[GENERAL] == max(team.messages[GENERAL])


async def test_connection_that_breaks_is_made_again_and_nothing_is_missed(team: Workspace) -> None:
    desk = RecordingDesk()
    async with at_work(team, desk):
        await team.say(ADA, "one", GENERAL)
        await team.until(lambda: desk.stored)
        await team.hang_up()
        team.written(ADA, "two", GENERAL)
        await team.until(lambda: len(desk.stored) == 2)
        await team.until(lambda: team.connected)
        await team.disconnect()
        team.written(ADA, "three", GENERAL)
        await team.until(lambda: len(desk.stored) == 3)
    assert texts(desk) == ["one", "two", "three"]


class Refusing(RecordingDesk):
    """Refuses a text for as long as it is told to."""

    refused = ""

    async def accept(self, happening: channels.Happening, **more: Any) -> channels.Receipt:
        if isinstance(happening, channels.Incoming) and self.refused and happening.text == self.refused:
            raise errors.TooManyWaiting(waiting=9)
        return await super().accept(happening, **more)


async def test_chat_with_too_many_waiting_holds_up_itself_alone_and_is_read_again(team: Workspace) -> None:
    desk = Refusing()
    async with at_work(team, desk):
        await team.say(ADA, "one", GENERAL)
        await team.until(lambda: desk.stored)
        desk.refused = "two"
        held = [await team.say(ADA, text, GENERAL) for text in ("two", "three")]
        await team.say(ADA, "elsewhere", RANDOM)
        await team.until(lambda: len(desk.stored) == 2)
        assert [each and each.acknowledged.is_set() for each in held] == [False, False]
        assert texts(desk) == ["one", "elsewhere"]
        desk.refused = ""
        await team.until(lambda: len(desk.stored) == 4)
    assert texts(desk) == ["one", "elsewhere", "two", "three"]


async def test_nothing_is_lost_where_the_history_may_not_be_read(team: Workspace) -> None:
    desk = RecordingDesk()
    async with at_work(team, desk):
        await team.say(ADA, "one", GENERAL)
        await team.until(lambda: desk.stored)
    team.faults = [TeamFault(method="conversations.history", error="missing_scope", times=None)]
    async with at_work(team, desk):
        await team.say(ADA, "two", GENERAL)
        await team.until(lambda: len(desk.stored) == 2)


@pytest.mark.parametrize("listed", [True, False])
async def test_first_word_that_is_said_while_we_connect_is_read_before_the_second(
    team: Workspace, listed: bool
) -> None:
    desk = RecordingDesk()
    async with at_work(team, desk):
        await team.until(lambda: "" in desk.read_until)

    def speak(call: TeamCall) -> TeamFault | None:
        if call.method == "apps.connections.open":
            team.written(BOB, "first", team.direct(BOB))
        return TeamFault(status=500) if call.method == "users.conversations" and not listed else None

    team.weather = speak
    async with at_work(team, desk):
        if not listed:
            await team.say(BOB, "second", team.direct(BOB))
        await team.until(lambda: len(desk.stored) == 2 - listed)
    assert texts(desk) == ["first", "second"][: 2 - listed]


async def test_what_was_missed_is_found_though_our_clock_is_an_hour_ahead(team: Workspace) -> None:
    desk = RecordingDesk()
    team.skew_seconds = -3600.0
    async with at_work(team, desk):
        await team.until(lambda: "" in desk.read_until)
    team.written(BOB, "first", team.direct(BOB))
    async with at_work(team, desk):
        await team.until(lambda: desk.stored)
    assert "ahead of" in (await verdicts(team))[1][1]


async def test_history_that_cannot_be_read_at_first_is_read_late_and_that_is_told(
    team: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    desk = RecordingDesk()
    async with at_work(team, desk):
        await team.say(ADA, "one", GENERAL)
        await team.until(lambda: desk.stored)
    team.written(ADA, "two", GENERAL)
    team.faults = [TeamFault(method="conversations.history", status=500, times=None)]
    async with at_work(team, desk):
        await team.say(ADA, "three", GENERAL)
        await team.until(lambda: len(desk.stored) == 2)
        team.faults = []
        await team.until(lambda: len(desk.stored) == 3)
        await team.until(lambda: desk.read_until[GENERAL] == max(team.messages[GENERAL]))
    assert texts(desk) == ["one", "three", "two"]
    assert "history_not_read" in caplog.text
    assert "history_late" in caplog.text
