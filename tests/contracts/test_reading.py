"""Transcripts on every store, a page at a time, over all generations of a conversation."""

from datetime import timedelta
from typing import Any

import pytest

from frontdesk import SessionStore, Viewer, errors
from frontdesk.model.reading import TranscriptPage
from frontdesk.stores.lists import reading
from frontdesk.testing import SettableClock
from tests.contracts.asking import ANN, Asker, request
from tests.contracts.conftest import EditStore, OpenSessionStore
from tests.contracts.samples import LASTING, agent_says, direct, user_says

ALL = Viewer.everything()


async def read(service: SessionStore, session_id: str, limit: int = 100, **place: Any) -> TranscriptPage:
    page = await service.read_page(session_id, ALL, limit=limit, **place)
    assert page is not None
    return page


def texts(page: TranscriptPage) -> list[str]:
    return [row.message["content"] if row.message else "unreadable" for row in page.rows]


async def test_page_has_no_more_bytes_than_it_may_but_for_a_single_message(
    service: SessionStore, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PAGE_BYTES", 5_000)
    first = await service.get_or_create_session(direct())
    sizes = {"a": 2_000, "b": 2_000, "c": 9_000, "d": 10, "e": 2_000, "f": 2_000, "g": 2_000}
    said = [letter * size for letter, size in sizes.items()]
    await service.record_turn(first.session_id, [user_says(each) for each in said[:5]])
    second = await service.compress_session(first.session_key, [user_says(said[5])])
    assert second is not None
    await service.record_turn(second.session_id, [user_says(said[6])])
    page = await read(service, second.session_id)
    pages = [texts(page)]
    while page.older:
        page = await read(service, second.session_id, before=page.older)
        pages.insert(0, texts(page))
    assert [[each[0] for each in page] for page in pages] == [["a", "b"], ["c"], ["d", "e"], ["f", "g"]]
    forwards = [texts(page)]
    while page.newer:
        page = await read(service, second.session_id, after=page.newer)
        forwards.append(texts(page))
    assert [each for page_texts in forwards for each in page_texts] == said
    assert all(sum(map(len, each)) <= 5_000 or len(each) == 1 for each in forwards)
    other = await service.get_or_create_session(direct(chat_id="other"))
    await service.record_turn(other.session_id, [user_says("h" * 9_000)])
    assert (await read(service, other.session_id)).older is None, "it is all there is"


async def test_transcript_is_read_backwards_and_forwards_over_generations(
    service: SessionStore, clock: SettableClock
) -> None:
    first = await service.get_or_create_session(direct())
    said = [str(number) for number in range(7)]
    await service.record_turn(first.session_id, [user_says(each) for each in said[:3]])
    clock.advance(timedelta(minutes=1))
    second = await service.compress_session(first.session_key, [user_says("3")])
    fresh = await service.reset_session(first.session_key)
    third = await service.reset_session(first.session_key, by="Ann")
    assert second is not None
    assert fresh is not None
    assert third is not None
    silent = await read(service, third.session_id, 2)
    assert [(each.id, each.begun_by) for each in silent.generations][-1] == (third.session_id, "Ann")
    await service.record_turn(third.session_id, [user_says(each) for each in said[4:]])
    backwards: list[str] = []
    page = await read(service, third.session_id, 2)
    assert page.newer is None
    pages = [page]
    while page.older:
        page = await read(service, third.session_id, 2, before=page.older)
        pages.append(page)
    for each in pages:
        backwards = texts(each) + backwards
    assert backwards == said
    assert [each.id for each in page.generations] == [first.session_id]
    forwards = texts(page)
    while page.newer:
        page = await read(service, third.session_id, 2, after=page.newer)
        forwards += texts(page)
    assert forwards == said


async def test_what_was_undone_is_shown_as_such(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    await service.record_turn(entry.session_id, [user_says("one"), agent_says("uno"), user_says("two")])
    await service.rewind_session(entry.session_id)
    await service.record_turn(entry.session_id, [user_says("three")])
    page = await read(service, entry.session_id)
    told = [(text, row.undone_by) for text, row in zip(texts(page), page.rows, strict=True)]
    assert told == [("one", None), ("uno", None), ("two", "rewind"), ("three", None)]


async def test_branch_is_read_without_what_it_was_copied_from(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    await service.record_turn(entry.session_id, [user_says("one")])
    branch = await service.branch_session(entry.session_key)
    assert branch is not None
    assert texts(await read(service, branch.session_id)) == ["one"]


async def test_row_that_cannot_be_read_is_given_as_such(
    open_session_store: OpenSessionStore, edit_store: EditStore
) -> None:
    service = await open_session_store(LASTING)
    entry = await service.get_or_create_session(direct())
    await service.record_turn(entry.session_id, [user_says(each) for each in ("one", "two", "three")])
    await service.close()
    await edit_store(
        "UPDATE messages SET body = X'7b' WHERE position = 1",
        postgresql="UPDATE messages SET body = '\\x7b' WHERE position = 1",
    )
    again = await open_session_store(LASTING)
    page = await read(again, entry.session_id)
    assert texts(page) == ["one", "unreadable", "three"]
    assert page.rows[1].role == "user"


async def test_nobody_reads_what_belongs_to_others(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct("ann"))
    await service.record_turn(entry.session_id, [user_says("secret")])
    theirs = await service.get_or_create_session(direct("bob"))
    await service.record_turn(theirs.session_id, [user_says("mine")])
    bob = await service.viewer_for(direct("bob"))
    assert await service.read_page(entry.session_id, bob) is None
    secrets = f"0~{entry.session_id}"
    for place in ({"before": secrets}, {"after": secrets}):
        with pytest.raises(errors.InvalidInput, match="cursor"):
            await service.read_page(
                theirs.session_id, bob, before=place.get("before"), after=place.get("after")
            )


async def test_place_that_no_page_of_the_session_gave_is_refused(service: SessionStore) -> None:
    first = await service.get_or_create_session(direct("ann"))
    await service.record_turn(first.session_id, [user_says("one")])
    second = await service.reset_session(first.session_key)
    other = await service.get_or_create_session(direct("bob"))
    assert second is not None
    own, parents = second.session_id, first.session_id
    wrong = ("0~nope", f"2~{other.session_id}", f"-1~{own}", f"-1~{parents}", "-1", "", "x", f"~{own}")
    for way in ("before", "after"):
        asked: list[tuple[str, dict[str, Any]]] = [(own, {way: place}) for place in wrong]
        for session_id, given in [*asked, (parents, {way: f"0~{own}"})]:
            with pytest.raises(errors.InvalidInput, match="cursor"):
                await read(service, session_id, **given)
    assert texts(await read(service, own, before=f"1~{parents}")) == ["one"]


async def test_parent_that_belongs_to_somebody_else_is_not_read(
    open_session_store: OpenSessionStore, edit_store: EditStore
) -> None:
    service = await open_session_store(LASTING)
    entry = await service.get_or_create_session(direct("ann"))
    await service.record_turn(entry.session_id, [user_says("secret")])
    fresh = await service.reset_session(entry.session_key)
    assert fresh is not None
    await service.record_turn(fresh.session_id, [user_says("mine")])
    await service.close()
    await edit_store(f"UPDATE sessions SET owner = 'telegram:eve' WHERE id = '{entry.session_id}'")
    again = await open_session_store(LASTING)
    page = await again.read_page(fresh.session_id, await again.viewer_for(direct("ann")))
    assert page is not None
    assert (texts(page), page.older) == (["mine"], None)


async def test_rows_come_with_what_their_turns_asked_for_and_who_decided(
    service: SessionStore, clock: SettableClock
) -> None:
    entry = await service.get_or_create_session(direct())
    await service.record_turn(entry.session_id, [user_says("deploy it")], turn_id="t1")
    asker = Asker(service.store, clock)
    asked = (await asker.submit(request(turn_id="t1"))).confirmation
    await asker.submit(request("other", turn_id="t2"))
    await asker.vote(asked, reason="go")
    page = await read(service, entry.session_id)
    assert [row.turn_id for row in page.rows] == ["t1"]
    (approval,) = page.approvals
    assert (approval.turn_id, approval.action, approval.status) == ("t1", "deploy", "approved")
    assert (approval.decided_by, approval.reason) == (ANN, "go")
