"""The pydantic_ai driver over the library's own models."""

import asyncio
import json
import logging
import sys
import types
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pydantic
import pytest
from pydantic_ai import Agent, ApprovalRequired, BinaryImage, CallDeferred, ModelRetry, RunContext, ToolReturn
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel

from frontdesk import errors
from frontdesk.agents import pydantic_ai
from frontdesk.contracts.agents import Line
from frontdesk.model import events
from frontdesk.testing.agents import AgentContract

Piece = Any
Script = list[list[Piece]]


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], str]:
    """Put an agent where an importable module has it; gives the target's name."""

    def offered(found: object) -> str:
        module = types.ModuleType("some_agents")
        module.found = found  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "some_agents", module)
        return "some_agents:found"

    return offered


Offer = Callable[[object], str]


class Scripted:
    """A model that says what is written; it keeps what it was asked."""

    def __init__(self, *responses: list[Piece]) -> None:
        self.responses = list(responses)
        self.asked: list[list[ModelMessage]] = []
        self.instructions: list[str | None] = []
        self.model = FunctionModel(stream_function=self.stream)

    async def stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        self.asked.append(list(messages))
        self.instructions.append(info.instructions)
        for piece in self.responses.pop(0):
            if isinstance(piece, Exception):
                raise piece
            if isinstance(piece, asyncio.Event):
                await piece.wait()
                continue
            yield piece

    def prompts(self) -> list[object]:
        """The user prompts of the latest request."""
        parts = [part for message in self.asked[-1] for part in message.parts]
        return [part.content for part in parts if isinstance(part, UserPromptPart)]


def call(name: str, arguments: object, call_id: str = "c1") -> dict[int, DeltaToolCall]:
    return {0: DeltaToolCall(name=name, json_args=json.dumps(arguments), tool_call_id=call_id)}


def assignment(*earlier: dict[str, Any], text: str = "Weather in Graz?", **fields: Any) -> events.Assignment:
    message = {"role": "user", "content": text}
    given: dict[str, Any] = {
        "turn_id": "t1",
        "session_id": "s1",
        "session_key": "agent:main:test:dm:1",
        "messages": [*earlier, message],
        "input": message,
    }
    return events.Assignment(**(given | fields))


async def collect(
    driver: pydantic_ai.Driver,
    turn: events.Assignment | None = None,
    line: Line | None = None,
    answer: Callable[[events.Event, Line], None] = lambda event, line: None,
) -> list[events.Event]:
    line = line or Line()
    found = []
    async for event in driver.run(turn or assignment(), line):
        found.append(event)
        answer(event, line)
    return found


def of_kind(found: list[events.Event], kind: type[events.Event]) -> list[Any]:
    return [event for event in found if isinstance(event, kind)]


def said(found: list[events.Event]) -> str:
    return "".join(event.text for event in of_kind(found, events.Text))


def weather_agent(model: Any) -> Agent[None, str]:
    agent = Agent(model)

    @agent.tool_plain
    def weather(city: str) -> str:
        if city == "Atlantis":
            raise ModelRetry("There is no such city")
        return f"sunny in {city}"

    return agent


async def test_answer_comes_in_pieces_and_ends_with_done(offer: Offer) -> None:
    scripted = Scripted(["It ", "is ", "sunny."])
    found = await collect(pydantic_ai.Driver(pydantic_ai.Options(target=offer(Agent(scripted.model)))))
    assert [event.text for event in of_kind(found, events.Text)] == ["It ", "is ", "sunny."]
    assert isinstance(found[-1], events.Done)


async def test_tool_call_is_told_before_the_tool_runs(offer: Offer) -> None:
    ran: list[str] = []
    agent = Agent(Scripted(["Let me see. ", call("look", {"at": "sky"})], ["Blue."]).model)

    @agent.tool_plain
    def look(at: str) -> str:
        ran.append(at)
        return "blue"

    kinds = []
    driver = pydantic_ai.Driver(pydantic_ai.Options(target=offer(agent)))
    async for event in driver.run(assignment(), Line()):
        kinds.append(type(event).__name__)
        if isinstance(event, events.Calls):
            await asyncio.sleep(0)
            assert ran == []
            assert event.calls == (events.Call(id="c1", name="look", arguments='{"at": "sky"}'),)
        if isinstance(event, events.Result):
            assert (event.id, event.name, event.content, event.is_error) == ("c1", "look", "blue", False)
    assert kinds == ["Text", "Used", "Calls", "Result", "Text", "Used", "Done"]


