"""Conversations keep everything on their way to pydantic-ai and back."""

import base64
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    CachePoint,
    DocumentUrl,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UploadedFile,
    UserPromptPart,
    VideoUrl,
)

from frontdesk.agents.pydantic_ai import transcripts
from frontdesk.model import messages

PIXEL = base64.b64encode(b"\x89PNG").decode()
AT = datetime(2026, 8, 2, 9, 30, tzinfo=UTC)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
filled = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(text, json_values, max_size=3)


def fixed(**fields: Any) -> Any:
    """An object with these fields."""
    return st.fixed_dictionaries(
        {name: st.just(v) if isinstance(v, str) else v for name, v in fields.items()}
    )


addresses = st.just("https://example.org/a.png") | st.just(f"data:image/png;base64,{PIXEL}") | text
content_parts = st.one_of(
    fixed(type="text", text=text),
    fixed(type="image_url", image_url=fixed(url=addresses) | fixed(url=addresses, detail=json_values)),
    fixed(type="video_url", video_url=fixed(url=addresses)),
    fixed(
        type="input_audio",
        input_audio=fixed(data=st.just(PIXEL) | text, format=st.sampled_from(["wav", "ogg"])),
    ),
    fixed(
        type="file", file=fixed(file_data=addresses, filename=text) | fixed(file_id=text, provider_name=text)
    ),
    fixed(type=text, refusal=text),
    json_values,
)
contents = text | st.lists(content_parts, max_size=3)
call_ids = st.sampled_from(["call_1", "call_2", "call_3"])
calls = st.lists(
    fixed(id=call_ids, type="function", function=fixed(name=filled, arguments=text))
    | json_objects
    | json_values,
    max_size=3,
)
details = st.lists(
    fixed(type="reasoning.text", text=text)
    | fixed(
        type="reasoning.text",
        text=text,
        signature=text,
        id=text,
        provider_name=text,
        provider_details=json_objects,
    )
    | fixed(type="reasoning.encrypted", data=text)
    | json_values,
    max_size=3,
)
extras = st.fixed_dictionaries(
    {},
    optional={
        "platform_message_id": filled,
        "observed": st.booleans(),
        "timestamp": st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat) | text | st.integers(),
        "name": text,
        "reasoning": text,
        "reasoning_content": text,
        "codex_reasoning_items": json_values,
        "is_error": json_values,
    },
)
rows = st.one_of(
    fixed(role="user", content=contents),
    fixed(role="system", content=contents),
    fixed(
        role="tool", content=contents | st.just(messages.INTERRUPTED), tool_call_id=call_ids, tool_name=text
    ),
    fixed(role="tool", content=contents, tool_call_id=call_ids),
    fixed(role="tool", content=contents),
    fixed(role="assistant", content=st.none() | contents),
    fixed(role="assistant", tool_calls=calls),
    fixed(
        role="assistant",
        content=st.none() | contents,
        tool_calls=calls,
        reasoning_details=details,
        finish_reason=st.sampled_from(["stop", "tool_calls", "length", "end_turn"]) | json_values,
    ),
)
plain_messages = st.builds(lambda row, more: more | row, rows, extras | json_objects)


def in_types(value: object) -> object:
    """The value with the kind of each part, so that 1, 1.0 and true differ."""
    if isinstance(value, dict):
        return {name: in_types(part) for name, part in value.items()}
    if isinstance(value, list):
        return [in_types(part) for part in value]
    return (type(value).__name__, value)


@given(st.lists(plain_messages, max_size=6))
def test_every_chat_completions_message_comes_back_as_it_was(rows: list[dict[str, Any]]) -> None:
    assert in_types(transcripts.to_plain(transcripts.to_model(rows))) == in_types(rows)


@given(st.lists(plain_messages, max_size=4))
def test_converted_conversation_survives_pydantic_ai_own_json(rows: list[dict[str, Any]]) -> None:
    stored = ModelMessagesTypeAdapter.dump_json(transcripts.to_model(rows))
    assert transcripts.to_plain(ModelMessagesTypeAdapter.validate_json(stored)) == rows


@given(st.lists(plain_messages, max_size=4))
def test_messages_are_converted_one_to_one(rows: list[dict[str, Any]]) -> None:
    assert len(transcripts.to_model(rows)) == len(rows)


