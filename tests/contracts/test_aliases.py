"""One WhatsApp person under two names."""

from typing import Any

import pytest

from frontdesk import Platform, SessionSource, SessionStore, errors
from frontdesk.testing import SettableClock
from tests.contracts.conftest import OpenSessionStore
from tests.contracts.samples import LASTING, direct, in_group, user_says

PHONE, LID = "4915112345678", "987654321098765"


def by_phone(**fields: Any) -> SessionSource:
    jid = f"{PHONE}@s.whatsapp.net"
    return direct(**{"platform": Platform.WHATSAPP, "chat_id": jid, "user_id": jid} | fields)


def by_lid(**fields: Any) -> SessionSource:
    jid = f"{LID}@lid"
    return direct(**{"platform": Platform.WHATSAPP, "chat_id": jid, "user_id": jid} | fields)


def in_crowd(name: str) -> SessionSource:
    return in_group(name, "12036@g.us", platform=Platform.WHATSAPP)


async def test_names_are_two_people_until_they_are_learned(service: SessionStore) -> None:
    assert await service.session_key_for(by_phone()) != await service.session_key_for(by_lid())
    assert await service.learn_whatsapp_alias(f"{LID}@lid", f"{PHONE}@s.whatsapp.net")
    assert await service.session_key_for(by_phone()) == await service.session_key_for(by_lid())
    assert not await service.learn_whatsapp_alias(LID, f"+{PHONE}")


async def test_device_suffix_is_no_other_person(service: SessionStore) -> None:
    jid = f"{PHONE}:17@s.whatsapp.net"
    assert await service.session_key_for(by_phone(chat_id=jid)) == await service.session_key_for(by_phone())


async def test_conversation_goes_on_under_the_other_name(open_session_store: OpenSessionStore) -> None:
    service = await open_session_store(LASTING)
    entry = await service.get_or_create_session(by_lid())
    await service.append_to_transcript(entry.session_id, user_says("needle"))
    await service.learn_whatsapp_alias(LID, PHONE)
    for source in (by_phone(), by_lid()):
        assert (await service.get_or_create_session(source)).session_id == entry.session_id
    await service.close()
    service = await open_session_store(LASTING)
    again = await service.get_or_create_session(by_phone())
    assert (again.session_id, again.message_count) == (entry.session_id, 1)
    assert len(await service.list_sessions()) == 1


async def test_of_two_conversations_the_newer_goes_on(service: SessionStore, clock: SettableClock) -> None:
    older = await service.get_or_create_session(by_phone())
    clock.advance(minutes=1)
    newer = await service.get_or_create_session(by_lid())
    await service.learn_whatsapp_alias(LID, PHONE)
    assert (await service.get_or_create_session(by_phone())).session_id == newer.session_id
    viewer = await service.viewer_for(by_lid())
    assert {session.id for session in await service.list_own_sessions(viewer)} == {
        older.session_id,
        newer.session_id,
    }
    back = await service.switch_session(await service.session_key_for(by_lid()), older.session_id)
    assert back is not None
    assert back.session_id == older.session_id


async def test_person_in_a_group_is_one_under_both_names(service: SessionStore) -> None:
    entry = await service.get_or_create_session(in_crowd(f"{LID}@lid"))
    await service.learn_whatsapp_alias(LID, PHONE)
    again = await service.get_or_create_session(in_crowd(f"{PHONE}@s.whatsapp.net"))
    assert again.session_id == entry.session_id
    assert "12036@g.us" in again.session_key


async def test_titles_of_both_names_are_found_and_one_of_two_equal_ones_is_kept(
    service: SessionStore,
) -> None:
    for source, titles in ((by_lid(), ["One", "Both"]), (by_phone(), ["Two", "Both"])):
        viewer = await service.viewer_for(source)
        for title in titles:
            entry = await service.get_or_create_session(source, force_new=True)
            await service.set_title(entry.session_id, title, viewer)
    await service.learn_whatsapp_alias(LID, PHONE)
    viewer = await service.viewer_for(by_lid())
    assert viewer == await service.viewer_for(by_phone())
    for title in ("One", "Two", "Both"):
        assert await service.find_title(title, viewer) is not None
    assert len(await service.list_own_sessions(viewer)) == 4


async def test_search_finds_what_was_said_under_the_other_name(service: SessionStore) -> None:
    entry = await service.get_or_create_session(by_lid())
    await service.append_to_transcript(entry.session_id, user_says("needle"))
    assert len(await service.search("needle", await service.viewer_for(by_lid()))) == 1
    await service.learn_whatsapp_alias(LID, PHONE)
    assert len(await service.search("needle", await service.viewer_for(by_phone()))) == 1
    stranger = await service.viewer_for(by_phone(user_id="1@lid", chat_id="1@lid"))
    assert await service.search("needle", stranger) == []


async def test_other_people_keep_their_sessions(service: SessionStore) -> None:
    other = await service.get_or_create_session(by_lid(chat_id="5@lid", user_id="5@lid"))
    telegram = await service.get_or_create_session(direct(LID))
    await service.learn_whatsapp_alias(LID, PHONE)
    assert await service.get_session(other.session_key) == other
    assert await service.get_session(telegram.session_key) == telegram


async def test_what_is_no_number_is_not_learned(service: SessionStore) -> None:
    for lid, phone in (("", PHONE), (LID, "ann"), ("../x", PHONE), ("%", PHONE)):
        with pytest.raises(errors.InvalidInput):
            await service.learn_whatsapp_alias(lid, phone)


async def test_name_that_moves_to_another_person_takes_nothing_along(service: SessionStore) -> None:
    first = SessionSource(platform=Platform.WHATSAPP, chat_id="49", user_id="49")
    second = SessionSource(platform=Platform.WHATSAPP, chat_id="50", user_id="50")
    entry = await service.get_or_create_session(first)
    await service.append_to_transcript(entry.session_id, user_says("heron"))
    assert await service.learn_whatsapp_alias("77@lid", "49")
    assert await service.learn_whatsapp_alias("77@lid", "50")
    assert await service.search("heron", await service.viewer_for(second)) == []
    assert len(await service.search("heron", await service.viewer_for(first))) == 1
    assert (await service.get_or_create_session(first)).session_id == entry.session_id
