"""Nobody reaches another person's conversation."""

import pytest

from frontdesk import GatewayConfig, Platform, ResetMode, SessionSource, SessionStore, Viewer, errors
from frontdesk.testing import SettableClock
from tests.contracts.conftest import OpenSessionStore
from tests.contracts.samples import LASTING, agent_says, direct, in_group, in_thread, user_says, with_policy


async def talk(service: SessionStore, source: SessionSource, text: str, title: str | None = None) -> str:
    """Say something, and name the session; its id."""
    entry = await service.get_or_create_session(source)
    await service.record_turn(entry.session_id, [user_says(text), agent_says(f"you said {text}")])
    if title is not None:
        assert await service.set_title(entry.session_id, title, await service.viewer_for(source))
    return entry.session_id


async def seen(service: SessionStore, source: SessionSource, text: str = "needle") -> dict[str, set[str]]:
    """What the sender of a message finds, by each way there is."""
    viewer = await service.viewer_for(source)
    hits = await service.search(text, viewer, limit=100)
    listed = await service.list_own_sessions(viewer, limit=100)
    titled = await service.list_own_sessions(viewer, limit=100, titled=True)
    return {
        "search": {hit.session_id for hit in hits},
        "list": {session.id for session in listed},
        "titles": {session.id for session in titled},
    }


def everywhere(*session_ids: str) -> dict[str, set[str]]:
    return {name: set(session_ids) for name in ("search", "list", "titles")}


async def test_everybody_finds_their_own_sessions_only(service: SessionStore) -> None:
    ann = await talk(service, direct("ann"), "needle", "Plans")
    bob = await talk(service, direct("bob"), "needle", "Plans")
    assert await seen(service, direct("ann")) == everywhere(ann)
    assert await seen(service, direct("bob")) == everywhere(bob)
    assert await seen(service, direct("eve")) == everywhere()


async def test_person_finds_their_sessions_of_every_chat_and_generation(
    service: SessionStore, clock: SettableClock
) -> None:
    private = await talk(service, direct("ann"), "needle", "One")
    clock.advance(minutes=1)
    await service.reset_session((await service.get_or_create_session(direct("ann"))).session_key)
    second = await talk(service, direct("ann"), "needle", "Two")
    group = await talk(service, in_group("ann"), "needle", "Three")
    await talk(service, in_group("bob"), "needle", "Four")
    assert await seen(service, direct("ann")) == everywhere(private, second, group)
    assert await seen(service, in_group("ann")) == everywhere(private, second, group)


async def test_shared_session_is_seen_from_its_chat_alone(service: SessionStore) -> None:
    shared = await talk(service, in_thread("ann"), "needle", "Shared")
    assert await seen(service, in_thread("bob")) == everywhere(shared)
    assert await seen(service, direct("ann")) == everywhere()
    assert await seen(service, in_thread("bob", "another")) == everywhere()
    assert await seen(service, in_group("ann")) == everywhere()


async def test_shared_session_does_not_show_private_ones_of_others(
    open_session_store: OpenSessionStore,
) -> None:
    config = GatewayConfig(default_reset_policy=LASTING.default_reset_policy, group_sessions_per_user=False)
    service = await open_session_store(config)
    shared = await talk(service, in_group("ann"), "needle", "Shared")
    private = await talk(service, direct("ann"), "needle", "Private")
    assert await seen(service, in_group("bob")) == everywhere(shared)
    assert await seen(service, in_group("ann")) == everywhere(shared, private)


async def test_same_id_on_another_platform_or_account_is_another_person(service: SessionStore) -> None:
    await talk(service, direct("7"), "needle", "Plans")
    elsewhere = [
        direct("7", platform=Platform.DISCORD),
        direct("7", account="second-bot"),
        direct("tg:7"),
        direct("telegram:7"),
        direct("7%3A"),
    ]
    for source in elsewhere:
        assert await seen(service, source) == everywhere()
    for source in elsewhere:
        own = await talk(service, source, "needle", "Plans")
        assert await seen(service, source) == everywhere(own)


async def test_sender_without_a_name_sees_the_chat_s_session_alone(service: SessionStore) -> None:
    shared = await talk(service, in_group(None), "needle", "Shared")
    await talk(service, in_group("ann"), "needle", "Ann's")
    assert await seen(service, in_group(None)) == everywhere(shared)
    assert await seen(service, in_group("ann"))


async def test_stranger_cannot_find_a_session_by_its_id(service: SessionStore) -> None:
    session_id = await talk(service, direct("ann"), "needle")
    bob = await service.viewer_for(direct("bob"))
    assert await service.find_session(session_id, bob) is None
    assert await service.follow_lineage(session_id, bob) is None
    assert await service.find_session(session_id, await service.viewer_for(direct("ann"))) is not None


async def test_session_moved_into_another_chat_stays_its_owner_s(service: SessionStore) -> None:
    private = await talk(service, direct("ann"), "needle", "Private")
    crowd = await service.get_or_create_session(in_group("ann"))
    await service.switch_session(crowd.session_key, private)
    assert await seen(service, in_group("bob")) == everywhere()
    assert private in (await seen(service, direct("ann")))["search"]


