"""The openai agent against an endpoint that is strict, and one that misbehaves."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from frontdesk import errors
from frontdesk.agents.openai import Driver, tools
from frontdesk.contracts.agents import Line
from frontdesk.formats import sse
from frontdesk.model import events
from frontdesk.model.sessions import Usage
from frontdesk.testing.agents import AgentContract
from tests.integration import endpoint, toolbox
from tests.integration.endpoint import Endpoint, Peer, chunk, event

KEY = "sk-very-secret-0123456789"
OVERLOADED = {"error": {"message": "busy"}}


@pytest.fixture
async def desk() -> AsyncIterator[Endpoint]:
    async with endpoint.serving() as served:
        yield served


@pytest.fixture
async def make(desk: Endpoint) -> AsyncIterator[Callable[..., Driver]]:
    made: list[Driver] = []

    def build(**fields: Any) -> Driver:
        given: dict[str, Any] = {
            "base_url": desk.base_url,
            "model": "m",
            "api_key": lambda: KEY,
            "backoff_seconds": 0.0,
        }
        made.append(Driver(Driver.Options(**given | fields)))
        return made[-1]

    yield build
    for driver in made:
        await driver.close()


Make = Callable[..., Driver]


class TestContract(AgentContract):
    slow = "slow"
    slow_speaks = True

    @pytest.fixture
    def agent(self, desk: Endpoint, make: Make) -> Driver:
        desk.plan(*[answering] * 100)
        return make()

    def expected(self, text: str) -> str:
        return text


async def answering(peer: Peer, asked: endpoint.Seen) -> None:
    """Says what was asked, or begins to and goes on for ever."""
    text = asked.body["messages"][-1]["content"]
    if text != TestContract.slow:
        await endpoint.saying(text)(peer, asked)
        return peer.close()
    await peer.head()
    await peer.piece(event(chunk({"content": "Well"})))
    return await peer.gone()


def turn(*messages: dict[str, Any], **fields: Any) -> events.Assignment:
    rows = messages or ({"role": "user", "content": "Hi"},)
    return events.Assignment(
        turn_id="t1", session_id="s1", session_key="k1", messages=rows, input=rows[-1], **fields
    )


async def run(driver: Driver, assignment: events.Assignment | None = None) -> list[events.Event]:
    async with aclosing(driver.run(assignment or turn(), Line())) as happening:
        return [each async for each in happening]


def text_of(happened: list[events.Event]) -> str:
    return "".join(each.text for each in happened if isinstance(each, events.Text))


def failure(happened: list[events.Event]) -> events.Failed:
    (failed,) = [each for each in happened if isinstance(each, events.Failed)]
    assert happened[-1] is failed
    return failed


async def test_answer_is_streamed_with_usage_and_reason(desk: Endpoint, make: Make) -> None:
    desk.plan(endpoint.saying("Hel", "lo", finish="length"))
    assert await run(make(extra={"temperature": 0.5}), turn(system="Be kind.")) == [
        events.Text(text="Hel"),
        events.Text(text="lo"),
        events.Used(
            usage=Usage(input_tokens=12, output_tokens=3, cache_read_tokens=4, last_prompt_tokens=12)
        ),
        events.Done(finish_reason="length"),
    ]
    (request,) = desk.seen
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "m",
        "temperature": 0.5,
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_text_is_given_before_the_answer_is_finished(desk: Endpoint, make: Make) -> None:
    heard = asyncio.Event()

    async def plan(peer: Peer, _: object = None) -> None:
        await peer.head()
        await peer.piece(event(chunk({"content": "first"})))
        await heard.wait()
        await peer.piece(event(chunk({"content": "second"}, "stop")) + event("[DONE]"))
        await peer.end()

    desk.plan(plan)
    texts = []
    async for each in make().run(turn(), Line()):
        if isinstance(each, events.Text):
            texts.append(each.text)
            heard.set()
    assert texts == ["first", "second"]


async def test_closing_the_iterator_closes_the_connection(desk: Endpoint, make: Make) -> None:
    gone = asyncio.Event()

    async def plan(peer: Peer, _: object = None) -> None:
        await peer.head()
        await peer.piece(event(chunk({"content": "first"})))
        await peer.gone()
        gone.set()

    desk.plan(plan)
    happening = make().run(turn(), Line())
    assert await anext(happening) == events.Text(text="first")
    await happening.aclose()
    await gone.wait()


async def test_cancelling_the_turn_closes_the_connection(desk: Endpoint, make: Make) -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def plan(peer: Peer, _: object = None) -> None:
        asked.set()
        await peer.gone()
        gone.set()

    desk.plan(plan)
    task = asyncio.create_task(run(make()))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await gone.wait()


async def test_connection_is_used_again_after_an_answer(desk: Endpoint, make: Make) -> None:
    ports: list[int] = []

    def noting(plan: endpoint.Plan) -> endpoint.Plan:
        async def noted(peer: Peer, asked: endpoint.Seen) -> None:
            ports.append(peer.port)
            await plan(peer, asked)

        return noted

    whole = event(chunk({"content": "a"}, "stop")) + event("[DONE]")

    async def at_once(peer: Peer, _: object = None) -> None:
        await peer.raw(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n" % len(whole)
            + whole
        )

    desk.plan(noting(at_once), noting(at_once))
    driver = make()
    assert text_of(await run(driver)) == text_of(await run(driver)) == "a"
    assert len(set(ports)) == 1


HERE = f"{toolbox.__name__}:TOOLS"


def calling(*calls: tuple[str, str, str], text: str = "") -> endpoint.Plan:
    """Tools called together, their pieces mixed, each's arguments in two."""
    first = [
        chunk({"tool_calls": [{"index": index, "id": id_, "type": "function", "function": {"name": name}}]})
        for index, (id_, name, _) in enumerate(calls)
    ]
    halves = [
        chunk({"tool_calls": [{"index": index, "function": {"arguments": half}}]})
        for part in (0, 1)
        for index, (_, _, arguments) in enumerate(calls)
        for half in [(arguments[:3], arguments[3:])[part]]
    ]
    said = [chunk({"content": text})] if text else []
    return endpoint.stream(*map(event, [*said, *first, *halves, chunk({}, "tool_calls")]), event("[DONE]"))


