"""Session keys: the rules, the encoding, and what is refused from outside."""

from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from frontdesk import errors
from frontdesk.model.keys import (
    MAX_KEY_BYTES,
    MAX_SESSION_ID_BYTES,
    KeyRule,
    address,
    build_session_key,
    check_key,
    check_session_id,
    decode_part,
    encode_part,
    is_shared_multi_user_session,
    participant_id,
)
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import ChatType, SessionSource
from tests.unit.model import strategies

not_whatsapp = st.sampled_from([Platform.TELEGRAM, Platform.SLACK, Platform.EMAIL, Platform.LOCAL])
ORDINARY_IDS = [
    "12345",
    "-1001234567890",
    "U02AB3CDE",
    "1712345678.123456",
    "ada.lovelace@example.org",
    "<CAF+x=1@mail.example.org>",
    "+4915112345678",
    "8f14e45f-ceea-467a-9d3c-7c3f1c2a",
    "名前",
    "a b",
    "a.b.c",
]


def source(chat_type: str = "dm", platform: str = "telegram", **fields: Any) -> SessionSource:
    return SessionSource(platform=Platform(platform), chat_type=ChatType(chat_type), **fields)


def without_person(given_source: SessionSource) -> SessionSource:
    return msgspec.structs.replace(given_source, user_id=None, user_id_alt=None)


# Direct messages


@pytest.mark.parametrize(
    ("fields", "tail", "rule"),
    [
        ({"chat_id": "c"}, ":c", KeyRule.DM_CHAT),
        ({"chat_id": "c", "thread_id": "t"}, ":c:t", KeyRule.DM_CHAT),
        ({"chat_id": "c", "user_id": "u", "user_id_alt": "a"}, ":c", KeyRule.DM_CHAT),
        ({"user_id": "u"}, ":u", KeyRule.DM_PARTICIPANT),
        ({"user_id": "u", "user_id_alt": "a"}, ":a", KeyRule.DM_PARTICIPANT),
        ({"user_id": "u", "thread_id": "t"}, ":u:t", KeyRule.DM_PARTICIPANT),
        ({"thread_id": "t"}, ":t", KeyRule.DM_THREAD),
        ({}, "", KeyRule.BARE),
    ],
)
def test_direct_message_is_addressed_by_chat_else_person_else_thread(
    fields: dict[str, str], tail: str, rule: KeyRule
) -> None:
    where = address(source(**fields))
    assert (where.key, where.rule, where.shared) == (f"agent:main:telegram:dm{tail}", rule, False)


@given(strategies.sources(chat_type=st.just(ChatType.DM)), strategies.settings)
def test_direct_messages_are_never_shared_and_no_setting_changes_their_key(
    given_source: SessionSource, settings: dict[str, Any]
) -> None:
    assert not is_shared_multi_user_session(given_source, **settings)
    assert build_session_key(given_source, **settings) == build_session_key(given_source)


# Everything else


@pytest.mark.parametrize("chat_type", ["group", "channel", "thread"])
@pytest.mark.parametrize(
    ("fields", "tail", "rule"),
    [
        ({"chat_id": "c", "user_id": "u"}, ":c:u", KeyRule.PER_USER),
        ({"chat_id": "c", "user_id": "u", "user_id_alt": "a"}, ":c:a", KeyRule.PER_USER),
        ({"chat_id": "c"}, ":c", KeyRule.SHARED_CHAT),
        ({"chat_id": "c", "thread_id": "t", "user_id": "u"}, ":c:t", KeyRule.SHARED_THREAD),
        ({"thread_id": "t", "user_id": "u"}, ":t", KeyRule.SHARED_THREAD),
        ({"user_id": "u"}, ":u", KeyRule.PER_USER),
        ({}, "", KeyRule.BARE),
    ],
)
def test_people_are_apart_in_chats_and_together_in_threads(
    chat_type: str, fields: dict[str, str], tail: str, rule: KeyRule
) -> None:
    where = address(source(chat_type, **fields))
    shared = rule is not KeyRule.PER_USER
    assert (where.key, where.rule, where.shared) == (f"agent:main:telegram:{chat_type}{tail}", rule, shared)


@pytest.mark.parametrize("chat_type", ["group", "channel", "thread"])
@pytest.mark.parametrize(
    ("per_user", "per_user_in_threads", "thread_id", "tail"),
    [
        (True, False, None, ":c:u"),
        (True, True, None, ":c:u"),
        (False, False, None, ":c"),
        (False, True, None, ":c"),
        (True, False, "t", ":c:t"),
        (True, True, "t", ":c:t:u"),
        (False, False, "t", ":c:t"),
        (False, True, "t", ":c:t"),
    ],
)
def test_settings_isolate_people(
    chat_type: str, per_user: bool, per_user_in_threads: bool, thread_id: str | None, tail: str
) -> None:
    given_source = source(chat_type, chat_id="c", user_id="u", thread_id=thread_id)
    key = build_session_key(given_source, per_user, per_user_in_threads)
    assert key == f"agent:main:telegram:{chat_type}{tail}"
    assert is_shared_multi_user_session(given_source, per_user, per_user_in_threads) is (
        not tail.endswith(":u")
    )


