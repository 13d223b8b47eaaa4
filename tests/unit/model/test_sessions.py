"""Sessions: the entry's JSON form, old ones included, and how one generation follows another."""

import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import errors
from frontdesk.model.keys import build_session_key, check_session_id
from frontdesk.model.platforms import Platform
from frontdesk.model.policies import AUTOMATIC, EndReason
from frontdesk.model.sessions import (
    MAX_COUNT,
    REOPENING,
    SERVED_BOUNDARIES_KEPT,
    Relation,
    Reopening,
    Session,
    SessionEntry,
    SessionStatus,
    Usage,
    clean_override,
    new_session_id,
    with_boundary,
)
from frontdesk.model.sources import ChatType, SessionSource
from tests.unit.model import strategies

NOW = datetime(2026, 5, 5, 12, 30, 15, 250, tzinfo=UTC)
LATER = NOW + timedelta(hours=3)
SOURCE = SessionSource(platform=Platform.TELEGRAM, chat_id="-100", chat_type=ChatType.GROUP, user_id="7")
OLD = {
    "session_key": "agent:main:telegram:dm:5",
    "session_id": "20240102_030405_0a1b2c3d",
    "created_at": "2024-01-02T03:04:05+00:00",
    "updated_at": "2024-01-02T04:04:05+00:00",
}
DEFAULTS = {
    "display_name": None,
    "platform": None,
    "chat_type": "dm",
    "input_tokens": 0,
    "output_tokens": 0,
    "cache_read_tokens": 0,
    "cache_write_tokens": 0,
    "total_tokens": 0,
    "last_prompt_tokens": 0,
    "estimated_cost_usd": 0.0,
    "cost_status": "unknown",
    "message_count": 0,
    "was_auto_reset": False,
    "auto_reset_reason": None,
    "reset_had_activity": False,
    "is_fresh_reset": False,
    "expiry_finalized": False,
    "suspended": False,
    "resume_pending": False,
    "resume_reason": None,
    "last_resume_marked_at": None,
}
SECRET = "sk-live-0123456789"

