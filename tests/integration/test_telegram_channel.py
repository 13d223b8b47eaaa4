"""The Telegram channel against the stand-in: what is confirmed, what is known of a send, where it goes."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk import errors
from frontdesk.channels import telegram
from frontdesk.contracts import channels
from frontdesk.model import deliveries
from frontdesk.model.chats import ChatSign, StoredFile
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import ChatType, SessionSource
from frontdesk.testing.channels import RecordingDesk
from frontdesk.testing.telegram import ApiFault, BotApi, Member
from tests import loopback
from tests.patience import PATIENCE_SECONDS

ADA, BOB = Member(id=7), Member(id=8, first_name="Bob")
SECRET = "a-secret-of-the-webhook"
PICTURE = b"\x89PNG\r\n\x1a\n" + b"x" * 100


def options(api: BotApi, **more: Any) -> telegram.Options:
    given = {"token": lambda: api.token, "api_url": api.url, "poll_seconds": 1, "timeout_seconds": 2.0}
    return telegram.Options(**{**given, **more})


@asynccontextmanager
async def at_work(api: BotApi, desk: channels.Desk, **more: Any) -> AsyncIterator[telegram.Channel]:
    channel = telegram.Channel(options(api, **more))
    async with loopback.receiving(channel, desk):
        yield channel


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    async with BotApi.open() as opened:
        opened.private(ADA)
        opened.private(BOB)
        yield opened


@pytest.fixture
async def channel(api: BotApi) -> AsyncIterator[telegram.Channel]:
    channel = telegram.Channel(options(api))
    yield channel
    await channel.close()


def delivery(text: str = "Hello", **more: Any) -> deliveries.Delivery:
    """An answer to Ada, in her direct chat unless another place is given."""
    place = {"chat_id": "7", "user_id": "7", "message_id": "1", **more.pop("to", {})}
    source = SessionSource(platform=Platform.TELEGRAM, **place)
    given = {"id": "d", "lane": "l", "created_at": datetime(2026, 1, 5, tzinfo=UTC), "is_markdown": True}
    return deliveries.Delivery(to=source, text=text, **{**given, **more})


def in_group(number: int, **more: Any) -> dict[str, Any]:
    return {"chat_id": str(-1_000_000_000_000 - number), "chat_type": ChatType.GROUP, **more}


def offsets(api: BotApi) -> list[str | None]:
    return [call.fields.get("offset") for call in api.calls if call.method == "getUpdates"]


async def test_nothing_is_confirmed_by_the_first_question_or_after_a_quiet_one(api: BotApi) -> None:
    desk = RecordingDesk()
    async with at_work(api, desk):
        await api.until(lambda: api.polled)
        api.say(ADA, "one")
        await api.until(lambda: api.confirmed)
        await api.until(lambda: len(offsets(api)) >= 2)
        api.release_poll()
        await api.until(lambda: len(offsets(api)) >= 3)
        api.restart_ids(5)
        api.say(ADA, "after a week")
        await api.until(lambda: 5 in api.confirmed)
    first = api.confirmed[0]
    assert offsets(api)[:4] == [None, str(first + 1), None, "6"]
    assert [incoming.text for incoming in desk.stored] == ["one", "after a week"]


async def test_what_waited_while_nobody_asked_is_taken_in_its_order(api: BotApi) -> None:
    for number in range(150):
        api.say(ADA, f"text {number}")
    desk = RecordingDesk()
    async with at_work(api, desk):
        await api.until(lambda: not api.pending)
    assert [incoming.text for incoming in desk.stored] == [f"text {number}" for number in range(150)]


class Refusing(RecordingDesk):
    """Refuses what it is told to, and remembers what was confirmed by then."""

    def __init__(self, refuse: Callable[[channels.Happening], errors.FrontdeskError | None]) -> None:
        super().__init__()
        self.refuse = refuse

    async def accept(self, happening: channels.Happening, **more: Any) -> channels.Receipt:
        if refusal := self.refuse(happening):
            raise refusal
        return await super().accept(happening, **more)


async def test_only_what_came_before_a_message_that_was_not_stored_is_confirmed(api: BotApi) -> None:
    full = True
    numbers = [api.say(ADA, text)["message_id"] for text in ("one", "two", "three")]

    def refuse(happening: channels.Happening) -> errors.FrontdeskError | None:
        later = full and happening.source.message_id != str(numbers[0])
        return errors.StoreFull(path="x") if later else None

    desk = Refusing(refuse)
    async with at_work(api, desk):
        await api.until(lambda: api.confirmed)
        await api.until(lambda: api.handed[api.pending_ids[0]] >= 3)
        assert len(api.confirmed) == 1
        full = False
        await api.until(lambda: not api.pending)
    assert [incoming.text for incoming in desk.stored] == ["one", "two", "three"]


async def test_chat_with_too_many_waiting_holds_up_itself_alone(api: BotApi) -> None:
    crowded = True
    for member, text in ((ADA, "one"), (ADA, "two"), (BOB, "three")):
        api.say(member, text)
    asked: list[str | None] = []

    def refuse(happening: channels.Happening) -> errors.FrontdeskError | None:
        asked.append(happening.source.message_id)
        crowd = crowded and happening.source.user_id == "7"
        return errors.TooManyWaiting(waiting=9) if crowd else None

    desk = Refusing(refuse)
    async with at_work(api, desk):
        await api.until(lambda: desk.stored)
        assert [incoming.text for incoming in desk.stored] == ["three"]
        assert not api.confirmed
        crowded = False
        await api.until(lambda: not api.pending)
    assert [incoming.text for incoming in desk.stored] == ["three", "one", "two"]


async def test_chat_with_too_many_waiting_keeps_nobody_from_reaching_us(api: BotApi) -> None:
    """The platform hands out a hundred updates, and more only when those are taken."""
    for number in range(200):
        api.say(ADA, f"number {number}")
    api.say(ADA, "/stop")
    api.say(BOB, "hello")

    def refuse(happening: channels.Happening) -> errors.FrontdeskError | None:
        crowd = happening.source.user_id == "7" and happening.text != "/stop"  # type: ignore[union-attr]
        return errors.TooManyWaiting(waiting=9) if crowd else None

    desk = Refusing(refuse)
    async with at_work(api, desk):
        await api.until(lambda: len(desk.stored) > 1, PATIENCE_SECONDS)
    assert [incoming.text for incoming in desk.stored] == ["/stop", "hello"]
    assert len(api.pending) > 1


async def test_unreadable_update_does_not_stop_the_next_one(api: BotApi) -> None:
    api.put({"message": {"chat": "nonsense"}})
    api.put({"something_new": {"a": 1}})
    api.say(ADA, "Hello")
    desk = RecordingDesk()
    async with at_work(api, desk):
        await api.until(lambda: not api.pending)
    assert [incoming.text for incoming in desk.stored] == ["Hello"]


async def test_second_poller_is_told_as_trouble_until_it_is_gone(api: BotApi) -> None:
    desk = RecordingDesk()
    async with at_work(api, desk) as channel:
        await api.until(lambda: api.polled)
        async with httpx.AsyncClient(trust_env=False) as other:
            address = f"{api.url}/bot{api.token}/getUpdates"
            asking = asyncio.create_task(other.post(address, data={"timeout": 20}))
            await api.until(channel.trouble)
            assert "another program" in (channel.trouble() or "")
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        api.say(ADA, "Hello")
        await api.until(lambda: desk.stored)
        await api.until(lambda: not channel.trouble())


async def test_revoked_token_is_told_and_a_new_one_counts_at_once(api: BotApi) -> None:
    tokens = ["110201543:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"]
    desk = RecordingDesk()
    async with at_work(api, desk, token=lambda: tokens[0]) as channel:
        await api.until(channel.trouble)
        assert "refuses the bot's token" in (channel.trouble() or "")
        outcome = await channel.send(delivery())
        assert isinstance(outcome, deliveries.NotSent)
        assert (outcome.whole_account, outcome.hopeless) == (True, False)
        tokens[0] = api.token
        assert isinstance(await channel.send(delivery()), deliveries.Sent)
        api.say(ADA, "Hello")
        await api.until(lambda: desk.stored)


async def test_webhook_takes_nothing_without_its_secret(api: BotApi) -> None:
    desk, port = RecordingDesk(), loopback.free_port()
    url = f"http://127.0.0.1:{port}/channels/telegram"
    channel = telegram.Channel(options(api, public_url=url, public_secret=lambda: SECRET))
    forged = {
        "update_id": 1,
        "message": {"message_id": 1, "chat": {"id": 7}, "from": ADA.told(), "text": "x"},
    }
    async with loopback.receiving(channel, desk, port):
        await api.until(lambda: api.webhook_url)
        async with httpx.AsyncClient(trust_env=False) as client:
            for shown in ({}, {"x-telegram-bot-api-secret-token": "guess"}):
                assert (await client.post(url, json=forged, headers=shown)).status_code == 401
            right = {"x-telegram-bot-api-secret-token": SECRET}
            for body in (b"", b"{", b"[" * 100_000, b'"x"', b"\xff"):
                assert (await client.post(url, content=body, headers=right)).status_code == 200
        assert not desk.offered
        api.say(ADA, "Hello")
        await api.until(lambda: api.confirmed)
    assert [incoming.text for incoming in desk.stored] == ["Hello"]


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (ApiFault(status=403, description="Forbidden: bot was blocked by the user"), ("NotSent", True, None)),
        (ApiFault(status=400, description="Bad Request: chat not found"), ("NotSent", True, None)),
        (ApiFault(status=429, description="Too Many Requests", retry_after=7), ("NotSent", False, 7.0)),
        (ApiFault(status=500, taken=True), ("Unknown", False, None)),
        (ApiFault(status=502), ("Unknown", False, None)),
        (ApiFault(cut=True), ("Unknown", False, None)),
        (ApiFault(cut=True, taken=True), ("Unknown", False, None)),
    ],
)
async def test_outcome_is_as_certain_as_what_the_platform_said(
    api: BotApi, channel: telegram.Channel, fault: ApiFault, outcome: tuple[Any, ...]
) -> None:
    api.faults = [fault]
    met = await channel.send(delivery())
    said = (getattr(met, "hopeless", None), getattr(met, "retry_after_seconds", None))
    assert (type(met).__name__, *said) == outcome
    assert len([call for call in api.calls if call.method == "sendMessage"]) == 1


@pytest.mark.parametrize("answer", [b"", b"[]", b"{}", b'{"ok": true}', b"\xff", b"[" * 100_000])
async def test_answer_that_cannot_be_read_leaves_it_unknown(
    api: BotApi, channel: telegram.Channel, answer: bytes
) -> None:
    api.faults = [ApiFault(taken=True, body=answer)]
    assert isinstance(await channel.send(delivery()), deliveries.Unknown)


@pytest.mark.parametrize("result", [b"true", b"{}", b'{"message_id": "x"}', b"null"])
async def test_message_that_was_taken_is_sent_whatever_is_said_of_it(
    api: BotApi, channel: telegram.Channel, result: bytes
) -> None:
    api.faults = [ApiFault(taken=True, body=b'{"ok": true, "result": ' + result + b"}")]
    assert await channel.send(delivery()) == deliveries.Sent()


async def test_answer_looks_as_its_markdown_says(api: BotApi, channel: telegram.Channel) -> None:
    await channel.send(delivery("**bold** & `a<b` [link](https://example.org)\n\n```python\nx = 1\n```"))
    (post,) = api.posts
    assert post.text == "bold & a<b link\n\nx = 1"
    assert [each["type"] for each in post.entities] == ["bold", "code", "text_link", "code", "pre"]
    preview = [call.fields["link_preview_options"] for call in api.calls if call.method == "sendMessage"]
    assert json.loads(preview[0]) == {"is_disabled": True}


async def test_text_that_is_no_markdown_is_shown_as_it_is(api: BotApi, channel: telegram.Channel) -> None:
    text = "rm -rf **/*.py; echo '<b>' `x` &amp;"
    await channel.send(delivery(text, is_markdown=False))
    assert [(post.text, post.entities) for post in api.posts] == [(text, [])]


async def test_text_whose_marks_are_refused_is_sent_without_them(
    api: BotApi, channel: telegram.Channel
) -> None:
    api.faults = [
        ApiFault(method="sendMessage", status=400, description="Bad Request: can't parse entities: x")
    ]
    assert isinstance(await channel.send(delivery("**bold**")), deliveries.Sent)
    assert [(post.text, post.entities) for post in api.posts] == [("bold", [])]


async def test_answer_stays_in_its_topic_and_general_is_none(api: BotApi, channel: telegram.Channel) -> None:
    forum = api.group(1, is_forum=True)
    forum.topics.add(5)
    asked = api.say(ADA, "Hello", forum)
    for thread in ("5", "1", None, "77"):
        to = in_group(1, thread_id=thread, message_id=str(asked["message_id"]))
        assert isinstance(await channel.send(delivery(to=to)), deliveries.Sent)
    assert [post.thread_id for post in api.posts] == [5, None, None, None]
    assert {post.reply_to for post in api.posts} == {asked["message_id"]}


async def test_answer_in_a_direct_chat_quotes_nothing(api: BotApi, channel: telegram.Channel) -> None:
    api.say(ADA, "Hello")
    await channel.send(delivery())
    assert [post.reply_to for post in api.posts] == [None]


async def test_group_that_became_a_supergroup_is_followed(api: BotApi, channel: telegram.Channel) -> None:
    old, new = api.group(1), api.group(2)
    old.migrated_to = new.id
    assert isinstance(await channel.send(delivery(to=in_group(1))), deliveries.Sent)
    assert [post.chat_id for post in api.posts] == [new.id]


async def test_draft_that_is_gone_is_said_to_be(api: BotApi, channel: telegram.Channel) -> None:
    shown = await channel.draft(delivery("Hel"))
    assert isinstance(shown, deliveries.Sent)
    place = {"draft": shown.message_id}
    for _ in range(2):
        assert await channel.send(delivery("Hello", extra=place)) == shown
    api.posts.clear()
    outcome = await channel.send(delivery("Hello", extra=place))
    assert isinstance(outcome, deliveries.NotSent)
    assert (outcome.gone, outcome.hopeless, api.posts) == (True, False, [])


def stored(folder: Path, name: str, kind: str, data: bytes = PICTURE) -> StoredFile:
    path = folder / name
    path.write_bytes(data)
    return StoredFile(digest=name, name=name, kind=kind, size=len(data), path=str(path))


async def test_files_arrive_with_their_text(api: BotApi, channel: telegram.Channel, tmp_path: Path) -> None:
    picture, paper = (
        stored(tmp_path, "a.png", "image/png"),
        stored(tmp_path, "b.pdf", "application/pdf", b"%PDF"),
    )
    for files in ((picture,), (paper,), (picture, paper), (picture, picture)):
        assert isinstance(await channel.send(delivery("**See** this", files=files)), deliveries.Sent)
    sent = [(post.how, post.text, [(file.name, file.data) for file in post.files]) for post in api.posts]
    see, a, b = "See this", ("a.png", PICTURE), ("b.pdf", b"%PDF")
    assert sent == [
        ("sendPhoto", see, [a]),
        ("sendDocument", see, [b]),
        ("sendMediaGroup", see, [a]),
        ("sendMediaGroup", "", [b]),
        ("sendMediaGroup", see, [a]),
        ("sendMediaGroup", "", [a]),
    ]


async def test_long_text_comes_before_its_files(
    api: BotApi, channel: telegram.Channel, tmp_path: Path
) -> None:
    paper = stored(tmp_path, "b.pdf", "application/pdf", b"%PDF")
    assert isinstance(await channel.send(delivery("x" * 2000, files=(paper,))), deliveries.Sent)
    assert [(post.text, len(post.files)) for post in api.posts] == [("x" * 2000, 0), ("", 1)]
    api.faults = [ApiFault(method="sendDocument", status=400, description="Bad Request: x")]
    outcome = await channel.send(delivery("y" * 2000, files=(paper,)))
    assert isinstance(outcome, deliveries.Unknown)
    assert "the text arrived" in outcome.why


async def test_picture_that_is_none_is_sent_as_a_file(
    api: BotApi, channel: telegram.Channel, tmp_path: Path
) -> None:
    api.faults = [ApiFault(method="sendPhoto", status=400, description="Bad Request: IMAGE_PROCESS_FAILED")]
    picture = stored(tmp_path, "a.png", "image/png")
    assert isinstance(await channel.send(delivery("x", files=(picture,))), deliveries.Sent)
    assert [post.how for post in api.posts] == ["sendDocument"]


async def test_file_that_is_gone_is_hopeless(api: BotApi, channel: telegram.Channel) -> None:
    gone = StoredFile(digest="x", name="x", kind="text/plain", size=1, path="/nonexistent/x")
    outcome = await channel.send(delivery("x", files=(gone,)))
    assert isinstance(outcome, deliveries.NotSent)
    assert outcome.hopeless


async def test_signs_are_shown_at_their_message(api: BotApi, channel: telegram.Channel) -> None:
    number = api.say(ADA, "Hello")["message_id"]
    to = SessionSource(platform=Platform.TELEGRAM, chat_id="7", user_id="7", message_id=str(number))
    for sign in ChatSign:
        assert isinstance(await channel.sign(to, sign), deliveries.Sent)
    assert api.actions == [(7, None, "typing")]
    assert api.signs == {(7, number): ("💔",)}


async def test_token_is_in_no_log(
    api: BotApi, channel: telegram.Channel, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        await channel.send(delivery())
        await api.wire.refuse()
        await channel.send(delivery())
    assert "sendMessage" in caplog.text
    assert api.token.partition(":")[2] not in caplog.text


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"api_url": "http://example.org"}, "https"),
        ({"api_url": "https://user@example.org"}, "https"),
        ({"public_url": "https://example.org/channels/telegram"}, "public_secret"),
        ({"poll_seconds": 0}, "poll_seconds"),
        ({"poll_seconds": 51}, "at most 50"),
    ],
)
def test_unusable_setting_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises((errors.InvalidSetting, errors.MissingSetting), match=said):
        telegram.Options(token=lambda: "x", **settings)