async def test_tools_are_called_and_their_results_sent_back(desk: Endpoint, make: Make) -> None:
    desk.plan(
        calling(("c1", "add", '{"a": 1, "b": 2}'), ("c2", "add", '{"a": 3, "b": 4}'), text="Let me see."),
        endpoint.saying("3 and 7"),
    )
    happened = await run(make(tools=HERE))
    assert happened[:4] == [
        events.Text(text="Let me see."),
        events.Calls(
            calls=(
                events.Call(id="c1", name="add", arguments='{"a": 1, "b": 2}'),
                events.Call(id="c2", name="add", arguments='{"a": 3, "b": 4}'),
            )
        ),
        events.Result(id="c1", name="add", content="3"),
        events.Result(id="c2", name="add", content="7"),
    ]
    assert happened[-1] == events.Done(finish_reason="stop")
    first, second = desk.seen
    assert [tool["function"]["name"] for tool in first.body["tools"]] == list(toolbox.TOOLS)
    assert second.body["messages"][-3:] == [
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [call.plain for call in happened[1].calls],  # type: ignore[attr-defined]
        },
        {"role": "tool", "tool_call_id": "c1", "content": "3"},
        {"role": "tool", "tool_call_id": "c2", "content": "7"},
    ]


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("crash", "{}", "RuntimeError: the tool broke"),
        ("none_such", "{}", "there is no tool 'none_such'"),
        ("add", "{broken", "the arguments are not JSON"),
        ("add", "[1, 2]", "not a JSON object"),
        ("add", '{"a": 1}', "TypeError"),
        ("sleep", "{}", "no result after 0.01 seconds"),
    ],
)
async def test_what_goes_wrong_in_a_tool_is_a_result(
    desk: Endpoint, make: Make, name: str, arguments: str, told: str
) -> None:
    desk.plan(calling(("c1", name, arguments)), endpoint.saying("Sorry."))
    happened = await run(make(tools=HERE, tool_seconds=0.01))
    (result,) = [each for each in happened if isinstance(each, events.Result)]
    assert result.is_error
    assert told in str(result.content)
    assert text_of(happened) == "Sorry."


