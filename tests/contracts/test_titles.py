"""Names of conversations."""

import asyncio

import pytest

from frontdesk import EndReason, SessionSource, SessionStore, Viewer, errors
from frontdesk.testing import SettableClock
from tests.contracts.samples import UNKNOWN_ID, direct, in_group, user_says
from tests.contracts.test_marked_keys import TELEGRAM, put_session
from tests.contracts.versions import OldStore


async def test_titled_session_is_found_by_its_title(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    viewer = await service.viewer_for(direct())
    assert await service.set_title(entry.session_id, "  Holiday \n plans ", viewer)
    found = await service.find_title("holiday PLANS", viewer)
    assert found is not None
    assert (found.id, found.title) == (entry.session_id, "Holiday plans")


async def test_title_can_be_changed_and_taken_away(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    viewer = await service.viewer_for(direct())
    await service.set_title(entry.session_id, "One", viewer)
    await service.set_title(entry.session_id, "one", viewer)
    await service.set_title(entry.session_id, "Two", viewer)
    assert await service.find_title("One", viewer) is None
    assert await service.set_title(entry.session_id, None, viewer)
    assert await service.find_title("Two", viewer) is None


async def test_unusable_title_is_refused(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    viewer = await service.viewer_for(direct())
    for title in ("", "  \n", "x" * 101, "nul\x00", "bell\x07", "\ud800"):
        with pytest.raises(errors.InvalidTitle):
            await service.set_title(entry.session_id, title, viewer)


async def test_title_is_unique_per_owner(service: SessionStore) -> None:
    viewer = await service.viewer_for(direct())
    first = await service.get_or_create_session(direct())
    await service.set_title(first.session_id, "Straße", viewer)
    second = await service.reset_session(first.session_key)
    assert second is not None
    with pytest.raises(errors.TitleTaken):
        await service.set_title(second.session_id, "STRASSE", viewer)
    crowd = await service.get_or_create_session(in_group())
    with pytest.raises(errors.TitleTaken):
        await service.set_title(crowd.session_id, "straße", viewer)
    found = await service.find_title("strasse", viewer)
    assert found is not None
    assert found.id == first.session_id


async def test_two_people_may_use_one_title(service: SessionStore) -> None:
    for name in ("ann", "bob"):
        entry = await service.get_or_create_session(direct(name))
        viewer = await service.viewer_for(direct(name))
        assert await service.set_title(entry.session_id, "Plans", viewer)
        found = await service.find_title("Plans", viewer)
        assert found is not None
        assert found.id == entry.session_id


async def test_title_leads_to_the_newest_generation(service: SessionStore) -> None:
    viewer = await service.viewer_for(direct())
    first = await service.get_or_create_session(direct())
    await service.set_title(first.session_id, "Plans", viewer)
    await service.compress_session(first.session_key, [user_says("short")])
    tip = await service.compress_session(first.session_key, [user_says("shorter")])
    assert tip is not None
    found = await service.find_title("Plans", viewer)
    assert found is not None
    assert found.id == tip.session_id


async def test_continuation_may_take_its_ancestor_s_title(service: SessionStore) -> None:
    viewer = await service.viewer_for(direct())
    first = await service.get_or_create_session(direct())
    await service.set_title(first.session_id, "Plans", viewer)
    tip = await service.compress_session(first.session_key, [user_says("short")])
    assert tip is not None
    assert await service.set_title(tip.session_id, "Plans", viewer)
    ancestor = await service.find_session(first.session_id, viewer)
    assert ancestor is not None
    assert ancestor.title is None


async def test_title_of_a_stranger_s_session_cannot_be_set(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct("ann"))
    bob = await service.viewer_for(direct("bob"))
    assert not await service.set_title(entry.session_id, "Mine", bob)
    assert not await service.set_title(UNKNOWN_ID, "Mine", bob)
    found = await service.find_session(entry.session_id, Viewer.everything())
    assert found is not None
    assert found.title is None


async def test_title_of_a_stranger_s_session_is_not_found(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct("ann"))
    await service.set_title(entry.session_id, "Secret", await service.viewer_for(direct("ann")))
    assert await service.find_title("Secret", await service.viewer_for(direct("bob"))) is None


async def test_titles_stay_with_ended_sessions(service: SessionStore) -> None:
    viewer = await service.viewer_for(direct())
    entry = await service.get_or_create_session(direct())
    await service.set_title(entry.session_id, "Plans", viewer)
    await service.end_session(entry.session_id, EndReason.NEW)
    found = await service.find_title("Plans", viewer)
    assert found is not None
    assert found.id == entry.session_id


async def test_titled_sessions_are_listed_newest_first(service: SessionStore, clock: SettableClock) -> None:
    viewer = await service.viewer_for(direct())
    entries = []
    for number in range(4):
        clock.advance(minutes=1)
        entries.append(await service.get_or_create_session(direct(), force_new=True))
        if number % 2:
            await service.set_title(entries[-1].session_id, f"Plan {number}", viewer)
    titled = await service.list_own_sessions(viewer, titled=True)
    assert [session.title for session in titled] == ["Plan 3", "Plan 1"]
    everything = await service.list_own_sessions(viewer)
    assert [session.id for session in everything] == [entry.session_id for entry in reversed(entries)]
    assert await service.list_own_sessions(viewer, limit=2) == everything[:2]


async def test_one_of_many_claims_to_a_title_wins(service: SessionStore) -> None:
    viewer = await service.viewer_for(direct())
    entries = [await service.get_or_create_session(direct(), force_new=True) for _ in range(10)]
    claims = [service.set_title(entry.session_id, "Plans", viewer) for entry in entries]
    results = await asyncio.gather(*claims, return_exceptions=True)
    assert results.count(True) == 1
    assert sum(isinstance(result, errors.TitleTaken) for result in results) == 9


@pytest.mark.parametrize(
    "wanted",
    ["Holiday plans", '"Holiday plans"', "'holiday PLANS'", "“Holiday plans”", "Holi\u200bday plans\u2060"],
)
async def test_title_is_found_with_quotes_and_without_what_cannot_be_seen(
    service: SessionStore, wanted: str
) -> None:
    entry = await service.get_or_create_session(direct())
    viewer = await service.viewer_for(direct())
    assert await service.set_title(entry.session_id, "Holiday\u200d pla\u00adns", viewer)
    found = await service.find_title(wanted, viewer)
    assert found is not None
    assert (found.id, found.title) == (entry.session_id, "Holiday plans")
    other = await service.get_or_create_session(direct(), force_new=True)
    with pytest.raises(errors.TitleTaken):
        await service.set_title(other.session_id, wanted, viewer)


async def test_titles_of_an_older_store_are_found_by_what_counts_now(store_url: str) -> None:
    old = OldStore(store_url, "fold_titles")
    for name, title, known in (
        ("quoted", '"Plans"', '"plans"'),
        ("unseen", "Ro\u200bme", "ro\u200bme"),
        ("plain", "Rome 2", "rome 2"),
        ("doubled", "'Rome 2'", "'rome 2'"),
    ):
        put_session(old, name, TELEGRAM, routed=False, title=title, title_key=known)
    await old.write()
    async with await SessionStore.open(store_url) as service:
        viewer = await service.viewer_for(SessionSource.from_dict(TELEGRAM))
        for name, wanted in (("quoted", "plans"), ("unseen", "rome"), ("plain", "rome 2")):
            found = await service.find_title(wanted, viewer)
            assert found is not None
            assert found.id == name
        assert len(await service.list_own_sessions(viewer, titled=True)) == 4
