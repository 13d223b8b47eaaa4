"""What the platform may bring, who is meant by it, and that nothing in it breaks the reading."""

import random
from datetime import UTC, datetime
from typing import Any

import pytest

from frontdesk.channels.slack import inbound, texts
from frontdesk.contracts import channels
from frontdesk.model.sources import ChatType
from tests import counts, fuzzing

US = inbound.Self(team="T1", user="UDESK", bot="BDESK")
PARSER = inbound.Parser(US, "one")
NOW = datetime(2026, 1, 5, tzinfo=UTC)
TS, ROOT = "1767614400.000200", "1767614300.000100"
MESSAGE = {
    "type": "message",
    "channel": "C1",
    "channel_type": "channel",
    "user": "UADA",
    "text": "Hello",
    "ts": TS,
}
FILE = {"id": "F1", "name": "a.txt", "mimetype": "text/plain", "size": 10, "url_private": "https://x"}
RICH = [
    {
        "type": "rich_text",
        "elements": [
            {
                "type": "rich_text_section",
                "elements": [{"type": "user", "user_id": "UDESK"}, {"type": "text", "text": "Hi"}],
            }
        ],
    }
]
FULL = MESSAGE | {
    "thread_ts": ROOT,
    "text": "<@UDESK> see <https://a.example|this> & <#C2|general> <!here>",
    "blocks": RICH,
    "files": [FILE],
    "attachments": [{"title": "T", "text": "X", "fallback": "F"}],
    "edited": {"user": "UADA", "ts": "1767614500.000000"},
}
PRESS = {
    "type": "block_actions",
    "user": {"id": "UADA", "name": "ada"},
    "channel": {"id": "C1"},
    "container": {"message_ts": TS, "channel_id": "C1", "thread_ts": ROOT},
    "message": {"ts": TS, "thread_ts": ROOT},
    "actions": [{"action_id": "press-0", "value": "tok", "action_ts": "1767614600.000000"}],
}
COMMAND = {
    "channel_id": "C1",
    "user_id": "UADA",
    "user_name": "ada",
    "trigger_id": "1.2.abc",
    "text": "status",
    "response_url": "https://hooks.slack.com/commands/1",
}
EVENTS = [
    FULL,
    MESSAGE | {"subtype": "message_changed", "message": FULL, "previous_message": MESSAGE},
    MESSAGE | {"subtype": "message_deleted", "deleted_ts": TS, "previous_message": FULL},
    {
        "type": "reaction_added",
        "user": "UADA",
        "reaction": "+1",
        "item": {"type": "message", "channel": "C1", "ts": TS},
        "event_ts": "1767614600.000000",
    },
]


def read(**message: Any) -> channels.Incoming:
    incoming = PARSER.event(MESSAGE | message)
    assert isinstance(incoming, channels.Incoming)
    return incoming


def test_message_says_where_it_was_written_and_by_whom() -> None:
    incoming = read()
    source = incoming.source
    assert (source.chat_id, source.chat_type, source.scope_id) == ("C1", ChatType.GROUP, "T1")
    assert (source.user_id, source.message_id, source.account) == ("UADA", TS, "one")
    assert (incoming.text, incoming.event_id, incoming.addressed) == ("Hello", f"T1:C1:{TS}", False)
    assert incoming.sent_at is not None


def test_direct_chat_knows_no_being_addressed_and_has_threads() -> None:
    incoming = read(channel="D1", thread_ts=ROOT)
    assert (incoming.source.chat_type, incoming.source.thread_id, incoming.addressed) == (
        ChatType.DM,
        ROOT,
        None,
    )


@pytest.mark.parametrize(
    ("message", "kind", "thread"),
    [
        ({}, ChatType.GROUP, None),
        ({"thread_ts": TS}, ChatType.GROUP, None),
        ({"thread_ts": ROOT}, ChatType.THREAD, ROOT),
        ({"text": "<@UDESK> hello"}, ChatType.THREAD, TS),
        ({"text": "<@UDESK> hello", "thread_ts": ROOT}, ChatType.THREAD, ROOT),
        ({"text": "<@UDESK> hello", "channel": "D1"}, ChatType.DM, None),
    ],
)
def test_mention_begins_a_thread_and_answers_stay_in_theirs(
    message: dict[str, Any], kind: ChatType, thread: str | None
) -> None:
    source = read(**message).source
    assert (source.chat_type, source.thread_id) == (kind, thread)


