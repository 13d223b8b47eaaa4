"""What the gateway tells the agent about where it is: what is so, and nothing else."""

from pathlib import Path

from frontdesk import GatewayConfig, HomeChannel, Platform, PlatformConfig, config
from frontdesk.app.build import open_gateway
from frontdesk.app.terminal import Terminal
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
