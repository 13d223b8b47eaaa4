"""What a webhook's body may hold, and that nothing in it breaks the reading."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import errors
from frontdesk.channels.webhook import inbound
from frontdesk.contracts import channels
from frontdesk.model.sources import ChatType
from tests import counts, fuzzing

MAX_TEXT = 100
FULL = {
    "id": "event-1",
    "chat_id": "chat-1",
    "chat_type": "group",
    "chat_name": "Team",
    "chat_topic": "Work",
    "user_id": "user-1",
    "user_name": "Ada",
    "thread_id": "thread-1",
    "scope_id": "scope-1",
    "parent_chat_id": "parent-1",
    "message_id": "message-1",
    "observed": True,
    "sent_at": "2026-01-05T12:00:00Z",
    "text": "Hello",
}


def read(body: bytes) -> channels.Incoming:
    return inbound.read_message(body, "msg_1", "billing", MAX_TEXT)


def read_fields(**fields: Any) -> channels.Incoming:
    return read(json.dumps({"text": "Hello", **fields}).encode())


def test_every_field_is_taken_over() -> None:
    incoming = read(json.dumps(FULL).encode())
    source = incoming.source.to_dict()
    taken = {"text": "Hello", "id": incoming.event_id, "observed": True, "sent_at": FULL["sent_at"], **source}
    assert {name: taken[name] for name in FULL} == FULL
    assert (source["platform"], source["account"]) == ("webhook", "billing")
    assert incoming.sent_at == datetime(2026, 1, 5, 12, tzinfo=UTC)
    assert incoming.source.chat_type is ChatType.GROUP


@pytest.mark.parametrize("name", ["chat_id", "user_id", "thread_id", "scope_id", "message_id"])
@pytest.mark.parametrize("value", [0, -1, 2**53 + 1])
def test_number_as_id_becomes_text(name: str, value: int) -> None:
    assert getattr(read_fields(**{name: value}).source, name) == str(value)


@pytest.mark.parametrize(("value", "event_id"), [("a", "a"), (7, "7"), (None, "msg_1"), ("", "msg_1")])
def test_event_id_is_that_of_the_body_or_of_the_signature(value: object, event_id: str) -> None:
    assert read_fields(id=value).event_id == event_id


def test_unknown_fields_are_passed_over() -> None:
    forged = {"is_bot": True, "role_authorized": True, "platform": "local", "account": "x", "new": [{}]}
    assert read_fields(**forged) == read_fields()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("text", None),
        ("text", 1),
        ("text", ""),
        ("text", " \n"),
        ("id", True),
        ("id", "x" * 501),
        ("chat_id", 1.5),
        ("chat_id", []),
        ("chat_id", 2**64),
        ("chat_type", "party"),
        ("user_name", 1),
        ("observed", "yes"),
        ("sent_at", "2026-01-05T12:00:00"),
        ("sent_at", "soon"),
        ("in_reply_to", None),
        ("in_reply_to", "event-1"),
    ],
)
def test_bad_field_is_named(field: str, value: object) -> None:
    with pytest.raises(errors.InvalidInput, match=field):
        read_fields(**{field: value})


def test_missing_text_is_named() -> None:
    with pytest.raises(errors.InvalidInput, match="text"):
        read(b"{}")


def test_longest_text_is_taken_and_a_longer_one_refused() -> None:
    assert len(read_fields(text="ü" * MAX_TEXT).text) == MAX_TEXT
    with pytest.raises(errors.InvalidMessage, match=f"longer than {MAX_TEXT} characters"):
        read_fields(text="ü" * (MAX_TEXT + 1))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b'{"text": "a"} x',
        b'{"text": NaN}',
        b'{"text": "\xff"}',
        b'{"text": "\xed\xa0\x80"}',
        b'{"text": "\\ud800"}',
        b'{"text": "a", "new": ' + b"[" * 100_000,
    ],
)
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(errors.InvalidInput):
        read(body)


def test_refusal_is_short_whatever_was_sent() -> None:
    with pytest.raises(errors.InvalidInput) as refused:
        read_fields(chat_type="x" * 5000)
    assert len(str(refused.value)) < 300


def is_read_or_refused(body: bytes) -> bool:
    try:
        return isinstance(read(body), channels.Incoming)
    except errors.InvalidInput as error:
        return bool(str(error))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.prove
@given(body=st.binary())
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    assert is_read_or_refused(body)


@pytest.mark.prove
@given(fields=st.fixed_dictionaries({}, optional=dict.fromkeys((*FULL, "in_reply_to", "other"), JSON)))
def test_any_values_of_the_fields_are_read_or_refused(fields: dict[str, Any]) -> None:
    assert is_read_or_refused(json.dumps(fields).encode())


@pytest.mark.prove
def test_any_change_to_a_good_body_is_read_or_refused(tell: counts.Tell) -> None:
    good = json.dumps(FULL, ensure_ascii=False).encode()
    fuzzing.read_or_refused(
        lambda chance: fuzzing.changed_bytes(good, chance),
        lambda body: [read(body)],
        tell,
        of="the webhook",
        reduced=5_000,
        check=lambda happening: None,
    )


@pytest.mark.parametrize(
    "attachments", [[{"url": "https://example.org/a.pdf"}], ["a.pdf"], {"a": 1}, "a.pdf"]
)
def test_message_with_files_is_refused_with_what_to_do(attachments: Any) -> None:
    with pytest.raises(errors.InvalidInput, match="`attachments`: files cannot be taken yet"):
        read_fields(attachments=attachments)


@pytest.mark.parametrize("attachments", [[], None])
def test_message_that_says_it_has_no_files_is_taken(attachments: Any) -> None:
    assert read_fields(attachments=attachments).text == "Hello"