@pytest.mark.parametrize(
    ("message", "addressed"),
    [
        ({"text": "<@UDESK> hello"}, True),
        ({"text": "hello <@UDESK|desk>"}, True),
        ({"text": "hello <@UDESK2>"}, False),
        ({"text": "hello @UDESK, &lt;@UDESK&gt;"}, False),
        ({"text": "Hi", "blocks": RICH}, True),
    ],
)
def test_whoever_is_mentioned_is_addressed(message: dict[str, Any], addressed: bool) -> None:
    assert read(**message).addressed is addressed


def test_mention_that_comes_as_two_events_is_one_message() -> None:
    mention = MESSAGE | {"text": "<@UDESK> hello"}
    as_message, as_mention = PARSER.event(mention), PARSER.event(mention | {"type": "app_mention"})
    assert as_message == as_mention


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("<@UDESK> /status", "/status"),
        ("<@UDESK>", "@UDESK"),
        ("a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"),
        ("<https://a.example|this>", "this (https://a.example)"),
        ("<https://a.example>", "https://a.example"),
        ("<mailto:a@b.example|a@b.example>", "a@b.example"),
        ("<#C2|general> <!here> <!subteam^S1|@team> <@UBOB>", "#general @here @team @UBOB"),
    ],
)
def test_text_is_what_people_see(raw: str, text: str) -> None:
    assert read(text=raw).text == text


def test_what_is_attached_and_what_stands_in_blocks_is_read_too() -> None:
    attached = read(text="See", attachments=[{"title": "T", "text": "X"}, {"fallback": "F"}])
    assert attached.text == "See\n(Attached: T\nX)\n(Attached: F)"
    for shared in ({"text": "/approve c_1"}, {"author_name": "/approve c_1", "text": "X"}):
        assert read(text="", attachments=[shared]).text.startswith("(Attached: /approve")
    assert read(text="", blocks=RICH).text == "Hi"


@pytest.mark.parametrize(
    "message",
    [{"user": "UDESK"}, {"bot_id": "BDESK"}, {"subtype": "channel_join"}, {"text": " "}, {"ts": "x"}],
)
def test_our_own_words_and_what_nobody_said_are_passed_over(message: dict[str, Any]) -> None:
    assert PARSER.event(MESSAGE | message) is None


def test_other_bots_are_known_as_such() -> None:
    assert read(bot_id="B2", subtype="bot_message", username="Cron").source.is_bot
    assert read(user="USLACKBOT").source.is_bot
    assert not read().source.is_bot


@pytest.mark.parametrize(
    ("message", "teams"),
    [
        ({}, ()),
        ({"team": "T1"}, ("T1",)),
        ({"team": "T1", "user_team": "T2", "source_team": "T2"}, ("T2",)),
        ({"team": "T1", "source_team": "T2"}, ("T2",)),
        ({"team": {"id": "T1"}, "user_team": None}, ()),
    ],
)
def test_person_has_the_workspace_that_they_belong_to_as_their_role(
    message: dict[str, Any], teams: tuple[str, ...]
) -> None:
    assert read(**message).source.roles == teams


def test_ids_of_a_grid_and_of_private_channels_are_ids_like_others() -> None:
    incoming = read(user="W012A3CDE", channel="G012A3CDE", team="E012A3CDE")
    assert (incoming.source.user_id, incoming.source.chat_id) == ("W012A3CDE", "G012A3CDE")
    assert incoming.source.chat_type is ChatType.GROUP


@pytest.mark.parametrize(
    ("payload", "ours"),
    [
        ({"team_id": "T1"}, True),
        ({"team_id": "T2"}, False),
        ({"team_id": "T2", "authorizations": [{"team_id": "T1"}]}, True),
        ({"team_id": "T2", "authorizations": [{"team_id": "T3"}, None]}, False),
        ({"team_id": "T2", "context_team_id": "T1"}, True),
        ({"team_id": "T2", "enterprise_id": "E1"}, True),
        ({"team_id": "T2", "enterprise_id": "E2"}, False),
        ({"team_id": "T2", "enterprise_id": ""}, False),
        ({"team_id": ["T1"], "authorizations": "T1"}, True),
        ({}, True),
    ],
)
def test_what_happens_in_another_workspace_does_not_concern_us(payload: dict[str, Any], ours: bool) -> None:
    us = inbound.Self(team="T1", user="UDESK", enterprise="E1")
    assert inbound.Parser(us, None).concerns_us(payload) is ours
    alone = inbound.Parser(inbound.Self(team="T1", user="UDESK"), None)
    assert not alone.concerns_us({"team_id": "T2", "enterprise_id": ""})


