"""Chunks put together to a message."""

import json
from typing import Any

import pytest

from frontdesk import errors
from frontdesk.formats import completions
from frontdesk.model import events


def answer(*deltas: dict[str, Any]) -> completions.AnswerBuilder:
    made = completions.AnswerBuilder("the endpoint")
    for delta in deltas:
        made.add(completions.read_chunk(json.dumps({"choices": [{"delta": delta}]}), "the endpoint"))
    return made


def piece(arguments: str = "", **fields: Any) -> dict[str, Any]:
    function = {"arguments": arguments} | ({"name": fields.pop("name")} if "name" in fields else {})
    return {"tool_calls": [fields | {"function": function}]}


def test_calls_are_told_apart_by_their_index() -> None:
    made = answer(
        piece(index=0, id="a", name="look"),
        piece(index=1, id="b", name="find"),
        piece('{"x"', index=1),
        piece("{}", index=0),
        piece(": 1}", index=1),
    )
    assert made.calls() == (
        events.Call(id="a", name="look", arguments="{}"),
        events.Call(id="b", name="find", arguments='{"x": 1}'),
    )


def test_another_id_under_the_same_index_is_another_call() -> None:
    made = answer(piece("{}", index=0, id="a", name="look"), piece("{}", index=0, id="b", name="find"))
    assert [call.name for call in made.calls()] == ["look", "find"]


def test_repeated_id_and_name_stay_one_call() -> None:
    made = answer(piece("{", index=0, id="a", name="look"), piece("}", index=0, id="a", name="look"))
    assert made.calls() == (events.Call(id="a", name="look", arguments="{}"),)


def test_pieces_without_an_index_go_to_the_last_call() -> None:
    made = answer(piece("{", id="a", name="look"), piece("}"), piece("{}", id="b", name="find"))
    assert [(call.id, call.arguments) for call in made.calls()] == [("a", "{}"), ("b", "{}")]


def test_every_call_gets_an_id_of_its_own() -> None:
    nameless = answer(piece(index=0, id="", name="look"), piece(index=1, name="find")).calls()
    doubled = answer(piece(index=0, id="a", name="look"), piece(index=1, id="a", name="find")).calls()
    for calls in (nameless, doubled):
        assert len({call.id for call in calls}) == 2
        assert all(call.id for call in calls)
    assert nameless[0].arguments == "{}"


def test_refusal_is_what_is_said() -> None:
    assert answer({"refusal": "I will "}, {"refusal": "not."}).text == "I will not."


def test_reasoning_is_kept_under_its_names() -> None:
    made = answer(
        {"reasoning": "a", "reasoning_details": [{"text": "a"}]},
        {"reasoning": "b", "reasoning_content": "c", "reasoning_details": [{"text": "b"}]},
    )
    assert made.fields == {
        "reasoning": "ab",
        "reasoning_content": "c",
        "reasoning_details": [{"text": "a"}, {"text": "b"}],
    }


def test_second_choice_is_passed_over() -> None:
    made = completions.AnswerBuilder("the endpoint")
    text = '{"choices": [{"index": 1, "delta": {"content": "b"}}, {"index": 0, "delta": {"content": "a"}}]}'
    assert made.add(completions.read_chunk(text, "the endpoint")) == "a"


def test_counts_beyond_reason_are_bounded() -> None:
    made = completions.AnswerBuilder("the endpoint")
    text = '{"usage": {"prompt_tokens": -5, "completion_tokens": 9007199254740993}}'
    made.add(completions.read_chunk(text, "the endpoint"))
    assert made.usage is not None
    assert made.usage.checked().output_tokens == 2**53


@pytest.mark.parametrize("data", ["", "null", "7", '{"choices": [{"delta": {"content": 7}}]}'])
def test_what_is_no_chunk_is_refused(data: str) -> None:
    with pytest.raises(errors.BrokenStream):
        completions.read_chunk(data, "the endpoint")
