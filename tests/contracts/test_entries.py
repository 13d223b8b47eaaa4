"""What is written about a session, and what is never written."""

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import uuid4

import pytest

from frontdesk import ChatType, Platform, SessionEntry, SessionSource, SessionStore, Viewer
from tests import schemas
from tests.contracts.conftest import EditStore, OpenSessionStore
from tests.contracts.samples import LASTING, direct, in_thread, user_says

SECRETS = ("sk-very-secret", "hunter2hunter2", "bearer-abcdef")


@pytest.fixture
def raw_bytes(store_url: str) -> Callable[[], Awaitable[bytes]]:
    """Everything that the store has on disk."""

    async def read() -> bytes:
        if store_url.startswith("sqlite"):
            folder = Path(store_url.removeprefix("sqlite:///")).parent
            return b"".join(file.read_bytes() for file in folder.iterdir())
        return await all_rows(store_url)

    return read


async def all_rows(store_url: str) -> bytes:
    async with schemas.connected(store_url) as connection:
        tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        cells = [
            cell
            for (table,) in tables
            for row in await connection.fetch(f'SELECT * FROM "{table}"')
            for cell in row
        ]
    return b"\n".join(cell if isinstance(cell, bytes) else str(cell).encode() for cell in cells)


async def test_credentials_of_a_model_override_never_reach_the_disk(
    open_session_store: OpenSessionStore, raw_bytes: Callable[[], Awaitable[bytes]]
) -> None:
    service = await open_session_store(LASTING)
    entry = await service.get_or_create_session(direct())
    await service.append_to_transcript(entry.session_id, user_says("canary-in-the-file"))
    key, password, token = SECRETS
    override = {
        "model": "large",
        "provider": "acme",
        "base_url": f"https://user:{password}@models.example:8443/v1?api_key={token}#{token}",
        "api_key": key,
        "headers": {"Authorization": f"Bearer {token}"},
        "extra": [key, password],
    }
    await service.set_model_override(entry.session_key, override)
    assert await service.get_model_override(entry.session_key) == {
        "model": "large",
        "provider": "acme",
        "base_url": "https://models.example:8443/v1",
    }
    await service.reset_session(entry.session_key)
    await service.close()
    written = await raw_bytes()
    assert b"canary-in-the-file" in written
    assert b"models.example" in written
    assert [secret for secret in SECRETS if secret.encode() in written] == []


async def test_flags_of_the_receiving_adapter_are_never_stored(
    open_session_store: OpenSessionStore, raw_bytes: Callable[[], Awaitable[bytes]]
) -> None:
    service = await open_session_store(LASTING)
    source = direct(is_bot=True, role_authorized=True, delivered_via_upstream_relay=True)
    await service.get_or_create_session(source)
    await service.close()
    service = await open_session_store(LASTING)
    [entry] = await service.list_sessions()
    assert entry.origin == direct()
    await service.close()
    written = await raw_bytes()
    assert b"chat-ann" in written
    assert b"role_authorized" not in written
    assert b"upstream_relay" not in written


async def test_stored_entry_round_trips_through_its_json_form(service: SessionStore) -> None:
    entry = await service.get_or_create_session(
        in_thread(chat_topic="日本", scope_id="guild", user_id_alt="alt", parent_chat_id="p", profile="work")
    )
    await service.update_session(entry.session_key, 1, 2, 3, 4, 5, 0.5, "exact")
    await service.set_model_override(entry.session_key, {"model": "large"})
    await service.mark_resume_pending(entry.session_key)
    stored = await service.get_session(entry.session_key)
    assert stored is not None
    assert SessionEntry.from_dict(stored.to_dict()) == stored


async def test_session_of_an_unknown_platform_loads_without_one_and_stays_routable(
    open_session_store: OpenSessionStore, edit_store: EditStore
) -> None:
    here, gone = (f"{name}-{uuid4().hex}" for name in ("here", "gone"))
    source = SessionSource(
        platform=Platform.register(here), chat_id="c1", chat_type=ChatType.GROUP, chat_name="Room"
    )
    service = await open_session_store(LASTING)
    other = await service.get_or_create_session(direct())
    entry = await service.get_or_create_session(source)
    await service.append_to_transcript(entry.session_id, user_says())
    await service.close()
    renamed = f"platform = '{gone}', session_key = replace(session_key, '{here}', '{gone}')"
    await edit_store(
        f"UPDATE sessions SET {renamed},"
        f" details = CAST(replace(CAST(details AS TEXT), '{here}', '{gone}') AS BLOB)"
        f" WHERE platform = '{here}'",
        postgresql=f"UPDATE sessions SET {renamed},"
        f" details = convert_to(replace(convert_from(details, 'UTF8'), '{here}', '{gone}'), 'UTF8')"
        f" WHERE platform = '{here}'",
    )
    await edit_store(f"UPDATE routes SET session_key = replace(session_key, '{here}', '{gone}')")
    service = await open_session_store(LASTING)
    key = entry.session_key.replace(here, gone)
    loaded = await service.get_session(key)
    assert loaded is not None
    assert (loaded.session_id, loaded.platform, loaded.origin) == (entry.session_id, None, None)
    assert (loaded.display_name, loaded.chat_type) == ("Room", ChatType.GROUP)
    assert {each.session_id for each in await service.list_sessions()} == {entry.session_id, other.session_id}
    assert await service.suspend_session(key)
    assert await service.load_transcript(entry.session_id) == [user_says()]
    fresh = await service.reset_session(key)
    assert fresh is not None
    assert await service.get_session(key) == fresh
    back = SessionSource(platform=Platform.register(gone), chat_id="c1", chat_type=ChatType.GROUP)
    again = await service.get_or_create_session(back)
    assert again.session_id == fresh.session_id


