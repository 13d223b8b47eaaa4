"""The terminal as a channel."""

from datetime import UTC, datetime

import pytest

from frontdesk import SessionSource, errors
from frontdesk.app.terminal import CLI, source_of
from frontdesk.channels import local
from frontdesk.model import deliveries, keys, lanes


def test_answers_are_collected_and_nothing_is_public() -> None:
    channel = local.Channel(local.Options())
    capabilities = channel.capabilities
    assert (channel.name, channel.account, list(channel.routes)) == ("local", None, [])
    assert capabilities.collects
    assert capabilities.authenticates
    assert capabilities.notices
    assert capabilities.reliable_sender_ids


def test_there_is_one_terminal() -> None:
    with pytest.raises(errors.InvalidSetting):
        local.Channel(local.Options(), "second")


async def test_send_says_that_nothing_was_sent() -> None:
    source = SessionSource.local_cli()
    delivery = deliveries.Delivery(
        id="d_1",
        lane=lanes.chat_lane(source, collects=True),
        to=source,
        text="hello",
        created_at=datetime(2026, 1, 5, tzinfo=UTC),
    )
    channel = local.Channel(local.Options())
    assert isinstance(await channel.send(delivery), deliveries.NotSent)
    await channel.close()
    await channel.close()


def test_every_name_is_a_conversation_of_its_own() -> None:
    sources = [source_of(name) for name in (CLI, "work", "Work", "a:b", "ü")]
    assert sources[0] == SessionSource.local_cli()
    assert len({keys.build_session_key(source) for source in sources}) == len(sources)
    assert len({lanes.chat_lane(source, collects=True) for source in sources}) == len(sources)


@pytest.mark.parametrize("name", ["", " ", "a\nb", "\x1b[2J", "x" * 65])
def test_name_that_nobody_can_read_is_refused(name: str) -> None:
    with pytest.raises(errors.InvalidInput):
        source_of(name)
