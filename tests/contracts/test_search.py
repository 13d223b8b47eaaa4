"""Full-text search over every store."""

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from frontdesk import Platform, SessionSource, SessionStore, Viewer, errors
from frontdesk.formats import words
from frontdesk.model.lists import LISTED_CHARACTERS
from frontdesk.model.searches import Hit, Search
from frontdesk.plugins import load_store
from frontdesk.stores.store import Store
from frontdesk.testing import SettableClock
from tests.contracts.conftest import EditStore, OpenSessionStore
from tests.contracts.samples import LASTING, Message, agent_says, direct, in_group, user_says
from tests.contracts.weighing import WeighingEngine

TRICKY = [
    "plain words, with (punctuation): it's foo_bar/baz.py --flag=1",
    "Le Café de l’Été: naïve co\u0302te\u0301 — Straße, ΣΊΣΥΦΟΣ, Ёлка",
    "今天天气很好 API网关 カタカナ ｶﾞｷﾞ 한국어 검색",
    "สวัสดีครับ مَرْحَبًا שָׁלוֹם हिन्दी ១២",
    "👍🏽 👨‍👩‍👧 🇩🇪 ❤️",
    'nul\0inside quote\' back\\slash "double" %s $1 :name ?1 ; DROP TABLE words; --',
    "AND OR NOT NEAR a:b c* ^d {e f} -g +h 'i':1A & j | k ! l <-> m",
    "ﬁne ½ ① ㎏ ™ Ǆ \u0130\u0131 \ue000private",
]
HOSTILE = [
    '"', '""', "'", "\\", "\\'", "a'b", 'a"b', '" OR "1', 'x" OR text:y', "text:secret", "owner:x",
    "NEAR(secret, 2)", "secret OR x", "NOT absent", "* secret", "^secret absent", "absent | secret",
    "{text owner}: secret absent", "absent or secret", "secret:* & !absent", "(secret | absent)",
    "<-> secret absent", "absent\0secret", "\ue000secret absent", "'); DROP TABLE messages; -- absent",
    "\ud800absent", "%absent%", "absent " * 50, "a" * 2_000,
]  # fmt: skip


async def say(service: SessionStore, source: SessionSource, *messages: Message | str) -> str:
    """Store messages in the session of a source."""
    entry = await service.get_or_create_session(source)
    packed = [user_says(each) if isinstance(each, str) else each for each in messages]
    await service.record_turn(entry.session_id, packed)
    return entry.session_id


async def find(
    service: SessionStore, query: str, source: SessionSource | None = None, **options: object
) -> list[Hit]:
    return await service.search(query, await service.viewer_for(source or direct()), **options)  # type: ignore[arg-type]


async def found(
    service: SessionStore, query: str, source: SessionSource | None = None, **options: object
) -> list[str]:
    return [hit.message["content"] for hit in await find(service, query, source, **options)]


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    """The bare store."""
    opened: Store = await load_store(store_url)(store_url)
    yield opened
    await opened.close()


async def test_search_sees_what_was_committed_before_it(service: SessionStore) -> None:
    for number in range(5):
        await say(service, direct(), f"message {number} about herons")
        assert len(await found(service, "herons")) == number + 1


async def test_every_word_of_a_tricky_text_is_found(service: SessionStore) -> None:
    await say(service, direct(), *TRICKY)
    for text in TRICKY:
        for chunk in text.split():
            if words.split(chunk):
                assert text in await found(service, chunk), chunk


async def test_words_phrases_and_beginnings_must_all_match(service: SessionStore) -> None:
    await say(service, direct(), "the night train to Bergen", "a train at night", "Bergen by bus, at night")
    assert set(await found(service, "night train")) == {"the night train to Bergen", "a train at night"}
    assert await found(service, '"night train"') == ["the night train to Bergen"]
    assert set(await found(service, "berg* night")) == {
        "the night train to Bergen",
        "Bergen by bus, at night",
    }
    assert await found(service, '"night tra"* berg*') == ["the night train to Bergen"]
    assert await found(service, "berg") == []