@given(strategies.sources(), strategies.settings, strategies.some_id)
def test_sharing_always_agrees_with_the_key(
    given_source: SessionSource, settings: dict[str, Any], somebody: str
) -> None:
    assume(given_source.chat_type is not ChatType.DM)
    shared = is_shared_multi_user_session(given_source, **settings)
    key = build_session_key(given_source, **settings)
    assert shared is (key == build_session_key(without_person(given_source), **settings))
    other = msgspec.structs.replace(given_source, user_id_alt=somebody)
    assume(participant_id(other) and participant_id(other) != participant_id(given_source))
    if participant_id(given_source):
        assert shared is (key == build_session_key(other, **settings))


# Namespaces and accounts


@pytest.mark.parametrize("profile", [None, "", "default"])
def test_default_profile_is_main(profile: str | None) -> None:
    assert build_session_key(source(chat_id="c"), profile=profile) == "agent:main:telegram:dm:c"


def test_other_profile_is_its_name() -> None:
    assert build_session_key(source(chat_id="c"), profile="work") == "agent:work:telegram:dm:c"


def test_profile_of_the_source_does_not_select_the_namespace() -> None:
    assert build_session_key(source(chat_id="c", profile="work")) == "agent:main:telegram:dm:c"


def test_profile_called_main_is_not_the_default_one() -> None:
    key = build_session_key(source(chat_id="c"), profile="main")
    assert key != build_session_key(source(chat_id="c"))
    assert decode_part(key.split(":")[1]) == "main"


@given(strategies.sources(), strategies.profiles, strategies.profiles)
def test_two_profiles_never_share_a_key(
    given_source: SessionSource, profile: str | None, other: str | None
) -> None:
    same = ("" if profile == "default" else profile or "") == ("" if other == "default" else other or "")
    keys = {build_session_key(given_source, profile=name) for name in (profile, other)}
    assert len(keys) == (1 if same else 2)


def test_account_stands_beside_the_platform() -> None:
    key = build_session_key(source(chat_id="c", account="bot/2"))
    assert key == "agent:main:telegram@bot%2F2:dm:c"


@given(strategies.sources(), strategies.maybe_id, strategies.maybe_id)
def test_two_accounts_never_share_a_key(
    given_source: SessionSource, account: str | None, other: str | None
) -> None:
    first, second = (msgspec.structs.replace(given_source, account=name) for name in (account, other))
    same = (account or None) == (other or None)
    assert (build_session_key(first) == build_session_key(second)) is same


# Totality, injectivity, encoding


@given(strategies.sources(), strategies.settings, strategies.profiles)
def test_every_source_has_a_safe_key(
    given_source: SessionSource, settings: dict[str, Any], profile: str | None
) -> None:
    key = build_session_key(given_source, **settings, profile=profile)
    assert check_key(key) == key
    assert key.startswith("agent:")
    assert key == build_session_key(given_source, **settings, profile=profile)


@given(st.text(st.characters(), max_size=20))
@example("\ud83d\ude00")
@example("\ud800")
def test_no_profile_breaks_the_key(profile: str) -> None:
    key = build_session_key(source(chat_id="c"), profile=profile)
    assert check_key(key) == key


@given(strategies.sources(platform=not_whatsapp), strategies.some_id, strategies.some_id)
def test_two_chats_never_share_a_key(given_source: SessionSource, chat: str, other: str) -> None:
    first, second = (msgspec.structs.replace(given_source, chat_id=chat_id) for chat_id in (chat, other))
    assert (build_session_key(first) == build_session_key(second)) is (chat == other)


@given(
    strategies.sources(platform=not_whatsapp, chat_id=strategies.some_id),
    strategies.sources(platform=not_whatsapp, chat_id=strategies.some_id),
    strategies.settings,
)
def test_sources_that_differ_in_their_chat_never_share_a_key(
    first: SessionSource, second: SessionSource, settings: dict[str, Any]
) -> None:
    place = [(each.platform, each.account or None, each.chat_type, each.chat_id) for each in (first, second)]
    assume(place[0] != place[1])
    assert build_session_key(first, **settings) != build_session_key(second, **settings)


