"""Deciding and choosing on Telegram: the gateway, its channel and the stand-in of the Bot API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from frontdesk import GatewayConfig, SessionStore
from frontdesk.agents import scripted
from frontdesk.app.gateway import Gateway
from frontdesk.channels.telegram.channel import Channel
from frontdesk.channels.telegram.options import Options
from frontdesk.model.access import Access
from frontdesk.model.running import Running
from frontdesk.testing.telegram import BotApi, Member, Post

ANN, BOSS, EVE = (
    Member(id=number, first_name=name) for number, name in ((7, "Ann"), (8, "Boss"), (9, "Eve"))
)
CONFIG = GatewayConfig(access={"telegram": Access(administrators=("8",), allow=("7",))})


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[tuple[BotApi, Gateway]]:
    async with (
        BotApi.open() as api,
        await SessionStore.open(f"sqlite:///{folder}/state.db", CONFIG) as sessions,
    ):
        channel = Channel(Options(token=lambda: api.token, api_url=api.url, poll_seconds=1.0))
        agent = scripted.Driver(scripted.Options())
        gateway = Gateway(sessions, agent, [channel], running=Running(drain_seconds=1.0, tell_times=False))
        async with gateway.started():
            yield api, gateway


async def post(api: BotApi, text: str) -> Post:
    """The message that holds the text, as soon as there is one."""
    await api.until(lambda: any(text in each.text for each in api.posts))
    return next(each for each in api.posts if text in each.text)


async def test_approver_decides_by_a_button_and_the_card_says_so(tmp_path: Path) -> None:
    async with opened(tmp_path) as (api, gateway):
        api.say(ANN, '!approve remove_file {"file": "*a*.txt"}')
        card = await post(api, "/approve")
        assert '"*a*.txt"' in card.text
        assert [each["text"] for each in card.buttons] == ["Approve", "Deny"]
        approve = card.buttons[0]["callback_data"]
        for person in (EVE, ANN):
            api.press(card, person, approve)
        await post(api, "may not")
        assert await gateway.parts.confirmations.pending_count() == 1
        api.press(card, BOSS, approve)
        await post(api, "approved: remove_file")
        outcome = await post(api, "was approved by")
        assert (outcome.message_id, outcome.buttons) == (card.message_id, [])
        api.press(card, ANN, approve)
        api.say(ANN, "go on")
        await post(api, "echo: go on")
        assert len([each for each in api.posts if "was approved by" in each.text]) == 1


async def test_option_that_is_pressed_becomes_a_message_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as (api, _):
        api.say(ANN, "!say I can **paint** it.; !choose Which colour? Red, Blue")
        offered = await post(api, "Which colour?")
        assert [each["text"] for each in offered.buttons] == ["Red", "Blue"]
        for each in offered.buttons * 2:
            api.press(offered, ANN, each["callback_data"])
        await post(api, "echo: Red")
        chosen = await post(api, "Chosen: Red")
        assert (chosen.message_id, chosen.buttons) == (offered.message_id, [])
        assert chosen.text.startswith("I can paint it.")
        await post(api, "does nothing any more")
        assert not [each for each in api.posts if "echo: Blue" in each.text]