times = st.datetimes(datetime(1980, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
tallies = st.integers(0, MAX_COUNT)
overrides = st.fixed_dictionaries({}, optional={name: st.just("x") for name in ("model", "provider")})
as_stored = st.just(msgspec.structs.replace(SOURCE, thread_id="9", scope_id="s")) | st.none()
entries = st.builds(
    SessionEntry,
    session_key=strategies.sources().map(build_session_key),
    session_id=st.just("20240102_030405_0a1b2c3d"),
    created_at=times,
    updated_at=times,
    origin=as_stored,
    display_name=st.none() | st.text(st.characters(exclude_categories=["Cs"])),
    platform=st.none() | strategies.any_platform,
    chat_type=strategies.any_chat_type,
    input_tokens=tallies,
    output_tokens=tallies,
    cache_read_tokens=tallies,
    cache_write_tokens=tallies,
    last_prompt_tokens=tallies,
    estimated_cost_usd=st.floats(0, 1e9),
    cost_status=st.sampled_from(["unknown", "estimated", "included"]),
    message_count=tallies,
    was_auto_reset=st.booleans(),
    auto_reset_reason=st.none() | st.sampled_from(sorted(AUTOMATIC)),
    reset_had_activity=st.booleans(),
    is_fresh_reset=st.booleans(),
    expiry_finalized=st.booleans(),
    suspended=st.booleans(),
    resume_pending=st.booleans(),
    resume_reason=st.none() | st.just("restart_timeout"),
    last_resume_marked_at=st.none() | times,
    model_override=st.none() | overrides,
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def entry(**fields: Any) -> SessionEntry:
    needed: dict[str, Any] = {
        "session_key": OLD["session_key"],
        "session_id": OLD["session_id"],
        "created_at": NOW,
        "updated_at": NOW,
    }
    return SessionEntry(**(needed | fields))


def session(**fields: Any) -> Session:
    known = {name: fields.pop(name) for name in Session.__struct_fields__ if name in fields}
    needed: dict[str, Any] = {"entry": entry(**fields), "owner": "telegram:7", "peer": "p"}
    return Session(**(needed | known))


# Ids


def test_id_is_the_time_and_eight_hex_digits() -> None:
    made = new_session_id(NOW)
    assert re.fullmatch(r"20260505_123015_[0-9a-f]{8}", made)
    assert check_session_id(made) == made
    assert len({new_session_id(NOW) for _ in range(50)}) == 50


# The JSON form


def test_json_form_of_a_plain_entry_has_every_field_but_origin_and_override() -> None:
    data = entry().to_dict()
    named = {"session_key": OLD["session_key"], "session_id": OLD["session_id"]}
    stamps = {"created_at": NOW.isoformat(), "updated_at": NOW.isoformat()}
    assert data == named | stamps | DEFAULTS


def test_origin_and_override_are_written_when_set() -> None:
    data = entry(origin=SOURCE, model_override={"model": "m"}).to_dict()
    assert data["origin"] == SOURCE.to_dict()
    assert data["model_override"] == {"model": "m"}


@given(entries)
def test_json_form_round_trips(given_entry: SessionEntry) -> None:
    data = json.loads(json.dumps(given_entry.to_dict()))
    read = SessionEntry.from_dict(data)
    assert read == given_entry
    assert read.to_dict() == data
    assert msgspec.json.decode(msgspec.json.encode(given_entry.to_dict())) == data


def test_total_is_input_and_output() -> None:
    given_entry = entry(input_tokens=3, output_tokens=4, cache_read_tokens=50)
    assert given_entry.total_tokens == given_entry.to_dict()["total_tokens"] == 7


def test_entry_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        entry().suspended = True  # type: ignore[misc]


# Old forms


def test_missing_fields_take_their_defaults() -> None:
    assert SessionEntry.from_dict(OLD).to_dict() == OLD | DEFAULTS


@pytest.mark.parametrize("name", sorted(DEFAULTS))
def test_null_field_takes_its_default(name: str) -> None:
    assert SessionEntry.from_dict(OLD | {name: None}) == SessionEntry.from_dict(OLD)


def test_unknown_fields_are_ignored() -> None:
    assert SessionEntry.from_dict(OLD | {"api_key": SECRET}) == SessionEntry.from_dict(OLD)


def test_memory_flushed_reads_as_expiry_finalized() -> None:
    assert SessionEntry.from_dict(OLD | {"memory_flushed": True}).expiry_finalized
    assert "memory_flushed" not in SessionEntry.from_dict(OLD | {"memory_flushed": True}).to_dict()
    both = OLD | {"memory_flushed": True, "expiry_finalized": False}
    assert not SessionEntry.from_dict(both).expiry_finalized


@pytest.fixture
def tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose local time is nine hours ahead."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("tokyo")
@pytest.mark.parametrize("name", ["created_at", "updated_at", "last_resume_marked_at"])
def test_time_without_a_zone_is_the_machines_local_time(name: str) -> None:
    read = SessionEntry.from_dict(OLD | {name: "2024-01-02T12:00:00.5"})
    assert getattr(read, name) == datetime(2024, 1, 2, 3, 0, 0, 500_000, tzinfo=UTC)


@pytest.mark.usefixtures("tokyo")
def test_time_with_a_zone_is_that_moment_in_utc() -> None:
    read = SessionEntry.from_dict(OLD | {"created_at": "2024-01-02T12:00:00+02:00"})
    assert read.created_at == datetime(2024, 1, 2, 10, tzinfo=UTC)
    assert read.created_at.tzinfo is UTC


@pytest.mark.parametrize("mark", ["yesterday", "", 17, [], {}, "0001-01-01T00:00:00+14:00", "9" * 5000])
def test_unreadable_resume_mark_becomes_none(mark: object) -> None:
    read = SessionEntry.from_dict(OLD | {"resume_pending": True, "last_resume_marked_at": mark})
    assert read.resume_pending
    assert read.last_resume_marked_at is None


@pytest.mark.parametrize(
    "origin",
    [
        "telegram",
        5,
        [],
        {},
        {"platform": "fax"},
        {"platform": "telegram", "chat_type": "salon"},
        {"platform": "telegram", "user_id": []},
        {"platform": "telegram", "chat_id": "\ud800"},
    ],
)
def test_unreadable_origin_becomes_none(origin: object) -> None:
    assert SessionEntry.from_dict(OLD | {"origin": origin}).origin is None


@pytest.mark.parametrize("platform", ["fax", "", 5, ["telegram"]])
def test_entry_of_an_unknown_platform_loads_with_none_and_keeps_its_key(platform: object) -> None:
    read = SessionEntry.from_dict(OLD | {"platform": platform})
    assert read.platform is None
    assert read.session_key == OLD["session_key"]


@pytest.mark.parametrize("reason", ["restart", "", 5, ["idle"]])
def test_unknown_reset_reason_becomes_none(reason: object) -> None:
    assert SessionEntry.from_dict(OLD | {"auto_reset_reason": reason}).auto_reset_reason is None


@pytest.mark.parametrize("name", ["display_name", "resume_reason"])
def test_text_that_cannot_be_stored_does_not_get_in(name: str) -> None:
    assert getattr(SessionEntry.from_dict(OLD | {name: "a\ud800b"}), name) == "a\ufffdb"
    assert getattr(SessionEntry.from_dict(OLD | {name: ["a"]}), name) is None


# Invalid entries


@pytest.mark.parametrize("name", list(OLD))
def test_entry_without_a_needed_field_is_refused_by_name(name: str) -> None:
    data = {key: value for key, value in OLD.items() if key != name}
    called = data.get("session_key") or data["session_id"]
    with pytest.raises(errors.InvalidEntry) as caught:
        SessionEntry.from_dict(data)
    assert str(caught.value) == f"Session entry {called!r} cannot be read: {name} is missing"


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("session_id", "../../etc/passwd"),
        ("session_id", 5),
        ("created_at", "yesterday"),
        ("created_at", 1700000000),
        ("updated_at", None),
        ("updated_at", "0001-01-01T00:00:00+14:00"),
        ("chat_type", "salon"),
        ("chat_type", 7),
        ("message_count", "many"),
        ("message_count", float("inf")),
        ("input_tokens", float("nan")),
        ("output_tokens", [1]),
        ("message_count", 2**63),
        ("estimated_cost_usd", "free"),
        ("estimated_cost_usd", float("nan")),
        ("estimated_cost_usd", float("inf")),
    ],
)
def test_entry_with_an_invalid_field_is_refused_by_name(name: str, bad: object) -> None:
    with pytest.raises(errors.InvalidEntry, match=re.escape(repr(OLD["session_key"]))):
        SessionEntry.from_dict(OLD | {name: bad})


@pytest.mark.parametrize("key", ["agent:main:telegram:dm:../x", "C:x", "", None])
def test_entry_with_an_unsafe_key_is_refused(key: object) -> None:
    with pytest.raises(errors.InvalidEntry):
        SessionEntry.from_dict(OLD | {"session_key": key})


@pytest.mark.parametrize("data", [None, [], "entry", 5])
def test_something_else_than_an_object_is_no_entry(data: Any) -> None:
    with pytest.raises(errors.InvalidEntry, match="expected an object"):
        SessionEntry.from_dict(data)


@given(st.dictionaries(st.sampled_from([*OLD, *DEFAULTS, "origin", "model_override"]), json_values))
def test_any_json_loads_or_is_refused_as_an_invalid_entry(fields: dict[str, Any]) -> None:
    try:
        read = SessionEntry.from_dict(OLD | fields)
    except errors.InvalidEntry:
        return
    assert read.session_key == fields.get("session_key", OLD["session_key"])
    assert SessionEntry.from_dict(json.loads(msgspec.json.encode(read.to_dict()))) == read
    json.dumps(read.to_dict(), allow_nan=False)


# Model override


@pytest.mark.parametrize(
    ("given_override", "kept"),
    [
        ({"model": "m", "provider": "p", "base_url": "https://h/v1"},) * 2,
        ({"model": " m ", "provider": "", "base_url": "  "}, {"model": "m"}),
        ({"model": "m", "api_key": SECRET, "headers": {"Authorization": SECRET}}, {"model": "m"}),
        ({"model": {"name": "m", "api_key": SECRET}, "provider": ["p"], "base_url": 5}, None),
        ({"api_key": SECRET}, None),
        ({}, None),
        (None, None),
        (SECRET, None),
        ([["model", "m"]], None),
    ],
)
def test_override_holds_three_texts_and_nothing_else(given_override: object, kept: object) -> None:
    assert clean_override(given_override) == kept


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        (f"https://user:{SECRET}@host:8080/v1", "https://host:8080/v1"),
        (f"https://{SECRET}@host/v1", "https://host/v1"),
        (f"https://a@b:{SECRET}@host/v1", "https://host/v1"),
        (f"//u:{SECRET}@host", "//host"),
        (f"u:{SECRET}@host/v1", "host/v1"),
        (f"https://host/v1?api_key={SECRET}", "https://host/v1"),
        (f"https://host/v1 ?key={SECRET}\n&x", "https://host/v1"),
        (f"https://host/v1#access_token={SECRET}", "https://host/v1"),
        (f"https:////u:{SECRET}@host/v1", "https://host/v1"),
        ("https://host/v1/@cf/x", "https://host/v1/@cf/x"),
    ],
)
def test_credentials_inside_the_address_do_not_survive(url: str, kept: str) -> None:
    assert clean_override({"base_url": url}) == {"base_url": kept}


