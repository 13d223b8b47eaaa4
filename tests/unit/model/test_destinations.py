"""Addresses of chats, as people and agents write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import Platform, SessionSource, errors
from frontdesk.model import destinations, keys

IDS = st.text(min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("text", "account", "chat", "thread"),
    [
        ("telegram", None, None, None),
        ("telegram@bot", "bot", None, None),
        ("telegram:-100123", None, "-100123", None),
        ("telegram@bot:-100123:7", "bot", "-100123", "7"),
        ("slack:C1:1700000000.000100", None, "C1", "1700000000.000100"),
        ("matrix:!r:example.org", None, "!r:example.org", None),
        ("matrix:!r:example.org:8448", None, "!r:example.org:8448", None),
        ("matrix:!r:example.org:$thread", None, "!r:example.org", "$thread"),
        ("matrix:!r:example.org:8448:$thread", None, "!r:example.org:8448", "$thread"),
        ("matrix:#ops:example.org", None, "#ops:example.org", None),
        ("matrix:!withoutserver", None, "!withoutserver", None),
        ("matrix:!withoutserver:$thread", None, "!withoutserver", "$thread"),
        ("email:ann@example.org", None, "ann@example.org", None),
        ("webhook:owner/repo", None, "owner/repo", None),
        ("webhook:a%3Ab:c", None, "a:b", "c"),
    ],
)
def test_address_is_read(text: str, account: str | None, chat: str | None, thread: str | None) -> None:
    read = destinations.parse(text)
    assert (read.account, read.chat_id, read.thread_id) == (account, chat, thread)
    assert not read.is_origin


@given(IDS, IDS)
def test_any_ids_can_be_written_encoded(chat: str, thread: str) -> None:
    read = destinations.parse(f"webhook:{keys.encode_part(chat)}:{keys.encode_part(thread)}")
    assert (read.chat_id, read.thread_id) == (chat, thread)


def test_address_that_is_too_long_is_refused_and_not_repeated() -> None:
    with pytest.raises(errors.UnknownDestination) as refusal:
        destinations.parse(f"telegram:{'1' * 100_000}")
    assert len(str(refusal.value)) < 200


@given(st.text(max_size=40))
def test_whatever_is_written_is_read_or_refused(text: str) -> None:
    try:
        destinations.parse(text)
    except errors.UnknownDestination:
        return


@pytest.mark.parametrize(
    ("listed", "covers"),
    [
        ("telegram:1", True),
        ("telegram:1:7", True),
        ("telegram:*", True),
        ("telegram:1:8", False),
        ("telegram:11", False),
        ("telegram@bot:1", False),
        ("telegram", False),
        ("slack:1", False),
        ("origin", False),
    ],
)
def test_chat_on_a_list_covers_its_threads_and_nothing_else(listed: str, covers: bool) -> None:
    place = SessionSource(platform=Platform.TELEGRAM, chat_id="1", thread_id="7")
    assert destinations.parse(listed).covers(place) is covers
