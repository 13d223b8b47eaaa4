"""The responses API over real HTTP, with the openai client library and without."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import openai
import pytest

from frontdesk.channels import api_server
from frontdesk.contracts import channels
from frontdesk.model import events, turns
from frontdesk.model.sessions import Usage
from frontdesk.testing.desks import Answer, RecordingDesk
from tests import loopback

TOKENS = {"ada": lambda: "ada-token-0123456789", "bob": lambda: "bob-token-0123456789"}
PIECES = ("Gr", "üße, ", "你好", "!")
USED = Usage(input_tokens=10, output_tokens=2, cache_read_tokens=4)
ORDER = [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    *["response.output_text.delta"] * len(PIECES),
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
]


def in_pieces(_: channels.Incoming) -> Answer:
    texts = tuple(events.Text(text=piece) for piece in PIECES)
    return Answer(seen=(*texts, events.Used(usage=USED), events.Done()), text="".join(PIECES))


def hanging(_: channels.Incoming) -> Answer:
    return Answer(seen=(events.Text(text="I think"),), text="I think so.", hangs=True)


@asynccontextmanager
async def endpoint(desk: RecordingDesk, **more: Any) -> AsyncIterator[str]:
    channel = api_server.Channel(api_server.Options(**{"tokens": TOKENS, **more}))
    async with loopback.receiving(channel, desk) as url:
        yield f"{url}/v1"


@asynccontextmanager
async def client_of(desk: RecordingDesk, user: str = "ada", **more: Any) -> AsyncIterator[openai.AsyncOpenAI]:
    async with (
        endpoint(desk, **more) as url,
        openai.AsyncOpenAI(base_url=url, api_key=f"{user}-token-0123456789", timeout=60) as client,
    ):
        yield client


async def post(url: str, body: object, user: str = "ada", **headers: str) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        sent = {"authorization": f"Bearer {user}-token-0123456789", **names}
        return await client.post(f"{url}/responses", content=content, headers=sent)


async def test_openai_client_gets_the_response_and_gets_it_again() -> None:
    desk = RecordingDesk(in_pieces)
    async with client_of(desk) as client:
        response = await client.responses.create(
            model="any", input="Hello", instructions="Be brief.", metadata={"a": "b"}, user="u1"
        )
        again = await client.responses.retrieve(response.id)
    assert response.output_text == "".join(PIECES)
    assert (response.status, response.model, response.object) == ("completed", "frontdesk", "response")
    assert (response.metadata, response.user, response.instructions) == ({"a": "b"}, "u1", "Be brief.")
    assert response.usage
    assert (response.usage.input_tokens, response.usage.total_tokens) == (10, 12)
    assert response.usage.input_tokens_details.cached_tokens == 4
    assert again.usage is None
    assert again.to_dict() | {"usage": 0} == response.to_dict() | {"usage": 0}
    assert desk.stored[0].instructions == "Be brief."
    assert desk.stored[0].history == []
    assert "turn-1-reply" in desk.collected_ids


async def test_openai_client_streams_the_response_in_the_order_of_the_api() -> None:
    async with client_of(RecordingDesk(in_pieces)) as client:
        stream = await client.responses.create(model="any", input="Hello", stream=True)
        seen = [event async for event in stream]
    assert [event.type for event in seen] == ORDER
    assert [event.sequence_number for event in seen] == list(range(len(ORDER)))
    assert "".join(event.delta for event in seen if event.type == "response.output_text.delta") == "".join(
        PIECES
    )
    last = seen[-1]
    assert last.type == "response.completed"
    assert last.response.output_text == "".join(PIECES)
    assert last.response.usage


async def test_streaming_helper_of_the_openai_client_puts_the_response_together() -> None:
    async with (
        client_of(RecordingDesk(in_pieces)) as client,
        client.responses.stream(model="any", input="Hello") as stream,
    ):
        final = await stream.get_final_response()
    assert final.output_text == "".join(PIECES)


async def test_finished_response_is_streamed_from_its_beginning_to_who_asks_later() -> None:
    desk = RecordingDesk(in_pieces)
    async with client_of(desk) as client:
        response = await client.responses.create(model="any", input="Hello")
        stream = await client.responses.retrieve(response.id, stream=True)
        seen = [event async for event in stream]
    assert (seen[0].type, seen[-1].type) == ("response.created", "response.completed")
    assert len(desk.stored) == 1


async def test_agent_with_nothing_to_say_completes_without_an_item() -> None:
    silent = Answer(seen=(events.Done(silent=True),), state=turns.TurnState.SILENT)
    async with client_of(RecordingDesk(lambda _: silent)) as client:
        whole = await client.responses.create(model="any", input="Hello")
        stream = await client.responses.create(model="any", input="Hello", stream=True)
        seen = [event.type async for event in stream]
    assert (whole.status, whole.output, whole.output_text) == ("completed", [], "")
    assert seen == ["response.created", "response.in_progress", "response.completed"]


async def test_response_goes_on_in_the_conversation_of_the_one_before() -> None:
    desk = RecordingDesk()
    async with client_of(desk) as client:
        one = await client.responses.create(model="any", input="One")
        two = await client.responses.create(model="any", input="Two", previous_response_id=one.id)
        assert two.conversation
        three = await client.responses.create(model="any", input="Three", conversation=two.conversation.id)
        four = await client.responses.create(
            model="any", input="Four", conversation={"id": two.conversation.id}
        )
    assert len({each.source for each in desk.stored}) == 1
    assert len({each.conversation and each.conversation.id for each in (one, two, three, four)}) == 1
    assert (two.previous_response_id, one.previous_response_id) == (one.id, None)
    assert desk.stored[1].follows == "turn-1"


async def test_response_after_one_that_was_gone_on_from_is_a_branch_with_what_was_said_until_then() -> None:
    desk = RecordingDesk()
    async with client_of(desk) as client:
        one = await client.responses.create(model="any", input="One")
        two = await client.responses.create(model="any", input="Two", previous_response_id=one.id)
        other = await client.responses.create(
            model="any", input="Other", previous_response_id=one.id, extra_headers={"Idempotency-Key": "k"}
        )
        again = await client.responses.create(
            model="any", input="Other", previous_response_id=one.id, extra_headers={"Idempotency-Key": "k"}
        )
    assert one.conversation == two.conversation != other.conversation
    assert (other.id, other.previous_response_id) == (again.id, one.id)
    branch = desk.stored[2]
    assert [each["content"] for each in branch.history] == ["One", "You said: One"]
    assert len(desk.stored) == 3


async def test_named_session_is_begun_by_the_header_and_gone_on_with_by_its_name() -> None:
    desk = RecordingDesk()
    said = [{"role": "user", "content": "Before"}, {"role": "user", "content": "Hello"}]
    async with endpoint(desk) as url:
        begun = await post(url, {"input": said}, x_frontdesk_session="work")
        on = await post(url, {"input": "More", "conversation": "work"})
        both = await post(url, {"input": "x", "conversation": "work"}, x_frontdesk_session="work")
    assert begun.json()["conversation"] == on.json()["conversation"] == {"id": "work"}
    assert [(each.source.chat_id, each.text) for each in desk.stored] == [
        ("ada/work", "Hello"),
        ("ada/work", "More"),
    ]
    assert (both.status_code, both.json()["error"]["param"]) == (400, "conversation")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"previous_response_id": "{}"}, "previous_response_id"),
        ({"conversation": "{}"}, "conversation"),
        ({"conversation": {"id": "{}"}}, "conversation"),
    ],
)
async def test_what_is_unknown_and_what_is_somebody_elses_are_answered_alike(
    body: dict[str, Any], param: str
) -> None:
    desk = RecordingDesk()
    async with endpoint(desk) as url:
        bobs = (await post(url, {"input": "Mine"}, user="bob")).json()
        names = {"previous_response_id": bobs["id"], "conversation": bobs["conversation"]["id"]}
        answers = []
        for name in (names[param], "resp_turn-99", "conv_" + "0" * 32, "none", "", "\0", "x" * 300, "resp_"):
            filled = json.loads(json.dumps(body).replace("{}", json.dumps(name)[1:-1]))
            answers.append(await post(url, {"input": "Hello", **filled}))
    assert {each.status_code for each in answers} == {404}
    assert len({each.text for each in answers}) == 1
    assert answers[0].json()["error"]["param"] == param
    assert len(desk.stored) == 1


async def test_response_of_somebody_else_or_not_to_be_kept_cannot_be_had() -> None:
    desk = RecordingDesk()
    async with endpoint(desk) as url, httpx.AsyncClient(trust_env=False, timeout=60) as http:
        bobs = (await post(url, {"input": "Mine"}, user="bob")).json()["id"]
        unkept = (await post(url, {"input": "Mine", "store": False})).json()["id"]
        headers = {"authorization": "Bearer ada-token-0123456789"}
        for path in ("", "/cancel"):
            answers = [
                await http.request(
                    "POST" if path else "GET", f"{url}/responses/{name}{path}", headers=headers
                )
                for name in (bobs, unkept, "resp_turn-99", "turn-1", "resp_%00", "x" * 500)
            ]
            assert {each.status_code for each in answers} == {404}
            assert len({each.text for each in answers}) == 1
        assert (await post(url, {"input": "x", "previous_response_id": unkept})).status_code == 404
    assert len(desk.stored) == 2
    assert not desk.interrupted_ids


async def test_items_become_messages_of_a_fresh_conversation() -> None:
    desk = RecordingDesk()
    image = "data:image/png;base64,AAAA"
    said: list[Any] = [
        {"role": "developer", "content": "Be kind."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "2+2?"}]},
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{}"},
        {"type": "function_call", "call_id": "c2", "name": "add", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "4"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "4"}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Four.", "annotations": []}]},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "And this?"},
                {"type": "input_image", "image_url": image, "detail": "low"},
                {"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,QQ=="},
            ],
        },
    ]
    async with client_of(desk) as client:
        await client.responses.create(model="any", input=said)
    (stored,) = desk.stored
    assert [each["role"] for each in stored.history] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    assert [call["id"] for call in stored.history[2]["tool_calls"]] == ["c1", "c2"]
    assert [stored.history[1]["content"], stored.history[5]["content"]] == ["2+2?", "Four."]
    assert stored.text == "And this?"
    assert stored.content == [
        {"type": "text", "text": "And this?"},
        {"type": "image_url", "image_url": {"url": image, "detail": "low"}},
        {"type": "file", "file": {"file_data": "data:text/plain;base64,QQ==", "filename": "a.txt"}},
    ]


async def test_all_that_is_new_in_a_conversation_that_goes_on_is_said() -> None:
    desk = RecordingDesk()
    async with client_of(desk) as client:
        one = await client.responses.create(model="any", input="One")
        said: list[Any] = [
            {"role": "system", "content": "Shout."},
            {"role": "user", "content": "Two"},
            {"role": "user", "content": [{"type": "input_text", "text": "Three"}]},
        ]
        await client.responses.create(
            model="any", input=said, previous_response_id=one.id, instructions="Be brief."
        )
        answered: list[Any] = [{"role": "assistant", "content": "No."}, *said]
        with pytest.raises(openai.BadRequestError, match="only the user's words"):
            await client.responses.create(model="any", input=answered, previous_response_id=one.id)
    assert (desk.stored[1].text, desk.stored[1].instructions) == ("Two\n\nThree", "Be brief.\n\nShout.")


MANY = [{"role": "user", "content": "x"}] * 10_001
UNUSABLE: list[tuple[Any, str | None, str]] = [
    (b"", None, "invalid_request"),
    (b"[]", None, "invalid_request"),
    (b'{"input": "a\xff"}', None, "invalid_request"),
    (b'{"input": "\\ud800"}', None, "invalid_request"),
    (b'{"input": ' + b"[" * 20_000, "input[0]", "invalid_request"),
    (b'{"input": [' + b'{"content":[' * 1_000, None, "invalid_request"),
    ({}, "input", "invalid_request"),
    ({"input": 1}, "input", "invalid_request"),
    ({"input": " "}, "input", "invalid_request"),
    ({"input": []}, "input", "invalid_request"),
    ({"input": ["Hello"]}, "input[0]", "invalid_request"),
    ({"input": [{"role": "assistant", "content": "Hi"}]}, "input", "invalid_request"),
    ({"input": [{"role": "wizard", "content": "Hi"}]}, "input[0]", "invalid_request"),
    ({"input": [{"role": "session_meta", "content": "Hi"}]}, "input[0]", "invalid_request"),
    ({"input": [{"role": "user"}]}, "input[0]", "invalid_request"),
    ({"input": [{"role": "user", "content": [1]}]}, "input[0].content[0]", "invalid_request"),
    ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type", "invalid_request"),
    ({"input": [{"type": ["message"]}]}, "input[0].type", "invalid_request"),
    (
        {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]},
        "input[0].content[0]",
        "invalid_request",
    ),
    (
        {"input": [{"role": "user", "content": [{"type": "stored_file"}]}]},
        "input[0].content[0].type",
        "invalid_request",
    ),
    ({"input": "x", "stream": "yes"}, "stream", "invalid_request"),
    ({"input": "x", "metadata": {"a": 1}}, "metadata[...]", "invalid_request"),
    ({"input": "x", "metadata": {str(n): "" for n in range(17)}}, "metadata", "invalid_request"),
    ({"input": "x", "conversation": {}}, "conversation.id", "invalid_request"),
    (
        {"input": "x", "conversation": "a", "previous_response_id": "b"},
        "previous_response_id",
        "invalid_request",
    ),
    ({"input": "x", "tools": [{"type": "web_search"}]}, "tools", "unsupported_parameter"),
    ({"input": "x", "tool_choice": "required"}, "tool_choice", "unsupported_parameter"),
    ({"input": "x", "text": {"format": {"type": "json_object"}}}, "text.format", "unsupported_parameter"),
    ({"input": "x", "prompt": {"id": "p"}}, "prompt", "unsupported_parameter"),
    ({"input": MANY}, "input", "invalid_request"),
    ({"input": [{"role": "user", "content": MANY}]}, "input", "invalid_request"),
]


async def test_unusable_request_is_refused_with_its_field_and_changes_nothing() -> None:
    desk = RecordingDesk()
    async with endpoint(desk) as url:
        for body, param, code in UNUSABLE:
            answer = await post(url, body)
            told = answer.json()["error"]
            assert (answer.status_code, told["param"], told["code"]) == (400, param, code), body
            assert told["type"] == "invalid_request_error"
    assert not desk.offered


async def test_repeated_request_gets_the_same_response_and_is_said_once() -> None:
    desk = RecordingDesk(in_pieces)
    async with endpoint(desk) as url:
        body = {"input": "Hello", "metadata": {"a": "b"}}
        one = await post(url, body, idempotency_key="k")
        two = await post(url, {"input": "Hello"}, idempotency_key="k")
        streamed = await post(url, {"input": "Hello", "stream": True}, idempotency_key="k")
    assert one.json() == two.json()
    assert one.json()["id"] in streamed.text
    assert len(desk.stored) == 1


async def test_key_with_another_message_is_refused_as_clients_know_it() -> None:
    desk = RecordingDesk(in_pieces)
    once: dict[str, Any] = {"model": "any", "extra_headers": {"Idempotency-Key": "z1"}}
    async with client_of(desk) as client:
        one = await client.responses.create(input="Hello", **once)
        on = {"previous_response_id": one.id}
        for other in (
            {"input": "Other"},
            {"input": "Hello", "instructions": "Be brief."},
            {"input": "Hello"} | on,
        ):
            for background in (False, True):
                with pytest.raises(openai.UnprocessableEntityError) as refused:
                    await client.responses.create(**other, background=background, **once)
                assert refused.value.code == "key_reused"
        assert (await client.responses.create(input="Hello", **once)).id == one.id
        # In a conversation that goes on, what the system says is heard beside the instructions.
        goes_on = on | {"model": "any", "extra_headers": {"Idempotency-Key": "z2"}}
        hello: Any = {"role": "user", "content": "Hello"}
        german: Any = [{"role": "system", "content": "Answer in German."}, hello]
        two = await client.responses.create(input=german, **goes_on)
        for other_input in ([{"role": "system", "content": "Answer in French."}, hello], [hello]):
            with pytest.raises(openai.UnprocessableEntityError):
                await client.responses.create(input=other_input, **goes_on)
        assert (await client.responses.create(input=german, **goes_on)).id == two.id
    assert len(desk.stored) == 2


async def test_failure_is_told_in_whole_in_streams_and_later() -> None:
    broken = Answer(
        seen=(events.Text(text="I"),), notice="The agent broke down.", state=turns.TurnState.FAILED
    )
    desk = RecordingDesk(lambda _: broken)
    async with client_of(desk) as client:
        with pytest.raises(openai.InternalServerError, match="broke down"):
            await client.responses.create(model="any", input="Hello")
        stream = await client.responses.create(model="any", input="Hello", stream=True)
        seen = [await anext(stream) for _ in range(6)]
        with pytest.raises(openai.APIError, match="broke down"):
            await anext(stream)
        later = await client.responses.retrieve("resp_turn-2")
    assert seen[-1].type == "response.failed"
    assert (later.status, later.output) == ("failed", [])
    assert later.error
    assert later.error.message == "The agent broke down."
    assert len(desk.stored) == 2


async def test_stopped_response_has_what_it_said_and_is_incomplete() -> None:
    stopped = Answer(seen=(events.Text(text="I th"),), text="I think", state=turns.TurnState.INTERRUPTED)
    async with client_of(RecordingDesk(lambda _: stopped)) as client:
        whole = await client.responses.create(model="any", input="Hello")
        stream = await client.responses.create(model="any", input="Hello", stream=True)
        seen = [event async for event in stream]
    assert (whole.status, whole.output_text) == ("incomplete", "I think")
    assert seen[-1].type == "response.incomplete"
    assert seen[-1].response.output_text == "I think"


async def test_response_in_the_background_is_answered_at_once_and_asked_for_later() -> None:
    desk = RecordingDesk(hanging)
    async with client_of(desk) as client:
        once = {"Idempotency-Key": "k"}
        response = await client.responses.create(
            model="any", input="Hello", background=True, extra_headers=once
        )
        running = await client.responses.retrieve(response.id)
        desk.released.set()
        done = await client.responses.retrieve(response.id)
        again = await client.responses.create(model="any", input="Hello", background=True, extra_headers=once)
    assert (response.status, running.status, done.status) == ("queued", "in_progress", "completed")
    assert (response.background, done.background, done.output_text) == (True, True, "I think so.")
    assert again == done
    assert set(desk.collected_ids) == {"turn-1-reply"}


async def test_running_response_is_cancelled() -> None:
    def stopped(_: channels.Incoming) -> Answer:
        return Answer(text="I th", state=turns.TurnState.INTERRUPTED, hangs=True)

    desk = RecordingDesk(stopped)
    async with client_of(desk) as client:
        response = await client.responses.create(model="any", input="Hello", background=True)
        ended = await client.responses.cancel(response.id)
        again = await client.responses.cancel(response.id)
    assert desk.interrupted_ids == ["turn-1"]
    assert (ended.status, again.status, ended.output_text) == ("incomplete", "incomplete", "I th")


async def test_client_that_does_not_get_the_end_is_told_where_it_is() -> None:
    desk = RecordingDesk(hanging)
    async with endpoint(desk, wait_seconds=0.1) as url:
        whole = await post(url, {"input": "Hello"})
        streamed = await post(url, {"input": "Hello", "stream": True})
    assert (whole.status_code, whole.json()["error"]["code"]) == (504, "turn_not_finished")
    assert "GET /v1/responses/resp_turn-1" in whole.json()["error"]["message"]
    assert "GET /v1/responses/resp_turn-2" in streamed.text
    assert "response.completed" not in streamed.text


async def test_answer_stays_to_be_had_when_the_client_goes_away() -> None:
    desk = RecordingDesk(hanging)
    async with endpoint(desk) as url:
        asking = asyncio.create_task(post(url, {"input": "Hello", "stream": True}))
        await desk.following.wait()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        desk.released.set()
        async with openai.AsyncOpenAI(base_url=url, api_key="ada-token-0123456789", timeout=60) as client:
            assert (await client.responses.retrieve("resp_turn-1")).output_text == "I think so."


async def test_model_is_found_by_its_name_alone() -> None:
    async with client_of(RecordingDesk(), model="our/desk") as client:
        assert (await client.models.retrieve("our/desk")).id == "our/desk"
        with pytest.raises(openai.NotFoundError) as raised:
            await client.models.retrieve("desk")
    assert (raised.value.code, raised.value.param) == ("model_not_found", "model")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/responses"),
        ("GET", "/responses/resp_turn-1"),
        ("POST", "/responses/resp_turn-1/cancel"),
        ("GET", "/models/frontdesk"),
    ],
)
async def test_nobody_gets_in_without_a_token(method: str, path: str) -> None:
    desk = RecordingDesk()
    async with endpoint(desk) as url, httpx.AsyncClient(trust_env=False, timeout=60) as http:
        answer = await http.request(method, f"{url}{path}", headers={"authorization": "Bearer nope"})
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert not desk.offered