async def test_what_each_request_used_is_told(offer: Offer) -> None:
    scripted = Scripted([call("weather", {"city": "Graz"})], ["Sunny."])
    found = await collect(
        pydantic_ai.Driver(pydantic_ai.Options(target=offer(weather_agent(scripted.model))))
    )
    used = of_kind(found, events.Used)
    assert len(used) == 2
    assert all(event.usage.input_tokens > 0 and event.usage.output_tokens > 0 for event in used)
    assert used[1].usage.last_prompt_tokens == used[1].usage.input_tokens


async def test_call_that_has_to_be_made_again_is_an_error_result(offer: Offer) -> None:
    scripted = Scripted(
        [call("weather", {"city": "Atlantis"})],
        [call("weather", {"town": "Graz"}, "c2")],
        [call("nothing", {}, "c3")],
        ["I do not know."],
    )
    agent = weather_agent(scripted.model)
    agent_with_retries = Agent(scripted.model, toolsets=agent.toolsets, retries=3)
    found = await collect(pydantic_ai.Driver(pydantic_ai.Options(target=offer(agent_with_retries))))
    results = of_kind(found, events.Result)
    assert [(result.id, result.is_error) for result in results] == [("c1", True), ("c2", True), ("c3", True)]
    assert "no such city" in results[0].content
    assert said(found) == "I do not know."


async def test_model_that_never_behaves_fails_the_turn(offer: Offer) -> None:
    scripted = Scripted(*([call("weather", {"city": "Atlantis"}, f"c{n}")] for n in range(5)))
    found = await collect(
        pydantic_ai.Driver(pydantic_ai.Options(target=offer(weather_agent(scripted.model))))
    )
    assert isinstance(found[-1], events.Failed)
    assert str(found[-1].detail).startswith("UnexpectedModelBehavior")
    assert not found[-1].retryable


async def test_thoughts_come_as_details_before_the_text_and_go_back_to_the_model(offer: Offer) -> None:
    thought = {0: DeltaThinkingPart(content="Graz is in Styria.", signature="c2ln")}
    scripted = Scripted(
        [thought, {1: DeltaToolCall("weather", '{"city": "Graz"}', tool_call_id="c1")}], ["Sunny."]
    )
    driver = pydantic_ai.Driver(pydantic_ai.Options(target=offer(weather_agent(scripted.model))))
    found = await collect(driver)
    (details,) = of_kind(found, events.Details)
    (written,) = details.fields["reasoning_details"]
    assert (written["text"], written["signature"]) == ("Graz is in Styria.", "c2ln")
    assert found.index(details) < found.index(of_kind(found, events.Calls)[0])

    scripted.responses.append(["Still sunny."])
    calls = [call.plain for call in of_kind(found, events.Calls)[0].calls]
    earlier = [
        {"role": "user", "content": "Weather in Graz?"},
        {"role": "assistant", "content": None, "tool_calls": calls, **details.fields},
        {"role": "tool", "tool_call_id": "c1", "content": "sunny in Graz"},
    ]
    await collect(driver, assignment(*earlier, text="And now?"))
    thoughts = [p for message in scripted.asked[-1] for p in message.parts if isinstance(p, ThinkingPart)]
    assert [(part.content, part.signature) for part in thoughts] == [("Graz is in Styria.", "c2ln")]


def dangerous_agent(model: Any, ran: list[str]) -> Agent[None, str]:
    agent = Agent(model)

    @agent.tool_plain(requires_approval=True)
    def delete(path: str) -> str:
        ran.append(path)
        return f"deleted {path}"

    @agent.tool
    def send(ctx: RunContext[object], to: str) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"why": "it leaves the house"})
        ran.append(to)
        return f"sent to {to}"

    @agent.tool_plain
    def elsewhere() -> str:
        raise CallDeferred

    return agent


def decide(approved: bool, reason: str | None = None) -> Callable[[events.Event, Line], None]:
    def answer(event: events.Event, line: Line) -> None:
        if isinstance(event, events.Approval):
            line.send(events.Decision(id=event.id, approved=approved, reason=reason))

    return answer


async def test_approved_call_runs_as_it_was_shown(offer: Offer) -> None:
    ran: list[str] = []
    scripted = Scripted([call("delete", {"path": "/tmp/x"})], ["Gone."])
    driver = pydantic_ai.Driver(pydantic_ai.Options(target=offer(dangerous_agent(scripted.model, ran))))
    found = await collect(driver, answer=decide(True))
    (approval,) = of_kind(found, events.Approval)
    assert approval.action == "delete"
    assert approval.details == {"tool": "delete", "arguments": '{"path": "/tmp/x"}'}
    assert ran == ["/tmp/x"]
    assert of_kind(found, events.Result)[0].content == "deleted /tmp/x"
    assert said(found) == "Gone."


