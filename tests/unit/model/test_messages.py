"""Transcript messages: what is accepted, what is refused, and which tool calls are open."""

import collections
import datetime
import decimal
import enum
import itertools
import json
import types
import uuid
from typing import Any

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from frontdesk import errors
from frontdesk.model.messages import (
    INTERRUPTED,
    Message,
    Role,
    conversation,
    interrupted,
    open_calls,
    pack,
    text_of,
)

CALL = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}
FORMS: list[dict[str, Any]] = [
    {"role": "user", "content": "hi"},
    {"role": "user", "content": ""},
    {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {}}]},
    {"role": "user", "content": "hi", "name": "Ada", "platform_message_id": "77", "observed": True},
    {"role": "user", "content": "hi", "timestamp": 1767225600.25, "token_count": 12},
    {"role": "system", "content": "Be brief."},
    {"role": "assistant", "content": "Hello.", "finish_reason": "stop", "token_count": 3},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "assistant", "tool_calls": [CALL, CALL | {"id": "call_2"}]},
    {
        "role": "assistant",
        "content": "",
        "reasoning": "hm",
        "reasoning_content": "hm",
        "reasoning_details": [{"type": "reasoning.text", "text": "hm", "signature": None}],
        "codex_reasoning_items": [{"id": "rs_1", "encrypted_content": "…"}],
        "codex_message_items": [{"id": "msg_1"}],
    },
    {"role": "tool", "content": "42", "tool_call_id": "call_1", "tool_name": "read"},
    {"role": "session_meta"},
    {"role": "session_meta", "tools": [{"name": "read"}], "model": "m", "anything": {"at": ["all", 1, None]}},
]
text = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)
call_ids = st.sampled_from("abcd")


def stored(message: dict[str, Any]) -> Any:
    """The message as it comes out again."""
    return msgspec.json.decode(pack(message).body)


def user(**fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": "hi"} | fields


def typed(value: Any) -> Any:
    """The value with the type of each part, since 1, 1.0 and True are equal."""
    if isinstance(value, dict):
        return {key: typed(part) for key, part in value.items()}
    if isinstance(value, list):
        return [typed(part) for part in value]
    return type(value), value


# What is accepted


@pytest.mark.parametrize("message", FORMS, ids="-".join)
def test_every_form_comes_back_as_it_went_in(message: dict[str, Any]) -> None:
    before = json.dumps(message)
    assert stored(message) == message
    assert list(stored(message)) == list(message) or "platform_message_id" in message
    assert json.dumps(message) == before
    assert pack(message).role == message["role"]


@given(text, st.sampled_from(["user", "system", "tool", "assistant"]))
@example("\x00", "user")
@example("a\x00b\u2028\ufeff\U0001f600\U0010ffff", "assistant")
def test_any_unicode_comes_back(content: str, role: str) -> None:
    assert stored({"role": role, "content": content}) == {"role": role, "content": content}


@given(values, st.dictionaries(text, values, max_size=4))
@example(1e22, {"a": 2**70, "b": -(2**63) - 1, "c": -0.0})
def test_any_json_comes_back_exactly(value: Any, fields: dict[str, Any]) -> None:
    assume(not fields.keys() & {"role", "content", "message_id", "platform_message_id", "tool_calls"})
    message = {"role": "assistant", "content": [value]} | fields
    assert typed(stored(message)) == typed(message)


@given(st.dictionaries(text, values, max_size=6))
def test_session_meta_keeps_any_fields(fields: dict[str, Any]) -> None:
    assume(not fields.keys() & {"role", "message_id", "platform_message_id"})
    message = fields | {"role": "session_meta"}
    assert typed(stored(message)) == typed(message)


def test_mapping_and_enum_are_taken_for_what_they_say() -> None:
    message = types.MappingProxyType({"role": Role.USER, "content": "hi"})
    assert msgspec.json.decode(pack(message).body) == {"role": "user", "content": "hi"}
    ordered = collections.OrderedDict(role="user", content="hi")
    assert stored(ordered) == {"role": "user", "content": "hi"}


@pytest.mark.parametrize(
    ("role", "counts"),
    [("user", True), ("assistant", True), ("tool", True), ("system", True), ("session_meta", False)],
)
def test_everything_but_session_meta_counts(role: str, counts: bool) -> None:
    assert pack({"role": role, "content": "x"}).counts is counts


def test_turn_and_position_are_kept() -> None:
    packed = pack(user(), "turn", 3)
    assert (packed.turn_id, packed.turn_position) == ("turn", 3)


@pytest.mark.parametrize(("observed", "expected"), [(True, False), (False, True), (None, True)])
def test_what_was_overheard_leaves_calls_open(observed: object, expected: bool) -> None:
    assert pack(user(observed=observed)).closes_calls is expected


# The platform's id


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"platform_message_id": "7"}, "7"),
        ({"message_id": "7"}, "7"),
        ({"message_id": 7}, "7"),
        ({"platform_message_id": 7}, "7"),
        ({"platform_message_id": "7", "message_id": "8"}, "7"),
        ({"platform_message_id": None, "message_id": "8"}, "8"),
        ({"platform_message_id": None}, None),
        ({"message_id": None}, None),
        ({"message_id": ""}, None),
        ({}, None),
    ],
)
def test_platform_id_is_read_under_both_names_as_text(fields: dict[str, Any], expected: str | None) -> None:
    packed = pack(user(**fields))
    assert packed.platform_message_id == expected
    shown = {} if expected is None else {"platform_message_id": expected}
    assert msgspec.json.decode(packed.body) == user() | shown


