"""What events of the gateway say, whatever is in them."""

import random
from typing import Any

import pytest

from frontdesk import errors
from frontdesk.channels.discord import inbound
from frontdesk.channels.discord.inbound import BotSelf, read_as
from frontdesk.channels.discord.places import DiscordPlace, Guild
from tests import counts, fuzzing

ME = BotSelf(id="900", roles=frozenset({"1009"}))
PLACE = DiscordPlace(id="1001", guild_id="100")
ADA = {"id": "7", "username": "ada", "global_name": "Ada", "bot": False}
MESSAGE: dict[str, Any] = {
    "id": "5001",
    "channel_id": "1001",
    "guild_id": "100",
    "author": ADA,
    "member": {"roles": ["55"], "nick": None},
    "content": "<@900> Hello",
    "timestamp": "2026-01-05T12:00:00+00:00",
    "edited_timestamp": "2026-01-05T12:01:00+00:00",
    "type": 19,
    "flags": 1 << 13,
    "mentions": [{"id": "900", "username": "desk", "bot": True}],
    "mention_roles": ["1009"],
    "attachments": [
        {"id": "1", "filename": "a.ogg", "content_type": "audio/ogg", "size": 3, "url": "https://x"}
    ],
    "sticker_items": [{"name": "wave"}],
    "referenced_message": {"id": "5000", "channel_id": "1001", "author": ADA, "content": "Before"},
    "message_snapshots": [{"message": {"content": "told before"}}],
}
PRESS: dict[str, Any] = {
    "id": "6001",
    "type": 3,
    "token": "t",
    "channel_id": "1001",
    "guild_id": "100",
    "channel": {"id": "1001", "type": 0, "name": "team"},
    "member": {"user": ADA, "roles": ["55"]},
    "message": {"id": "5001"},
    "data": {"custom_id": "tok-1"},
}
COMMAND = PRESS | {"type": 2, "data": {"name": "status", "options": [{"name": "text", "value": "now"}]}}
REACTION: dict[str, Any] = {
    "user_id": "7",
    "channel_id": "1001",
    "message_id": "5001",
    "emoji": {"id": None, "name": "👍"},
    "member": {"user": ADA, "roles": []},
}
GUILD = {
    "id": "100",
    "channels": [{"id": "1001", "type": 0, "name": "team", "last_message_id": "5001"}],
    "threads": [{"id": "3001", "type": 11, "parent_id": "1001"}],
    "roles": [{"id": "1009", "tags": {"bot_id": "900"}}],
}
EVENTS = (
    ("message", MESSAGE),
    ("edit", MESSAGE),
    ("delete", {"channel_id": "1001", "ids": ["5001", "5002"]}),
    ("press", PRESS),
    ("press", COMMAND),
    ("reaction", REACTION),
    ("guild", GUILD),
)


def happenings(kind: str, raw: object) -> list[Any]:
    """Everything that an event says."""
    match kind:
        case "message":
            found = [inbound.message(read_as(inbound.DiscordMessage, raw), PLACE, ME)]
        case "edit":
            return [inbound.edit(read_as(inbound.DiscordMessage, raw), PLACE, ME)]
        case "delete":
            return list(inbound.deletions(read_as(inbound.DeletedMessages, raw), PLACE, ME))
        case "press":
            return [inbound.interaction(read_as(inbound.Interaction, raw), PLACE, ME)]
        case "reaction":
            put = read_as(inbound.DiscordReaction, raw)
            return [inbound.reaction(put, PLACE, ME, "s:1", removed=False)]
        case _:
            read_as(Guild, raw)
            found = []
    return list(found)


def test_voice_message_that_answers_another_is_read_whole() -> None:
    (incoming,) = happenings("message", MESSAGE)
    assert (incoming.text, incoming.addressed, incoming.event_id) == ("Hello", True, "5001")
    assert (incoming.quote.message_id, incoming.quote.text, incoming.quote.is_ours) == (
        "5000",
        "Before",
        False,
    )
    (file,) = incoming.files
    assert (file.id, file.kind, file.is_voice) == ("1001/5001/1", "audio/ogg", True)


def test_message_without_words_says_what_is_in_it() -> None:
    (incoming,) = happenings("message", MESSAGE | {"content": "", "attachments": []})
    assert incoming.text == "(Sticker: wave)\n(Forwarded: told before)"


@pytest.mark.parametrize("changes", [{"author": ADA | {"id": "900"}}, {"type": 7}, {"author": None}])
def test_own_messages_and_announcements_say_nothing(changes: dict[str, Any]) -> None:
    assert happenings("message", MESSAGE | changes) == [None]


def test_preview_of_a_link_is_no_edit() -> None:
    assert happenings("edit", MESSAGE | {"edited_timestamp": None}) == [None]


def test_own_reaction_is_none_of_ours_to_hear() -> None:
    assert happenings("reaction", REACTION | {"user_id": "900"}) == [None]


def test_sign_of_another_is_not_put_to_the_person_that_the_event_names_beside() -> None:
    (reacted,) = happenings("reaction", REACTION | {"user_id": "8"})
    assert (reacted.source.user_id, reacted.source.user_name) == ("8", None)


@pytest.mark.prove
def test_any_event_is_read_or_refused(tell: counts.Tell) -> None:
    damage = fuzzing.Damage(values=[ADA])

    def make(chance: random.Random) -> tuple[str, Any]:
        kind, raw = chance.choice(EVENTS)
        return kind, damage(raw, chance)

    fuzzing.read_or_refused(make, lambda event: happenings(*event), tell, of="Discord")


def test_event_that_is_nested_without_end_is_refused() -> None:
    deep: Any = {"id": "1", "channel_id": "1"}
    for _ in range(5_000):
        deep = {"id": "1", "channel_id": "1", "referenced_message": deep}
    with pytest.raises(errors.InvalidInput):
        happenings("message", deep)