async def test_denied_call_does_not_run_and_the_model_hears_the_reason(offer: Offer) -> None:
    ran: list[str] = []
    scripted = Scripted([call("delete", {"path": "/"})], ["All right."])
    driver = pydantic_ai.Driver(pydantic_ai.Options(target=offer(dangerous_agent(scripted.model, ran))))
    found = await collect(driver, answer=decide(False, "Not the whole disk"))
    assert ran == []
    (result,) = of_kind(found, events.Result)
    assert (result.content, result.is_error) == ("Not the whole disk", True)
    returned = [p for message in scripted.asked[-1] for p in message.parts if isinstance(p, ToolReturnPart)]
    assert returned[0].content == "Not the whole disk"


async def test_two_approvals_are_decided_each_by_its_own_id(offer: Offer) -> None:
    ran: list[str] = []
    both = call("delete", {"path": "a"}) | {1: DeltaToolCall("send", '{"to": "b"}', tool_call_id="c2")}
    driver = pydantic_ai.Driver(
        pydantic_ai.Options(target=offer(dangerous_agent(Scripted([both], ["Done."]).model, ran)))
    )
    asked: dict[str, events.Approval] = {}

    def answer(event: events.Event, line: Line) -> None:
        if isinstance(event, events.Approval):
            asked[event.action] = event
            if len(asked) == 2:
                line.send(events.Decision(id="unknown", approved=True))
                line.send(events.Decision(id=asked["send"].id, approved=True))
                line.send(events.Decision(id=asked["delete"].id, approved=False))

    found = await collect(driver, answer=answer)
    assert ran == ["b"]
    assert asked["send"].details["metadata"] == {"why": "it leaves the house"}
    assert {result.id: result.is_error for result in of_kind(found, events.Result)} == {
        "c1": True,
        "c2": False,
    }


async def test_same_call_in_another_attempt_asks_with_the_same_details(offer: Offer) -> None:
    approvals = []
    for attempt in (1, 2):
        scripted = Scripted([call("delete", {"path": "x"}, f"random{attempt}")], ["Gone."])
        driver = pydantic_ai.Driver(pydantic_ai.Options(target=offer(dangerous_agent(scripted.model, []))))
        found = await collect(driver, assignment(attempt=attempt), answer=decide(True))
        approvals += of_kind(found, events.Approval)
    first, second = approvals
    assert (first.action, first.description, first.details) == (
        second.action,
        second.description,
        second.details,
    )
    assert first.id != second.id


async def test_tool_that_somebody_else_should_run_fails_in_the_open(offer: Offer) -> None:
    scripted = Scripted([call("elsewhere", {})], ["Cannot."])
    driver = pydantic_ai.Driver(pydantic_ai.Options(target=offer(dangerous_agent(scripted.model, []))))
    found = await collect(driver)
    (result,) = of_kind(found, events.Result)
    assert result.is_error
    assert "outside of the agent" in result.content


async def test_closing_the_iterator_cancels_a_running_tool(offer: Offer) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()
    agent = Agent(Scripted([call("wait", {})]).model)

    @agent.tool_plain
    async def wait() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    driver = pydantic_ai.Driver(pydantic_ai.Options(target=offer(agent)))
    happening = driver.run(assignment(), Line())
    async with aclosing(happening):
        while not isinstance(await anext(happening), events.Calls):
            pass
        following = asyncio.ensure_future(anext(happening))
        await begun.wait()
        following.cancel()
        await asyncio.wait([following])
    assert ended.is_set()


async def test_steering_is_heard_before_the_next_request(offer: Offer) -> None:
    scripted = Scripted([call("weather", {"city": "Graz"})], ["Linz is sunny, too."])

    def steer(event: events.Event, line: Line) -> None:
        if isinstance(event, events.Calls):
            line.send(events.Steer(text="And in Linz?"))

    driver = pydantic_ai.Driver(pydantic_ai.Options(target=offer(weather_agent(scripted.model))))
    found = await collect(driver, answer=steer)
    assert scripted.prompts() == ["Weather in Graz?", "And in Linz?"]
    assert said(found) == "Linz is sunny, too."