def test_voice_message_is_known_and_a_file_that_is_gone_is_none() -> None:
    files = [FILE | {"subtype": "slack_audio"}, FILE | {"mode": "tombstone"}]
    (voice,) = read(text="", files=files).files
    assert (voice.id, voice.name, voice.kind, voice.size, voice.is_voice) == (
        "F1",
        "a.txt",
        "text/plain",
        10,
        True,
    )


def change(now: dict[str, Any], before: dict[str, Any]) -> channels.Happening | None:
    return PARSER.event(MESSAGE | {"subtype": "message_changed", "message": now, "previous_message": before})


def test_only_a_change_of_the_text_is_an_edit() -> None:
    edited = {"edited": {"user": "UADA", "ts": "1767614500.000000"}}
    assert isinstance(change(MESSAGE | edited | {"text": "New"}, MESSAGE), channels.Edited)
    assert change(MESSAGE | edited | {"attachments": [{"title": "preview"}]}, MESSAGE) is None
    assert change(MESSAGE | {"attachments": [{"title": "preview"}]}, MESSAGE) is None
    assert change(MESSAGE | edited | {"user": "UDESK", "text": "New"}, MESSAGE) is None


def test_message_that_is_deleted_under_its_answers_is_deleted() -> None:
    gone = {"ts": TS, "subtype": "tombstone", "text": "This message was deleted.", "user": "USLACKBOT"}
    deleted = change(gone, MESSAGE)
    assert isinstance(deleted, channels.Deleted)
    assert (deleted.source.message_id, deleted.source.user_id) == (TS, "UADA")
    assert change(gone, MESSAGE | {"user": "UDESK"}) is None


def test_new_message_that_comes_as_a_change_is_that_message() -> None:
    assert change(MESSAGE, MESSAGE | {"text": ""}) == read()


@pytest.mark.parametrize(
    ("words", "text"), [("status", "/status"), ("", "/help"), ("/new", "/new"), (None, "/help")]
)
def test_command_is_one_of_ours(words: str | None, text: str) -> None:
    incoming = PARSER.command(COMMAND | {"text": words}, NOW)
    assert incoming is not None
    assert (incoming.text, incoming.addressed, incoming.source.message_id) == (text, True, None)
    assert incoming.handle is not None
    assert incoming.handle.value == COMMAND["response_url"]


def test_sign_without_a_picture_keeps_its_name() -> None:
    assert [texts.sign(name) for name in ("+1::skin-tone-3", "party_parrot")] == ["👍", ":party_parrot:"]


def read_kind(kind: str, raw: Any) -> channels.Happening | None:
    match kind:
        case "press":
            return PARSER.press(raw)
        case "command":
            return PARSER.command(inbound.table(raw), NOW)
        case _:
            return PARSER.event(raw)


def is_of_somebody_else(happening: channels.Happening) -> None:
    assert happening.source.account == "one"
    assert happening.source.user_id != US.user


@pytest.mark.prove
def test_nothing_that_comes_breaks_the_reading(tell: counts.Tell) -> None:
    kinds = [*(("event", each) for each in EVENTS), ("press", PRESS), ("command", COMMAND)]
    damage = fuzzing.Damage(values=["<@UDESK>", "1.0", {"ts": 1}, FULL])

    def make(chance: random.Random) -> tuple[str, Any]:
        kind, raw = chance.choice(kinds)
        return kind, damage(raw, chance)

    fuzzing.read_or_refused(
        make, lambda given: [read_kind(*given)], tell, of="Slack", check=is_of_somebody_else
    )


def test_nesting_without_end_is_read_in_bounded_steps() -> None:
    deep: Any = {"type": "text", "text": "x"}
    for _ in range(5000):
        deep = {"elements": [deep]}
    assert PARSER.event(MESSAGE | {"text": "", "blocks": [deep]}) is None
    assert read(text="Hi", blocks=[{"elements": [{"text": "x"}] * 100_000}]).text == "Hi"
