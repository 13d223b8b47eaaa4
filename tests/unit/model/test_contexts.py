"""The record of what an agent is told."""

from datetime import UTC, datetime

import msgspec
import pytest

from frontdesk.model.contexts import SessionContext
from frontdesk.model.platforms import HomeChannel, Platform
from frontdesk.model.sessions import SessionEntry
from frontdesk.model.sources import SessionSource

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
EVENING = datetime(2026, 5, 4, 18, tzinfo=UTC)


def test_a_context_of_a_source_alone_is_valid() -> None:
    context = SessionContext(source=SessionSource.local_cli())
    assert context.to_dict() == {
        "source": SessionSource.local_cli().to_dict(),
        "connected_platforms": [],
        "home_channels": {},
        "shared_multi_user_session": False,
        "session_key": "",
        "session_id": "",
        "created_at": None,
        "updated_at": None,
    }


def test_the_dict_form_is_plain_and_complete() -> None:
    home = HomeChannel(platform=Platform.TELEGRAM, chat_id="5", name="Home")
    context = SessionContext(
        source=SessionSource.local_cli(),
        connected_platforms=(Platform.TELEGRAM,),
        home_channels={Platform.TELEGRAM: home},
        shared_multi_user_session=True,
        session_key="agent:main:local:dm:cli",
        session_id="20260504_120000_00000000",
        created_at=NOON,
        updated_at=EVENING,
    )
    data = context.to_dict()
    assert msgspec.json.decode(msgspec.json.encode(data)) == data
    assert data["connected_platforms"] == ["telegram"]
    assert data["home_channels"] == {"telegram": {"platform": "telegram", "chat_id": "5", "name": "Home"}}
    assert data["shared_multi_user_session"] is True
    assert data["created_at"] == "2026-05-04T12:00:00+00:00"
    assert data["updated_at"] == "2026-05-04T18:00:00+00:00"


def test_a_context_takes_the_facts_of_its_session() -> None:
    entry = SessionEntry(
        session_key="agent:main:local:dm", session_id="s1", created_at=NOON, updated_at=EVENING
    )
    context = SessionContext(source=SessionSource.local_cli()).in_session(entry)
    assert (context.session_key, context.session_id) == ("agent:main:local:dm", "s1")
    assert (context.created_at, context.updated_at) == (NOON, EVENING)


def test_a_context_is_frozen() -> None:
    context = SessionContext(source=SessionSource.local_cli())
    with pytest.raises(AttributeError):
        context.session_id = "other"  # type: ignore[misc]