async def test_steering_during_the_last_words_gets_an_answer_of_its_own(offer: Offer) -> None:
    scripted = Scripted(["Sunny", "."], ["Linz, too."])

    def steer(event: events.Event, line: Line) -> None:
        if isinstance(event, events.Text) and event.text == "Sunny":
            line.send(events.Steer(text="And in Linz?", id="t2"))

    line = Line()
    driver = pydantic_ai.Driver(pydantic_ai.Options(target=offer(Agent(scripted.model))))
    found = await collect(driver, line=line, answer=steer)
    assert line.has_steered("t2")
    assert scripted.prompts() == ["Weather in Graz?", "And in Linz?"]
    assert said(found) == "Sunny.\n\nLinz, too."
    assert len(of_kind(found, events.Done)) == 1


async def test_system_text_goes_in_as_instructions_of_this_run(offer: Offer) -> None:
    scripted = Scripted(["Hello."])
    agent = Agent(scripted.model, instructions="You are kind.")
    driver = pydantic_ai.Driver(pydantic_ai.Options(target=offer(agent)))
    await collect(driver, assignment(system="You are on Telegram."))
    (instructions,) = scripted.instructions
    assert instructions is not None
    assert "You are kind." in instructions
    assert "You are on Telegram." in instructions


async def test_earlier_conversation_is_known(offer: Offer) -> None:
    scripted = Scripted(["You are Ada."])
    earlier = [{"role": "user", "content": "I am Ada."}, {"role": "assistant", "content": "Hello Ada."}]
    driver = pydantic_ai.Driver(pydantic_ai.Options(target=offer(Agent(scripted.model))))
    await collect(driver, assignment(*earlier, text="Who am I?"))
    assert scripted.prompts() == ["I am Ada.", "Who am I?"]
    assert any(isinstance(m, ModelResponse) and m.text == "Hello Ada." for m in scripted.asked[-1])


async def test_second_attempt_goes_on_from_the_rows_of_the_first(offer: Offer) -> None:
    scripted = Scripted(["Sunny."])
    message = {"role": "user", "content": "Weather in Graz?"}
    tool_call = events.Call(id="c1", name="weather", arguments='{"city": "Graz"}').plain
    rows = [
        message,
        {"role": "assistant", "content": None, "tool_calls": [tool_call]},
        {"role": "tool", "tool_call_id": "c1", "content": "[interrupted: the tool call has no result]"},
    ]
    driver = pydantic_ai.Driver(pydantic_ai.Options(target=offer(weather_agent(scripted.model))))
    found = await collect(driver, assignment(attempt=2, messages=rows, input=message))
    assert said(found) == "Sunny."
    last = scripted.asked[-1][-1]
    assert isinstance(last, ModelRequest)
    assert isinstance(last.parts[-1], ToolReturnPart)
    assert last.parts[-1].outcome == "interrupted"
    assert scripted.prompts() == ["Weather in Graz?"]


class City(pydantic.BaseModel):
    name: str
    sunny: bool


async def test_structured_answer_is_told_as_json(offer: Offer) -> None:
    agent = Agent(TestModel(custom_output_args={"name": "Graz", "sunny": True}), output_type=City)
    found = await collect(pydantic_ai.Driver(pydantic_ai.Options(target=offer(agent))))
    assert json.loads(said(found)) == {"name": "Graz", "sunny": True}
    assert of_kind(found, events.Calls) == []


async def test_picture_that_a_tool_adds_is_part_of_its_result(offer: Offer) -> None:
    agent = Agent(Scripted([call("draw", {})], ["Here."]).model)

    @agent.tool_plain
    def draw() -> ToolReturn:
        return ToolReturn("a cat", content=["Look:", BinaryImage(b"PNG", media_type="image/png")])

    found = await collect(pydantic_ai.Driver(pydantic_ai.Options(target=offer(agent))))
    (result,) = of_kind(found, events.Result)
    assert [part["type"] for part in result.content] == ["text", "text", "image_url"]


async def test_model_that_cannot_stream_answers_at_once(offer: Offer) -> None:
    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse(parts=[TextPart("Wait."), ToolCallPart("weather", {"city": "Graz"}, "c1")])
        return ModelResponse(parts=[TextPart("Sunny.")])

    driver = pydantic_ai.Driver(
        pydantic_ai.Options(target=offer(weather_agent(FunctionModel(respond))), stream=False)
    )
    found = await collect(driver)
    kinds = [type(event).__name__ for event in found]
    assert kinds == ["Text", "Used", "Calls", "Result", "Text", "Used", "Done"]
    assert of_kind(found, events.Calls)[0].calls[0].arguments == '{"city":"Graz"}'


