"""A gateway on Telegram: who is answered in a group and where, answers that grow, files both ways."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from frontdesk import GatewayConfig, SessionStore
from frontdesk.agents import scripted
from frontdesk.app.gateway import Gateway
from frontdesk.channels import telegram
from frontdesk.files import FileShelf
from frontdesk.model.access import Access
from frontdesk.model.running import Running
from frontdesk.testing.telegram import BotApi, Member

ANN, EVE = Member(id=7, first_name="Ann"), Member(id=9, first_name="Eve")
ROBOT = Member(id=10, first_name="Robot", is_bot=True)
CONFIG = GatewayConfig(access={"telegram": Access(allow=("7", "chat:-1000000000001"))})


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[BotApi]:
    async with (
        BotApi.open() as api,
        await SessionStore.open(f"sqlite:///{folder}/state.db", CONFIG) as sessions,
    ):
        options = telegram.Options(token=lambda: api.token, api_url=api.url, poll_seconds=1.0)
        agent = scripted.Driver(scripted.Options())
        running = Running(drain_seconds=1.0, tell_times=False, busy_notice=False)
        shelf = FileShelf(folder / "files")
        gateway = Gateway(sessions, agent, [telegram.Channel(options)], running=running, shelf=shelf)
        async with gateway.started():
            yield api


def marked(kind: str, words: str) -> list[dict[str, Any]]:
    """What is said of words that a message begins with."""
    return [{"type": kind, "offset": 0, "length": len(words)}]


async def test_group_is_answered_where_it_asks_and_only_then(tmp_path: Path) -> None:
    async with opened(tmp_path) as api:
        forum = api.group(1, is_forum=True)
        forum.topics.add(5)
        topic = {"message_thread_id": 5, "is_topic_message": True}
        api.say(EVE, "just talking", forum, **topic)
        ours = marked("mention", "@desk_bot")
        api.say(ROBOT, "@desk_bot from a bot", forum, entities=ours, **topic)
        api.say(EVE, "/stop@other_bot", forum, entities=marked("bot_command", "/stop@other_bot"))
        asked = api.say(EVE, "@desk_bot who are you?", forum, entities=ours, **topic)
        await api.until(lambda: api.posts)
        api.say(EVE, "@desk_bot and here?", forum, entities=ours)
        await api.until(lambda: len(api.posts) > 1)
    told = [(post.text, post.thread_id) for post in api.posts]
    assert told == [("echo: [Eve] @desk_bot who are you?", 5), ("echo: @desk_bot and here?", None)]
    assert api.posts[0].reply_to == asked["message_id"]


async def test_stranger_in_private_gets_no_answer_of_the_agent(tmp_path: Path) -> None:
    async with opened(tmp_path) as api:
        api.say(EVE, "Hello")
        api.say(ANN, "Hello")
        await api.until(lambda: any(post.text == "echo: Hello" for post in api.posts))
    assert {post.chat_id for post in api.posts if post.text.startswith("echo")} == {7}


async def test_answer_grows_in_one_message(tmp_path: Path) -> None:
    async with opened(tmp_path) as api:
        api.say(ANN, "!say This is the beginning of it; !sleep 8; !say and this its end.")
        await api.until(lambda: any("its end" in post.text for post in api.posts))
    (post,) = api.posts
    assert post.edits > 0


async def test_files_come_and_go(tmp_path: Path) -> None:
    async with opened(tmp_path) as api:
        paper = api.keep_file("note.txt", b"the note", "text/plain")
        api.say(ANN, None, document=paper, caption="!file out.txt Hello")
        await api.until(lambda: any(post.files for post in api.posts))
        assert [call.method for call in api.calls].count("getFile") == 1
    ((name, data),) = [(file.name, file.data.decode()) for post in api.posts for file in post.files]
    assert name == "out.txt"
    assert data.startswith('Hello\n[File "note.txt", text/plain, 8 bytes')


async def test_edit_of_what_still_waits_replaces_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as api:
        api.say(ANN, "!sleep 4")
        waiting = api.say(ANN, "the frist")
        api.edit(waiting, "the first")
        await api.until(lambda: any(post.text == "echo: the first" for post in api.posts))
    assert not any("frist" in post.text for post in api.posts)