async def test_session_whose_details_cannot_be_read_is_named_and_the_rest_load(
    open_session_store: OpenSessionStore, edit_store: EditStore, caplog: pytest.LogCaptureFixture
) -> None:
    service = await open_session_store(LASTING)
    broken = await service.get_or_create_session(direct("ann"))
    await service.append_to_transcript(broken.session_id, user_says())
    whole = await service.get_or_create_session(direct("bob"))
    await service.close()
    damaged = f"WHERE id = '{broken.session_id}'"
    await edit_store(
        f"UPDATE sessions SET details = X'FF00' {damaged}",
        postgresql=f"UPDATE sessions SET details = '\\xff00' {damaged}",
    )
    service = await open_session_store(LASTING)
    assert {entry.session_id for entry in await service.list_sessions()} == {
        broken.session_id,
        whole.session_id,
    }
    assert broken.session_id in caplog.text
    assert whole.session_id not in caplog.text
    assert await service.get_session(whole.session_key) == whole
    assert (await service.get_or_create_session(direct("ann"))).session_id == broken.session_id
    assert await service.load_transcript(broken.session_id) == [user_says()]


@pytest.mark.parametrize("column", ["created_at", "updated_at", "ended_at", "last_resume_marked_at"])
async def test_session_whose_row_makes_no_sense_is_named_and_the_rest_are_served(
    open_session_store: OpenSessionStore,
    edit_store: EditStore,
    caplog: pytest.LogCaptureFixture,
    column: str,
) -> None:
    async with await open_session_store(LASTING) as service:
        bad = await service.get_or_create_session(direct("bad"))
        good = await service.get_or_create_session(direct("good"))
    await edit_store(f"UPDATE sessions SET {column} = 9000000000000000000 WHERE id = '{bad.session_id}'")
    service = await open_session_store(LASTING)
    with caplog.at_level(logging.WARNING):
        assert [entry.session_id for entry in await service.list_sessions()] == [good.session_id]
        assert await service.suspend_recently_active() == 1
        assert (await service.get_or_create_session(direct("good"))).session_id == good.session_id
        fresh = await service.get_or_create_session(direct("bad"))
    assert fresh.session_id != bad.session_id
    assert bad.session_id in caplog.text


@pytest.mark.parametrize(
    ("column", "unsafe"),
    [("id", "../../etc/passwd"), ("session_key", "agent:main:telegram:dm:../x"), ("parent_id", "C:evil")],
)
async def test_unsafe_ids_of_the_database_are_not_handed_out(
    open_session_store: OpenSessionStore,
    edit_store: EditStore,
    caplog: pytest.LogCaptureFixture,
    column: str,
    unsafe: str,
) -> None:
    service = await open_session_store(LASTING)
    for name in ("ann", "bob"):
        entry = await service.get_or_create_session(direct(name))
        await service.append_to_transcript(entry.session_id, user_says("heron"))
    bad = await service.get_or_create_session(direct("ann"))
    await service.close()
    if column == "id":  # which nothing may refer to
        its = f"WHERE session_id = '{bad.session_id}'"
        await edit_store(f"DELETE FROM routes {its}")
        await edit_store("SELECT 1", postgresql=f"DELETE FROM messages {its}")
    await edit_store(f"UPDATE sessions SET {column} = '{unsafe}' WHERE id = '{bad.session_id}'")
    service = await open_session_store(LASTING)
    with caplog.at_level(logging.WARNING):
        listed = await service.list_own_sessions(Viewer.everything())
        hits = await service.search("heron", Viewer.everything())
        entries = await service.list_sessions()
        await service.prune_old_entries(0.000001)
    handed_out = [*(hit.session_id for hit in hits), *(entry.session_key for entry in entries)]
    for session in listed:
        handed_out += [session.id, session.entry.session_key, session.parent_id or ""]
    assert unsafe not in handed_out
    assert len(listed) == 1
    assert "session_unreadable" in caplog.text


@pytest.mark.parametrize(("old", "now"), [("forum", ChatType.GROUP), ("webhook", ChatType.DM)])
async def test_older_names_of_chat_types_are_read(
    open_session_store: OpenSessionStore, edit_store: EditStore, old: str, now: ChatType
) -> None:
    service = await open_session_store(LASTING)
    entry = await service.get_or_create_session(direct())
    await service.close()
    await edit_store(f"UPDATE sessions SET chat_type = '{old}'")
    service = await open_session_store(LASTING)
    again = await service.get_session(entry.session_key)
    assert again is not None
    assert again.chat_type is now