async def test_session_that_follows_a_private_one_in_a_thread_is_the_thread_s(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(with_policy(mode=ResetMode.IDLE, idle_minutes=1))
    for by_hand in (False, True):
        private = await talk(service, direct("ann"), "needle")
        thread = (await service.get_or_create_session(in_thread("ann"))).session_key
        await service.switch_session(thread, private)
        if by_hand:
            await service.reset_session(thread)
        clock.advance(hours=0 if by_hand else 1)
        fresh = await talk(service, in_thread("bob"), "needle")
        assert fresh != private
        assert fresh in (await seen(service, in_thread("bob")))["search"]
        assert fresh not in (await seen(service, direct("ann")))["search"]
        assert private not in (await seen(service, in_thread("bob")))["search"]
        assert private in (await seen(service, direct("ann")))["search"]


async def test_private_session_in_a_shared_chat_stays_private_under_another_name(
    service: SessionStore,
) -> None:
    lid, phone = ("1234@lid", "5678@s.whatsapp.net")
    private = await talk(service, direct(lid, platform=Platform.WHATSAPP, chat_id=lid), "needle")
    shared = in_thread(lid, platform=Platform.WHATSAPP)
    thread = await service.get_or_create_session(shared)
    await service.switch_session(thread.session_key, private)
    await service.learn_whatsapp_alias(lid, phone)
    assert await service.peek_session_id(thread.session_key) == private
    other = in_thread("99@lid", platform=Platform.WHATSAPP)
    assert private not in (await seen(service, other))["list"]
    renamed = direct(phone, platform=Platform.WHATSAPP, chat_id=phone)
    assert private in (await seen(service, renamed))["search"]


async def test_administrator_sees_everything(service: SessionStore) -> None:
    own = {await talk(service, direct(name), "needle") for name in ("ann", "bob")}
    everything = Viewer.everything()
    assert {hit.session_id for hit in await service.search("needle", everything)} == own
    assert {session.id for session in await service.list_own_sessions(everything)} == own
    for session_id in own:
        assert await service.find_session(session_id, everything) is not None


async def test_viewer_of_nobody_sees_nothing(service: SessionStore) -> None:
    session_id = await talk(service, direct("ann"), "needle", "Plans")
    nobody = Viewer(frozenset())
    assert await service.search("needle", nobody) == []
    assert await service.list_own_sessions(nobody) == []
    assert await service.find_title("Plans", nobody) is None
    assert await service.find_session(session_id, nobody) is None


async def test_surroundings_of_a_hit_are_of_the_same_session(service: SessionStore) -> None:
    for name in ("ann", "bob"):
        await talk(service, direct(name), f"needle of {name}")
    [*hits] = await service.search("needle", await service.viewer_for(direct("ann")), around=10)
    around = [message["content"] for hit in hits for message in (*hit.before, hit.message, *hit.after)]
    assert around
    assert all("ann" in text for text in around)


async def test_undone_and_rewritten_messages_leave_the_search(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    viewer = await service.viewer_for(direct())
    await service.record_turn(entry.session_id, [user_says("kept"), agent_says("ok"), user_says("needle")])
    assert len(await service.search("needle", viewer)) == 1
    await service.rewind_session(entry.session_id)
    assert await service.search("needle", viewer) == []
    await service.redo_session(entry.session_id)
    assert len(await service.search("needle", viewer)) == 1
    await service.rewrite_transcript(entry.session_id, [user_says("haystack")])
    assert await service.search("needle", viewer) == []
    assert len(await service.search("haystack", viewer)) == 1


async def test_direct_chat_that_names_nobody_belongs_to_itself(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct("7"))
    await service.append_to_transcript(entry.session_id, user_says("secret"))
    nameless = SessionSource(platform=Platform.TELEGRAM, chat_id="7")
    assert await service.search("secret", await service.viewer_for(nameless)) == []


async def test_direct_chat_is_still_ones_own_once_the_person_is_named(service: SessionStore) -> None:
    nameless = SessionSource(platform=Platform.TELEGRAM, chat_id="chat-ann")
    entry = await service.get_or_create_session(nameless)
    named = await service.viewer_for(direct("ann"))
    assert await service.find_session(entry.session_id, named) is not None
    assert await service.set_title(entry.session_id, "mine", named)
    assert await service.find_session(entry.session_id, await service.viewer_for(direct("bob"))) is None


async def test_refused_messages_are_counted_by_their_rule(service: SessionStore) -> None:
    with pytest.raises(errors.Unroutable):
        await service.get_or_create_session(SessionSource(platform=Platform.SLACK))
    with pytest.raises(errors.UnsafeKey):
        await service.get_or_create_session(SessionSource(platform=Platform.SLACK, chat_id="x" * 3_000))
    assert service.refused == {"Unroutable": 1, "UnsafeKey": 1}