async def test_parts_are_kept_and_long_results_cut(desk: Endpoint, make: Make) -> None:
    desk.plan(calling(("c1", "picture", "{}"), ("c2", "flood", "{}")), endpoint.saying("Nice."))
    happened = await run(make(tools=HERE))
    picture, flood = [each.content for each in happened if isinstance(each, events.Result)]
    assert picture == [{"type": "text", "text": "a cat"}]
    assert str(flood).startswith("?xxx")
    assert len(flood) < tools.MAX_RESULT_CHARACTERS + 100


async def test_rounds_of_tools_are_bounded(desk: Endpoint, make: Make) -> None:
    desk.plan(*[calling((f"c{number}", "add", '{"a":1,"b":1}')) for number in range(3)])
    failed = failure(await run(make(tools=HERE, max_rounds=3)))
    assert "max_rounds" in failed.message
    assert not failed.retryable
    assert len(desk.seen) == 3


@pytest.mark.parametrize(
    "place", ["nowhere.at.all:TOOLS", "frontdesk:NONE", "frontdesk", "frontdesk:__doc__"]
)
def test_tools_that_cannot_be_had_are_refused_at_the_start(place: str) -> None:
    with pytest.raises(errors.InvalidSetting, match="tools"):
        Driver(Driver.Options(model="m", tools=place))


@pytest.mark.parametrize("sent_back", [True, False])
async def test_reasoning_is_kept_and_sent_back_where_it_is_wanted(
    desk: Endpoint, make: Make, sent_back: bool
) -> None:
    thoughts = [chunk({"reasoning_content": "Hm, "}), chunk({"reasoning_content": "yes."})]
    call = {"index": 0, "id": "c1", "function": {"name": "add", "arguments": '{"a":1,"b":1}'}}
    asked = [*thoughts, chunk({"tool_calls": [call]}), chunk({}, "tool_calls")]
    desk.plan(endpoint.stream(*map(event, asked)), endpoint.saying("2"))
    driver = make(tools=HERE, reasoning_fields=("reasoning_content",) if sent_back else ())
    happened = await run(driver)
    details = happened.index(events.Details(fields={"reasoning_content": "Hm, yes."}))
    assert isinstance(happened[details + 1], events.Calls)
    assistant = desk.seen[1].body["messages"][1]
    assert assistant.get("reasoning_content") == ("Hm, yes." if sent_back else None)


@pytest.mark.parametrize("code", [401, 403])
async def test_refused_key_names_the_setting_and_never_the_key(desk: Endpoint, make: Make, code: int) -> None:
    desk.plan(endpoint.status(code, {"error": {"message": f"wrong key {KEY}"}}))
    failed = failure(await run(make()))
    assert not failed.retryable
    assert "check api_key_env or api_key_file" in str(failed.detail)
    assert KEY not in str(failed.detail)
    assert len(desk.seen) == 1


async def test_model_that_refuses_images_is_asked_again_without(desk: Endpoint, make: Make) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    message = {"role": "user", "content": [{"type": "text", "text": "look"}, image]}
    desk.plan(endpoint.status(400, {"error": {"message": "no vision"}}), endpoint.saying("I cannot see it"))
    assert text_of(await run(make(), turn(message))) == "I cannot see it"
    first, second = desk.seen
    assert "aGk=" in str(first)
    assert "an image that you cannot be shown" in str(second)


async def test_refusal_is_quoted_without_the_key(desk: Endpoint, make: Make) -> None:
    desk.plan(endpoint.status(400, {"error": {"message": f'no model "m"\nfor {KEY}'}}))
    failed = failure(await run(make()))
    assert '"no model \\"m\\"\\nfor …"' in str(failed.detail)
    assert not failed.retryable


