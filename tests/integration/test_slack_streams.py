"""Answers that grow as streams of the platform's own: where, how they end, what a crash leaves of them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from frontdesk.channels import slack
from frontdesk.contracts import channels
from frontdesk.model import deliveries
from frontdesk.model.deliveries import DeliveryKind
from frontdesk.model.sources import ChatType
from frontdesk.testing.channels import RecordingDesk
from frontdesk.testing.slack import TeamFault, Workspace
from tests.integration import teams
from tests.integration.teams import ADA, GENERAL, at_work, delivery, options

DIRECT = f"D{ADA}"


@pytest.fixture
async def team() -> AsyncIterator[Workspace]:
    async with teams.opened() as opened:
        yield opened


@pytest.fixture
async def channel(team: Workspace) -> AsyncIterator[slack.Channel]:
    channel = slack.Channel(options(team))
    yield channel
    await channel.close()


@pytest.fixture
def root(team: Workspace) -> str:
    return str(team.written(ADA, "root", DIRECT)["ts"])


def answer(root: str, text: str, message_id: str | None = None, **more: Any) -> deliveries.Delivery:
    """An answer in a thread of a direct chat."""
    to = {"chat_id": DIRECT, "chat_type": ChatType.DM, "thread_id": root}
    extra = {deliveries.DRAFT: message_id} if message_id else {}
    return delivery(text, to=to, extra=extra, **more)


def draft(root: str, text: str, message_id: str | None = None) -> deliveries.Delivery:
    return answer(root, text, message_id, kind=DeliveryKind.DRAFT)


async def begun(channel: slack.Channel, root: str, text: str = "One") -> str:
    sent = await channel.draft(draft(root, text))
    assert isinstance(sent, deliveries.Sent)
    assert sent.message_id is not None
    return sent.message_id


def methods(team: Workspace) -> list[str]:
    return [call.method for call in team.calls if call.method.startswith("chat.")]


def shown(team: Workspace) -> list[tuple[str, bool]]:
    """What people see, and whether it still seems to grow."""
    return [(post.shown, post.streams) for post in team.posts]


async def test_answer_in_a_thread_of_a_direct_chat_streams_and_ends_as_a_message(
    team: Workspace, channel: slack.Channel, root: str
) -> None:
    message_id = await begun(channel, root, "**One**")
    for text in ("**One**, <!channel>", "**One**, <!channel>, and two"):
        assert await channel.draft(draft(root, text, message_id)) == deliveries.Sent(message_id=message_id)
    assert shown(team) == [("**One**, <!channel>, and two", True)]
    assert await channel.send(answer(root, "**One**, two", message_id)) == deliveries.Sent(
        message_id=message_id
    )
    assert shown(team) == [("*One*, two", False)]
    append = "chat.appendStream"
    assert methods(team) == ["chat.startStream", append, append, "chat.stopStream", "chat.update"]


async def test_what_several_people_see_grows_by_changes(team: Workspace, channel: slack.Channel) -> None:
    root = team.written(ADA, "root", GENERAL)["ts"]
    for to in (
        {},
        {"thread_id": root, "chat_type": ChatType.THREAD},
        {"chat_id": DIRECT, "chat_type": ChatType.DM},
    ):
        first = await channel.draft(delivery("One", to=to, kind=DeliveryKind.DRAFT))
        assert isinstance(first, deliveries.Sent)
        await channel.send(delivery("One, two", to=to, extra={deliveries.DRAFT: first.message_id}))
    assert methods(team) == ["chat.postMessage", "chat.update"] * 3


async def test_text_that_is_more_than_an_addition_ends_the_stream(
    team: Workspace, channel: slack.Channel, root: str
) -> None:
    message_id = await begun(channel, root, "One\n\n⏳ `search`")
    for text in ("One, two", "One, two, three"):
        await channel.draft(draft(root, text, message_id))
        assert shown(team) == [(text, False)]
    assert methods(team) == ["chat.startStream", "chat.stopStream", "chat.update", "chat.update"]


@pytest.mark.parametrize("noted", [True, False])
async def test_stream_of_a_process_that_died_is_finished_by_the_next(
    team: Workspace, channel: slack.Channel, root: str, noted: bool
) -> None:
    message_id = await begun(channel, root)
    following = slack.Channel(options(team))
    await following.send(answer(root, "It was interrupted", kind=DeliveryKind.NOTICE))
    assert shown(team) == [("One", True), ("It was interrupted", False)]
    sent = await following.send(answer(root, "One, two", message_id if noted else None))
    assert sent == deliveries.Sent(message_id=message_id)
    await following.send(answer(root, "Three"))
    await following.close()
    assert shown(team) == [("One, two", False), ("It was interrupted", False), ("Three", False)]


async def test_answer_that_has_ended_is_never_taken_for_a_stream(
    team: Workspace, channel: slack.Channel, root: str
) -> None:
    await channel.send(answer(root, "One", await begun(channel, root)))
    await channel.send(answer(root, "Two"))
    following = slack.Channel(options(team))
    await following.send(answer(root, "Three"))
    await following.close()
    assert [text for text, _ in shown(team)] == ["One", "Two", "Three"]


@pytest.mark.parametrize("taken", [True, False])
async def test_addition_of_which_nobody_knows_is_not_made_twice(
    team: Workspace, channel: slack.Channel, root: str, taken: bool
) -> None:
    message_id = await begun(channel, root)
    team.faults = [TeamFault(method="chat.appendStream", cut=True, taken=taken)]
    assert isinstance(await channel.draft(draft(root, "One, two", message_id)), deliveries.Unknown)
    await channel.draft(draft(root, "One, two, three", message_id))
    assert shown(team) == [("One, two, three", False)]


async def test_start_of_which_nobody_knows_leaves_no_half_an_answer(
    team: Workspace, channel: slack.Channel, root: str
) -> None:
    team.faults = [TeamFault(method="chat.startStream", cut=True, taken=True)]
    assert isinstance(await channel.draft(draft(root, "One")), deliveries.Unknown)
    await channel.send(answer(root, "One, two"))
    assert shown(team) == [("One, two", False)]


async def test_where_streams_are_refused_messages_are_changed(
    team: Workspace, channel: slack.Channel, root: str
) -> None:
    team.faults = [TeamFault(method="chat.startStream", error="not_allowed", times=None)]
    for _ in range(2):
        await channel.draft(draft(root, "One, two", await begun(channel, root)))
    assert methods(team) == ["chat.startStream", *["chat.postMessage", "chat.update"] * 2]


async def test_stream_that_the_platform_has_ended_goes_on_as_a_message(
    team: Workspace, channel: slack.Channel, root: str
) -> None:
    message_id = await begun(channel, root)
    team.posts[0].streams = False
    await channel.draft(draft(root, "One, two", message_id))
    assert shown(team) == [("One, two", False)]


async def test_wait_that_the_platform_asks_for_is_told_and_the_stream_goes_on(
    team: Workspace, channel: slack.Channel, root: str
) -> None:
    message_id = await begun(channel, root)
    team.faults = [TeamFault(method="chat.appendStream", error="ratelimited", status=429, retry_after=7)]
    told = await channel.draft(draft(root, "One, two", message_id))
    assert told == deliveries.NotSent(why="ratelimited", retry_after_seconds=7.0)
    team.chats[DIRECT].waits_until = 0.0
    await channel.draft(draft(root, "One, two", message_id))
    assert shown(team) == [("One, two", True)]


async def test_button_of_the_platform_that_stops_an_answer_is_the_command(team: Workspace, root: str) -> None:
    desk = RecordingDesk()
    async with at_work(team, desk) as channel:
        await team.until(lambda: channel.trouble() is None and "" in desk.read_until)
        message_id = await begun(channel, root)
        team.posts[0].streams, team.posts[0].is_stopped = False, True
        await channel.draft(draft(root, "One, two", message_id))
    (stopped,) = desk.happened
    assert isinstance(stopped, channels.Incoming)
    source = stopped.source
    assert (stopped.text, source.user_id, source.chat_id, source.thread_id) == ("/stop", ADA, DIRECT, root)