@pytest.mark.parametrize("name", ["platform_message_id", "message_id"])
@pytest.mark.parametrize("wrong", [True, 1.5, ["7"], {"id": 7}, b"7", "a\ud800"])
def test_platform_id_that_is_no_text_is_refused(name: str, wrong: object) -> None:
    with pytest.raises(errors.InvalidMessage):
        pack(user(**{name: wrong}))


# What is refused


@pytest.mark.parametrize("role", ["", "User", "function", "developer", None, 5, ["user"], {}])
def test_message_without_a_known_role_is_refused(role: object) -> None:
    with pytest.raises(errors.InvalidMessage, match="allowed: user, assistant, tool, system, session_meta"):
        pack({"role": role, "content": "hi"})


def test_message_without_a_role_is_refused() -> None:
    with pytest.raises(errors.InvalidMessage, match="role is None"):
        pack({"content": "hi"})


@pytest.mark.parametrize("message", [None, [], "hi", 5, [("role", "user")]])
def test_something_else_than_an_object_is_refused(message: Any) -> None:
    with pytest.raises(errors.InvalidMessage, match="expected an object"):
        pack(message)


@pytest.mark.parametrize("role", ["user", "tool", "system"])
@pytest.mark.parametrize("content", [None, 5, {"text": "hi"}, b"hi", ("hi",)])
def test_message_needs_content(role: str, content: object) -> None:
    with pytest.raises(errors.InvalidMessage, match=f"a {role} message needs content"):
        pack({"role": role, "content": content})
    with pytest.raises(errors.InvalidMessage):
        pack({"role": role})


class Colour(enum.Enum):
    RED = 1