@pytest.mark.parametrize("code", [408, 409, 429, 500, 502, 503, 529])
async def test_passing_trouble_is_tried_again(
    desk: Endpoint, make: Make, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    desk.plan(endpoint.status(code, OVERLOADED, Retry_After="0"), endpoint.saying("Hello"))
    with caplog.at_level(logging.DEBUG):
        assert text_of(await run(make())) == "Hello"
    assert "event=endpoint_retried" in caplog.text
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    ("code", "told"),
    [(429, "takes no more requests for now"), (503, "is in trouble"), (500, "is in trouble")],
)
async def test_trouble_is_told_as_what_it_is(desk: Endpoint, make: Make, code: int, told: str) -> None:
    desk.plan(endpoint.status(code, OVERLOADED))
    failed = failure(await run(make(retries=0)))
    assert told in failed.message
    assert "does not answer" not in f"{failed.message} {failed.detail}"
    assert failed.retryable


async def test_lasting_trouble_is_a_failure_to_be_retried_later(desk: Endpoint, make: Make) -> None:
    desk.plan(*[endpoint.status(503, OVERLOADED)] * 3)
    failed = failure(await run(make(retries=2)))
    assert failed.retryable
    assert "HTTP 503" in str(failed.detail)
    assert len(desk.seen) == 3


async def test_long_wait_is_left_to_the_gateway(desk: Endpoint, make: Make) -> None:
    tomorrow = format_datetime(datetime.now(UTC) + timedelta(days=1), usegmt=True)
    for told in ("3600", tomorrow):
        desk.plan(endpoint.status(429, OVERLOADED, Retry_After=told))
        assert failure(await run(make())).retryable
    assert len(desk.seen) == 2


async def test_date_that_has_passed_is_no_wait(desk: Endpoint, make: Make) -> None:
    desk.plan(
        endpoint.status(429, OVERLOADED, Retry_After="Sat, 01 Jan 2022 00:00:00 GMT"),
        endpoint.saying("Hello"),
    )
    assert text_of(await run(make())) == "Hello"


async def test_used_up_quota_is_not_tried_again(desk: Endpoint, make: Make) -> None:
    desk.plan(endpoint.status(429, {"error": {"message": "pay", "code": "insufficient_quota"}}))
    assert not failure(await run(make())).retryable
    assert len(desk.seen) == 1


async def test_endpoint_that_is_not_there_is_a_failure_to_be_retried(make: Make) -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    failed = failure(await run(make(base_url=f"http://127.0.0.1:{port}/v1", retries=1)))
    assert failed.retryable
    assert f"127.0.0.1:{port}" in str(failed.detail)


async def silent(peer: Peer, _: object = None) -> None:
    await peer.gone()


async def test_silence_is_a_failure_to_be_retried(desk: Endpoint, make: Make) -> None:
    desk.plan(silent, silent)
    failed = failure(await run(make(silence_seconds=0.05, retries=1)))
    assert failed.retryable
    assert len(desk.seen) == 2


async def test_slow_drip_ends_with_the_time_of_the_request(desk: Endpoint, make: Make) -> None:
    async def drip(peer: Peer, _: object = None) -> None:
        await peer.head()
        while True:
            await peer.piece(b": still here\n\n")
            await asyncio.sleep(0.01)

    desk.plan(drip)
    failed = failure(await run(make(request_seconds=0.2, retries=0)))
    assert failed.retryable
    assert "too long" in str(failed.detail)


async def test_answer_cut_off_after_its_beginning_is_not_asked_for_again(desk: Endpoint, make: Make) -> None:
    desk.plan(endpoint.cut_after(event(chunk({"content": "Once upon"}))))
    happened = await run(make())
    assert text_of(happened) == "Once upon"
    assert failure(happened).retryable
    assert len(desk.seen) == 1


async def test_answer_cut_off_before_its_first_text_is_asked_for_again(desk: Endpoint, make: Make) -> None:
    beginning = event(chunk({"role": "assistant", "content": ""}))
    thinking = event(chunk({"reasoning_content": "Hm"}))
    desk.plan(endpoint.cut_after(beginning, thinking), endpoint.saying("Hello"))
    happened = await run(make())
    assert text_of(happened) == "Hello"
    assert not [each for each in happened if isinstance(each, events.Details)]


async def test_stream_that_ends_without_its_end_is_a_cut(desk: Endpoint, make: Make) -> None:
    desk.plan(endpoint.stream(event(chunk({"content": "Once upon"}))))
    failed = failure(await run(make()))
    assert failed.retryable
    assert "cut off" in str(failed.detail)