@given(st.text("/@?#: x").map("//".__add__))
def test_address_that_is_clean_stays_as_it_is(url: str) -> None:
    cleaned = clean_override({"base_url": url})
    assert clean_override(cleaned) == cleaned


def test_address_of_credentials_alone_is_nothing() -> None:
    assert clean_override({"base_url": f"?key={SECRET}"}) is None


@given(st.dictionaries(st.sampled_from(["model", "provider", "base_url", "api_key", "token"]), json_values))
def test_cleaned_override_is_clean_and_can_be_stored(override: dict[str, Any]) -> None:
    cleaned = clean_override(override)
    assert clean_override(cleaned) == cleaned
    if cleaned is not None:
        assert cleaned
        assert cleaned.keys() <= {"model", "provider", "base_url"}
        assert all(type(text) is str and text for text in cleaned.values())
        msgspec.json.encode(cleaned)


@pytest.mark.parametrize("where", ["constructed", "changed", "read"])
def test_no_entry_holds_a_credential(where: str) -> None:
    override = {"model": "m", "api_key": SECRET}
    made = {
        "constructed": lambda: entry(model_override=override),
        "changed": lambda: session().changed(model_override=override).entry,
        "read": lambda: SessionEntry.from_dict(OLD | {"model_override": override}),
    }[where]()
    assert made.model_override == {"model": "m"}
    assert SECRET not in repr(made)


