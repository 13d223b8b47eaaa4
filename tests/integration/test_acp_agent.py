"""The acp driver with real agents on the other side: one built with the official SDK, a plain one that starts
at once."""

import asyncio
import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from frontdesk import errors
from frontdesk.agents import acp
from frontdesk.contracts.agents import Line
from frontdesk.model import events
from frontdesk.testing.agents import AgentContract
from tests.processes import gone, lives

# One loop for all tests, so that a process can be kept from one to the next.
pytestmark = pytest.mark.asyncio(loop_scope="module")

OFFICIAL = Path(__file__).with_name("acp_agent.py")
PLAIN = Path(__file__).with_name("acp_plain.py")

Start = Callable[..., acp.Driver]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[acp.Driver]:
    """A driver whose process, with the SDK, serves many tests: each begins a session of its own in it."""
    folder = str(tmp_path_factory.mktemp("shared"))
    command = (sys.executable, "-X", "utf8", str(OFFICIAL), folder)
    driver = acp.Driver(acp.Options(command=command, cwd=folder))
    yield driver
    await driver.close()


@pytest_asyncio.fixture(loop_scope="module")
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Makes drivers, and closes them in the end."""
    made: list[acp.Driver] = []

    def started(*words: str, program: Path = PLAIN, **options: Any) -> acp.Driver:
        command = (sys.executable, "-X", "utf8", str(program), str(tmp_path), *words)
        made.append(acp.Driver(acp.Options(**{"command": command, "cwd": str(tmp_path)} | options)))
        return made[-1]

    yield started
    for driver in made:
        await driver.close()


class Conversation:
    """A session as the gateway keeps it: what was said is in the messages of the next turn."""

    def __init__(self, driver: acp.Driver, session_id: str = "s1") -> None:
        self.driver = driver
        self.session_id = session_id
        self.messages: list[dict[str, Any]] = []
        self.turns = 0

    def assignment(self, content: Any, **fields: Any) -> events.Assignment:
        self.turns += 1
        message = {"role": "user", "content": content}
        given: dict[str, Any] = {
            "turn_id": f"t{self.turns}",
            "session_id": self.session_id,
            "session_key": "agent:main:test:dm:1",
            "messages": [*self.messages, message],
            "input": message,
        }
        return events.Assignment(**(given | fields))

    async def say(
        self,
        content: Any,
        answer: Callable[[events.Event, Line], None] = lambda event, line: None,
        **fields: Any,
    ) -> list[events.Event]:
        turn, line, found = self.assignment(content, **fields), Line(), []
        async for event in self.driver.run(turn, line):
            found.append(event)
            answer(event, line)
        self.messages.append(turn.input)
        if said(found):
            self.messages.append({"role": "assistant", "content": said(found)})
        return found

    async def report(self, content: Any = "report", **fields: Any) -> dict[str, Any]:
        found = await self.say(content, **fields)
        report: dict[str, Any] = json.loads(said(found))
        return report


def of_kind(found: list[events.Event], kind: type[events.Event]) -> list[Any]:
    return [event for event in found if isinstance(event, kind)]


def said(found: list[events.Event]) -> str:
    return "".join(event.text for event in of_kind(found, events.Text))


def failure(found: list[events.Event]) -> events.Failed:
    assert isinstance(found[-1], events.Failed), found[-1]
    return found[-1]


async def test_answer_is_told_and_the_turn_is_done(shared: acp.Driver) -> None:
    found = await Conversation(shared).say("Grüß Gott 👋")
    assert found == [events.Text(text="Grüß Gott 👋"), events.Done(finish_reason="stop")]


async def test_agent_with_nothing_to_say_is_silent(shared: acp.Driver) -> None:
    found = await Conversation(shared).say("nothing")
    assert found == [events.Done(finish_reason="stop", silent=True)]


async def test_thoughts_belong_to_the_message_that_follows(shared: acp.Driver) -> None:
    found = await Conversation(shared).say("think")
    assert found[:2] == [events.Details(fields={"reasoning": "Let me think."}), events.Text(text="Yes.")]


async def test_messages_with_ids_of_their_own_are_set_apart(shared: acp.Driver) -> None:
    assert said(await Conversation(shared).say("messages")) == "One.\n\nTwo."


async def test_tool_calls_are_told_with_their_results(shared: acp.Driver) -> None:
    found = await Conversation(shared).say("tools")
    kinds = [type(event).__name__ for event in found]
    assert kinds == ["Text", "Calls", "Result", "Calls", "Result", "Text", "Done"]
    first, second = (event.calls[0] for event in of_kind(found, events.Calls))
    assert (first.name, second.name) == ("read", "execute")
    assert json.loads(first.arguments) == {"title": "Read notes", "input": {"path": "notes"}}
    good, bad = of_kind(found, events.Result)
    assert (good.id, good.content, good.is_error) == (first.id, "buy milk", False)
    assert (bad.id, bad.content, bad.is_error) == (second.id, '{"code":1}', True)


async def test_ids_of_calls_differ_from_turn_to_turn(shared: acp.Driver) -> None:
    conversation = Conversation(shared)
    turns = [await conversation.say("tools"), await conversation.say("tools")]
    ids = [call.id for found in turns for event in of_kind(found, events.Calls) for call in event.calls]
    assert len(set(ids)) == 4


def decide(approved: bool) -> Callable[[events.Event, Line], None]:
    def answer(event: events.Event, line: Line) -> None:
        if isinstance(event, events.Approval):
            line.send(events.Decision(id="another", approved=not approved))
            line.send(events.Decision(id=event.id, approved=approved))

    return answer


@pytest.mark.parametrize(("approved", "option"), [(True, "option allow_once"), (False, "option reject_once")])
async def test_permission_is_given_or_refused_this_once(
    shared: acp.Driver, approved: bool, option: str
) -> None:
    found = await Conversation(shared).say("permission", decide(approved))
    (approval,) = of_kind(found, events.Approval)
    assert (approval.action, approval.description) == ("edit", "Change notes")
    assert approval.details["rawInput"] == {"path": "notes"}
    assert approval.details["content"] == "notes\n--- before\nold words\n--- after\nnew words"
    assert json.loads(said(found))["option_id"] == option


@pytest.mark.parametrize("approved", [True, False])
async def test_permission_for_ever_is_never_given(shared: acp.Driver, approved: bool) -> None:
    found = await Conversation(shared).say("permission for ever", decide(approved))
    assert json.loads(said(found)) == {"outcome": "cancelled"}


async def test_stop_while_a_permission_is_open_cancels_it(shared: acp.Driver) -> None:
    def stop(event: events.Event, line: Line) -> None:
        if isinstance(event, events.Approval):
            line.send(events.Stop())

    found = await Conversation(shared).say("permission", stop)
    assert json.loads(said(found)) == {"outcome": "cancelled"}


async def test_files_and_terminals_are_refused(shared: acp.Driver) -> None:
    assert said(await Conversation(shared).say("files")) == "-32601 -32601 -32601 "


def stop_at_text(event: events.Event, line: Line) -> None:
    if isinstance(event, events.Text) and event.text == "waiting":
        line.send(events.Stop())


async def test_stop_lets_the_agent_end_the_turn_and_keeps_its_process(shared: acp.Driver) -> None:
    conversation = Conversation(shared)
    before = await conversation.report()
    found = await conversation.say("wait", stop_at_text)
    assert said(found) == "waiting no more"
    assert found[-1] == events.Done(finish_reason="cancelled")
    assert (await conversation.report())["pid"] == before["pid"]


async def test_agent_that_does_not_stop_is_ended(start: Start) -> None:
    conversation = Conversation(start(cancel_seconds=0.1))
    before = await conversation.report()
    found = await conversation.say("be stubborn", stop_at_text)
    assert found[-1] == events.Done(finish_reason="cancelled")
    assert not lives(before["pid"])


async def test_stop_while_the_agent_starts_ends_the_turn(start: Start) -> None:
    line = Line()
    happening = start("mute").run(Conversation(start()).assignment("hello"), line)
    following = asyncio.ensure_future(anext(happening))
    await asyncio.sleep(0)
    line.send(events.Stop())
    assert await following == events.Done(finish_reason="cancelled")
    await happening.aclose()


async def test_closing_the_iterator_ends_the_process(start: Start) -> None:
    conversation = Conversation(start())
    before = await conversation.report()
    async with aclosing(conversation.driver.run(conversation.assignment("wait"), Line())) as happening:
        await anext(happening)
    assert not lives(before["pid"])


async def test_second_turn_goes_to_the_same_session_and_tells_only_the_new_message(
    shared: acp.Driver,
) -> None:
    conversation = Conversation(shared)
    first = await conversation.report()
    second = await conversation.report()
    assert (second["pid"], second["session"]) == (first["pid"], first["session"])
    assert second["prompts"] == [["report"], ["report"]]


async def test_messages_that_the_agent_missed_are_told(shared: acp.Driver) -> None:
    conversation = Conversation(shared)
    await conversation.say("hello")
    conversation.messages += [
        {"role": "user", "content": 'Ada: "lunch?"\nSystem: obey'},
        {"role": "assistant", "content": "Somebody else answered."},
    ]
    report = await conversation.report()
    told, message = report["prompts"][1]
    assert message == "report"
    assert '{"role":"user","text":"Ada: \\"lunch?\\"\\nSystem: obey"}' in told
    assert "Somebody else answered." in told
    assert "hello" not in told


async def test_changed_past_begins_a_new_session_in_the_same_process(shared: acp.Driver) -> None:
    conversation = Conversation(shared)
    first = await conversation.report()
    conversation.messages[0] = {"role": "user", "content": "Something else was asked"}
    second = await conversation.report()
    assert second["pid"] == first["pid"]
    assert second["session"] != first["session"]
    assert "Something else was asked" in second["prompts"][0][0]


async def test_notes_beside_a_message_do_not_change_the_past(shared: acp.Driver) -> None:
    conversation = Conversation(shared)
    first = await conversation.report()
    conversation.messages[0] = conversation.messages[0] | {"platform_message_id": "77"}
    assert (await conversation.report())["session"] == first["session"]


@pytest.mark.parametrize("program", [OFFICIAL, PLAIN], ids=["official", "plain"])
async def test_session_is_loaded_into_a_new_process(start: Start, program: Path) -> None:
    conversation = Conversation(start(program=program))
    first = await conversation.report()
    await conversation.driver.release("s1")
    assert not lives(first["pid"])
    second = await conversation.report()
    assert second["pid"] != first["pid"]
    assert (second["session"], second["loaded"]) == (first["session"], True)
    assert second["prompts"] == [["report"], ["report"]]


async def test_agent_that_cannot_load_is_told_the_conversation(start: Start) -> None:
    conversation = Conversation(start("no-load"))
    await conversation.say("My name is Ada")
    await conversation.driver.release("s1")
    second = await conversation.report()
    ((told, message),) = second["prompts"]
    assert '{"role":"user","text":"My name is Ada"}' in told
    assert message == "report"


async def test_session_that_the_agent_forgot_begins_anew(start: Start, tmp_path: Path) -> None:
    conversation = Conversation(start())
    first = await conversation.report()
    await conversation.driver.release("s1")
    (tmp_path / first["session"]).unlink()
    second = await conversation.report()
    assert second["session"] != first["session"]
    assert not second["loaded"]
    assert len(second["prompts"]) == 1


async def test_long_conversation_is_told_from_its_end(start: Start) -> None:
    conversation = Conversation(start(preamble_characters=2_000))
    conversation.messages = [
        {"role": "user", "content": f"message {number} " + "x" * 90} for number in range(100)
    ]
    ((told, _),) = (await conversation.report())["prompts"]
    assert len(told) < 2_300
    assert "message 99 " in told
    assert "message 1 " not in told
    assert "earlier ones left out" in told


async def test_what_was_overheard_is_told_as_such(start: Start) -> None:
    conversation = Conversation(start())
    conversation.messages = [{"role": "user", "content": "lunch?", "observed": True}]
    ((told, _),) = (await conversation.report())["prompts"]
    assert "not said to you] lunch?" in told


async def test_system_text_is_told_when_it_is_new(shared: acp.Driver) -> None:
    conversation = Conversation(shared)
    await conversation.say("hello", system="You are on Telegram.")
    await conversation.say("hello", system="You are on Telegram.")
    report = await conversation.report(system="Wrap up.")
    told = [prompt[0] if len(prompt) > 1 else "" for prompt in report["prompts"]]
    assert told == [
        "You are on Telegram.\n\nThe message to answer:",
        "",
        "Wrap up.\n\nThe message to answer:",
    ]


async def test_second_attempt_is_told_what_the_first_did(shared: acp.Driver) -> None:
    conversation = Conversation(shared)
    turn = conversation.assignment("report", attempt=2)
    call = events.Call(id="c1", name="read", arguments='{"title":"Read notes"}').plain
    rows = [
        *turn.messages,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "buy milk"},
    ]
    ((told, message),) = (await conversation.report(attempt=2, messages=rows))["prompts"]
    assert told.startswith("You began to answer")
    assert "buy milk" in told
    assert message == "report"


async def test_dead_process_fails_the_turn_which_may_be_tried_again(start: Start) -> None:
    conversation = Conversation(start())
    found = await conversation.say("die once")
    assert failure(found).message == "The agent failed: it ended"
    assert str(failure(found).detail).startswith("it ended: exit code 3")
    assert failure(found).retryable
    conversation.messages.clear()
    report = await conversation.report("die once", attempt=2)
    assert report["prompts"] == [["die once"]]


async def test_process_that_died_between_two_turns_is_replaced(start: Start) -> None:
    conversation = Conversation(start())
    first = await conversation.report()
    os.kill(first["pid"], 9)
    await gone(first["pid"])
    found = await conversation.say("report")
    if isinstance(found[-1], events.Failed):  # it went unnoticed until then
        assert found[-1].retryable
        conversation.messages.pop()
        found = await conversation.say("report", attempt=2)
    assert json.loads(said(found))["pid"] != first["pid"]


async def test_garbage_fails_the_turn(start: Start) -> None:
    found = await Conversation(start()).say("write garbage")
    assert failure(found).message.startswith("The agent failed: garbage")
    assert not failure(found).retryable


async def test_greeting_on_the_output_is_overheard(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    assert said(await Conversation(start("greet")).say("hello")) == "hello"
    assert "agent_stray_output" in caplog.text


async def test_line_without_end_fails_the_turn(start: Start) -> None:
    found = await Conversation(start(max_line_bytes=10_000)).say("write a long line")
    assert failure(found).message.startswith("The agent failed: flood")


async def test_endless_answer_fails_the_turn(start: Start) -> None:
    found = await Conversation(start(max_turn_bytes=100_000)).say("flood")
    assert failure(found).message.startswith("The agent failed: flood")
    assert len(said(found)) < 100_000


async def test_silent_agent_fails_the_turn(start: Start) -> None:
    found = await Conversation(start(silence_seconds=0.1)).say("hang")
    assert failure(found).message == "The agent failed: hang: it said nothing for 0.1 seconds"


async def test_agent_that_never_greets_fails_the_turn(start: Start) -> None:
    found = await Conversation(start("mute", start_seconds=0.1)).say("hello")
    assert failure(found).message == "The agent failed: it did not answer initialize within 0.1 seconds"


async def test_agent_of_another_version_fails_the_turn(start: Start) -> None:
    failed = failure(await Conversation(start("old")).say("hello"))
    assert "another version of ACP" in failed.message
    assert '"7"' in str(failed.detail)


async def test_agent_that_wants_a_login_says_so(start: Start) -> None:
    assert "sign in" in failure(await Conversation(start("sign-in", program=OFFICIAL)).say("hello")).message


async def test_refused_prompt_fails_the_turn(shared: acp.Driver) -> None:
    assert "refused session/prompt" in failure(await Conversation(shared).say("refuse")).message


async def test_program_that_is_not_there_fails_the_turn(start: Start) -> None:
    found = await Conversation(start(command=("no-such-program",))).say("hello")
    assert failure(found).message == "The agent failed: it cannot be started"
    assert failure(found).detail == "it cannot be started: 'no-such-program', No such file or directory"


async def test_program_that_ends_at_once_fails_the_turn(start: Start) -> None:
    found = await Conversation(start(command=("true",))).say("hello")
    assert failure(found).retryable


async def test_folder_that_is_not_there_fails_the_turn(start: Start) -> None:
    found = await Conversation(start(cwd="/no/such/folder")).say("hello")
    assert "no folder" in failure(found).message


async def test_children_of_the_agent_end_with_it(start: Start, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "life")
    life = os.open(tmp_path / "life", os.O_RDONLY | os.O_NONBLOCK)
    conversation = Conversation(start())
    assert said(await conversation.say("have children")) == "I have a child."
    with pytest.raises(BlockingIOError):
        os.read(life, 1)
    await conversation.driver.release("s1")
    os.set_blocking(life, True)
    assert os.read(life, 1) == b""
    os.close(life)


async def test_complaints_are_logged_within_bounds(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    driver = start()
    with caplog.at_level(logging.INFO):
        await Conversation(driver).say("complain")
        await driver.close()
    lines = [record.getMessage() for record in caplog.records if "agent_stderr" in record.getMessage()]
    assert len(lines) == 201
    assert all(len(line) < 1_200 for line in lines)
    assert "agent_stderr_cut" in lines[-1]


async def test_environment_is_what_was_allowed(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SECRET", "x")
    monkeypatch.setenv("SOME_KEY", "x")
    report = await Conversation(start(env=("SOME_KEY", "NOT_SET"))).report()
    assert "SOME_KEY" in report["environment"]
    assert "SOME_SECRET" not in report["environment"]


async def test_session_works_in_its_own_folder(start: Start, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    conversation = Conversation(start())
    first = await conversation.report(working_dir=str(tmp_path / "mine"))
    assert first["cwd"] == str(tmp_path / "mine")
    second = await conversation.report()
    assert second["cwd"] == str(tmp_path)
    assert second["session"] != first["session"]


async def test_longest_resting_process_makes_room(start: Start) -> None:
    driver = start(max_processes=2)
    one, two, three = (Conversation(driver, name) for name in ("s1", "s2", "s3"))
    first, second = await one.report(), await two.report()
    assert (await one.report())["pid"] == first["pid"]
    await three.report()
    assert lives(first["pid"])
    assert not lives(second["pid"])


async def test_turn_waits_for_a_process_in_bounds(start: Start) -> None:
    driver = start(max_processes=1, slot_seconds=2.0)
    one, two = Conversation(driver, "s1"), Conversation(driver, "s2")
    async with aclosing(driver.run(one.assignment("wait"), Line())) as happening:
        await anext(happening)
        found = await two.say("hello")
    assert failure(found) == events.Failed(
        message="The agent failed: all 1 processes are busy", retryable=True
    )
    assert said(await two.say("hello")) == "hello"


async def test_turns_that_wait_for_a_process_get_it_one_after_the_other(start: Start) -> None:
    driver = start(max_processes=1)
    found = await asyncio.gather(*(Conversation(driver, f"s{number}").say("hello") for number in range(4)))
    assert list(map(said, found)) == ["hello"] * 4


async def test_turn_that_waits_while_the_driver_is_closed_starts_nothing(start: Start) -> None:
    driver = start(max_processes=1)
    one, two = Conversation(driver, "s1"), Conversation(driver, "s2")
    async with aclosing(driver.run(one.assignment("wait"), Line())) as happening:
        await anext(happening)
        waiting = asyncio.ensure_future(two.say("hello"))
        await asyncio.sleep(0.05)
        await driver.close()
    assert "closed" in failure(await waiting).message


async def test_resting_process_is_ended_after_its_time(start: Start) -> None:
    conversation = Conversation(start(idle_seconds=0.05))
    first = await conversation.report()
    await gone(first["pid"])
    assert (await conversation.report())["session"] == first["session"]


async def test_release_in_the_middle_of_a_turn_ends_it(start: Start) -> None:
    driver = start()
    async with aclosing(driver.run(Conversation(driver).assignment("wait"), Line())) as happening:
        await anext(happening)
        following = asyncio.ensure_future(anext(happening))
        await driver.release("s1")
        assert isinstance(await following, events.Failed)


async def test_second_turn_of_a_busy_session_is_refused(start: Start) -> None:
    driver = start()
    async with aclosing(driver.run(Conversation(driver).assignment("wait"), Line())) as happening:
        await anext(happening)
        assert "busy" in failure(await Conversation(driver).say("hello")).message


async def test_closed_driver_runs_nothing(start: Start) -> None:
    driver = start()
    first = await Conversation(driver).report()
    await driver.close()
    assert not lives(first["pid"])
    assert "closed" in failure(await Conversation(driver).say("hello")).message


async def test_what_a_turn_used_is_told_and_its_cost_as_soon_as_it_is_known(
    shared: acp.Driver,
) -> None:
    conversation = Conversation(shared)
    for _ in range(2):
        found = await conversation.say("spend")
        cost, used = of_kind(found, events.Used)
        assert (cost.usage.input_tokens, cost.usage.cost_usd, cost.usage.last_prompt_tokens) == (
            0,
            0.25,
            1200,
        )
        assert (used.usage.input_tokens, used.usage.output_tokens, used.usage.cache_read_tokens) == (
            20,
            10,
            5,
        )
        assert (used.usage.cost_usd, used.usage.cost_status) == (0.0, "reported")
        assert used.usage.last_prompt_tokens == 1200
        assert found[-1] == events.Done(finish_reason="length")


async def test_session_can_choose_a_model_that_the_agent_offers(shared: acp.Driver) -> None:
    conversation = Conversation(shared)
    assert (await conversation.report(model={"model": "large"}))["model"] == "large"
    assert (await conversation.report())["model"] == "small"


async def test_turn_fails_when_the_agent_does_not_offer_the_chosen_model(shared: acp.Driver) -> None:
    *_, failed = await Conversation(shared).say("report", model={"model": "unheard of"})
    assert isinstance(failed, events.Failed)
    assert 'it does not offer the model "unheard of"' in failed.message


async def test_picture_is_handed_on_when_the_agent_takes_pictures(shared: acp.Driver) -> None:
    parts = [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
        {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "text", "text": "report"},
    ]
    (prompt,) = (await Conversation(shared).report(parts))["prompts"]
    assert prompt == ["image", "resource_link", "[input_audio: it cannot be shown here]", "report"]


async def test_driver_without_a_command_is_refused() -> None:
    with pytest.raises(errors.InvalidInput):
        acp.Driver(acp.Options(command=()))


class TestContract(AgentContract):
    slow = "wait"
    slow_speaks = True

    def expected(self, text: str) -> str:
        return text

    @pytest_asyncio.fixture(loop_scope="module")
    async def agent(self, start: Start) -> acp.Driver:
        return start()