async def test_answer_cut_off_after_its_end_is_whole(desk: Endpoint, make: Make) -> None:
    whole = event(chunk({"content": "Hello"}, "stop"))
    desk.plan(endpoint.cut_after(whole), endpoint.cut_after(whole, event("[DONE]")))
    for _ in range(2):
        assert await run(make()) == [events.Text(text="Hello"), events.Done(finish_reason="stop")]


async def test_connection_left_open_after_the_end_holds_nothing_up(desk: Endpoint, make: Make) -> None:
    async def plan(peer: Peer, _: object = None) -> None:
        await peer.head()
        await peer.piece(event(chunk({"content": "Hello"}, "stop")) + event("[DONE]"))
        await peer.gone()

    desk.plan(plan)
    assert text_of(await run(make())) == "Hello"


async def test_error_in_the_middle_of_the_stream_is_a_failure(desk: Endpoint, make: Make) -> None:
    trouble = {"error": {"message": "the machine broke", "code": 502}}
    desk.plan(endpoint.stream(event(chunk({"content": "Once"})), event(trouble)))
    failed = failure(await run(make()))
    assert failed.retryable
    assert "the machine broke" in str(failed.detail)


GARBAGE = {
    "not JSON": event("{{{"),
    "not a chunk": event({"choices": "many"}),
    "not an object": event("[1, 2]"),
    "NaN": event('{"choices": NaN}'),
    "half a character": event('{"choices": [{"delta": {"content": "\\ud83d"}}]}'),
    "not UTF-8": b"data: \xff\xfe\n\n",
    "too deep": event("[" * 100_000),
    "huge line": b"data: " + b"x" * (sse.MAX_LINE_BYTES + 1),
    "a call without a name": event(
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}, "stop")
    ),
    "calls without end": event(
        chunk({"tool_calls": [{"index": index, "id": f"c{index}"} for index in range(1000)]})
    ),
}


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE)
async def test_garbage_is_a_failure(desk: Endpoint, make: Make, data: bytes) -> None:
    desk.plan(endpoint.stream(event(chunk({"content": "Well"})), data, event("[DONE]")))
    happened = await run(make())
    assert "cannot be read" in str(failure(happened).detail)
    assert len(desk.seen) == 1


async def test_endless_stream_is_a_failure(desk: Endpoint, make: Make) -> None:
    comment = b":" + b"x" * 65_000 + b"\n"

    async def flood(peer: Peer, _: object = None) -> None:
        await peer.head()
        while True:
            await peer.piece(comment)

    desk.plan(flood)
    assert str(sse.MAX_STREAM_BYTES) in str(failure(await run(make())).detail)


@pytest.mark.parametrize(
    ("kind", "encoding"),
    [("text/html", "identity"), ("application/json", "identity"), ("text/event-stream", "gzip")],
)
async def test_answer_of_another_kind_is_a_failure(
    desk: Endpoint, make: Make, kind: str, encoding: str
) -> None:
    async def plan(peer: Peer, _: object = None) -> None:
        await peer.head(200, kind, Content_Encoding=encoding)
        await peer.piece(b"<html>")
        await peer.end()

    desk.plan(plan)
    assert "cannot be read" in str(failure(await run(make())).detail)


async def test_redirect_is_not_followed(desk: Endpoint, make: Make) -> None:
    desk.plan(endpoint.status(307, {}, Location=f"{desk.base_url}/elsewhere"))
    assert "HTTP 307" in str(failure(await run(make())).detail)
    assert len(desk.seen) == 1


async def test_key_never_goes_to_another_host(desk: Endpoint, make: Make) -> None:
    driver = make(base_url="https://api.openai.com/v1", headers={"X-Team": "private"})
    desk.plan(endpoint.saying("Hello"))
    happened = await run(driver, turn(model={"model": "other", "base_url": desk.base_url}))
    assert text_of(happened) == "Hello"
    (request,) = desk.seen
    assert request.body["model"] == "other"
    assert "authorization" not in request.headers
    assert "x-team" not in request.headers


