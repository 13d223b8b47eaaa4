"""A gateway on Slack: who is answered in a channel and where, answers that grow, cards, files both ways."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from frontdesk import GatewayConfig, SessionStore
from frontdesk.agents import scripted
from frontdesk.app.gateway import Gateway
from frontdesk.channels import slack
from frontdesk.files import FileShelf
from frontdesk.model.access import Access
from frontdesk.model.running import Running
from frontdesk.testing.slack import Workspace

ANN, EVE, GENERAL = "U0ANN", "U0EVE", "C0GENERAL"
ALLOWED = (ANN, f"chat:{GENERAL}")


@asynccontextmanager
async def opened(folder: Path, allowed: tuple[str, ...] = ALLOWED) -> AsyncIterator[Workspace]:
    config = GatewayConfig(access={"slack": Access(allow=allowed)})
    async with (
        Workspace.open() as team,
        await SessionStore.open(f"sqlite:///{folder}/state.db", config) as sessions,
    ):
        team.channel(GENERAL)
        team.names[EVE] = "Eve"
        options = slack.Options(
            bot_token=lambda: team.bot_token, app_token=lambda: team.app_token, api_url=team.url
        )
        agent = scripted.Driver(scripted.Options())
        running = Running(drain_seconds=1.0, tell_times=False, busy_notice=False)
        shelf = FileShelf(folder / "files")
        gateway = Gateway(sessions, agent, [slack.Channel(options)], running=running, shelf=shelf)
        async with gateway.started():
            await team.until(lambda: team.connected)
            yield team


async def test_mention_begins_a_thread_in_which_everything_is_answered(tmp_path: Path) -> None:
    async with opened(tmp_path) as team:
        await team.say(EVE, "just talking", GENERAL)
        await team.say(EVE, f"<@{team.user_id}> from a bot", GENERAL, bot_id="B0OTHER")
        asked = team.written(EVE, f"<@{team.user_id}> who are you?", GENERAL)
        await team.tell(asked, GENERAL)
        await team.tell(asked, GENERAL, "app_mention")
        await team.until(lambda: team.posts)
        await team.say(EVE, "and what else?", GENERAL, thread_ts=asked["ts"])
        await team.say(EVE, "elsewhere", GENERAL, thread_ts=team.written(EVE, "x", GENERAL)["ts"])
        await team.until(lambda: len(team.posts) > 1)
        await team.say(EVE, f"<@{team.user_id}> once more", GENERAL)
        await team.until(lambda: len(team.posts) > 2)
    root = asked["ts"]
    assert [post.shown for post in team.posts][:2] == [
        f"echo: [Eve] {text}" for text in ("who are you?", "and what else?")
    ]
    assert [post.thread_ts for post in team.posts][:2] == [root, root]
    assert team.posts[2].shown.endswith("once more")
    assert team.posts[2].thread_ts not in (None, root)


async def test_stranger_in_private_gets_no_answer_of_the_agent(tmp_path: Path) -> None:
    async with opened(tmp_path) as team:
        await team.say(EVE, "Hello", team.direct(EVE))
        await team.say(ANN, "Hello", team.direct(ANN))
        await team.until(lambda: any(post.shown == "echo: Hello" for post in team.posts))
    assert {post.channel for post in team.posts if post.shown.startswith("echo")} == {team.direct(ANN)}


async def test_people_of_the_own_workspace_are_let_in_without_those_of_a_shared_channel(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, (f"role:{Workspace.team_id}",)) as team:
        mention = f"<@{team.user_id}> hello"
        await team.say("U0STRANGER", mention, GENERAL, user_team="T0OTHER", source_team="T0OTHER")
        await team.say(EVE, mention, GENERAL)
        await team.until(lambda: team.posts)
    assert [post.shown for post in team.posts] == ["echo: [Eve] hello"]


async def test_answer_grows_in_one_message(tmp_path: Path) -> None:
    async with opened(tmp_path) as team:
        script = "!say This is the beginning of it; !sleep 8; !say and this its end."
        await team.say(ANN, script, team.direct(ANN))
        await team.until(lambda: any("its end" in post.shown for post in team.posts))
    (post,) = team.posts
    assert post.edits > 0


async def test_answer_in_a_thread_of_a_direct_chat_streams(tmp_path: Path) -> None:
    async with opened(tmp_path) as team:
        root = team.written(ANN, "root", team.direct(ANN))["ts"]
        script = "!say This is the beginning of it; !sleep 8; !say and this its end."
        await team.say(ANN, script, team.direct(ANN), thread_ts=root)
        await team.until(lambda: any("its end" in post.shown and not post.streams for post in team.posts))
    (post,) = team.posts
    assert post.thread_ts == root
    assert "chat.startStream" in [call.method for call in team.calls]


async def test_files_come_and_go(tmp_path: Path) -> None:
    async with opened(tmp_path) as team:
        paper = team.keep_file("note.txt", b"the note", "text/plain")
        await team.say(ANN, "!file out.txt Hello", team.direct(ANN), files=[paper], subtype="file_share")
        await team.until(lambda: any(post.files for post in team.posts))
    ((name, data),) = [(file.name, file.data.decode()) for post in team.posts for file in post.files]
    assert name == "out.txt"
    assert data.startswith('Hello\n[File "note.txt", text/plain, 8 bytes')


async def test_command_is_carried_out(tmp_path: Path) -> None:
    async with opened(tmp_path) as team:
        await team.command(ANN, "status", team.direct(ANN))
        await team.until(lambda: team.posts)
    assert "nothing is running" in team.posts[0].shown
