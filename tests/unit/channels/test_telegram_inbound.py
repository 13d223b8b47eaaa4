"""What an update of the Bot API may hold, who is meant by it, and that nothing in it breaks the reading."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from frontdesk import errors
from frontdesk.channels import called
from frontdesk.channels.telegram import inbound
from frontdesk.contracts import channels
from frontdesk.model.sources import ChatType
from tests import counts, fuzzing

ME = inbound.Me(id=42, username="desk_bot")
ADA = {"id": 7, "is_bot": False, "first_name": "Ada", "last_name": "Lovelace"}
DESK = {"id": 42, "is_bot": True, "first_name": "Desk", "username": "desk_bot"}
PRIVATE = {"id": 7, "type": "private", "first_name": "Ada"}
GROUP = {"id": -100500, "type": "supergroup", "title": "Team", "is_forum": True}
MESSAGE = {"message_id": 5, "date": 1767614400, "chat": GROUP, "from": ADA, "text": "Hello"}
FILE = {
    "file_id": "f1",
    "file_unique_id": "u1",
    "file_size": 10,
    "mime_type": "text/plain",
    "file_name": "a.txt",
}
FULL = MESSAGE | {
    "message_thread_id": 3,
    "is_topic_message": True,
    "entities": [
        {"type": "mention", "offset": 0, "length": 5},
        {"type": "text_mention", "offset": 0, "length": 1, "user": DESK},
    ],
    "reply_to_message": MESSAGE | {"from": DESK},
    "quote": {"text": "Hel", "position": 0},
    "photo": [{"file_id": "p", "file_size": 1}],
    "document": FILE,
    "voice": FILE,
    "media_group_id": "g",
    "location": {"latitude": 1.5, "longitude": 2.5},
    "poll": {"question": "What?", "options": [{"text": "This"}]},
}
UPDATES = [
    {"update_id": 1, "message": FULL},
    {"update_id": 1, "edited_message": FULL | {"edit_date": 1767614401}},
    {"update_id": 1, "callback_query": {"id": "9", "from": ADA, "message": FULL, "data": "tok"}},
    {
        "update_id": 1,
        "message_reaction": {
            "chat": GROUP,
            "message_id": 5,
            "user": ADA,
            "date": 1,
            "old_reaction": [],
            "new_reaction": [{"type": "emoji", "emoji": "👍"}],
        },
    },
]


def read(**message: Any) -> channels.Incoming:
    happened = inbound.read_update({"update_id": 1, "message": MESSAGE | message}, "one", ME)
    (incoming,) = happened.happenings
    assert isinstance(incoming, channels.Incoming)
    return incoming


def mention(text: str, name: str, kind: str = "mention") -> dict[str, Any]:
    """The fields of a message in which a name is marked: places count UTF-16 units."""
    before = text[: text.index(name)].encode("utf-16-le")
    return {"text": text, "entities": [{"type": kind, "offset": len(before) // 2, "length": len(name)}]}


def test_message_says_where_it_was_written_and_by_whom() -> None:
    incoming = read()
    source = incoming.source
    assert (source.chat_id, source.chat_type, source.chat_name) == ("-100500", ChatType.GROUP, "Team")
    assert (source.user_id, source.user_name, source.message_id) == ("7", "Ada Lovelace", "5")
    assert (source.account, source.is_bot, source.thread_id) == ("one", False, None)
    assert (incoming.text, incoming.event_id) == ("Hello", "1:-100500:5")
    assert incoming.sent_at is not None


def test_direct_chat_knows_no_being_addressed() -> None:
    incoming = read(chat=PRIVATE)
    assert (incoming.source.chat_type, incoming.addressed) == (ChatType.DM, None)


@pytest.mark.parametrize(
    ("message", "thread"),
    [
        ({"message_thread_id": 3}, None),
        ({"message_thread_id": 3, "is_topic_message": True}, "3"),
        ({}, None),
    ],
    ids=["a plain reply", "a topic", "the General topic"],
)
def test_thread_is_a_topic_only_where_the_platform_says_so(
    message: dict[str, Any], thread: str | None
) -> None:
    assert read(**message).source.thread_id == thread


@pytest.mark.parametrize(
    ("message", "addressed"),
    [
        ({}, False),
        ({"text": "@desk_bot hello"}, False),
        (mention("@desk_bot hello", "@desk_bot"), True),
        (mention("\U0001f680 ask @Desk_Bot", "@Desk_Bot"), True),
        (mention("@desk_bot_2 hello", "@desk_bot_2"), False),
        (mention("see @desk_bot", "@desk_bot", "url"), False),
        (
            {"text": "Desk", "entities": [{"type": "text_mention", "offset": 0, "length": 4, "user": DESK}]},
            True,
        ),
        (
            {"text": "Ada", "entities": [{"type": "text_mention", "offset": 0, "length": 3, "user": ADA}]},
            False,
        ),
        ({"reply_to_message": MESSAGE | {"from": DESK}}, True),
        ({"reply_to_message": MESSAGE}, False),
        (mention("/status@desk_bot", "/status@desk_bot", "bot_command"), True),
        (mention("/status", "/status", "bot_command"), False),
        (
            {
                "text": None,
                "caption": "@desk_bot",
                "caption_entities": [{"type": "mention", "offset": 0, "length": 9}],
                "document": FILE,
            },
            True,
        ),
    ],
)
def test_whoever_is_marked_is_addressed(message: dict[str, Any], addressed: bool) -> None:
    assert read(**message).addressed is addressed


@pytest.mark.parametrize("root", [{"forum_topic_created": {"name": "x"}}, {"message_id": 3}])
def test_message_of_a_topic_does_not_answer_whoever_opened_it(root: dict[str, Any]) -> None:
    opened = MESSAGE | {"from": DESK} | root
    incoming = read(message_thread_id=3, is_topic_message=True, reply_to_message=opened)
    assert (incoming.addressed, incoming.quote) == (False, None)


def test_our_name_is_taken_off_a_command_and_another_bots_is_only_overheard() -> None:
    ours = read(**mention("/status@desk_bot now", "/status@desk_bot", "bot_command"))
    assert (ours.text, ours.observed) == ("/status now", False)
    theirs = read(**mention("/stop@other_bot", "/stop@other_bot", "bot_command"))
    assert (theirs.text, theirs.observed, theirs.addressed) == ("/stop@other_bot", True, False)


def test_first_words_to_a_bot_ask_for_help() -> None:
    for text in ("/start", "/start invited-by-ada"):
        assert read(chat=PRIVATE, text=text).text == "/help"
    assert read(chat=PRIVATE, text="/started").text == "/started"
    assert read(**mention("/start@desk_bot", "/start@desk_bot", "bot_command")).text == "/help"


def test_words_of_somebody_else_are_told_as_such_and_are_no_command() -> None:
    origin = {
        "type": "user",
        "date": 1767614400,
        "sender_user": {"id": 9, "is_bot": False, "first_name": "Eve"},
    }
    for text in ("/approve c_1", "/start", "/approve@desk_bot c_1"):
        marked = mention(text, text.partition(" ")[0], "bot_command")
        assert read(chat=PRIVATE, forward_origin=origin, **marked).text == f"(Forwarded: {text})"


@pytest.mark.parametrize("nobody", sorted(inbound.NOBODY))
def test_who_writes_as_nobody_has_no_id(nobody: int) -> None:
    incoming = read(**{"from": ADA | {"id": nobody, "is_bot": True}, "sender_chat": GROUP})
    assert (incoming.source.user_id, incoming.source.user_name, incoming.source.is_bot) == (
        None,
        "Team",
        False,
    )


def test_bots_are_known_as_such_and_our_own_posts_are_none_of_ours_to_answer() -> None:
    assert read(**{"from": ADA | {"is_bot": True}}).source.is_bot
    for kind in ("message", "edited_message"):
        update = {"update_id": 1, kind: MESSAGE | {"from": DESK}}
        assert inbound.read_update(update, None, ME).happenings == ()


def test_quote_is_the_part_that_was_chosen() -> None:
    quoted = read(reply_to_message=MESSAGE | {"text": "one two", "from": DESK}, quote={"text": "two"}).quote
    assert quoted is not None
    assert (quoted.message_id, quoted.text, quoted.is_ours) == ("5", "two", True)


def test_files_are_named_and_not_fetched() -> None:
    sizes = [{"file_id": "small", "file_size": 1}, {"file_id": "large", "file_size": 9}]
    photo, voice = read(photo=sizes), read(voice={"file_id": "v"}, text=None)
    assert [(each.id, each.kind, each.size) for each in photo.files] == [("large", "image/jpeg", 9)]
    assert [(each.id, each.kind, each.is_voice) for each in voice.files] == [("v", "audio/ogg", True)]
    animation = read(animation=FILE, document=FILE)
    assert len(animation.files) == 1


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"location": {"latitude": 1.5, "longitude": 2}}, "(Location: 1.5, 2)"),
        ({"contact": {"first_name": "Bob", "phone_number": "+1"}}, "(Contact: Bob, +1)"),
        ({"poll": {"question": "What?", "options": [{"text": "This"}]}}, "(Poll: What?, This)"),
        ({"dice": {"emoji": "🎲", "value": 6}}, "(Dice: 🎲, 6)"),
    ],
)
def test_message_without_text_is_told_in_words(message: dict[str, Any], text: str) -> None:
    assert read(text=None, **message).text == text


def test_notes_of_the_platform_are_no_messages() -> None:
    for note in ({"new_chat_members": [ADA]}, {"migrate_to_chat_id": -1}, {"pinned_message": MESSAGE}):
        update = {"update_id": 1, "message": MESSAGE | {"text": None} | note}
        assert inbound.read_update(update, None, ME) == inbound.Happened()


def test_reaction_tells_what_was_put_and_what_was_taken_away() -> None:
    signs = {
        "old_reaction": [{"type": "emoji", "emoji": "👎"}],
        "new_reaction": [{"type": "emoji", "emoji": "👍"}],
    }
    update = {"update_id": 1, "message_reaction": UPDATES[3]["message_reaction"] | signs}  # type: ignore[operator]
    first, second = inbound.read_update(update, None, ME).happenings
    assert isinstance(first, channels.Reacted)
    assert isinstance(second, channels.Reacted)
    assert [(each.emoji, each.removed) for each in (first, second)] == [("👎", True), ("👍", False)]
    assert first.event_id != second.event_id


def test_press_on_a_message_that_nobody_has_is_only_acknowledged() -> None:
    update = {"update_id": 1, "callback_query": {"id": "9", "from": ADA, "data": "tok"}}
    happened = inbound.read_update(update, None, ME)
    assert (happened.happenings, happened.query) == ((), "9")


@pytest.mark.parametrize(
    "raw", [None, [], "x", 1, {}, {"update_id": "1"}, {"update_id": 1, "message": {"chat": 1}}]
)
def test_unreadable_update_is_refused(raw: object) -> None:
    with pytest.raises(errors.InvalidInput):
        inbound.read_update(raw, None, ME)


@pytest.mark.prove
def test_any_update_is_read_or_refused(tell: counts.Tell) -> None:
    damage = fuzzing.Damage(values=[DESK, FULL, [FULL], -100500])

    def read_update(raw: Any) -> Sequence[channels.Happening]:
        inbound.update_number(raw)
        return inbound.read_update(raw, None, ME).happenings

    fuzzing.read_or_refused(
        lambda chance: damage(chance.choice(UPDATES), chance), read_update, tell, of="Telegram"
    )


@pytest.mark.prove
def test_bytes_of_a_webhook_are_read_or_refused(tell: counts.Tell) -> None:
    whole = [json.dumps(each).encode() for each in UPDATES]
    fuzzing.read_or_refused(
        lambda chance: fuzzing.changed_bytes(chance.choice(whole), chance),
        lambda body: inbound.read_update(called.read_json(object, body), None, ME).happenings,
        tell,
        of="Telegram, as bytes",
        reduced=5_000,
    )