async def test_two_characters_and_one_are_found_in_unspaced_scripts(service: SessionStore) -> None:
    await say(service, direct(), "明日の夜行列車は？")
    for query in ("夜行", "行列", "列車は", "明", "は", '"明日の夜"'):
        assert await found(service, query) == ["明日の夜行列車は？"]
    assert await found(service, "行夜") == []


async def test_text_parts_are_found_and_other_parts_are_not(service: SessionStore) -> None:
    parts = [{"type": "text", "text": "see the heron"}, {"type": "image_url", "image_url": {"url": "stork"}}]
    await say(service, direct(), user_says(parts))
    assert [hit.message["content"] for hit in await find(service, "heron")] == [parts]
    assert await find(service, "stork") == []


async def test_best_match_comes_first_and_the_newer_among_equals(service: SessionStore) -> None:
    texts = ["heron one", "heron two", "heron " * 3, "a heron among a great many other words that dilute it"]
    await say(service, direct(), *texts)
    assert await found(service, "heron") == [texts[2], texts[1], texts[0], texts[3]]
    assert await found(service, "heron", limit=2) == [texts[2], texts[1]]


async def test_hit_tells_where_it_stands(service: SessionStore, clock: SettableClock) -> None:
    session_id = await say(service, direct(), "one", agent_says("two herons"), "three", "four")
    (hit,) = await find(service, "herons")
    assert (hit.session_id, hit.position, hit.role) == (session_id, 1, "assistant")
    assert hit.created_at == clock.now()
    assert hit.message == agent_says("two herons")
    assert hit.snippet == "two «herons»"
    assert (hit.before, hit.after) == ([user_says("one")], [user_says("three")])


async def test_as_many_neighbours_are_shown_as_asked_for(service: SessionStore) -> None:
    await say(service, direct(), *"abcdefg")
    (none,) = await find(service, "d", around=0)
    assert (none.before, none.after) == ([], [])
    (two,) = await find(service, "d", around=2)
    assert [message["content"] for message in (*two.before, *two.after)] == ["b", "c", "e", "f"]
    (all_,) = await find(service, "d", around=10)
    assert [message["content"] for message in (*all_.before, *all_.after)] == ["a", "b", "c", "e", "f", "g"]


async def test_neighbours_are_those_of_the_transcript(service: SessionStore) -> None:
    session_id = await say(service, direct(), "heron", "undone")
    await service.rewind_session(session_id)
    await service.append_to_transcript(session_id, {"role": "session_meta", "model": "x"})
    await service.append_to_transcript(session_id, user_says("after"))
    (hit,) = await find(service, "heron")
    assert hit.after == [user_says("after")]


async def test_nobody_finds_the_messages_of_others(service: SessionStore) -> None:
    await say(service, direct("ann"), "secret of ann")
    await say(service, direct("bob"), "secret of bob")
    await say(service, in_group("ann", user_id_alt=None), "secret of ann in a group")
    assert set(await found(service, "secret", direct("ann"))) == {"secret of ann", "secret of ann in a group"}
    assert await found(service, "secret", direct("bob")) == ["secret of bob"]
    assert await found(service, "secret", direct("eve")) == []
    assert await service.search("secret", Viewer(frozenset())) == []
    everything = await service.search("secret", Viewer.everything())
    assert len(everything) == 3


async def test_administrator_with_sessions_of_their_own_sees_everything(service: SessionStore) -> None:
    await say(service, direct("ann"), "secret of ann")
    own = await service.viewer_for(direct("bob"))
    assert len(await service.search("secret", Viewer(own.owners, administrator=True))) == 1


async def test_owner_is_no_word(service: SessionStore) -> None:
    await say(service, direct("ann"), "something")
    for owner in (await service.viewer_for(direct("ann"))).owners:
        assert await service.search(owner, Viewer.everything()) == []