times = st.datetimes(min_value=datetime(1971, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - hypothesis adds it
images = st.binary(max_size=4).map(
    lambda data: BinaryContent.narrow_type(BinaryContent(data, media_type="image/png"))
)
shown = st.one_of(
    text,
    st.just(ImageUrl("https://example.org/a.png")),
    st.just(ImageUrl("https://example.org/a.png", vendor_metadata={"detail": "high"})),
    st.just(AudioUrl("https://example.org/a.mp3")),
    st.just(VideoUrl("https://example.org/a.mp4")),
    st.just(DocumentUrl("https://example.org/a.pdf")),
    images,
    st.binary(max_size=4).map(lambda data: BinaryContent(data, media_type="audio/mpeg")),
    st.binary(max_size=4).map(lambda data: BinaryContent(data, media_type="application/pdf")),
    st.just(UploadedFile("file-1", "openai")),
    st.just(UploadedFile("gs://bucket/file", "google-cloud")),
)
shown_contents = text | st.lists(shown, max_size=3)
thoughts = st.builds(
    ThinkingPart,
    text,
    id=st.none() | text,
    signature=st.none() | text,
    provider_name=st.none() | text,
    provider_details=st.none() | json_objects,
)
model_calls: st.SearchStrategy[ToolCallPart] = st.builds(ToolCallPart, filled, text, filled)


def answers(call: ToolCallPart, content: Any, outcome: Any, at: datetime) -> ModelRequest:
    part = ToolReturnPart(call.tool_name, content, call.tool_call_id, outcome=outcome, timestamp=at)
    return ModelRequest(parts=[part], timestamp=at)


@st.composite
def exchanges(draw: st.DrawFn) -> list[ModelMessage]:
    """What both forms can hold: one part to a request; thoughts, then texts, then calls in a response."""
    at = draw(times)
    found: list[ModelMessage] = [
        ModelRequest(parts=[SystemPromptPart(draw(text), timestamp=at)], timestamp=at),
        ModelRequest(parts=[UserPromptPart(draw(shown_contents), timestamp=at)], timestamp=at),
    ]
    texts = draw(st.just([]) | st.just([TextPart("")]) | st.lists(st.builds(TextPart, filled), max_size=2))
    made = draw(st.lists(model_calls, max_size=2, unique_by=lambda call: call.tool_call_id))
    finish: Any = draw(st.sampled_from([None, "stop", "length", "content_filter", "tool_call", "error"]))
    parts: list[Any] = [*draw(st.lists(thoughts, max_size=2)), *texts, *made]
    found.append(ModelResponse(parts=parts, timestamp=at, finish_reason=finish))
    outcomes = st.sampled_from(["success", "failed"])
    return found + [answers(call, draw(shown_contents), draw(outcomes), at) for call in made]


@given(exchanges())
def test_every_model_message_that_both_can_hold_comes_back_as_it_was(found: list[ModelMessage]) -> None:
    assert transcripts.to_model(transcripts.to_plain(found)) == found


def test_thought_keeps_its_signature_and_provider() -> None:
    thought = ThinkingPart("because", id="t1", signature="c2ln", provider_name="anthropic")
    (row,) = transcripts.to_plain([ModelResponse(parts=[thought, TextPart("so")], timestamp=AT)])
    assert row["reasoning_details"] == [
        {
            "type": "reasoning.text",
            "text": "because",
            "id": "t1",
            "signature": "c2ln",
            "provider_name": "anthropic",
        }
    ]
    (back,) = transcripts.to_model([row])
    assert back.parts[0] == thought


def test_name_of_a_result_is_found_at_its_call() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    rows: list[messages.Plain] = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    ]
    part = transcripts.to_model(rows)[1].parts[0]
    assert isinstance(part, ToolReturnPart)
    assert (part.tool_name, part.content, part.outcome) == ("weather", "sunny", "success")


def test_result_without_its_call_is_told_as_text_since_models_refuse_it() -> None:
    row = {"role": "tool", "tool_call_id": "gone", "content": "sunny"}
    found = transcripts.to_model([row])
    assert isinstance(found[0].parts[0], UserPromptPart)
    assert transcripts.to_plain(found) == [row]


def test_interrupted_call_is_known_as_such() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    rows: list[messages.Plain] = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": messages.INTERRUPTED},
    ]
    part = transcripts.to_model(rows)[1].parts[0]
    assert isinstance(part, ToolReturnPart)
    assert part.outcome == "interrupted"


@pytest.mark.parametrize("part", [{"type": "refusal", "refusal": "no"}, {"type": "image_url"}, 7])
def test_part_that_cannot_be_shown_is_named(part: Any) -> None:
    found = transcripts.to_model([{"role": "user", "content": [part]}])
    prompt = found[0].parts[0]
    assert isinstance(prompt, UserPromptPart)
    assert str(prompt.content[0]).endswith("content]")


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_what_was_overheard_is_marked(role: str) -> None:
    row = {"role": role, "content": "lunch?", "observed": True}
    found = transcripts.to_model([row])
    prompt = found[0].parts[0]
    assert isinstance(prompt, UserPromptPart)
    assert prompt.content == f"{messages.OVERHEARD} lunch?"
    assert transcripts.to_plain(found) == [row]


def test_rows_that_are_no_messages_are_left_out() -> None:
    assert transcripts.to_model([{"role": "session_meta", "tools": []}, {"role": "user", "content": "hi"}])[
        0
    ].parts


def test_structured_result_becomes_its_json_text() -> None:
    part = ToolReturnPart("look", {"a": [1, 2]}, "c1")
    assert transcripts.write_result(part) == '{"a":[1,2]}'


def test_cache_points_are_not_part_of_a_conversation() -> None:
    request = ModelRequest(parts=[UserPromptPart(["hi", CachePoint()])])
    assert transcripts.to_plain([request])[0]["content"] == [{"type": "text", "text": "hi"}]
