"""One WhatsApp person under two names."""

import itertools
from typing import Any

import pytest

from frontdesk import GatewayConfig, Platform, SessionSource, SessionStore, errors
from frontdesk.model.access import Access, Role
from frontdesk.model.confirmations import Status
from frontdesk.model.turns import TurnState
from frontdesk.testing import SettableClock
from tests.contracts.conftest import OpenSessionStore
from tests.contracts.samples import LASTING, direct, in_group, user_says
from tests.flow.harness import Notebook, open_house

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


# Chains of names


def named(name: str) -> SessionSource:
    return SessionSource(platform=Platform.WHATSAPP, chat_id=f"{name}@lid", user_id=f"{name}@lid")


CHAINS = [
    [("1", "222"), ("222", "333")],
    [("1", "222"), ("2", "222"), ("222", "333"), ("3", "333")],
    [("1", "222"), ("222", "333"), ("333", "1")],
    [("1", "222"), ("2", "333"), ("222", "333")],
]
ORDERS = [order for chain in CHAINS for order in itertools.permutations(chain)]


@pytest.mark.parametrize("order", ORDERS, ids=str)
async def test_person_is_one_in_whatever_order_their_names_are_learned(
    service: SessionStore, clock: SettableClock, order: list[tuple[str, str]]
) -> None:
    names = sorted({name for pair in order for name in pair})
    begun = set()
    for name in names:
        entry = await service.get_or_create_session(named(name))
        await service.append_to_transcript(entry.session_id, user_says("needle"))
        group = await service.get_or_create_session(in_crowd(f"{name}@lid"))
        begun |= {entry.session_id, group.session_id}
        clock.advance(minutes=1)
    for lid, phone in order:
        await service.learn_whatsapp_alias(lid, phone)
    for make in (named, lambda name: in_crowd(f"{name}@lid")):
        assert len({await service.session_key_for(make(name)) for name in names}) == 1
        found = {(await service.get_or_create_session(make(name))).session_id for name in names}
        assert len(found) == 1
        assert found < begun
    for name in names:
        viewer = await service.viewer_for(named(name))
        assert {session.id for session in await service.list_own_sessions(viewer)} == begun
        assert len(await service.search("needle", viewer)) == len(names)
    assert not await service.learn_whatsapp_alias(*order[0])


@pytest.mark.parametrize("order", [*ORDERS[:2], *ORDERS[-6:]], ids=str)
async def test_what_somebody_was_granted_is_theirs_under_every_name(
    store_url: str, order: list[tuple[str, str]]
) -> None:
    config = GatewayConfig(access={"whatsapp": Access(administrators=(order[0][0],))})
    async with open_house(store_url, config=config, notebook=Notebook("whatsapp")) as house:
        for lid, phone in order:
            await house.sessions.learn_whatsapp_alias(lid, phone)
        people = house.gateway.parts.authorization
        verdicts = [await people.check(named(name)) for name in sorted({n for pair in order for n in pair})]
        assert {verdict.role for verdict in verdicts} == {Role.ADMINISTRATOR}
        assert len({verdict.principal for verdict in verdicts}) == 1


async def test_turns_that_wait_go_on_in_the_one_conversation(store_url: str) -> None:
    async with open_house(store_url, config=LASTING, notebook=Notebook("whatsapp")) as house:
        running = await house.say("!hang", source=named("1"))
        await house.until(running.turn_id, TurnState.RUNNING)
        waiting = await house.say("second", source=named("1"))
        stranger = await house.say("!hang", source=named("99"))
        await house.until(stranger.turn_id, TurnState.RUNNING)
        await house.sessions.learn_whatsapp_alias("1", "222")
        key = await house.sessions.session_key_for(named("222"))
        for receipt in (running, waiting):
            moved = await house.store.turns.find(receipt.turn_id)
            assert moved is not None
            assert moved.session_key == key
        later = await house.say("third", source=named("222"))
        await house.until(running.turn_id, TurnState.RUNNING)
        await house.ask("/stop", source=named("222"))
        for receipt in (running, waiting, later):
            await house.finished(receipt.turn_id)
        session = await house.sessions.peek_session_id(key)
        assert session
        said = [row["content"] for row in await house.sessions.load_transcript(session)]
        users = [text for text in said if not str(text).startswith("echo")]
        assert [text for text in users if text in ("!hang", "second", "third")] == [
            "!hang",
            "second",
            "third",
        ]
        untouched = await house.store.turns.find(stranger.turn_id)
        assert untouched is not None
        assert (untouched.state, untouched.attempts) == (TurnState.RUNNING, 1)


async def test_whoever_asks_and_decides_is_named_by_the_one_name(store_url: str) -> None:
    config = GatewayConfig(access={"whatsapp": Access(administrators=("1",), allow=("*",))})
    notebook = Notebook("whatsapp", reliable_sender_ids=True)
    async with open_house(store_url, config=config, notebook=notebook) as house:
        await house.sessions.learn_whatsapp_alias("1", "222")
        turn = await house.say("!approve deploy", source=named("1"))
        await house.until(turn.turn_id, TurnState.WAITING)
        [asked] = await house.gateway.parts.confirmations.list(status=Status.PENDING)
        await house.ask(f"/approve {asked.id}", source=named("1"))
        found = await house.store.confirmations.find(asked.id)
        assert found is not None
        assert (found.on_behalf_of, found.resolved_by) == ("whatsapp:222", "whatsapp:222")