async def test_matches_of_others_do_not_crowd_out_one_s_own(service: SessionStore) -> None:
    await say(service, direct("ann"), "a heron, among many other words")
    for _ in range(3):
        await say(service, direct("bob"), *["heron"] * 50)
    assert await found(service, "heron", direct("ann"), limit=1) == ["a heron, among many other words"]


async def test_hidden_matches_do_not_crowd_out_live_ones(service: SessionStore) -> None:
    session_id = await say(service, direct(), "a heron, among many other words", *["heron"] * 100)
    await service.rewind_session(session_id, 100)
    assert await found(service, "heron", limit=1) == ["a heron, among many other words"]


async def test_own_matches_are_found_among_very_many_of_others(service: SessionStore) -> None:
    texts = [f"heron number {number}" for number in range(3_000)]
    await say(service, direct("ann"), *texts, "my heron tern")
    await say(service, direct("bob"), *texts)
    assert await found(service, "tern", direct("ann")) == ["my heron tern"]
    assert len(await found(service, "heron", direct("ann"), limit=200)) == 200
    assert await found(service, "heron 2999", direct("bob")) == ["heron number 2999"]
    assert await found(service, "heron", direct("bob"), role="tool") == []
    assert await found(service, "heron", direct("eve")) == []
    assert len(await service.search("heron", Viewer.everything(), limit=150)) == 150


async def test_undone_messages_are_not_found_until_redone(service: SessionStore) -> None:
    session_id = await say(service, direct(), "a heron")
    assert await found(service, "heron") == ["a heron"]
    await service.rewind_session(session_id)
    assert await found(service, "heron") == []
    await service.redo_session(session_id)
    assert await found(service, "heron") == ["a heron"]


async def test_rewritten_transcript_is_found_as_it_is_now(service: SessionStore) -> None:
    session_id = await say(service, direct(), "a heron")
    await service.rewrite_transcript(session_id, [user_says("a stork")])
    assert (await found(service, "heron"), await found(service, "stork")) == ([], ["a stork"])


async def test_filters_narrow_a_search(service: SessionStore, clock: SettableClock) -> None:
    start = clock.now()
    await say(service, direct(), "first heron")
    clock.advance(hours=1)
    await say(service, direct(), agent_says("second heron"))
    clock.advance(hours=1)
    slack = direct(platform=Platform.SLACK)
    await say(service, slack, "third heron")
    viewer = Viewer((await service.viewer_for(direct())).owners | (await service.viewer_for(slack)).owners)

    async def narrowed(**filters: object) -> set[str]:
        hits = await service.search("heron", viewer, **filters)  # type: ignore[arg-type]
        return {hit.message["content"].split()[0] for hit in hits}

    assert await narrowed() == {"first", "second", "third"}
    assert await narrowed(role="assistant") == {"second"}
    assert await narrowed(platform="slack") == {"third"}
    assert await narrowed(platform="telegram", role="user") == {"first"}
    assert await narrowed(since=start + timedelta(hours=1)) == {"second", "third"}
    assert await narrowed(until=start + timedelta(hours=1)) == {"first"}
    assert await narrowed(since=start + timedelta(minutes=1), until=start + timedelta(minutes=90)) == {
        "second"
    }
    assert await narrowed(platform="matrix") == set()


async def test_session_meta_is_found_only_when_asked_for(service: SessionStore) -> None:
    await say(service, direct(), {"role": "session_meta", "content": "heron settings"})
    assert await found(service, "heron") == []
    assert await found(service, "heron", role="session_meta") == ["heron settings"]


@pytest.mark.parametrize("query", HOSTILE)
async def test_hostile_query_finds_nothing_and_breaks_nothing(service: SessionStore, query: str) -> None:
    await say(service, direct("bob"), "a secret")
    await say(service, direct(), "x y")
    try:
        hits = await find(service, query)
        everything = await service.search(query, Viewer.everything())
    except errors.InvalidQuery:
        hits = everything = []
    assert hits == []
    assert [hit for hit in everything if "absent" in query] == []
    assert await found(service, "secret", direct("bob")) == ["a secret"]


