"""The chat-completions endpoint over real HTTP, with the openai client library and without."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import openai
import pytest

from frontdesk import errors
from frontdesk.channels import api_server
from frontdesk.channels.api_server import outbound
from frontdesk.contracts import channels
from frontdesk.contracts.ticks import Ticker
from frontdesk.model import events, turns
from frontdesk.model.sessions import Usage
from frontdesk.testing.channels import Answer, RecordingDesk
from tests import loopback

TOKENS = {"ada": lambda: "ada-token-0123456789", "bob": lambda: "bob-token-0123456789"}
HELLO: list[Any] = [{"role": "user", "content": "Hello"}]
PIECES = ("Gr", "üße, ", "你好", "\n", "!")
USED = (Usage(input_tokens=10, output_tokens=2, cache_read_tokens=4), Usage(input_tokens=5, output_tokens=3))


def in_pieces(_: channels.Incoming) -> Answer:
    texts = tuple(events.Text(text=piece) for piece in PIECES)
    used = tuple(events.Used(usage=usage) for usage in USED)
    return Answer(seen=(*texts[:2], used[0], *texts[2:], used[1], events.Done()), text="".join(PIECES))


def elsewhere(_: channels.Incoming) -> Answer:
    """A turn that runs on another node: nothing is seen of it."""
    return Answer(text="".join(PIECES))


def hanging(_: channels.Incoming) -> Answer:
    return Answer(seen=(events.Text(text="I think"),), text="I think so.", hangs=True)


def ending_as(state: turns.TurnState, notice: str = "The agent broke down.") -> Any:
    return lambda _: Answer(seen=(events.Text(text="I"),), notice=notice, state=state)


@asynccontextmanager
async def endpoint(desk: RecordingDesk, account: str | None = None, **more: Any) -> AsyncIterator[str]:
    channel = api_server.Channel(api_server.Options(**{"tokens": TOKENS, **more}), account)
    async with loopback.receiving(channel, desk) as url:
        yield url + channel.routes[1].path.removesuffix("/models")


@asynccontextmanager
async def openai_client(desk: RecordingDesk, **more: Any) -> AsyncIterator[openai.AsyncOpenAI]:
    async with (
        endpoint(desk, **more) as url,
        openai.AsyncOpenAI(base_url=url, api_key="ada-token-0123456789") as client,
    ):
        yield client


async def post(url: str, body: object, **headers: str) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx.AsyncClient(trust_env=False) as client:
        sent = {"authorization": "Bearer ada-token-0123456789", **names}
        return await client.post(f"{url}/chat/completions", content=content, headers=sent)


@pytest.mark.parametrize("answer", [in_pieces, elsewhere])
async def test_openai_client_gets_the_answer(answer: Any) -> None:
    desk = RecordingDesk(answer)
    async with openai_client(desk) as client:
        completion = await client.chat.completions.create(model="any", messages=HELLO)
    assert completion.choices[0].message.content == "".join(PIECES)
    assert completion.choices[0].message.role == "assistant"
    assert (completion.choices[0].finish_reason, completion.model) == ("stop", "frontdesk")
    assert desk.collected_ids == ["turn-1-reply"]


@pytest.mark.parametrize("answer", [in_pieces, elsewhere])
async def test_openai_client_streams_the_answer(answer: Any) -> None:
    desk = RecordingDesk(answer)
    async with openai_client(desk) as client:
        stream = await client.chat.completions.create(model="any", messages=HELLO, stream=True)
        chunks = [chunk async for chunk in stream]
    pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices[0].delta.content]
    assert pieces == (list(PIECES) if answer is in_pieces else ["".join(PIECES)])
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None] * (len(chunks) - 1) + ["stop"]
    assert len({chunk.id for chunk in chunks}) == 1
    assert desk.collected_ids == ["turn-1-reply"]


async def test_piece_is_streamed_before_the_turn_is_finished() -> None:
    desk = RecordingDesk(hanging)
    async with openai_client(desk) as client:
        stream = await client.chat.completions.create(model="any", messages=HELLO, stream=True)
        got = ""
        async for chunk in stream:
            got += chunk.choices[0].delta.content or ""
            if got:
                desk.released.set()
    assert got == "I think so."


@pytest.mark.parametrize("streams", [False, True])
async def test_agent_with_nothing_to_say_gives_an_empty_answer(streams: bool) -> None:
    silent = Answer(seen=(events.Done(silent=True),), state=turns.TurnState.SILENT)
    async with endpoint(RecordingDesk(lambda _: silent)) as url:
        response = await post(url, {"model": "any", "messages": HELLO, "stream": streams})
    assert response.status_code == 200
    if not streams:
        assert response.json()["choices"][0]["message"]["content"] == ""
    assert ("[DONE]" in response.text, "error" in response.text) == (streams, False)


def saying(*seen: events.Event, text: str) -> Any:
    return lambda _: Answer(seen=seen, text=text)


def text(words: str) -> events.Text:
    return events.Text(text=words)


TORN = [
    pytest.param(saying(text("Hel"), events.Restarted(), text("Hello"), text="Hello"), id="restarted"),
    pytest.param(saying(text("I loo"), text="It rains"), id="answered elsewhere"),
    pytest.param(saying(text("I look. ok"), events.Missed(), text="ok"), id="missed"),
]
MENDED = [
    pytest.param(saying(events.Restarted(), text("Hello"), text="Hello"), "Hello", id="restarted unheard"),
    pytest.param(saying(text(" Hel"), events.Missed(), text="Hello"), " Hello", id="missed"),
    pytest.param(saying(text("I look. "), text("Rain.\n"), text="Rain."), "I look. Rain.\n", id="tools"),
]


@pytest.mark.parametrize("answer", TORN)
async def test_stream_that_cannot_become_the_answer_ends_with_an_error(answer: Any) -> None:
    desk = RecordingDesk(answer)
    async with openai_client(desk) as client:
        stream = await client.chat.completions.create(model="any", messages=HELLO, stream=True)
        with pytest.raises(openai.APIError, match="Idempotency-Key") as raised:
            [chunk async for chunk in stream]
        assert raised.value.code == "stream_torn"
        assert desk.collected_ids == []


@pytest.mark.parametrize("answer", TORN)
async def test_answer_in_one_piece_is_the_stored_one_whatever_was_seen(answer: Any) -> None:
    desk = RecordingDesk(answer)
    async with openai_client(desk) as client:
        completion = await client.chat.completions.create(model="any", messages=HELLO)
    assert completion.choices[0].message.content == desk.answer(desk.stored[0]).text


@pytest.mark.parametrize(("answer", "wanted"), MENDED)
async def test_stream_is_completed_from_the_stored_answer(answer: Any, wanted: str) -> None:
    async with openai_client(RecordingDesk(answer)) as client:
        stream = await client.chat.completions.create(model="any", messages=HELLO, stream=True)
        chunks = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == wanted
    assert chunks[-1].choices[0].finish_reason == "stop"


async def test_usage_is_the_sum_of_what_was_seen() -> None:
    async with openai_client(RecordingDesk(in_pieces)) as client:
        whole = await client.chat.completions.create(model="any", messages=HELLO)
        stream = await client.chat.completions.create(
            model="any", messages=HELLO, stream=True, stream_options={"include_usage": True}
        )
        *chunks, last = [chunk async for chunk in stream]
    assert whole.usage
    assert last.usage
    for usage in (whole.usage, last.usage):
        assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (15, 5, 20)
        assert usage.prompt_tokens_details
        assert usage.prompt_tokens_details.cached_tokens == 4
    assert last.choices == []
    assert all(chunk.usage is None and chunk.choices for chunk in chunks)


async def test_usage_of_a_turn_elsewhere_is_zero() -> None:
    async with openai_client(RecordingDesk(elsewhere)) as client:
        completion = await client.chat.completions.create(model="any", messages=HELLO)
    assert completion.usage
    assert completion.usage.total_tokens == 0


async def test_openai_client_lists_the_model() -> None:
    async with openai_client(RecordingDesk(), model="desk-1") as client:
        assert [model.id async for model in client.models.list()] == ["desk-1"]


async def test_stream_ends_with_done() -> None:
    async with endpoint(RecordingDesk(in_pieces)) as url:
        answer = await post(url, {"messages": HELLO, "stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.endswith("data: [DONE]\n\n")
    assert answer.headers["x-frontdesk-turn"] == "turn-1"


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer nope", "Basic ada-token-0123456789", "ada-token-0123456789", "Bearer ada-tokeN"],
)
@pytest.mark.parametrize("path", ["chat/completions", "models"])
async def test_nobody_gets_in_without_a_token(path: str, authorization: str) -> None:
    desk = RecordingDesk()
    method = "GET" if path == "models" else "POST"
    async with endpoint(desk) as url, httpx.AsyncClient(trust_env=False) as client:
        answer = await client.request(method, f"{url}/{path}", headers={"authorization": authorization})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["error"].keys() == {"message", "type", "param", "code"}
    assert not desk.offered


async def test_openai_client_understands_the_refusal_of_its_token() -> None:
    async with endpoint(RecordingDesk()) as url, openai.AsyncOpenAI(base_url=url, api_key="nope") as client:
        with pytest.raises(openai.AuthenticationError, match="No such token"):
            await client.chat.completions.create(model="any", messages=HELLO)


async def test_missing_or_empty_token_of_one_user_does_not_open_or_shut_the_door() -> None:
    def missing() -> str:
        raise errors.MissingSecret(where="the environment", setting="tokens")

    tokens = {"eve": missing, "mallory": lambda: "", "ada": lambda: "ada-token-0123456789"}
    desk = RecordingDesk()
    async with endpoint(desk, tokens=tokens) as url:
        assert (await post(url, {"messages": HELLO}, authorization="Bearer")).status_code == 401
        assert (await post(url, {"messages": HELLO})).status_code == 200
    assert desk.stored[0].source.user_id == "ada"


async def test_changed_token_counts_from_the_next_request_on() -> None:
    current = ["old"]
    async with endpoint(RecordingDesk(), tokens={"ada": lambda: current[0]}) as url:
        assert (await post(url, {"messages": HELLO})).status_code == 401
        current[0] = "ada-token-0123456789"
        assert (await post(url, {"messages": HELLO})).status_code == 200


async def test_tokens_are_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="frontdesk")
    async with endpoint(RecordingDesk()) as url:
        await post(url, {"messages": HELLO}, authorization="Bearer guessed-token")
    assert "api_token_refused" in caplog.text
    assert not any(token in caplog.text for token in ("guessed-token", "ada-token", "bob-token"))


@pytest.mark.parametrize(
    "tokens", [{}, {"": lambda: "t"}, {"a/b": lambda: "t"}, {"é": lambda: "t"}, {"x" * 65: lambda: "t"}]
)
def test_endpoint_without_users_is_refused(tokens: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidSetting, match="tokens"):
        api_server.Options(tokens=tokens)


async def test_named_session_is_one_conversation_that_takes_only_the_last_message() -> None:
    desk = RecordingDesk()
    earlier = [{"role": "system", "content": "Be brief."}, {"role": "assistant", "content": "Yes?"}]
    async with endpoint(desk) as url:
        for _ in range(2):
            await post(url, {"messages": [*earlier, *HELLO]}, x_frontdesk_session="work")
    one, two = desk.stored
    assert one.source == two.source
    assert (one.source.chat_id, one.source.user_id) == ("ada/work", "ada")
    assert (one.text, one.history) == ("Hello", [])
    assert one.event_id != two.event_id


async def test_fresh_session_begins_with_the_messages_before_the_last() -> None:
    desk = RecordingDesk()
    calls = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    earlier: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "4"},
        {"role": "assistant", "content": "Four."},
    ]
    async with endpoint(desk) as url:
        for _ in range(2):
            await post(url, {"messages": [*earlier, *HELLO]})
    one, two = desk.stored
    assert one.source.chat_id != two.source.chat_id
    assert one.text == "Hello"
    assert one.history == [{k: v for k, v in message.items() if v is not None} for message in earlier]


async def test_developer_is_the_system_and_nothing_of_ours_is_taken_over() -> None:
    desk = RecordingDesk()
    ours = {"observed": True, "platform_message_id": "1", "timestamp": 1, "turn_id": "x"}
    async with endpoint(desk) as url:
        await post(url, {"messages": [{"role": "developer", "content": "Be brief.", **ours}, *HELLO]})
    assert desk.stored[0].history == [{"role": "system", "content": "Be brief."}]


async def test_two_users_who_name_the_same_session_do_not_meet() -> None:
    desk = RecordingDesk()
    async with endpoint(desk) as url:
        for token in ("ada-token-0123456789", "bob-token-0123456789"):
            headers = {"authorization": f"Bearer {token}", "x_frontdesk_session": "x", "idempotency_key": "k"}
            assert (await post(url, {"messages": HELLO}, **headers)).status_code == 200
    one, two = desk.stored
    assert one.source.chat_id != two.source.chat_id
    assert one.event_id != two.event_id


async def test_repeated_request_gets_the_same_answer_of_the_same_turn() -> None:
    desk = RecordingDesk(in_pieces)
    async with endpoint(desk) as url:
        for session in ({}, {"x_frontdesk_session": "work"}):
            answers = [
                await post(url, {"messages": HELLO, "stream": stream}, idempotency_key="k 1", **session)
                for stream in (False, False, True)
            ]
            whole, again, streamed = answers
            assert whole.json()["id"] == again.json()["id"]
            assert whole.json()["choices"] == again.json()["choices"]
            assert whole.json()["id"] in streamed.text
    assert len(desk.stored) == 2
    assert desk.stored[0].event_id != desk.stored[1].event_id


async def test_key_with_another_message_is_refused_and_says_nothing() -> None:
    desk = RecordingDesk(in_pieces)
    before = [{"role": "user", "content": "Before"}, {"role": "assistant", "content": "Yes"}, *HELLO]
    async with endpoint(desk) as url:
        for session in ({}, {"x_frontdesk_session": "work"}):
            first = await post(url, {"messages": HELLO}, idempotency_key="z1", **session)
            for stream in (False, True):
                other = {"messages": [{"role": "user", "content": "Other"}], "stream": stream}
                refused = await post(url, other, idempotency_key="z1", **session)
                told = refused.json()["error"]
                assert (refused.status_code, told["code"]) == (422, "key_reused")
                assert told["type"] == "invalid_request_error"
            again = await post(url, {"messages": HELLO}, idempotency_key="z1", **session)
            assert again.json()["id"] == first.json()["id"]
            brought = await post(url, {"messages": before}, idempotency_key="z1", **session)
            assert brought.status_code == (200 if session else 422), "a name's conversation is kept here"
    assert len(desk.stored) == 2


async def test_parts_of_a_message_are_kept() -> None:
    desk = RecordingDesk()
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    parts = [{"type": "text", "text": "Look"}, image, {"type": "text", "text": "here"}]
    async with endpoint(desk) as url:
        await post(url, {"messages": [{"role": "user", "content": parts}]})
        await post(url, {"messages": [{"role": "user", "content": [image]}]})
    assert (desk.stored[0].text, desk.stored[0].content) == ("Look\nhere", parts)
    assert (desk.stored[1].text, desk.stored[1].content) == ("", [image])


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"", None),
        (b"{", None),
        (b"[]", None),
        (b'{"messages": [{"content": ' + b"[" * 100_000, None),
        ({}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "Hello"}, "messages"),
        ({"messages": ["Hello"]}, "messages[0]"),
        ({"messages": [{"role": "assistant", "content": "Hi"}]}, "messages"),
        ({"messages": [{"role": "user", "content": " "}]}, "messages"),
        ({"messages": [{"role": "user"}]}, "messages[0]"),
        ({"messages": [{"role": "user", "content": 1}]}, "messages[0]"),
        ({"messages": [{"role": "user", "content": []}]}, "messages"),
        ({"messages": [{"role": "user", "content": ["Hi"]}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content"),
        ({"messages": [{"role": "session_meta"}, *HELLO]}, "messages[0]"),
        ({"messages": [{"role": "wizard", "content": "Hi"}, *HELLO]}, "messages[0]"),
        ({"messages": [{"role": "assistant", "content": 1}, *HELLO]}, "messages[0].content"),
        ({"messages": HELLO, "n": 2}, "n"),
        ({"messages": HELLO * 10_001}, "messages"),
        ({"messages": HELLO, "stream": "yes"}, "stream"),
    ],
)
async def test_unusable_request_is_refused_with_the_field(body: object, param: str | None) -> None:
    desk = RecordingDesk()
    async with endpoint(desk) as url:
        answer = await post(url, body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert not desk.offered


@pytest.mark.parametrize("name", ["", "x" * 201, "caf\xe9"])
@pytest.mark.parametrize("header", ["x_frontdesk_session", "idempotency_key"])
async def test_unusable_name_is_refused(header: str, name: str) -> None:
    async with endpoint(RecordingDesk()) as url, httpx.AsyncClient(trust_env=False) as client:
        raw = [
            (header.replace("_", "-").encode(), name.encode("latin-1")),
            (b"authorization", b"Bearer ada-token-0123456789"),
        ]
        answer = await client.post(f"{url}/chat/completions", json={"messages": HELLO}, headers=raw)
    assert answer.status_code == 400
    assert "200 printable" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("refusal", "status", "code"),
    [
        (errors.NotAllowed(who="Ada", rule="not on the list"), 403, "not_allowed"),
        (errors.InvalidMessage(why="no"), 400, "invalid_request"),
        (errors.Unroutable(key="x"), 400, "unroutable"),
        (errors.TooManyWaiting(waiting=100), 429, "too_many_waiting"),
        (errors.StoreFull(path="state.db"), 503, "not_stored"),
    ],
)
async def test_refusal_of_the_desk_is_told(refusal: errors.FrontdeskError, status: int, code: str) -> None:
    desk = RecordingDesk()
    desk.refusal = refusal
    async with endpoint(desk) as url:
        answer = await post(url, {"messages": HELLO, "stream": True})
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert ("retry-after" in answer.headers) == (status in (429, 503))
    assert "state.db" not in answer.text


@pytest.mark.parametrize("seen", [(events.Text(text="I th"),), ()])
async def test_stopped_turn_is_answered_with_what_it_said(seen: tuple[events.Event, ...]) -> None:
    stopped = Answer(seen=seen, text="I think", notice="Wait.", state=turns.TurnState.INTERRUPTED)
    desk = RecordingDesk(lambda _: stopped)
    async with openai_client(desk) as client:
        whole = await client.chat.completions.create(model="any", messages=HELLO)
        stream = await client.chat.completions.create(model="any", messages=HELLO, stream=True)
        chunks = [chunk async for chunk in stream]
    assert (whole.choices[0].message.content, whole.choices[0].finish_reason) == ("I think", "stop")
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "I think"
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert "turn-1-reply" in desk.collected_ids


@pytest.mark.parametrize(
    "state", [turns.TurnState.FAILED, turns.TurnState.INTERRUPTED, turns.TurnState.SET_ASIDE]
)
async def test_openai_client_is_told_of_a_turn_that_failed_and_does_not_ask_twice(
    state: turns.TurnState,
) -> None:
    desk = RecordingDesk(ending_as(state))
    async with openai_client(desk) as client:
        with pytest.raises(openai.InternalServerError, match="broke down") as failed:
            await client.chat.completions.create(model="any", messages=HELLO)
        stream = await client.chat.completions.create(model="any", messages=HELLO, stream=True)
        with pytest.raises(openai.APIError, match="broke down") as broken:
            _ = [chunk async for chunk in stream]
    assert failed.value.code == broken.value.code == state
    assert len(desk.stored) == 2
    assert desk.collected_ids == ["turn-1-notice", "turn-2-notice"]


async def test_failure_without_a_notice_names_the_state() -> None:
    async with endpoint(RecordingDesk(ending_as(turns.TurnState.FAILED, notice=""))) as url:
        answer = await post(url, {"messages": HELLO})
    assert answer.json()["error"]["message"] == "The turn ended as failed."


async def test_request_waits_for_a_bounded_time_and_its_turn_goes_on() -> None:
    desk = RecordingDesk(hanging)
    async with endpoint(desk, wait_seconds=0.1) as url:
        whole = await post(url, {"messages": HELLO}, idempotency_key="k")
        streamed = await post(url, {"messages": HELLO, "stream": True}, idempotency_key="k")
        desk.released.set()
        later = await post(url, {"messages": HELLO}, idempotency_key="k")
    assert (whole.status_code, whole.json()["error"]["code"]) == (504, "turn_not_finished")
    assert "turn-1" in whole.json()["error"]["message"]
    assert whole.headers["x-should-retry"] == "false"
    assert "turn_not_finished" in streamed.text
    assert "[DONE]" not in streamed.text
    assert later.json()["choices"][0]["message"]["content"] == "I think so."


@pytest.mark.parametrize("stream", [True, False])
async def test_answer_stays_to_be_collected_when_the_client_goes_away(stream: bool) -> None:
    desk = RecordingDesk(hanging)
    async with endpoint(desk) as url:
        asking = asyncio.create_task(post(url, {"messages": HELLO, "stream": stream}, idempotency_key="k"))
        await desk.following.wait()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        assert (await post(url, b"")).status_code == 400  # by now the server has seen that the client left
        desk.released.set()
        other = await post(url, {"messages": HELLO})
        assert other.status_code == 200
        assert desk.collected_ids == ["turn-2-reply"]
        again = await post(url, {"messages": HELLO}, idempotency_key="k")
    assert again.json()["choices"][0]["message"]["content"] == "I think so."


async def test_store_that_fails_meanwhile_is_told_and_the_turn_named() -> None:
    class Failing(RecordingDesk):
        async def uncollected(self, *_: Any, **__: Any) -> Any:
            raise errors.StoreUnavailable(path="state.db", why="gone")

    async with endpoint(Failing()) as url:
        whole = await post(url, {"messages": HELLO})
        streamed = await post(url, {"messages": HELLO, "stream": True})
    assert (whole.status_code, whole.headers["x-frontdesk-turn"]) == (504, "turn-1")
    assert "turn-2" in streamed.text
    assert "state.db" not in whole.text + streamed.text


async def test_answer_is_given_even_when_its_collection_cannot_be_noted() -> None:
    class Forgetful(RecordingDesk):
        async def collected(self, delivery_ids: Any) -> None:
            raise errors.StoreFull(path="state.db")

    async with endpoint(Forgetful()) as url:
        whole = await post(url, {"messages": HELLO})
        streamed = await post(url, {"messages": HELLO, "stream": True})
    assert whole.json()["choices"][0]["message"]["content"] == "You said: Hello"
    assert streamed.text.endswith("data: [DONE]\n\n")


async def test_node_that_stops_ends_the_wait() -> None:
    class Stopping(RecordingDesk):
        async def follow(self, turn_id: str) -> AsyncGenerator[events.Event | turns.Turn, None]:
            yield events.Text(text="I")

    async with endpoint(Stopping()) as url:
        answer = await post(url, {"messages": HELLO})
    assert answer.json()["error"]["code"] == "turn_not_finished"


async def test_endpoint_that_does_not_receive_yet_asks_to_come_again() -> None:
    channel = api_server.Channel(api_server.Options(tokens=TOKENS))
    async with loopback.served(channel.routes) as url:
        answer = await post(f"{url}/v1", {"messages": HELLO})
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0


async def test_quiet_turn_is_noticed_as_such() -> None:
    released = asyncio.Event()

    async def steps() -> AsyncIterator[str]:
        yield "a"
        await released.wait()
        yield "b"

    seen: list[str | None] = []
    async for step in outbound.watch(steps(), wait_seconds=60, ticks=Ticker(0.01)):
        seen.append(step)
        if step is None:
            released.set()
    assert [step for step in seen if step] == ["a", "b"]
    assert None in seen