def test_credential_put_into_an_entry_later_is_not_written() -> None:
    given_entry = entry(model_override={"model": "m"})
    assert given_entry.model_override is not None
    given_entry.model_override["api_key"] = SECRET
    assert SECRET not in json.dumps(given_entry.to_dict())


# Usage


def test_usage_with_sound_counts_is_itself() -> None:
    usage = Usage(input_tokens=1, output_tokens=MAX_COUNT, last_prompt_tokens=0, cost_usd=0.5)
    assert usage.checked() is usage
    assert Usage().checked() == Usage()


@pytest.mark.parametrize(
    "wrong",
    [
        {"input_tokens": -1},
        {"output_tokens": MAX_COUNT + 1},
        {"cache_read_tokens": 1.5},
        {"cache_write_tokens": True},
        {"last_prompt_tokens": -1},
        {"last_prompt_tokens": 1.5},
        {"last_prompt_tokens": MAX_COUNT + 1},
        {"cost_usd": -0.1},
        {"cost_usd": float("nan")},
        {"cost_usd": float("inf")},
        {"cost_status": "Very\x00 wrong"},
        {"cost_status": ""},
    ],
)
def test_usage_that_would_spoil_the_counters_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidInput):
        Usage(**wrong).checked()


# Generations

FLAGGED = session(
    origin=SOURCE,
    display_name="Ops",
    platform=Platform.TELEGRAM,
    chat_type=ChatType.GROUP,
    input_tokens=5,
    output_tokens=6,
    message_count=40,
    estimated_cost_usd=1.5,
    was_auto_reset=True,
    auto_reset_reason=EndReason.IDLE,
    reset_had_activity=True,
    is_fresh_reset=True,
    expiry_finalized=True,
    suspended=True,
    resume_pending=True,
    resume_reason="restart_timeout",
    last_resume_marked_at=NOW,
    model_override={"model": "m"},
    model_turns=3,
    title="Rome",
    unread_origin={"platform": "fax"},
)
FRESH = {
    "was_auto_reset": False,
    "auto_reset_reason": None,
    "reset_had_activity": False,
    "is_fresh_reset": False,
}
UNMARKED = {"resume_pending": False, "resume_reason": None, "last_resume_marked_at": None}


def changes(before: Session, after: Session) -> dict[str, Any]:
    """The facts of the entry that are different."""
    old, new = (msgspec.structs.asdict(each.entry) for each in (before, after))
    return {name: value for name, value in new.items() if value != old[name]}


@pytest.mark.parametrize("reason", sorted(AUTOMATIC))
@pytest.mark.parametrize("active", [True, False])
def test_automatic_reset_sets_its_flags_and_says_why(reason: EndReason, active: bool) -> None:
    old = session(model_turns=1 if active else 0)
    new = old.successor("20260505_140000_00000000", LATER, reason).entry
    assert (new.was_auto_reset, new.auto_reset_reason) == (True, reason)
    assert (new.reset_had_activity, new.is_fresh_reset) == (active, False)


def test_reset_by_hand_is_fresh_and_nothing_else() -> None:
    new = FLAGGED.successor("20260505_140000_00000000", LATER, EndReason.NEW).entry
    assert {name: getattr(new, name) for name in FRESH} == FRESH | {"is_fresh_reset": True}