@given(strategies.sources(platform=not_whatsapp), strategies.settings, strategies.profiles)
def test_key_reads_back_into_the_parts_it_was_made_of(
    given_source: SessionSource, settings: dict[str, Any], profile: str | None
) -> None:
    where = address(given_source, **settings, profile=profile)
    agent, namespace, platform, chat_type, *parts = where.key.split(":")
    assert (agent, chat_type) == ("agent", given_source.chat_type)
    assert decode_part(namespace) == ("main" if profile in (None, "", "default") else profile)
    name, _, account = platform.partition("@")
    assert (name, decode_part(account)) == (given_source.platform, given_source.account or "")
    participant = (
        given_source.participant if where.rule in (KeyRule.PER_USER, KeyRule.DM_PARTICIPANT) else None
    )
    chat, thread = given_source.chat_id, given_source.thread_id
    order = (participant, thread) if chat_type == "dm" else (thread, participant)
    assert [decode_part(part) for part in parts] == [part for part in (chat, *order) if part]


@given(st.text(st.characters(), max_size=20) | strategies.awkward_ids)
@example("\ud83d\ude00")
@example("....")
@example("%2E%2e")
def test_encoding_is_reversible_and_safe(text: str) -> None:
    encoded = encode_part(text)
    assert decode_part(encoded) == text
    assert not any(bad in encoded for bad in ("/", "\\", ":", ".."))
    if text.isascii():
        assert unquote(encoded) == text


@given(strategies.awkward_ids, strategies.awkward_ids)
def test_two_ids_never_have_one_encoding(first: str, second: str) -> None:
    assert (encode_part(first) == encode_part(second)) is (first == second)


@pytest.mark.parametrize("ordinary", ORDINARY_IDS)
def test_ordinary_ids_stay_byte_for_byte(ordinary: str) -> None:
    assert encode_part(ordinary) == ordinary
    assert build_session_key(source(chat_id=ordinary)) == f"agent:main:telegram:dm:{ordinary}"


@given(st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="/\\:%.")))
def test_nothing_but_the_unsafe_is_encoded(text: str) -> None:
    assert encode_part(text) == text


@pytest.mark.parametrize(
    ("raw", "encoded"),
    [
        ("owner/repo", "owner%2Frepo"),
        ("a\\b", "a%5Cb"),
        ("!room:example.org", "!room%3Aexample.org"),
        ("..", "%2E%2E"),
        ("a...b", "a%2E%2E%2Eb"),
        ("50%", "50%25"),
        ("a\x00b\nc", "a%00b%0Ac"),
        ("C:", "C%3A"),
    ],
)
def test_unsafe_characters_are_percent_encoded(raw: str, encoded: str) -> None:
    assert encode_part(raw) == encoded


@pytest.mark.parametrize("chat_type", list(ChatType))
@given(given_source=strategies.sources())
def test_bare_rule_means_a_bare_key(chat_type: ChatType, given_source: SessionSource) -> None:
    given_source = msgspec.structs.replace(given_source, chat_type=chat_type)
    where = address(given_source)
    assert (where.rule is KeyRule.BARE) is where.key.endswith(f":{chat_type}")
    assert (where.rule is KeyRule.BARE) is (len(where.key.split(":")) == 4)


# What comes from outside


@pytest.mark.parametrize("check", [check_key, check_session_id])
@pytest.mark.parametrize(
    "unsafe",
    [
        "",
        "..",
        "a..b",
        "../../etc/passwd",
        "agent:main:telegram:dm:a/b",
        "a\\b",
        "C:windows",
        "c:",
        "agent:main:telegram:dm:\x00",
        "a\nb",
        "a\x7fb",
        "a\u2028b",
        "a\ud800",
        None,
        7,
        b"agent:main",
        ["a"],
    ],
)
def test_unsafe_key_or_id_is_refused(check: Any, unsafe: object) -> None:
    with pytest.raises((errors.UnsafeKey, errors.UnsafeSessionId)) as caught:
        check(unsafe)
    assert repr(unsafe) in str(caught.value)
    assert caught.value.why in str(caught.value)  # type: ignore[attr-defined]


def test_each_check_has_its_own_error() -> None:
    with pytest.raises(errors.UnsafeKey):
        check_key("..")
    with pytest.raises(errors.UnsafeSessionId):
        check_session_id("..")


@given(st.text(st.characters()) | strategies.awkward_ids)
def test_what_passes_is_harmless_as_a_path(text: str) -> None:
    try:
        check_key(text)
    except errors.UnsafeKey:
        return
    assert not any(bad in text for bad in ("..", "/", "\\", "\x00"))
    assert not (text[0].isascii() and text[0].isalpha() and text[1:2] == ":")
    assert 0 < len(text.encode()) <= MAX_KEY_BYTES


