"""The stand-in of the Bot API refuses what the platform refuses, and forgets only what was confirmed."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from frontdesk.testing.telegram import ApiFault, BotApi, Member

ADA = Member(id=7, first_name="Ada")


class Client:
    def __init__(self, api: BotApi, http: httpx.AsyncClient) -> None:
        self.api, self.http = api, http

    async def call(self, method: str, token: str | None = None, **fields: Any) -> dict[str, Any]:
        told = {name: each if isinstance(each, str) else json.dumps(each) for name, each in fields.items()}
        url = f"{self.api.url}/bot{token or self.api.token}/{method}"
        answer = await self.http.post(url, data=told)
        read: dict[str, Any] = answer.json()
        assert read["ok"] == answer.is_success
        return read

    async def refused(self, method: str, **fields: Any) -> str:
        read = await self.call(method, **fields)
        assert not read["ok"]
        return str(read["description"])

    async def updates(self, **fields: Any) -> list[int]:
        return [each["update_id"] for each in (await self.call("getUpdates", **fields))["result"]]


@pytest.fixture
async def bot() -> AsyncIterator[Client]:
    async with BotApi.open() as api, httpx.AsyncClient(trust_env=False) as http:
        api.private(ADA)
        yield Client(api, http)


async def test_wrong_token_gets_nothing(bot: Client) -> None:
    assert (await bot.call("getMe", token="1:x"))["error_code"] == 401
    assert (await bot.call("getMe", token="x"))["error_code"] == 404
    assert (await bot.call("getMe"))["result"]["id"] == bot.api.me.id


async def test_updates_stay_until_a_higher_offset_confirms_them(bot: Client) -> None:
    for number in range(3):
        bot.api.say(ADA, f"text {number}")
    first = await bot.updates()
    assert await bot.updates() == first == bot.api.pending_ids
    assert await bot.updates(offset=first[1]) == first[1:]
    assert bot.api.confirmed == first[:1]
    assert await bot.updates(limit=1) == first[1:2]


async def test_poll_waits_for_something_new(bot: Client) -> None:
    polling = asyncio.create_task(bot.updates(timeout=30))
    await bot.api.until(lambda: bot.api.polled)
    bot.api.say(ADA, "Hello")
    assert len(await polling) == 1


async def test_second_poller_ends_the_first(bot: Client) -> None:
    first = asyncio.create_task(bot.call("getUpdates", timeout=30))
    await bot.api.until(lambda: bot.api.polled)
    second = asyncio.create_task(bot.updates(timeout=30))
    assert (await first)["error_code"] == 409
    bot.api.say(ADA, "Hello")
    assert len(await second) == 1


async def test_kinds_that_were_not_asked_for_do_not_come(bot: Client) -> None:
    message = bot.api.say(ADA, "Hello")
    bot.api.react(bot.api.private(ADA), message["message_id"], ADA, "👍")
    assert len(await bot.updates(allowed_updates=["message_reaction"])) == 1
    bot.api.react(bot.api.private(ADA), message["message_id"], ADA, "👍")
    bot.api.say(ADA, "Hello")
    assert len(await bot.updates()) == 2


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"chat_id": 8, "text": "x"}, "chat not found"),
        ({"chat_id": 7}, "text is empty"),
        ({"chat_id": 7, "text": "\U0001f680" * 2049}, "too long"),
        ({"chat_id": 7, "text": "<b>x", "parse_mode": "HTML"}, "can't parse"),
        ({"chat_id": 7, "text": "<b><i>x</b></i>", "parse_mode": "HTML"}, "can't parse"),
        ({"chat_id": 7, "text": "<h1>x</h1>", "parse_mode": "HTML"}, "can't parse"),
        ({"chat_id": 7, "text": "1 < 2", "parse_mode": "HTML"}, "can't parse"),
        (
            {
                "chat_id": 7,
                "text": "x",
                "reply_markup": {"inline_keyboard": [[{"text": "a", "callback_data": "ü" * 33}]]},
            },
            "BUTTON_DATA_INVALID",
        ),
        ({"chat_id": 7, "text": "x", "reply_parameters": {"message_id": 99}}, "replied not found"),
    ],
)
async def test_unusable_message_is_refused(bot: Client, fields: dict[str, Any], said: str) -> None:
    assert said in await bot.refused("sendMessage", **fields)
    assert not bot.api.posts


async def test_markup_is_read_as_people_see_it(bot: Client) -> None:
    text = (
        '<b>\U0001f680 &lt;</b> <a href="https://example.org/?a=1&amp;b=2">x</a> <a href="javascript:1">y</a>'
    )
    await bot.call("sendMessage", chat_id=7, text=text, parse_mode="HTML")
    (post,) = bot.api.posts
    assert post.text == "\U0001f680 < x y"
    assert [(each["type"], each["offset"], each["length"]) for each in post.entities] == [
        ("bold", 0, 4),
        ("text_link", 5, 1),
    ]


async def test_edit_that_changes_nothing_or_nothing_that_is_there_is_refused(bot: Client) -> None:
    await bot.call("sendMessage", chat_id=7, text="x")
    number = bot.api.posts[0].message_id
    assert "not modified" in await bot.refused("editMessageText", chat_id=7, message_id=number, text="x")
    assert "not found" in await bot.refused("editMessageText", chat_id=7, message_id=99, text="x")
    await bot.call("editMessageText", chat_id=7, message_id=number, text="y")
    assert [(post.text, post.edits) for post in bot.api.posts] == [("y", 1)]


async def test_general_topic_is_not_sent_to_by_its_number(bot: Client) -> None:
    forum = bot.api.group(1, is_forum=True)
    forum.topics.add(5)
    assert "thread not found" in await bot.refused(
        "sendMessage", chat_id=forum.id, text="x", message_thread_id=1
    )
    await bot.call("sendMessage", chat_id=forum.id, text="x", message_thread_id=5)
    await bot.call("sendMessage", chat_id=forum.id, text="x")
    assert [post.thread_id for post in bot.api.posts] == [5, None]


async def test_message_can_be_taken_before_the_connection_breaks(bot: Client) -> None:
    bot.api.faults = [
        ApiFault(method="sendMessage", cut=True),
        ApiFault(method="sendMessage", cut=True, taken=True),
    ]
    for _ in range(2):
        with pytest.raises(httpx.HTTPError):
            await bot.call("sendMessage", chat_id=7, text="x")
    assert len(bot.api.posts) == 1


async def test_who_does_not_wait_is_counted_and_told_again(bot: Client) -> None:
    bot.api.faults = [ApiFault(method="sendMessage", status=429, retry_after=30)]
    for _ in range(2):
        refused = await bot.call("sendMessage", chat_id=7, text="x")
        assert refused["parameters"]["retry_after"] == 30
    assert (len(bot.api.impatient), bot.api.posts) == (1, [])


async def test_press_is_answered_once_it_is_known(bot: Client) -> None:
    markup = {"inline_keyboard": [[{"text": "Yes", "callback_data": "t1"}]]}
    await bot.call("sendMessage", chat_id=7, text="x", reply_markup=markup)
    query = bot.api.press(bot.api.posts[0], ADA)
    assert "too old" in await bot.refused("answerCallbackQuery", callback_query_id="1")
    assert (await bot.call("answerCallbackQuery", callback_query_id=query))["ok"]
    assert bot.api.queries[query] is not None
