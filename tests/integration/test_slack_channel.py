"""The Slack channel against the stand-in: what is acknowledged and read again, what is known of a send."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from frontdesk import errors
from frontdesk.channels import slack
from frontdesk.channels.slack import checkup, connect
from frontdesk.contracts import channels
from frontdesk.model import deliveries
from frontdesk.model.chats import Attachment, Button, ChatSign, ReplyHandle, StoredFile
from frontdesk.model.sources import ChatType
from frontdesk.testing.channels import RecordingDesk
from frontdesk.testing.slack import TeamFault, TeamPost, Workspace
from tests import loopback
from tests.integration import teams
from tests.integration.teams import ADA, GENERAL, RANDOM, at_work, delivery, options, verdicts


@pytest.fixture
async def team() -> AsyncIterator[Workspace]:
    async with teams.opened() as opened:
        yield opened


@pytest.fixture
async def channel(team: Workspace) -> AsyncIterator[slack.Channel]:
    channel = slack.Channel(options(team))
    yield channel
    await channel.close()


async def test_revoked_token_and_socket_mode_that_is_off_are_told(team: Workspace) -> None:
    channel = slack.Channel(options(team, bot_token=lambda: "xoxb-another-token"))
    async with loopback.receiving(channel, RecordingDesk()):
        await team.until(channel.trouble)
        assert "refuses the token" in (channel.trouble() or "")
    team.socket_mode = False
    channel = slack.Channel(options(team))
    async with loopback.receiving(channel, RecordingDesk()):
        await team.until(channel.trouble)
        assert "forbidden_team" in (channel.trouble() or "")


async def test_socket_mode_that_is_turned_off_while_we_listen_is_told_until_it_is_on(team: Workspace) -> None:
    async with at_work(team, RecordingDesk()) as channel:
        await team.until(lambda: channel.trouble() is None)
        team.socket_mode = False
        await team.disconnect("link_disabled")
        await team.until(channel.trouble)
        assert "Socket Mode" in (channel.trouble() or "") or "forbidden_team" in (channel.trouble() or "")
        team.socket_mode = True
        await team.until(lambda: channel.trouble() is None)


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (
            TeamFault(status=429, retry_after=7),
            deliveries.NotSent(why="ratelimited", retry_after_seconds=7.0),
        ),
        (TeamFault(error="is_archived"), deliveries.NotSent(why="is_archived", hopeless=True)),
        (TeamFault(error="internal_error"), deliveries.Unknown(why="the platform answered internal_error")),
        (TeamFault(status=503), deliveries.Unknown(why="the platform answered status 503")),
        (TeamFault(body=b"[1]"), deliveries.Unknown(why="the answer cannot be read")),
        (TeamFault(body=b"{"), deliveries.Unknown),
        (TeamFault(cut=True), deliveries.Unknown(why="ServerDisconnectedError")),
    ],
)
async def test_outcome_says_what_is_known(
    team: Workspace, channel: slack.Channel, fault: TeamFault, outcome: Any
) -> None:
    team.faults = [fault]
    told = await channel.send(delivery())
    assert told == outcome or (isinstance(outcome, type) and isinstance(told, outcome))
    assert len(team.calls) == 1  # nothing is tried twice behind our back


async def test_send_that_was_cut_off_is_found_by_its_id(team: Workspace, channel: slack.Channel) -> None:
    root = team.written(ADA, "root", GENERAL)["ts"]
    for place in ({}, {"thread_id": root, "chat_type": ChatType.THREAD}):
        lost, kept = delivery(id=f"lost-{place}", to=place), delivery(id=f"kept-{place}", to=place)
        team.faults = [TeamFault(cut=True)]
        assert isinstance(await channel.send(lost), deliveries.Unknown)
        team.faults = [TeamFault(cut=True, taken=True)]
        assert isinstance(await channel.send(kept), deliveries.Unknown)
        assert isinstance(await channel.find(lost), deliveries.NotSent)
        assert await channel.find(kept) == deliveries.Sent(message_id=team.posts[-1].ts)
    team.faults = [TeamFault(status=500)]
    assert isinstance(await channel.find(delivery()), deliveries.Unknown)


async def test_nobody_is_called_by_an_answer_and_plain_text_is_shown_as_it_is(
    team: Workspace, channel: slack.Channel
) -> None:
    text = "<!channel> *not bold* & <@U0BOB> :tada: `x`"
    await channel.send(delivery(text, is_markdown=False))
    await channel.send(delivery("**bold** <!channel> [a](https://a.example)"))
    plain, marked = team.posts
    assert plain.shown == text
    assert plain.text.startswith("&lt;!channel&gt;")
    assert marked.text == "*bold* &lt;!channel&gt; <https://a.example|a>"
    assert not marked.blocks


async def test_longest_texts_of_the_worst_kind_are_taken(team: Workspace, channel: slack.Channel) -> None:
    for number, text in enumerate(("&" * 3500, "<" * 3500, "*a* " * 875)):
        buttons = (Button(label="L" * 200, token="t" * 32),) if number else ()
        sent = await channel.send(delivery(text, buttons=buttons))
        assert isinstance(sent, deliveries.Sent), sent
        again = delivery(text, extra={deliveries.DRAFT: sent.message_id})
        assert isinstance(await channel.send(again), deliveries.Sent)
    assert [len(post.shown) >= 2600 for post in team.posts] == [True] * 3
    assert {post.buttons for post in team.posts} == {()}


async def test_answer_stays_in_its_thread_and_goes_to_the_channel_when_that_is_gone(
    team: Workspace, channel: slack.Channel
) -> None:
    root = team.written(ADA, "root", GENERAL)["ts"]
    await channel.send(delivery("in it", to={"thread_id": root}))
    await channel.send(delivery("gone", to={"thread_id": "1.000001"}))
    assert [(post.shown, post.thread_ts) for post in team.posts] == [("in it", root), ("gone", None)]
    lost = await channel.send(delivery(extra={deliveries.DRAFT: "1.000001"}))
    assert isinstance(lost, deliveries.NotSent)
    assert lost.gone


async def test_files_are_brought_before_anything_is_said(
    team: Workspace, channel: slack.Channel, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"bytes")
    file = StoredFile(digest="x", name="a.txt", kind="text/plain", size=5, path=str(path))
    assert isinstance(await channel.send(delivery("See", files=(file, file))), deliveries.Sent)
    assert [(post.shown, [each.data for each in post.files]) for post in team.posts] == [
        ("See", []),
        ("", [b"bytes", b"bytes"]),
    ]
    team.faults = [TeamFault(method="files.getUploadURLExternal", cut=True)]
    assert isinstance(await channel.send(delivery("No", files=(file,))), deliveries.NotSent)
    gone = StoredFile(digest="x", name="b", kind="text/plain", size=5, path=str(tmp_path / "none"))
    assert isinstance(await channel.send(delivery("No", files=(gone,))), deliveries.NotSent)
    team.faults = [TeamFault(method="files.completeUploadExternal", cut=True)]
    unsure = await channel.send(delivery("Half", files=(file,)))
    assert isinstance(unsure, deliveries.Unknown)
    assert unsure.hopeless
    assert [post.shown for post in team.posts] == ["See", "", "Half"]


async def test_file_is_fetched_from_the_platforms_hosts_alone(
    team: Workspace, channel: slack.Channel
) -> None:
    told = team.keep_file("a.txt", b"bytes", "text/plain")
    attachment = Attachment(id=told["id"], kind="text/plain")

    async def fetched() -> bytes:
        return b"".join([piece async for piece in channel.fetch(attachment, 5)])

    assert await fetched() == b"bytes"
    team.scopes = team.scopes.replace("files:read", "")
    with pytest.raises(errors.FileUnavailable, match="files:read"):
        await fetched()
    body = b'{"ok": true, "file": {"url_private": "http://evil.example/%s"}}'
    team.faults = [TeamFault(method="files.info", body=body)]
    with pytest.raises(errors.FileUnavailable, match=r"not its own, evil\.example"):
        await fetched()


async def test_signs_are_shown_once_and_typing_in_threads_alone(
    team: Workspace, channel: slack.Channel
) -> None:
    ts = team.written(ADA, "x", GENERAL)["ts"]
    plain = delivery(to={"message_id": ts}).to
    for _ in range(2):
        assert await channel.sign(plain, ChatSign.SEEN) == deliveries.Sent()
    assert team.signs == [(GENERAL, ts, "eyes")]
    assert channel.capabilities_in(plain).typing_seconds is None
    thread = delivery(to={"message_id": ts, "thread_id": ts}).to
    assert channel.capabilities_in(thread).typing_seconds
    assert await channel.sign(thread, ChatSign.TYPING) == deliveries.Sent()
    assert [place[:2] for place in team.statuses] == [(GENERAL, ts)]


async def test_command_is_answered_where_we_are_not_for_whoever_gave_it(team: Workspace) -> None:
    desk = RecordingDesk()
    team.chats[RANDOM].is_member = False
    async with at_work(team, desk) as channel:
        given = await team.command(ADA, "status", RANDOM)
        assert given is not None
        await given.acknowledged.wait()
        (incoming,) = desk.stored
        assert (incoming.text, incoming.source.chat_id) == ("/status", RANDOM)
        (answer,) = await desk.answers("turn-1")
        assert await channel.send(answer) == deliveries.Sent()
        old = ReplyHandle(value="http://127.0.0.1:1/", expires_at=datetime.now(UTC) - timedelta(minutes=1))
        late = await channel.send(delivery(to={"chat_id": RANDOM}, handle=old))
        evil = ReplyHandle(value="http://evil.example/")
        foreign = await channel.send(delivery(to={"chat_id": RANDOM}, handle=evil))
    assert isinstance(late, deliveries.NotSent)
    assert isinstance(foreign, deliveries.NotSent)
    assert [each["response_type"] for each in team.answers] == ["ephemeral"]
    assert not team.posts


async def test_press_does_not_wait_behind_messages(team: Workspace) -> None:
    class Slow(RecordingDesk):
        def __init__(self) -> None:
            super().__init__()
            self.go_on = asyncio.Event()

        async def accept(self, happening: channels.Happening, **more: Any) -> channels.Receipt:
            if isinstance(happening, channels.Incoming):
                await self.go_on.wait()
            return await super().accept(happening, **more)

    desk = Slow()
    async with at_work(team, desk) as channel:
        sent = await channel.send(delivery(buttons=(Button(label="Yes", token="tok"),)))
        assert isinstance(sent, deliveries.Sent)
        message = await team.say(ADA, "x", GENERAL)
        pressed = await team.press(ADA, team.posts[0], "tok")
        assert pressed is not None
        await pressed.acknowledged.wait()
        assert message is not None
        assert not message.acknowledged.is_set()
        desk.go_on.set()
        await message.acknowledged.wait()


async def test_call_that_the_platform_did_not_sign_just_now_is_refused(team: Workspace) -> None:
    desk = RecordingDesk()
    channel = slack.Channel(options(team, signing_secret=lambda: team.signing_secret))
    async with loopback.receiving(channel, desk) as url, httpx.AsyncClient() as client:
        await team.until(lambda: "" in desk.read_until)
        body = '{"type": "url_verification", "challenge": "c0ffee"}'

        async def post(body: str, headers: dict[str, str]) -> httpx.Response:
            return await client.post(f"{url}/channels/slack", content=body, headers=headers)

        told = await post(body, team.signature(body))
        assert (told.status_code, told.text) == (200, "c0ffee")
        signed = team.signature(body)
        old, early = (team.signature(body, time.time() + seconds) for seconds in (-301, 301))
        forged = {**signed, "x-slack-signature": "v0=" + "0" * 64}
        other = team.signature(body + " ")
        for headers in ({}, old, early, forged, other, {**signed, "x-slack-request-timestamp": "nan"}):
            assert (await post(body, headers)).status_code == 401
        for strange in ("", "[]", "{", '{"type": "event_callback"}', "[" * 100_000):
            assert (await post(strange, team.signature(strange))).status_code == 200
    assert not desk.happened


async def test_call_that_comes_again_is_known_again_whoever_repeats_it(team: Workspace) -> None:
    desk = RecordingDesk()
    channel = slack.Channel(options(team, signing_secret=lambda: team.signing_secret))
    async with loopback.receiving(channel, desk) as url, httpx.AsyncClient() as client:
        await team.until(lambda: "" in desk.read_until)
        said = {**team.written(ADA, "Hello", GENERAL), "channel": GENERAL, "channel_type": "channel"}
        body = json.dumps({"type": "event_callback", "team_id": team.team_id, "event": said})
        trigger = {"command": "/frontdesk", "text": "status", "user_id": ADA, "channel_id": GENERAL}
        form = urlencode({**trigger, "team_id": team.team_id, "trigger_id": "1.2.x"})
        forms = {"content-type": "application/x-www-form-urlencoded"}
        retried = {"x-slack-retry-num": "1", "x-slack-retry-reason": "http_timeout"}
        for given, more in ((body, {}), (body, {}), (body, retried), (form, forms), (form, forms)):
            told = await client.post(
                f"{url}/channels/slack", content=given, headers={**team.signature(given), **more}
            )
            assert told.status_code == 200
    assert [each.text for each in desk.stored] == ["Hello", "/status"]


async def test_what_happens_in_another_workspace_is_passed_over(team: Workspace) -> None:
    desk = RecordingDesk()
    async with at_work(team, desk):
        await team.until(lambda: "" in desk.read_until)
        team.team_id = "T0OTHER"
        elsewhere = [await team.say(ADA, "there", GENERAL), await team.command(ADA, "status", GENERAL)]
        for envelope in elsewhere:
            assert envelope is not None
            await envelope.acknowledged.wait()
        del team.team_id
        await team.say(ADA, "here", GENERAL)
        await team.until(lambda: desk.stored)
    assert [each.text for each in desk.stored] == ["here"]


@pytest.mark.parametrize(
    "more", [{}, {"app_token": str, "signing_secret": str}, {"app_token": str, "api_url": "http://x"}]
)
def test_options_that_let_nothing_in_or_tokens_out_are_refused(more: dict[str, Any]) -> None:
    with pytest.raises((errors.MissingSetting, errors.InvalidSetting)):
        slack.Options(bot_token=str, **more)


async def test_what_is_wrong_with_an_app_is_said(team: Workspace) -> None:
    who = ("ok", "@frontdesk in Team")
    assert await verdicts(team, GENERAL) == [who]
    assert [each for each, _ in await verdicts(team, "C0NONE")] == ["ok", "failed"]
    team.chats[RANDOM].is_member = False
    assert "/invite" in (await verdicts(team, RANDOM))[1][1]
    team.scopes = team.scopes.replace("reactions:read,", "")
    assert "the scopes reactions:read:" in (await verdicts(team))[1][1]
    ((verdict, why),) = await verdicts(team, bot_token=lambda: "xoxb-another")
    assert (verdict, "refuses the token" in why) == ("failed", True)
    team.faults = [TeamFault(method="conversations.history", error="missing_scope")]
    assert "cannot be read afterwards: missing_scope" in (await verdicts(team))[2][1]
    assert "Socket Mode does not work" in (await verdicts(team, app_token=lambda: "xapp-another"))[2][1]
    await team.refuse()
    ((verdict, why),) = await verdicts(team)
    assert (verdict, why.startswith("Slack cannot be reached")) == ("failed", True)


async def test_tokens_that_do_not_belong_together_and_others_who_listen_are_found(team: Workspace) -> None:
    team.app_id = "A2"
    assert (await verdicts(team))[1:] == [("failed", checkup.TWO_APPS.format(bot="A2", socket="A1"))]
    del team.app_id
    async with at_work(team, RecordingDesk()):
        assert (await verdicts(team))[1:] == [("warning", checkup.OTHERS.format(others=1))]
    body = b'{"ok": true, "user": "x", "team": "Org", "team_id": "E1", "is_enterprise_install": true}'
    team.faults = [TeamFault(method="auth.test", body=body)]
    assert ("failed", checkup.WHOLE_ORGANIZATION) in await verdicts(team)


def test_manifest_is_the_one_on_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "slack.md").read_text(encoding="utf-8")
    assert f"```yaml\n{connect.MANIFEST}\n```" in page
    assert connect.MANIFEST in connect.SETUP.steps
    assert checkup.SCOPES | {"commands"} == set(Workspace().scopes.split(","))


def test_stand_in_shows_what_people_see() -> None:
    assert TeamPost(channel="C", ts="1.0", text="a &lt;b&gt;").shown == "a <b>"