@pytest.mark.parametrize(
    ("check", "limit"), [(check_key, MAX_KEY_BYTES), (check_session_id, MAX_SESSION_ID_BYTES)]
)
def test_length_is_bounded_in_bytes(check: Any, limit: int) -> None:
    assert check("a" * limit) == "a" * limit
    for too_long in ("a" * (limit + 1), "é" * (limit // 2 + 1)):
        with pytest.raises(errors.InvalidInput, match=f"longer than {limit} bytes"):
            check(too_long)


@pytest.mark.parametrize(
    "safe", ["agent:main:telegram:dm:1", "agent:main:slack:group:C1:1712345678.1:U1", "名", "1:2"]
)
def test_safe_key_passes_unchanged(safe: str) -> None:
    assert check_key(safe) == safe
    assert check_session_id("20260102_030405_0a1b2c3d") == "20260102_030405_0a1b2c3d"


@pytest.mark.parametrize("check", [check_key, check_session_id])
def test_error_repeats_only_the_beginning_of_a_long_text(check: Callable[[str], str]) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        check("k" * 3000)
    assert "k" * 99 + "…" in str(caught.value)
    assert len(str(caught.value)) < 200


# Marks, where ids are free text


FREE = ["webhook", "api_server", "web", "pigeon-post"]


@pytest.fixture(autouse=True, scope="module")
def pigeons() -> None:
    Platform.register("pigeon-post")
    Platform.register("numbered-post", distinct_ids=True)


@pytest.mark.parametrize("platform", FREE)
@pytest.mark.parametrize(
    ("chat_type", "fields", "tail"),
    [
        ("dm", {"chat_id": "c", "user_id": "u", "thread_id": "t"}, ":c:t"),
        ("dm", {"user_id": "u"}, ":@u"),
        ("dm", {"user_id": "u", "user_id_alt": "a", "thread_id": "t"}, ":@a:t"),
        ("dm", {"thread_id": "t"}, ":#t"),
        ("group", {"chat_id": "c", "user_id": "u"}, ":c:@u"),
        ("group", {"chat_id": "c", "thread_id": "t", "user_id": "u"}, ":c:t"),
        ("group", {"thread_id": "t", "user_id": "u"}, ":#t"),
        ("channel", {"user_id": "u"}, ":@u"),
        ("group", {"chat_id": "@c", "user_id": "#u"}, ":%40c:@%23u"),
        ("group", {"chat_id": "c", "thread_id": "@t"}, ":c:%40t"),
        ("dm", {"chat_id": "#c"}, ":%23c"),
        ("dm", {"chat_id": "c@d#e"}, ":c@d#e"),
    ],
)
def test_people_and_threads_without_a_chat_are_marked_where_ids_are_free_text(
    platform: str, chat_type: str, fields: dict[str, str], tail: str
) -> None:
    made = build_session_key(source(chat_type, platform, **fields))
    assert made == f"agent:main:{platform}:{chat_type}{tail}"


def test_isolated_person_in_a_thread_is_marked_behind_it() -> None:
    given_source = source("group", "webhook", chat_id="c", thread_id="t", user_id="u")
    key = build_session_key(given_source, thread_sessions_per_user=True)
    assert key == "agent:main:webhook:group:c:t:@u"


@pytest.mark.parametrize("platform", ["telegram", "local", "matrix", "email", "numbered-post"])
def test_keys_have_no_marks_where_ids_cannot_coincide(platform: str) -> None:
    given_source = source("group", platform, chat_id="#c", user_id="@u")
    assert build_session_key(given_source) == f"agent:main:{platform}:group:#c:@u"


odd_ids = st.sampled_from(["7", "@7", "#7", "%407", "@@7", ":7", "8"]) | strategies.some_id


@given(odd_ids, odd_ids, odd_ids, st.sampled_from(["group", "channel", "thread"]), strategies.settings)
def test_shared_key_of_a_thread_is_never_a_person_s_own(
    chat: str, thread: str, person: str, chat_type: str, settings: dict[str, Any]
) -> None:
    shared = source(chat_type, "webhook", chat_id=chat, thread_id=thread, user_id="somebody")
    assume(is_shared_multi_user_session(shared, **settings))
    own = source(chat_type, "webhook", chat_id=chat, user_id=person)
    in_thread = source(chat_type, "webhook", thread_id=chat, user_id=person)
    keys = {build_session_key(each, **settings) for each in (own, in_thread)}
    assert build_session_key(shared, **settings) not in keys


@given(st.data())
def test_different_addresses_have_different_keys_where_ids_are_free_text(data: st.DataObject) -> None:
    """What the key says can be read back from it."""

    def drawn() -> tuple[tuple[str | None, ...], str]:
        ids = [data.draw(st.none() | odd_ids) for _ in range(3)]
        given_source = source("group", "webhook", chat_id=ids[0] or "", thread_id=ids[1], user_id=ids[2])
        return tuple(each or None for each in ids), build_session_key(given_source, True, True)

    (one, key), (other, another) = drawn(), drawn()
    assert (key == another) is (one == other)