async def test_very_long_messages_and_words_are_found(service: SessionStore) -> None:
    long_word = "W" * 5_000
    wide_word = "ж" * 5_000
    numbers = " ".join(map(str, range(40_000)))
    again = "again " * 5_000
    for text in (
        f"{numbers} heron",
        f"start {long_word} middle {wide_word} end",
        f"{again} stork",
        "字" * 5_000,
    ):
        await say(service, direct(), text)
    assert len(await found(service, "heron 39999 17")) == 1
    assert len(await found(service, '"16000 16001 16002"')) == 1
    assert len(await found(service, "start middle end")) == 1
    assert len(await found(service, "w" * 1_900)) <= 1
    assert len(await found(service, "wwww* жжж*")) == 1
    assert len(await found(service, "again stork")) == 1
    assert len(await found(service, "字字字")) == 1


async def test_unreadable_message_is_skipped_with_a_warning(
    open_session_store: OpenSessionStore,
    edit_store: EditStore,
    caplog: pytest.LogCaptureFixture,
    store_url: str,
) -> None:
    async with await open_session_store(LASTING) as service:
        await say(service, direct(), "first heron", "second heron", "third heron")
        assert len(await found(service, "heron")) == 3
        await say(service, direct(), "fourth heron", "fifth heron")
    broken = "X'FF7B'" if store_url.startswith("sqlite") else r"'\xFF7B'"
    await edit_store(f"UPDATE messages SET body = {broken} WHERE position IN (1, 3)")
    service = await open_session_store(LASTING)
    with caplog.at_level(logging.WARNING):
        assert set(await found(service, "heron")) == {"first heron", "third heron", "fifth heron"}
    assert "message_unreadable" in caplog.text


async def test_sessions_given_to_another_owner_are_found_by_them_alone(service: SessionStore) -> None:
    lid, phone = "15550001111@lid", "4915550002222"
    as_lid = direct(platform=Platform.WHATSAPP, chat_id=lid, user_id=lid)
    as_phone = direct(platform=Platform.WHATSAPP, chat_id=phone, user_id=phone)
    before = await service.viewer_for(as_lid)
    await say(service, as_lid, "an old heron")
    assert await found(service, "heron", as_lid) == ["an old heron"]
    await say(service, as_lid, "a heron not yet indexed")
    await service.learn_whatsapp_alias(lid, phone)
    texts = {"an old heron", "a heron not yet indexed"}
    assert set(await found(service, "heron", as_lid)) == set(await found(service, "heron", as_phone)) == texts
    assert await service.search("heron", before) == []


async def test_rebuilt_index_finds_the_same(service: SessionStore) -> None:
    session_id = await say(service, direct(), "a heron", "a stork", "an undone heron")
    await service.rewind_session(session_id)
    await service.rebuild_index()
    assert (await found(service, "heron"), await found(service, "stork")) == (["a heron"], ["a stork"])
    await service.rebuild_index()
    await say(service, direct(), "one more heron")
    assert len(await found(service, "heron")) == 2


async def test_searches_and_rebuilds_at_once_miss_nothing(service: SessionStore) -> None:
    await say(service, direct(), *[f"heron {number}" for number in range(700)])
    viewer = await service.viewer_for(direct())
    searches = [asyncio.ensure_future(service.search("heron", viewer, limit=200)) for _ in range(6)]
    await asyncio.gather(*searches, service.rebuild_index(), service.rebuild_index())
    assert {len(search.result()) for search in searches} == {200}


async def test_catching_up_counts_what_it_indexes(service: SessionStore, store_url: str) -> None:
    await say(service, direct(), *[f"heron {number}" for number in range(25)])
    await service.close()
    opened: Store = await load_store(store_url)(store_url)
    async with asyncio.timeout(60):
        counts = [await opened.index.catch_up(10) for _ in range(4)]
    await opened.close()
    assert counts == [10, 10, 5, 0]


async def test_search_without_terms_is_refused(store: Store) -> None:
    with pytest.raises(errors.InvalidQuery):
        await store.index.search(Viewer.everything(), Search(terms=()))