@pytest.mark.parametrize("change", ["port", "scheme", "name"])
async def test_key_goes_to_the_configured_origin_only(desk: Endpoint, make: Make, change: str) -> None:
    configured = {
        "port": "http://127.0.0.1:1/v1",
        "scheme": desk.base_url.replace("http:", "https:"),
        "name": desk.base_url.replace("127.0.0.1", "localhost"),
    }[change]
    desk.plan(endpoint.saying("Hello"))
    await run(make(base_url=configured), turn(model={"base_url": desk.base_url}))
    assert "authorization" not in desk.seen[0].headers


async def test_key_goes_to_another_path_of_its_origin(desk: Endpoint, make: Make) -> None:
    desk.plan(endpoint.saying("Hello"))
    other = desk.base_url.replace("/v1", "/team/v1/")
    await run(make(headers={"X-Team": "ours"}), turn(model={"base_url": other}))
    assert desk.seen[0].path.split()[1] == "/team/v1/chat/completions"
    assert desk.seen[0].headers["authorization"] == f"Bearer {KEY}"
    assert desk.seen[0].headers["x-team"] == "ours"


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/passwd",
        "ftp://host/v1",
        "nonsense",
        "http://u:p@host/v1",
        "http://host:port/v1",
        "http:///v1",
    ],
)
async def test_address_of_another_kind_is_refused(make: Make, address: str) -> None:
    failed = failure(await run(make(), turn(model={"base_url": address})))
    assert "base_url" in str(failed.detail)
    assert "p@" not in str(failed.detail)
    with pytest.raises(errors.InvalidSetting, match="base_url") as refused:
        make(base_url=address)
    assert "p@" not in str(refused.value)


async def test_key_is_read_anew_for_each_request(desk: Endpoint, make: Make) -> None:
    keys = iter(["first", "second"])
    driver = make(api_key=lambda: next(keys))
    desk.plan(endpoint.saying("a"), endpoint.saying("b"))
    await run(driver)
    await run(driver)
    assert [request.headers["authorization"] for request in desk.seen] == ["Bearer first", "Bearer second"]


async def test_missing_key_is_a_failure_that_names_its_place(desk: Endpoint, make: Make) -> None:
    def secret() -> str:
        raise errors.MissingSecret(where="OPENAI_API_KEY", setting="agent.api_key")

    failed = failure(await run(make(api_key=secret)))
    assert "OPENAI_API_KEY" in str(failed.detail)
    assert desk.seen == []


@pytest.mark.parametrize("secret", ["sk-abc\r\nX-Evil: yes", "sk abc", "sk-ä", ""])
async def test_key_that_no_header_can_hold_is_refused_unshown(
    desk: Endpoint, make: Make, secret: str
) -> None:
    failed = failure(await run(make(api_key=lambda: secret)))
    assert "api_key" in str(failed.detail)
    assert not secret or secret[:6] not in str(failed.detail)
    assert desk.seen == []


async def test_endpoint_without_a_key_gets_none(desk: Endpoint, make: Make) -> None:
    desk.plan(endpoint.saying("Hello"))
    await run(make(api_key=None, include_usage=False))
    assert "authorization" not in desk.seen[0].headers
    assert "stream_options" not in desk.seen[0].body


@pytest.mark.parametrize("name", ["messages", "model", "stream", "tools"])
def test_extra_fields_do_not_replace_ours(name: str) -> None:
    with pytest.raises(errors.InvalidSetting, match="extra"):
        Driver(Driver.Options(model="m", extra={name: 1}))


@pytest.mark.parametrize("headers", [{"X-Team": "a\r\nb"}, {"X-Team": "ä"}, {"X Team": "a"}, {"": "a"}])
def test_headers_that_cannot_be_sent_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(errors.InvalidSetting, match="headers"):
        Driver(Driver.Options(model="m", headers=headers))


async def test_configured_headers_do_not_double_ours(desk: Endpoint, make: Make) -> None:
    desk.plan(endpoint.saying("Hello"))
    await run(make(api_key=None, headers={"AUTHORIZATION": "Token t", "Accept": "text/html"}))
    assert desk.seen[0].headers["authorization"] == "Token t"
    assert desk.seen[0].headers["accept"] == "text/event-stream"