@pytest.mark.parametrize(
    "value",
    [
        "\ud800",
        "a\udfffb",
        float("nan"),
        float("inf"),
        b"bytes",
        bytearray(b"bytes"),
        ("a", "tuple"),
        {"a", "set"},
        {1: "a number as key"},
        {None: "null as key"},
        {"a": {b"b": "bytes as key"}},
        {"\ud800": "a surrogate as key"},
        datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        decimal.Decimal("1.5"),
        uuid.UUID(int=5),
        Colour.RED,
        object(),
        Message(body=b"", role=Role.USER),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("place", ["part", "field", "deep"])
def test_what_json_cannot_give_back_is_refused(value: object, place: str) -> None:
    message = {
        "part": lambda: user(content=[value]),
        "field": lambda: user(extra=value),
        "deep": lambda: user(extra=[{"a": [value]}]),
    }[place]()
    with pytest.raises(errors.InvalidMessage):
        pack(message)


@pytest.mark.parametrize(
    "message", [{"role": "user", "content": "\ud800"}, user(**{"a\udc00": 1}), user() | {1: 2}]
)
def test_bad_text_or_key_at_the_top_is_refused(message: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidMessage):
        pack(message)


def test_endless_nesting_is_refused() -> None:
    nest: list[Any] = []
    nest.append(nest)
    with pytest.raises(errors.InvalidMessage):
        pack(user(content=nest))


# Tool calls


def assistant(*ids: str) -> Message:
    return pack({"role": "assistant", "content": None, "tool_calls": [CALL | {"id": each} for each in ids]})


def result(call_id: object) -> Message:
    return pack({"role": "tool", "content": "done", "tool_call_id": call_id})


def test_assistant_opens_the_calls_it_makes() -> None:
    assert assistant("a", "b").calls == ("a", "b")
    assert open_calls((), assistant("a", "b")) == ("a", "b")


@pytest.mark.parametrize("calls", [None, [], [{}], [{"id": ""}], ["a"]])
def test_message_without_call_ids_opens_nothing(calls: object) -> None:
    assert pack({"role": "assistant", "content": "x", "tool_calls": calls}).calls == ()


@pytest.mark.parametrize("calls", ["a", 5, {"id": "a"}])
def test_calls_that_are_no_list_are_refused(calls: object) -> None:
    with pytest.raises(errors.InvalidMessage, match="tool_calls must be a list"):
        pack({"role": "assistant", "content": "x", "tool_calls": calls})


@pytest.mark.parametrize("role", ["user", "tool", "system", "session_meta"])
def test_only_an_assistant_opens_calls(role: str) -> None:
    assert pack({"role": role, "content": "x", "tool_calls": [CALL]}).calls == ()


def test_call_named_twice_is_one_call() -> None:
    assert assistant("a", "b", "a").calls == ("a", "b")


def test_result_closes_its_call() -> None:
    assert open_calls(("a", "b"), result("a")) == ("b",)
    assert open_calls(("a",), result("z")) == ("a",)
    assert open_calls(("a",), pack({"role": "tool", "content": "x"})) == ("a",)


def test_number_as_call_id_is_closed_by_the_same_number() -> None:
    called = pack({"role": "assistant", "tool_calls": [{"id": 5}]})
    assert open_calls(open_calls((), called), result(5)) == ()


@pytest.mark.parametrize("role", ["system", "session_meta"])
def test_other_rows_leave_calls_open(role: str) -> None:
    assert open_calls(("a",), pack({"role": role, "content": "x"})) == ("a",)


def test_observed_message_leaves_calls_open() -> None:
    assert open_calls(("a",), pack(user(observed=True))) == ("a",)


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_next_message_ends_what_is_still_open(role: str) -> None:
    message = pack({"role": role, "content": "x"})
    assert message.closes_calls
    assert open_calls(("a", "b"), message) == ()


def test_next_calls_replace_those_still_open() -> None:
    assert open_calls(("a",), assistant("b")) == ("b",)


def test_interrupted_result_closes_the_call_it_names() -> None:
    closing = interrupted("a")
    assert msgspec.json.decode(closing.body) == {"role": "tool", "tool_call_id": "a", "content": INTERRUPTED}
    assert (closing.role, closing.answers, closing.counts) == (Role.TOOL, "a", True)
    assert open_calls(("a", "b"), closing) == ("b",)


messages = st.one_of(
    st.lists(call_ids, max_size=3).map(lambda ids: assistant(*ids)),
    call_ids.map(result),
    st.sampled_from([user(), user(observed=True), {"role": "session_meta"}]).map(pack),
)


@given(st.lists(messages, max_size=20))
def test_closing_what_is_open_leaves_every_call_answered(transcript: list[Message]) -> None:
    rows: list[Message] = []
    calls: tuple[str, ...] = ()
    for message in transcript:
        rows += map(interrupted, calls) if message.closes_calls else ()
        rows.append(message)
        calls = open_calls(calls, message)
    rows += map(interrupted, calls)
    for position, message in enumerate(rows):
        answering = itertools.takewhile(lambda row: not row.closes_calls, rows[position + 1 :])
        assert set(message.calls) <= {row.answers for row in answering}


# Text


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("hi", "hi"),
        ([{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}], "a\nb"),
        ([{"type": "text", "text": None}, "loose", 5], ""),
        ([], ""),
        (None, ""),
        (5, ""),
    ],
)
def test_text_of_a_message_is_its_text_parts_joined_by_line_ends(content: object, expected: str) -> None:
    assert text_of({"role": "user", "content": content}) == expected


def test_message_without_content_has_no_text() -> None:
    assert text_of({"role": "session_meta"}) == ""


# As a model takes it


def asks(*ids: str) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [{"id": each} for each in ids]}


def answer(call_id: str, text: str = "done") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def said(text: str, role: str = "user", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **more}


def test_conversation_without_calls_is_as_stored() -> None:
    stored = [said("a"), said("b", "assistant"), answer("nobody")]
    assert conversation(stored) == stored


def test_call_without_result_is_shown_as_interrupted() -> None:
    assert conversation([said("a"), asks("c1")])[-1] == answer("c1", INTERRUPTED)


def test_result_stands_directly_behind_its_call() -> None:
    overheard = said("hm", observed=True)
    assert conversation([asks("c1", "c2"), answer("c2"), overheard, answer("c1")]) == [
        asks("c1", "c2"),
        answer("c1"),
        answer("c2"),
        overheard,
    ]


def test_late_result_takes_the_place_of_the_interruption() -> None:
    late = [asks("c1"), answer("c1", INTERRUPTED), said("go on"), answer("c1", "late")]
    assert conversation(late) == [asks("c1"), answer("c1", "late"), said("go on")]


def test_call_id_that_is_used_again_belongs_to_the_latest_call() -> None:
    twice = [asks("c"), answer("c", "one"), said("again"), asks("c"), answer("c", "two")]
    assert conversation(twice) == twice


@given(st.lists(st.sampled_from(["call", "result", "user", "system"]), max_size=12))
def test_every_call_has_one_result_directly_behind_it(kinds: list[str]) -> None:
    made = {"call": asks("c"), "result": answer("c"), "user": said("u"), "system": said("s", "system")}
    shown = conversation([made[kind] for kind in kinds])
    for number, message in enumerate(shown):
        if message.get("tool_calls"):
            assert shown[number + 1]["role"] == "tool"
    first = kinds.index("call") if "call" in kinds else len(kinds)
    results = sum(message["role"] == "tool" for message in shown)
    assert results == kinds.count("call") + kinds[:first].count("result")
