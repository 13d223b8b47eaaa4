"""Where a message came from: construction, the dict form, the description."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import errors
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import ChatType, SessionSource, readable
from tests.unit.model import strategies

ALWAYS = {
    "platform",
    "chat_id",
    "chat_name",
    "chat_type",
    "user_id",
    "user_name",
    "thread_id",
    "chat_topic",
}
OPTIONAL = {"user_id_alt", "chat_id_alt", "parent_chat_id", "message_id", "profile", "account"}
FLAGS = ("is_bot", "role_authorized", "delivered_via_upstream_relay")


def telegram(**fields: Any) -> SessionSource:
    return SessionSource(platform=Platform.TELEGRAM, **fields)


def test_platform_and_chat_are_enough() -> None:
    source = telegram(chat_id="1")
    assert source.chat_type is ChatType.DM
    others = set(SessionSource.__struct_fields__) - {"platform", "chat_id", "chat_type", "roles", *FLAGS}
    assert {getattr(source, name) for name in others} == {None}
    assert [getattr(source, name) for name in FLAGS] == [False, False, False]
    assert source.roles == ()


def test_source_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        telegram(chat_id="1").chat_id = "2"  # type: ignore[misc]


def test_platform_may_be_given_by_name() -> None:
    assert SessionSource(platform="slack", chat_id="1").platform is Platform.SLACK  # type: ignore[arg-type]


@pytest.mark.parametrize("chat_type", ["dm", "group", "channel", "thread"])
def test_chat_type_may_be_given_by_name(chat_type: str) -> None:
    assert telegram(chat_type=chat_type).chat_type is ChatType(chat_type)


@pytest.mark.parametrize("chat_type", ["", "forum", "DM", None, 1, []])
def test_unknown_chat_type_is_refused_with_the_allowed_ones(chat_type: object) -> None:
    with pytest.raises(errors.InvalidSource, match="allowed: dm, group, channel, thread"):
        telegram(chat_type=chat_type)


@pytest.mark.parametrize(
    ("given_ids", "expected"),
    [
        ({"scope_id": "s"}, "s"),
        ({"guild_id": "g"}, "g"),
        ({"scope_id": "s", "guild_id": "g"}, "s"),
        ({"scope_id": "", "guild_id": "g"}, "g"),
        ({}, None),
    ],
)
def test_scope_and_guild_mirror_each_other(given_ids: dict[str, str], expected: str | None) -> None:
    source = telegram(**given_ids)
    assert (source.scope_id, source.guild_id) == (expected, expected)


def test_changed_scope_is_mirrored() -> None:
    moved = msgspec.structs.replace(telegram(guild_id="old"), scope_id="new")
    assert (moved.scope_id, moved.guild_id) == ("new", "new")


def test_scope_is_written_under_both_names() -> None:
    data = telegram(guild_id="g").to_dict()
    assert (data["scope_id"], data["guild_id"]) == ("g", "g")


@pytest.mark.parametrize("name", ["scope_id", "guild_id"])
def test_scope_is_read_under_either_name(name: str) -> None:
    source = SessionSource.from_dict({"platform": "discord", name: "g"})
    assert (source.scope_id, source.guild_id) == ("g", "g")


def test_scope_wins_over_its_old_name_when_read() -> None:
    data = {"platform": "discord", "scope_id": "s", "guild_id": "g"}
    assert SessionSource.from_dict(data).guild_id == "s"


def test_dict_form_of_a_bare_source_has_the_fixed_fields_alone() -> None:
    assert telegram(chat_id="1").to_dict() == {
        "platform": "telegram",
        "chat_id": "1",
        "chat_name": None,
        "chat_type": "dm",
        "user_id": None,
        "user_name": None,
        "thread_id": None,
        "chat_topic": None,
    }


@pytest.mark.parametrize("name", sorted(OPTIONAL))
def test_optional_field_is_written_only_when_set(name: str) -> None:
    assert set(telegram(**{name: "x"}).to_dict()) == ALWAYS | {name}
    assert set(telegram(**{name: ""}).to_dict()) == ALWAYS
    assert SessionSource.from_dict(telegram(**{name: "x"}).to_dict()) == telegram(**{name: "x"})


def test_dict_form_holds_plain_values() -> None:
    data = telegram(chat_id=1, chat_type=ChatType.GROUP).to_dict()
    assert {type(value) for value in data.values()} == {str, type(None)}


@given(strategies.sources())
def test_dict_form_round_trips_through_json(source: SessionSource) -> None:
    read = SessionSource.from_dict(json.loads(json.dumps(source.to_dict())))
    assert read.to_dict() == source.to_dict()
    unset = dict.fromkeys(name for name in OPTIONAL | {"scope_id", "guild_id"} if getattr(source, name) == "")
    assert read == msgspec.structs.replace(source, **unset, **dict.fromkeys(FLAGS, False))


@pytest.mark.parametrize(
    ("value", "expected"),
    [(42, "42"), (-100123, "-100123"), (0, "0"), ("7", "7"), (1.5, "1.5"), (True, "True"), (None, "")],
)
def test_chat_id_becomes_a_text_whatever_it_arrives_as(value: object, expected: str) -> None:
    assert SessionSource.from_dict({"platform": "telegram", "chat_id": value}).chat_id == expected
    assert telegram(chat_id=value).chat_id == expected


def test_source_without_a_chat_id_has_an_empty_one() -> None:
    assert SessionSource.from_dict({"platform": "telegram"}).chat_id == ""


@pytest.mark.parametrize("name", ["user_id", "thread_id", "message_id", "scope_id", "user_id_alt"])
def test_numeric_ids_become_texts(name: str) -> None:
    assert getattr(SessionSource.from_dict({"platform": "telegram", name: 5}), name) == "5"


@pytest.mark.parametrize("flag", FLAGS)
def test_flags_of_the_adapter_are_never_written(flag: str) -> None:
    assert flag not in telegram(chat_id="1", **{flag: True}).to_dict()


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("forged", [True, 1, "true", [1]])
def test_flags_of_the_adapter_are_never_read(flag: str, forged: object) -> None:
    source = SessionSource.from_dict({"platform": "telegram", "chat_id": "1", flag: forged})
    assert getattr(source, flag) is False


@pytest.mark.parametrize("flag", FLAGS)
def test_flags_cannot_come_or_go_by_the_wire_codec(flag: str) -> None:
    with pytest.raises(TypeError):
        msgspec.json.encode(telegram(**{flag: True}))
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"platform": "telegram", flag: True}, SessionSource)


@pytest.mark.parametrize("data", [None, [], "telegram", 5])
def test_something_else_than_an_object_is_no_source(data: Any) -> None:
    with pytest.raises(errors.InvalidSource, match="expected an object"):
        SessionSource.from_dict(data)


@pytest.mark.parametrize("data", [{}, {"platform": None}, {"platform": ""}])
def test_source_needs_a_platform(data: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidSource, match="platform is missing"):
        SessionSource.from_dict(data)


@pytest.mark.parametrize("platform", ["fax", 7, ["telegram"]])
def test_source_of_an_unknown_platform_is_refused(platform: object) -> None:
    with pytest.raises(errors.UnknownPlatform):
        SessionSource.from_dict({"platform": platform, "chat_id": "1"})


@pytest.mark.parametrize("value", [True, 1.5, ["x"], {"x": 1}, b"x"])
@pytest.mark.parametrize("name", ["user_id", "user_name", "chat_topic", "profile"])
def test_other_fields_must_be_texts(name: str, value: object) -> None:
    with pytest.raises(errors.InvalidSource, match=f"{name} must be text"):
        SessionSource.from_dict({"platform": "telegram", name: value})


@pytest.mark.parametrize("name", ["chat_id", "user_id", "thread_id", "account", "message_id"])
def test_id_that_is_not_unicode_is_refused(name: str) -> None:
    with pytest.raises(errors.InvalidSource, match=name):
        telegram(**{name: "a\ud800"})


@pytest.mark.parametrize("name", ["chat_name", "user_name", "chat_topic"])
def test_name_that_is_not_unicode_is_made_readable(name: str) -> None:
    assert getattr(telegram(**{name: "a\ud800b"}), name) == "a\ufffdb"


@given(st.text(st.characters()))
def test_readable_text_can_be_stored_and_keeps_what_was_valid(text: str) -> None:
    cleaned = readable(text)
    cleaned.encode()
    if not any("\ud800" <= char <= "\udfff" for char in text):
        assert cleaned == text
    assert readable(cleaned) == cleaned


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"user_name": "Ada", "user_id": "7", "chat_name": "x"}, "DM with Ada"),
        ({"user_id": "7", "chat_name": "x"}, "DM with 7"),
        ({"chat_id": "1"}, "DM with user"),
        ({"chat_type": "group", "chat_id": "1", "chat_name": "Ops"}, "group: Ops"),
        ({"chat_type": "group", "chat_id": "1"}, "group: 1"),
        ({"chat_type": "channel", "chat_id": "1", "chat_name": "news"}, "channel: news"),
        ({"chat_type": "channel", "chat_id": "1"}, "channel: 1"),
        ({"chat_type": "thread", "chat_id": "1", "chat_name": "Help"}, "Help"),
        ({"chat_type": "thread", "chat_id": "1"}, "1"),
        ({"chat_type": "group", "chat_id": "1", "thread_id": "9"}, "group: 1, thread: 9"),
        ({"user_name": "Ada", "thread_id": "9"}, "DM with Ada, thread: 9"),
    ],
)
def test_description_says_where(fields: dict[str, str], expected: str) -> None:
    assert telegram(**fields).description == expected


@given(strategies.sources(platform=st.just(Platform.LOCAL)))
def test_description_of_a_local_source_is_the_terminal(source: SessionSource) -> None:
    assert source.description == "CLI terminal"


def test_local_cli_is_a_direct_chat_with_the_terminal() -> None:
    source = SessionSource.local_cli()
    assert source.platform is Platform.LOCAL
    assert (source.chat_id, source.chat_name, source.chat_type) == ("cli", "CLI terminal", "dm")


@given(strategies.maybe_id, strategies.maybe_id)
def test_participant_is_the_most_stable_id(stable: str | None, usual: str | None) -> None:
    source = telegram(user_id_alt=stable, user_id=usual)
    assert source.participant == (stable or usual)