async def test_empty_store_has_no_matches(store: Store) -> None:
    assert await store.index.search(Viewer.everything(), Search(terms=words.parse("heron"))) == []
    assert await store.index.catch_up(10) == 0
    await store.index.rebuild()


async def test_owned_sessions_are_listed_by_latest_activity(
    service: SessionStore, clock: SettableClock
) -> None:
    ids = []
    for user in ("ann", "bob", "ann"):
        clock.advance(hours=1)
        ids.append((await service.get_or_create_session(direct(user), force_new=True)).session_id)
    ann = await service.viewer_for(direct("ann"))
    await service.set_title(ids[0], "Herons", ann)

    async def listed(viewer: Viewer, **options: object) -> list[str]:
        return [each.id for each in await service.list_own_sessions(viewer, **options)]  # type: ignore[arg-type]

    assert await listed(ann) == [ids[2], ids[0]]
    assert await listed(ann, limit=1) == [ids[2]]
    assert await listed(ann, titled=True) == [ids[0]]
    assert await listed(Viewer.everything()) == ids[::-1]
    assert await listed(Viewer.everything(), titled=True, limit=5) == [ids[0]]
    assert await listed(Viewer(frozenset())) == []


async def test_of_long_messages_there_is_a_beginning_for_who_chooses_among_them(
    service: SessionStore,
) -> None:
    """What stands late in one is found all the same."""
    long, call = "ábc " * 5_000, {"id": "1", "function": {"name": "grep", "arguments": "y" * 9_000}}
    hidden = {"role": "assistant", "tool_calls": [call], "content": "after the call"}
    await say(service, direct(), "short", f"{long} heron", hidden, "a stork", f"crane {long}")
    viewer = await service.viewer_for(direct())
    (hit,) = await service.find_messages("heron", viewer)
    assert hit.message == {"role": "user", "content": long[:LISTED_CHARACTERS]}
    assert hit.snippet.endswith("«heron»")
    assert [message["content"] for message in hit.before] == ["short"]
    assert [(message["role"], len(message["content"]) <= LISTED_CHARACTERS) for message in hit.after] == [
        ("assistant", True)
    ]
    assert not hit.is_whole
    (hit,) = await service.find_messages("stork", viewer)
    assert hit.after == [{"role": "user", "content": f"crane {long}"[:LISTED_CHARACTERS]}]
    assert (hit.message, hit.is_whole) == (user_says("a stork"), False)
    (alone,) = await service.find_messages("stork", viewer, around=0)
    assert (alone.message, alone.is_whole) == (user_says("a stork"), True)
    (hit,) = await service.search("heron", viewer)
    assert (hit.message, hit.after, hit.is_whole) == (user_says(f"{long} heron"), [hidden], True)


async def test_search_for_a_list_holds_one_long_message_at_a_time(service: SessionStore) -> None:
    long = "stork " * 30_000
    await say(service, direct(), *[f"{long} heron" for _ in range(6)])
    engine = WeighingEngine(service.store.index._engine)
    index = type(service.store.index)(engine)
    viewer = await service.viewer_for(direct())
    hits = await index.search(viewer, Search(terms=words.parse("heron"), whole=False))
    assert [hit.snippet.endswith("«heron»") for hit in hits] == [True] * 6
    assert sum(engine.answers) > 6 * len(long), "each was looked through"
    assert max(engine.answers) < 2 * len(long)


async def test_long_message_that_cannot_be_read_is_not_found(
    service: SessionStore, edit_store: EditStore
) -> None:
    session_id = await say(service, direct(), "heron " * 2_000, "another heron")
    viewer = await service.viewer_for(direct())
    assert len(await service.find_messages("heron", viewer)) == 2
    await edit_store("UPDATE messages SET body = substr(body, 1, 9000) WHERE position = 0")
    (hit,) = await service.find_messages("heron", viewer)
    assert (hit.session_id, hit.message) == (session_id, user_says("another heron"))