async def test_limit_of_requests_fails_the_turn(offer: Offer) -> None:
    scripted = Scripted([call("weather", {"city": "Graz"})], ["Sunny."])
    driver = pydantic_ai.Driver(
        pydantic_ai.Options(target=offer(weather_agent(scripted.model)), max_requests=1)
    )
    found = await collect(driver)
    assert isinstance(found[-1], events.Failed)
    assert str(found[-1].detail).startswith("UsageLimitExceeded")
    assert not found[-1].retryable


@pytest.mark.parametrize(
    ("status", "retryable"), [(429, True), (503, True), (500, True), (400, False), (401, False)]
)
async def test_refusal_of_the_provider_fails_the_turn(offer: Offer, status: int, retryable: bool) -> None:
    refusal = ModelHTTPError(status, "some-model", {"error": "key sk-secret is wrong"})
    found = await collect(
        pydantic_ai.Driver(pydantic_ai.Options(target=offer(Agent(Scripted([refusal]).model))))
    )
    assert isinstance(found[-1], events.Failed)
    assert found[-1].retryable is retryable
    assert str(status) in found[-1].message
    assert "secret" not in str(found[-1].detail)


async def test_model_that_refuses_images_is_asked_again_without(offer: Offer) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    message = {"role": "user", "content": [{"type": "text", "text": "look"}, image]}
    scripted = Scripted([ModelHTTPError(400, "some-model", {})], ["I cannot see it"])
    driver = pydantic_ai.Driver(pydantic_ai.Options(target=offer(Agent(scripted.model))))
    found = await collect(driver, assignment(messages=[message], input=message))
    assert of_kind(found, events.Text) == [events.Text(text="I cannot see it")]
    assert scripted.prompts() == [["look", "[an image that you cannot be shown]"]]


async def test_unforeseen_error_of_a_tool_is_logged_and_fails_the_turn(
    offer: Offer, caplog: pytest.LogCaptureFixture
) -> None:
    agent = Agent(Scripted([call("boom", {})]).model)

    @agent.tool_plain
    def boom() -> str:
        raise ZeroDivisionError

    with caplog.at_level(logging.ERROR):
        found = await collect(pydantic_ai.Driver(pydantic_ai.Options(target=offer(agent))))
    assert found[-1] == events.Failed(message="The agent failed: ZeroDivisionError")
    assert "agent_run_failed" in caplog.text


async def test_tool_that_cancels_itself_does_not_leave_the_turn_hanging(offer: Offer) -> None:
    agent = Agent(Scripted([call("vanish", {})]).model)

    @agent.tool_plain
    async def vanish() -> str:
        raise asyncio.CancelledError

    found = await collect(pydantic_ai.Driver(pydantic_ai.Options(target=offer(agent))))
    assert isinstance(found[-1], events.Failed)


async def test_model_by_name_needs_no_target() -> None:
    driver = pydantic_ai.Driver(pydantic_ai.Options(model="test", instructions="Be brief."))
    assert said(await collect(driver)) == "success (no tool calls)"


async def test_session_can_choose_another_model(offer: Offer) -> None:
    scripted = Scripted()
    driver = pydantic_ai.Driver(pydantic_ai.Options(target=offer(Agent(scripted.model))))
    found = await collect(driver, assignment(model={"model": "test"}))
    assert said(found) == "success (no tool calls)"
    assert scripted.asked == []


async def test_unknown_model_fails_the_turn() -> None:
    found = await collect(pydantic_ai.Driver(pydantic_ai.Options(model="nobody:knows")))
    assert isinstance(found[-1], events.Failed)
    assert "nobody:knows" in str(found[-1].detail)


async def test_function_that_makes_the_agent_is_a_target(offer: Offer) -> None:
    driver = pydantic_ai.Driver(pydantic_ai.Options(target=offer(lambda: Agent(TestModel()))))
    assert said(await collect(driver))


@pytest.mark.parametrize("target", ["no_such_package:agent", "json:agent", "json:dumps_nothing"])
def test_target_that_cannot_be_found_is_refused(target: str) -> None:
    with pytest.raises(errors.AgentFailed, match=target.partition(":")[0]):
        pydantic_ai.Driver(pydantic_ai.Options(target=target))


def test_target_that_is_no_agent_is_refused(offer: Offer) -> None:
    with pytest.raises(errors.AgentFailed, match="int"):
        pydantic_ai.Driver(pydantic_ai.Options(target=offer(7)))