async def test_many_turns_run_at_once(desk: Endpoint, make: Make) -> None:
    desk.plan(*[endpoint.saying("Hello")] * 50)
    driver = make()
    answers = await asyncio.gather(*(run(driver) for _ in range(50)))
    assert {text_of(answer) for answer in answers} == {"Hello"}


async def test_stored_conversation_is_sent_as_the_endpoint_takes_it(desk: Endpoint, make: Make) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}, "index": 0}
    desk.plan(endpoint.saying("Yes"))
    await run(
        make(),
        turn(
            {"role": "session_meta", "note": 1},
            {"role": "tool", "tool_call_id": "gone", "content": "an orphan"},
            {"role": "user", "content": "1+1?", "timestamp": "2026-01-01", "platform_message_id": "7"},
            {"role": "assistant", "content": None, "tool_calls": [call], "reasoning": "…", "token_count": 3},
            {"role": "user", "content": "lunch?", "observed": True},
            {"role": "tool", "tool_call_id": "c1", "content": "2", "tool_name": "add"},
            {"role": "assistant", "content": None},
            {"role": "user", "content": [{"type": "text", "text": "and now?"}]},
        ),
    )
    sent = desk.seen[0].body["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "user", "user"]
    assert sent[3]["content"] == "[overheard in the group, not said to you] lunch?"
    assert sent[4]["content"] == [{"type": "text", "text": "and now?"}]


async def test_stand_in_speaks_as_the_official_client_understands(desk: Endpoint, make: Make) -> None:
    official = pytest.importorskip("openai", reason="the official client is not installed")
    desk.plan(*[calling(("c1", "add", '{"a": 1, "b": 2}'), text="Let me see.")] * 2, endpoint.saying("3"))
    client = official.AsyncOpenAI(base_url=desk.base_url, api_key=KEY, max_retries=0)
    request = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
    deltas = [each.choices[0].delta async for each in await client.chat.completions.create(**request)]
    await client.close()
    happened = await run(make(tools=HERE))
    assert text_of(happened[:1]) == "".join(delta.content or "" for delta in deltas)
    pieces = [call.function for delta in deltas for call in delta.tool_calls or ()]
    (call,) = next(each.calls for each in happened if isinstance(each, events.Calls))
    assert call.name == "".join(piece.name or "" for piece in pieces)
    assert call.arguments == "".join(piece.arguments or "" for piece in pieces)


async def test_request_is_one_that_the_official_types_allow(desk: Endpoint, make: Make) -> None:
    params = pytest.importorskip(
        "openai.types.chat.completion_create_params", reason="the official client is not installed"
    )
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")
    desk.plan(calling(("c1", "add", '{"a": 1, "b": 2}')), endpoint.saying("3"))
    await run(make(tools=HERE, extra={"temperature": 0.5}), turn(system="Be kind."))
    adapter = pydantic.TypeAdapter(params.CompletionCreateParamsStreaming)
    for request in desk.seen:
        checked = adapter.validate_python(request.body)
        assert len(list(checked["messages"])) == len(request.body["messages"])
        assert len(list(checked["tools"])) == len(toolbox.TOOLS)


@pytest.mark.parametrize(
    "wrong", [b"Content-Encoding: gzip\r\n\r\nno gzip", b"\r\n" + b"[" * 100_000, b"\r\n\xff"]
)
async def test_list_of_models_that_cannot_be_read_is_none(make: Make, wrong: bytes) -> None:
    assert await checked(make, wrong) is None


async def test_list_of_models_is_read_up_to_a_bound(make: Make) -> None:
    heard = 0
    endless = b"[" * 1_000_000

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal heard
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        with suppress(ConnectionError):
            while True:
                writer.write(endless)
                await writer.drain()
                heard += len(endless)

    async with await asyncio.start_server(serve, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        assert await make(base_url=f"http://127.0.0.1:{port}/v1").check(".") is None
    assert heard < 50_000_000


async def checked(make: Make, answer: bytes) -> str | None:
    """What a check says of an endpoint that answers so."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n" + answer)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        return await make(base_url=f"http://127.0.0.1:{port}/v1").check(".")