@pytest.mark.parametrize("reason", [EndReason.BRANCH, EndReason.COMPRESSED, EndReason.SWITCH])
def test_other_continuations_set_no_flag(reason: EndReason) -> None:
    new = FLAGGED.successor("20260505_140000_00000000", LATER, reason).entry
    assert {name: getattr(new, name) for name in FRESH} == FRESH


def test_successor_carries_the_place_and_nothing_else() -> None:
    new = FLAGGED.successor("20260505_140000_00000000", LATER, EndReason.NEW)
    assert new.entry == entry(
        session_id="20260505_140000_00000000",
        created_at=LATER,
        updated_at=LATER,
        origin=SOURCE,
        display_name="Ops",
        platform=Platform.TELEGRAM,
        chat_type=ChatType.GROUP,
        is_fresh_reset=True,
    )
    assert (new.owner, new.peer, new.parent_id) == (FLAGGED.owner, FLAGGED.peer, FLAGGED.id)
    assert (new.relation, new.status, new.title, new.model_turns) == (
        Relation.RESET,
        SessionStatus.OPEN,
        None,
        0,
    )
    assert new.unread_origin == {"platform": "fax"}


def test_successor_remembers_the_boundaries_of_the_conversation() -> None:
    old = session(served=(NOW,))
    assert old.successor("20260505_140000_00000000", LATER, EndReason.DAILY, served=LATER).served == (
        NOW,
        LATER,
    )


@pytest.mark.parametrize(
    ("fields", "active"),
    [
        ({}, False),
        ({"message_count": 9}, False),
        ({"model_turns": 1}, True),
        ({"output_tokens": 1}, True),
        ({"last_prompt_tokens": 1}, True),
    ],
)
def test_activity_means_that_a_model_turn_ran(fields: dict[str, int], active: bool) -> None:
    assert session(**fields).had_activity is active


def test_first_turn_consumes_the_reset_flags_alone() -> None:
    assert changes(FLAGGED, FLAGGED.consumed()) == FRESH


def test_unmarked_clears_mark_reason_and_time_alone() -> None:
    assert changes(FLAGGED, FLAGGED.unmarked()) == UNMARKED


def ended(reason: EndReason) -> Session:
    return msgspec.structs.replace(FLAGGED, ended_at=NOW, end_reason=str(reason))


REOPENED = [reason for reason in EndReason if REOPENING[reason] is not Reopening.NEVER]


@pytest.mark.parametrize("reason", REOPENED)
def test_reopened_session_is_active_now_without_marks_and_flags(reason: EndReason) -> None:
    again = ended(reason).reopened(LATER)
    assert (again.status, again.ended_at, again.end_reason) == (SessionStatus.OPEN, None, None)
    flags = {"suspended": False, "expiry_finalized": False, "updated_at": LATER}
    assert changes(FLAGGED, again) == FRESH | UNMARKED | flags


def test_forgotten_session_is_never_opened_again() -> None:
    with pytest.raises(errors.IllegalMove, match="forgotten"):
        ended(EndReason.FORGOTTEN).reopened(LATER)


def test_only_a_merely_closed_session_is_resumed_by_a_message() -> None:
    resumed = [reason for reason in EndReason if ended(reason).reopening is Reopening.BY_A_MESSAGE]
    assert resumed == [EndReason.CLOSED]


def test_imported_end_reason_is_kept_as_text() -> None:
    imported = session(ended_at=NOW, end_reason="cron_complete")
    assert (imported.reason, imported.end_reason) == (None, "cron_complete")


# Served boundaries


@given(st.lists(times, max_size=60))
def test_newest_boundary_is_remembered_with_the_latest_others(boundaries: list[datetime]) -> None:
    served: tuple[datetime, ...] = ()
    for number, boundary in enumerate(boundaries, 1):
        served = with_boundary(served, boundary)
        assert {boundary, max(boundaries[:number])} <= set(served)
        assert len(served) == min(len(set(boundaries[:number])), SERVED_BOUNDARIES_KEPT)


def test_boundary_that_is_known_or_none_changes_nothing() -> None:
    assert with_boundary((NOW, LATER), NOW) == with_boundary((NOW, LATER), None) == (NOW, LATER)


@pytest.mark.parametrize(("old", "now"), [("forum", ChatType.GROUP), ("webhook", ChatType.DM)])
def test_older_names_of_chat_types_load(old: str, now: ChatType) -> None:
    entry = SessionEntry.from_dict(OLD | {"chat_type": old, "origin": SOURCE.to_dict() | {"chat_type": old}})
    assert entry.chat_type is now
    assert entry.origin is not None
    assert entry.origin.chat_type is now
    assert SessionEntry.from_dict(entry.to_dict()) == entry
