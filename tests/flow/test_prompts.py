"""What the gateway tells the agent about where it is: what is so, and nothing else."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from pathlib import Path

from frontdesk import GatewayConfig, HomeChannel, Platform, PlatformConfig, SessionResetPolicy, config
from frontdesk.app.build import open_gateway
from frontdesk.app.terminal import Terminal
from frontdesk.contracts.agents import Abilities, Line
from frontdesk.flow import prompts
from frontdesk.model import events
from frontdesk.model.policies import ResetMode
from frontdesk.model.running import Running
from frontdesk.stores import loading
from tests.flow.harness import Notebook, open_house

HOME = HomeChannel(platform=Platform.TELEGRAM, chat_id="42", name="Phone")
CONFIGURED = GatewayConfig(platforms={"telegram": PlatformConfig(enabled=True, home_channel=HOME)})
FILE = """
[store]
url = "{url}"
[agent]
driver = "scripted"
[platforms.telegram]
enabled = true
[channels.webhook.shop]
secret_env = "SHOP_SECRET"
callback_url = "http://127.0.0.1:9/"
[channels.api_server.tokens_env]
ann = "ANN_TOKEN"
"""


async def test_platform_without_a_channel_is_not_called_connected(store_url: str) -> None:
    async with open_house(store_url, config=CONFIGURED) as house:
        told = await house.ask("!show system")
    assert "**Connected platforms:** matrix\n" in f"{told}\n"
    assert "telegram" not in told


async def test_home_channel_of_a_connected_platform_is_named(store_url: str) -> None:
    telegram = Notebook("telegram")
    async with open_house(store_url, config=CONFIGURED, notebook=telegram) as house:
        told = await house.ask("!show system")
    assert '- telegram: "Phone" (chat id "42")' in told


async def test_delivery_that_the_gateway_cannot_do_is_not_offered(store_url: str) -> None:
    async with open_house(store_url) as house:
        told = await house.ask("!show system")
    assert "Delivery options" not in told
    assert "cron" not in told


async def test_every_configured_channel_is_called_connected(store_url: str, tmp_path: Path) -> None:
    file = tmp_path / "frontdesk.toml"
    file.write_text(FILE.format(url=store_url))
    loaded = config.load(file, {"HOME": str(tmp_path)})
    async with open_gateway(loaded) as gateway, gateway.started():
        *_, end = [each async for each in Terminal(gateway).say("!show system", follow=True)]
    told = end["deliveries"][-1]["text"]
    assert "**Connected platforms:** local (the terminal), webhook, api_server\n" in f"{told}\n"


AGREED = {"role": "assistant", "content": "yes"}


class Reader:
    """An agent that keeps what it is given."""

    abilities = Abilities()

    def __init__(self) -> None:
        self.given: list[events.Assignment] = []

    async def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event]:
        self.given.append(turn)
        yield events.Text(text="read")
        yield events.Done()

    async def release(self, session_id: str) -> None:
        pass

    async def close(self) -> None:
        pass


async def test_agent_is_told_when_messages_were_written_and_the_transcript_is_not(store_url: str) -> None:
    reader, zone = Reader(), SessionResetPolicy(timezone="Asia/Tokyo", mode=ResetMode.NONE)
    times = [datetime(2026, 1, 4, 23, 30, tzinfo=UTC), datetime(2026, 1, 5, 12, tzinfo=UTC)]
    config = GatewayConfig(default_reset_policy=zone)
    async with open_house(store_url, config=config, agent=reader) as house:
        for at in times:
            await house.ask("hello", sent_at=at)
        rows = await house.rows(4)
    first, second = reader.given
    assert first.input["content"] == "[Mon 2026-01-05 08:30 +09:00] hello"
    assert second.messages[0] == first.input
    assert second.input["content"] == "[Mon 2026-01-05 21:00 +09:00, 12h 30m later] hello"
    assert second.messages[-1] == second.input
    assert first.system == second.system
    assert "**Times:**" in first.system
    assert [row["content"] for row in rows] == ["hello", "read"] * 2


async def test_agent_is_given_the_newest_of_a_long_conversation_and_told_that_there_is_more(
    store_url: str,
) -> None:
    reader = Reader()
    lasting = GatewayConfig(default_reset_policy=SessionResetPolicy(mode=ResetMode.NONE, max_messages=0))
    async with open_house(store_url, config=lasting, agent=reader) as house:
        entry = await house.sessions.get_or_create_session(house.source())
        said = [
            row for n in range(loading.GIVEN_ROWS) for row in ({"role": "user", "content": f"{n}"}, AGREED)
        ]
        await house.sessions.record_turn(entry.session_id, said)
        await house.ask("and now?")
        await house.ask("and then?")
    first, second = reader.given
    assert first.messages[0] == {"role": "system", "content": prompts.LEFT_OUT}
    assert [row["role"] for row in first.messages[1:3]] == ["user", "assistant"]
    assert loading.GIVEN_ROWS // 2 <= len(first.messages) <= loading.GIVEN_ROWS + 1
    assert first.messages[-1] == first.input
    assert second.messages[: len(first.messages)] == first.messages
    assert [row["content"] for row in second.messages[len(first.messages) :]] == ["read", "and then?"]


async def test_agent_is_told_no_times_where_nobody_says_them_or_when_they_are_off(store_url: str) -> None:
    reader = Reader()
    async with open_house(store_url, agent=reader) as house:
        await house.ask("hello")
    async with open_house(store_url, agent=reader, running=Running(tell_times=False)) as house:
        await house.ask("hello", sent_at=datetime(2026, 1, 4, tzinfo=UTC))
    for given in reader.given:
        assert given.input["content"] == "hello"
        assert "**Times:**" not in given.system