@pytest.mark.parametrize("options", [{}, {"target": "nothing"}, {"model": "test", "max_requests": 0}])
def test_options_that_make_no_agent_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidInput):
        pydantic_ai.Driver(pydantic_ai.Options(**options))


async def test_missing_key_fails_the_turn_by_name() -> None:
    def no_key() -> str:
        raise errors.MissingSecret(where="OPENAI_API_KEY", setting="agent.api_key")

    found = await collect(pydantic_ai.Driver(pydantic_ai.Options(model="openai-chat:x", api_key=no_key)))
    assert isinstance(found[-1], events.Failed)
    assert "OPENAI_API_KEY" in str(found[-1].detail)


class Endpoint(ThreadingHTTPServer):
    """A chat-completions endpoint of one sentence, which keeps what came in."""

    requests: list[tuple[dict[str, str], dict[str, Any]]]
    status = 200


class Answer(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append((headers, body))
        self.send_response(self.server.status)
        if self.server.status != 200:
            self.send_header("content-length", "0")
            self.end_headers()
            return
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for data in self.chunks():
            self.wfile.write(f"data: {data}\n\n".encode())

    def chunks(self) -> Iterator[str]:
        frame = {"id": "r1", "object": "chat.completion.chunk", "created": 1, "model": "small"}
        for delta, finish in (({"role": "assistant", "content": "Hi "}, None), ({"content": "Ada."}, "stop")):
            yield json.dumps(frame | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
        usage = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
        yield json.dumps(frame | {"choices": [], "usage": usage})
        yield "[DONE]"

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = Endpoint(("127.0.0.1", 0), Answer)
    server.requests = []
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def address_of(server: Endpoint) -> str:
    return f"http://127.0.0.1:{server.server_port}/v1"


async def test_real_provider_class_streams_over_http(endpoint: Endpoint) -> None:
    options = pydantic_ai.Options(
        model="openai-chat:small",
        base_url=address_of(endpoint),
        api_key=lambda: "sk-mine",
        settings={"temperature": 0.5},
    )
    found = await collect(pydantic_ai.Driver(options))
    assert said(found) == "Hi Ada."
    assert found[-1] == events.Done(finish_reason="stop")
    (used,) = of_kind(found, events.Used)
    assert (used.usage.input_tokens, used.usage.output_tokens) == (11, 3)
    ((headers, body),) = endpoint.requests
    assert headers["authorization"] == "Bearer sk-mine"
    assert (body["model"], body["temperature"]) == ("small", 0.5)


async def test_configured_key_is_not_sent_to_an_address_that_a_session_chose(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
    options = pydantic_ai.Options(model="openai-chat:small", api_key=lambda: "sk-mine")
    override = {"model": "other", "provider": "openai-chat", "base_url": address_of(endpoint)}
    found = await collect(pydantic_ai.Driver(options), assignment(model=override))
    assert said(found) == "Hi Ada."
    ((headers, body),) = endpoint.requests
    assert headers["authorization"] == "Bearer none"
    assert body["model"] == "other"


async def test_overloaded_server_is_worth_another_try(endpoint: Endpoint) -> None:
    endpoint.status = 503
    options = pydantic_ai.Options(
        model="openai-chat:small", base_url=address_of(endpoint), api_key=lambda: "sk-mine"
    )
    found = await collect(pydantic_ai.Driver(options))
    assert isinstance(found[-1], events.Failed)
    assert found[-1].retryable


async def test_server_that_is_not_there_is_worth_another_try() -> None:
    options = pydantic_ai.Options(
        model="openai-chat:small", base_url="http://127.0.0.1:9/v1", api_key=lambda: "sk-mine"
    )
    found = await collect(pydantic_ai.Driver(options))
    assert isinstance(found[-1], events.Failed)
    assert found[-1].retryable


class TestContract(AgentContract):
    slow = "take your time"
    slow_speaks = True

    def expected(self, text: str) -> str:
        return text

    @pytest.fixture
    async def agent(self, offer: Offer) -> AsyncIterator[pydantic_ai.Driver]:
        async def say_back(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
            part = messages[-1].parts[-1]
            assert isinstance(part, UserPromptPart)
            yield str(part.content)
            if part.content == self.slow:
                await asyncio.Event().wait()

        target = offer(Agent(FunctionModel(stream_function=say_back)))
        driver = pydantic_ai.Driver(pydantic_ai.Options(target=target))
        yield driver
        await driver.close()
