"""The wire form holds what it can hold, there and back."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from frontdesk.agents.openai import transcripts
from frontdesk.formats import completions, sse
from frontdesk.model import events, messages

Plain = dict[str, Any]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
FILLED = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
PARTS = st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}), min_size=1, max_size=3)
CONTENT = TEXT | PARTS
NOTES = st.dictionaries(
    st.sampled_from(["timestamp", "platform_message_id", "token_count", "finish_reason", "tool_name"]), TEXT
)
REASONING = st.dictionaries(st.sampled_from(["reasoning_content", "reasoning"]), FILLED)
ALLOWED = ("reasoning_content", "reasoning")


@st.composite
def exchanges(draw: st.DrawFn) -> list[Plain]:
    """A conversation as it is stored, of what the wire form can hold."""
    rows: list[Plain] = []
    for number in range(draw(st.integers(0, 4))):
        rows.append({"role": "user", "content": draw(CONTENT)})
        count = draw(st.integers(0, 3))
        calls = [made_call(f"c{number}_{place}", draw(FILLED), draw(FILLED)) for place in range(count)]
        content = draw(st.none() | CONTENT) if calls else draw(CONTENT)
        row: Plain = {"role": "assistant", "content": content} | draw(REASONING)
        rows.append(row | ({"tool_calls": calls} if calls else {}))
        rows += [{"role": "tool", "tool_call_id": call["id"], "content": draw(CONTENT)} for call in calls]
    return rows


def made_call(call_id: str, name: str, arguments: str) -> Plain:
    return events.Call(id=call_id, name=name, arguments=arguments).plain


@given(rows=exchanges(), notes=NOTES)
def test_wire_form_loses_nothing_that_it_can_hold(rows: list[Plain], notes: Plain) -> None:
    noted = [{**notes, **row} for row in rows]
    assert json.loads(json.dumps(transcripts.to_wire(noted, "", ALLOWED))) == rows


@given(rows=exchanges())
def test_what_is_sent_holds_nothing_that_endpoints_refuse(rows: list[Plain]) -> None:
    meta = {"role": "session_meta", "note": 1}
    orphan = {"role": "tool", "tool_call_id": "gone", "content": "late"}
    wire = transcripts.to_wire([meta, orphan, *rows, {"role": "assistant", "content": None}], "Be kind.")
    assert wire[0] == {"role": "system", "content": "Be kind."}
    assert not [message for message in wire if set(message) & {"reasoning", "reasoning_content"}]
    assert len(wire) == len(rows) + 1


@st.composite
def answers(draw: st.DrawFn) -> Plain:
    """An assistant's message as it is stored, of what a stream can hold."""
    count = draw(st.integers(0, 3))
    calls = [made_call(f"c{number}", draw(FILLED), draw(FILLED)) for number in range(count)]
    content = draw(st.none() | FILLED) if calls else draw(TEXT)
    row: Plain = {"role": "assistant", "content": content}
    return row | ({"tool_calls": calls} if calls else {}) | draw(REASONING)


def cut(draw: st.DrawFn, text: str) -> list[str]:
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


@st.composite
def streams(draw: st.DrawFn) -> tuple[Plain, bytes]:
    """A message, and the stream of its pieces; the calls' pieces are mixed."""
    message = draw(answers())
    deltas: list[Plain] = [{"role": "assistant", "content": None}]
    for name in ("reasoning", "reasoning_content", "content"):
        deltas += [{name: piece} for piece in cut(draw, message.get(name) or "")]
    later = []
    for index, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        first = {"index": index, "id": call["id"], "function": {"name": function["name"], "arguments": ""}}
        deltas.append({"tool_calls": [first]})
        later.append([(index, piece) for piece in cut(draw, function["arguments"])])
    while any(later):
        pieces = draw(st.sampled_from([pieces for pieces in later if pieces]))
        index, piece = pieces.pop(0)
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    return message, b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)


@given(streamed=streams(), size=st.integers(1, 200))
def test_what_was_streamed_is_the_message_that_is_stored(streamed: tuple[Plain, bytes], size: int) -> None:
    message, data = streamed
    reader, answer = sse.SseReader("the endpoint"), completions.AnswerBuilder("the endpoint")
    texts = [
        answer.add(completions.read_chunk(each, "the endpoint"))
        for start in range(0, len(data), size)
        for each in reader.feed(data[start : start + size])
    ]
    calls = answer.calls()
    assert transcripts.assistant(answer, calls) == message
    assert folded([*(events.Text(text=text) for text in texts), *ending(answer, calls)]) == message
    messages.pack(message)


def ending(answer: completions.AnswerBuilder, calls: tuple[events.Call, ...]) -> list[events.Event]:
    return [events.Details(fields=answer.fields), events.Calls(calls=calls)]


def folded(happened: list[events.Event]) -> Plain:
    """The message that a listener makes of the events."""
    text, fields, calls = "", dict[str, Any](), tuple[events.Call, ...]()
    for event in happened:
        match event:
            case events.Text(text=piece):
                text += piece
            case events.Details(fields=more):
                fields |= more
            case events.Calls(calls=called):
                calls = called
    message: Plain = {"role": "assistant", "content": text if text or not calls else None}
    return message | ({"tool_calls": [call.plain for call in calls]} if calls else {}) | fields


def test_overheard_messages_are_context_of_the_user() -> None:
    parts = [{"type": "image_url", "image_url": {"url": "data:,"}}]
    heard: list[Plain] = [
        {"role": "user", "content": "lunch?", "observed": True},
        {"role": "assistant", "content": "yes", "observed": True},
        {"role": "user", "content": parts, "observed": True},
    ]
    assert transcripts.to_wire(heard) == [
        {"role": "user", "content": f"{messages.OVERHEARD} lunch?"},
        {"role": "user", "content": f"{messages.OVERHEARD} yes"},
        {"role": "user", "content": [{"type": "text", "text": messages.OVERHEARD}, *parts]},
    ]


def test_reasoning_alone_is_sent_where_it_is_wanted() -> None:
    row = {"role": "assistant", "content": None, "reasoning_content": "Hm."}
    assert transcripts.to_wire([row]) == []
    assert transcripts.to_wire([row], "", ALLOWED) == [row | {"content": ""}]


def test_open_call_is_shown_as_interrupted() -> None:
    rows: list[Plain] = [
        {"role": "assistant", "tool_calls": [made_call("c1", "look", "{}")]},
        {"role": "user", "content": "?"},
    ]
    sent = transcripts.to_wire(rows)
    assert [message["role"] for message in sent] == ["assistant", "tool", "user"]
    assert sent[0]["content"] is None
