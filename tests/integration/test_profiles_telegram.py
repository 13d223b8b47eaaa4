"""Two bots of one gateway, each with an agent of its own: nobody reaches the other one's."""

from pathlib import Path
from typing import Any

import pytest

from frontdesk import config
from frontdesk.app.build import open_gateway
from frontdesk.testing.telegram import BotApi, Member

FILE = """
[store]
url = "sqlite:///{folder}/state.db"

[agent]
driver = "scripted"
script = ["I am main."]

[channels.telegram]
token_env = "MAIN_TOKEN"
api_url = "{main}"
poll_seconds = 1
allow = [7]

[profiles.help.agent]
driver = "scripted"
script = ["I am help."]

[profiles.help.channels.telegram]
token_env = "HELP_TOKEN"
api_url = "{help}"
poll_seconds = 1
allow = [7, 8]

[[routes]]
platform = "telegram"
chat = -1000000000005
thread = 3
profile = "help"
"""
TOKEN = "110201544:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
ANN, BOB = Member(id=7, first_name="Ann"), Member(id=8, first_name="Bob")


async def test_two_bots_answer_each_with_its_own_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with BotApi.open() as main, BotApi.open(TOKEN) as helper:
        monkeypatch.setenv("MAIN_TOKEN", main.token)
        monkeypatch.setenv("HELP_TOKEN", helper.token)
        file = tmp_path / "frontdesk.toml"
        file.write_text(FILE.format(folder=tmp_path, main=main.url, help=helper.url))
        loaded = config.load(file, {"HOME": str(tmp_path)})
        team = main.group(5, is_forum=True)
        team.topics.add(3)
        async with open_gateway(loaded) as gateway, gateway.started():
            main.say(BOB, "hello")  # a stranger to this bot
            main.say(ANN, "hello")  # the same chat id at both: the person's own
            helper.say(ANN, "hello")
            helper.say(BOB, "hello")
            mention = [{"type": "mention", "offset": 0, "length": len("@desk_bot")}]
            topic: dict[str, Any] = {"message_thread_id": 3, "is_topic_message": True, "entities": mention}
            main.say(ANN, "@desk_bot hello", team, **topic)
            await main.until(lambda: len(main.posts) == 2)
            await helper.until(lambda: len(helper.posts) == 2)
            keys = {each.entry.session_key for each in await gateway.parts.store.sessions.list_current()}
            refused = dict(gateway.parts.refusals.counts)
        said = {(post.chat_id, post.text) for post in main.posts}
        told = {(post.chat_id, post.text) for post in helper.posts}
    assert said == {(7, "I am main."), (team.id, "I am help.")}
    assert told == {(7, "I am help."), (8, "I am help.")}
    assert refused == {"stranger": 1}
    assert keys == {
        "agent:main:telegram:dm:7",
        "agent:help:telegram@help:dm:7",
        "agent:help:telegram@help:dm:8",
        f"agent:help:telegram:group:{team.id}:3",
    }
