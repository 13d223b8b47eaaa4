"""Lists of sessions on every store: in pages, filtered, each with its last words and what becomes of it."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from frontdesk import EndReason, Platform, SessionSource, SessionStore, Viewer, errors
from frontdesk.model import lanes, turns
from frontdesk.model.deliveries import Delivery, DeliveryState, Settlement
from frontdesk.model.lists import (
    PREVIEW_CHARACTERS,
    ListedSession,
    ListedStates,
    SessionFilter,
    SessionState,
    TroubleKind,
)
from frontdesk.testing import SettableClock
from tests.contracts.samples import agent_calls, agent_says, direct, tool_answers, user_says

ALL = Viewer.everything()
EVERY = SessionFilter()


async def talk(service: SessionStore, source: SessionSource, *said: str) -> str:
    entry = await service.get_or_create_session(source)
    await service.record_turn(entry.session_id, [user_says(text) for text in said])
    return entry.session_id


def ids(found: list[ListedSession]) -> list[str]:
    return [each.session.id for each in found]


async def listed(service: SessionStore, viewer: Viewer = ALL, **wanted: object) -> list[str]:
    page = await service.list_page(viewer, SessionFilter(**wanted))  # type: ignore[arg-type]
    assert page.next is None
    return ids(page.items)


async def only(service: SessionStore) -> ListedSession:
    (found,) = (await service.list_page(ALL, EVERY)).items
    return found


async def take_in(service: SessionStore, clock: SettableClock, number: int, source: SessionSource) -> None:
    key = await service.session_key_for(source)
    turn = turns.Turn(
        id=f"t{number}", session_key=key, source=source, text=f"text {number}", received_at=clock.now()
    )
    await service.store.turns.accept(turn, lambda *_: turns.Admission())


@pytest.fixture
async def node(service: SessionStore, clock: SettableClock) -> int:
    return await service.store.nodes.join("test", clock.now())


async def claim(service: SessionStore, clock: SettableClock, node: int) -> turns.TurnClaim:
    store = service.store
    (claimed,) = await store.turns.claim(node, lanes.LaneKind.TURN, 1, clock.now(), lambda _: ())
    return claimed


async def fail_to_deliver(service: SessionStore, clock: SettableClock, node: int, session_id: str) -> None:
    source, store = direct(), service.store
    letter = Delivery(
        id=f"d-{session_id}",
        lane=lanes.chat_lane(source),
        to=source,
        text="lost",
        session_id=session_id,
        created_at=clock.now(),
    )
    await store.deliveries.add([letter])
    (taken,) = await store.deliveries.claim(node, 1, clock.now())
    await store.deliveries.settle(
        taken, Settlement(state=DeliveryState.DEAD, error="no such chat"), clock.now()
    )


async def test_pages_show_each_session_once_latest_activity_first(
    service: SessionStore, clock: SettableClock
) -> None:
    made = []
    for number in range(7):
        made.append(await talk(service, direct(f"user{number}"), "hello"))
        clock.advance(timedelta(seconds=40))  # some share a minute
    seen: list[str] = []
    after = None
    while True:
        page = await service.list_page(ALL, EVERY, limit=3, after=after)
        seen += ids(page.items)
        after = page.next
        if after is None:
            break
        await talk(service, direct(f"later{len(seen)}"), "what comes in between belongs to the first page")
    assert seen == made[::-1]


@pytest.mark.parametrize("cursor", ["", "x", "1~", "~s", "9" * 40, "1~a b", "1~\0", "-"])
async def test_cursor_that_no_page_gave_is_refused(service: SessionStore, cursor: str) -> None:
    with pytest.raises(errors.InvalidInput):
        await service.list_page(ALL, EVERY, after=cursor)


async def test_filters_narrow_the_list(service: SessionStore, clock: SettableClock) -> None:
    ann = await talk(service, direct("ann"), "hello")
    clock.advance(timedelta(minutes=1))
    bob = await talk(service, direct("bob", platform=Platform.SLACK), "hello")
    clock.advance(timedelta(minutes=1))
    fresh = await service.reset_session(await service.session_key_for(direct("ann")))
    assert fresh is not None
    assert await listed(service) == [fresh.session_id, bob, ann]
    assert await listed(service, platform="telegram") == [fresh.session_id, ann]
    assert await listed(service, states=ListedStates.ENDED) == [ann]
    assert await listed(service, states=ListedStates.ENDED, platform="slack") == []
    assert await listed(service, owner="slack:bob") == [bob]
    assert await listed(service, owner="telegram:ann", states=ListedStates.ENDED) == [ann]
    assert await listed(service, owner="telegram:ann", platform="slack") == []


async def test_people_are_shown_their_own_sessions_alone(
    service: SessionStore, clock: SettableClock, node: int
) -> None:
    ann = await talk(service, direct("ann"), "hello")
    bob = await talk(service, direct("bob"), "hello")
    for session in (ann, bob):
        await fail_to_deliver(service, clock, node, session)
    own = await service.viewer_for(direct("ann"))
    for states in (ListedStates.ALL, ListedStates.TROUBLE):
        assert await listed(service, own, states=states) == [ann]
        assert await listed(service, own, states=states, owner="telegram:bob") == []
        assert await listed(service, Viewer(frozenset()), states=states) == []
    counts = await service.count_states(own, EVERY)
    assert (counts.all, counts.trouble) == (1, 1)
    others = await service.count_states(own, SessionFilter(owner="telegram:bob"))
    assert (others.all, others.trouble) == (0, 0)


async def test_row_says_what_becomes_of_its_session(
    service: SessionStore, clock: SettableClock, node: int
) -> None:
    session_id = await talk(service, direct(), "hello")
    assert (await only(service)).state is SessionState.IDLE
    for number in (1, 2):
        await take_in(service, clock, number, direct())
    waiting = await only(service)
    assert (waiting.state, waiting.queued, waiting.since) == (SessionState.QUEUED, 2, clock.now())
    running = await claim(service, clock, node)
    await service.store.turns.begin(running, session_id, [], clock.now())
    working = await only(service)
    assert (working.state, working.queued) == (SessionState.WORKING, 1)
    assert await listed(service, states=ListedStates.WORKING) == [session_id]
    await service.store.turns.mark(running, turns.TurnState.WAITING, clock.now())
    assert (await only(service)).state is SessionState.WAITING
    assert await listed(service, states=ListedStates.WAITING) == [session_id]
    counts = await service.count_states(ALL, EVERY)
    assert (counts.all, counts.working, counts.waiting, counts.ended) == (1, 1, 1, 0)


async def test_trouble_is_told_with_its_reason(
    service: SessionStore, clock: SettableClock, node: int
) -> None:
    session_id = await talk(service, direct(), "hello")
    await fail_to_deliver(service, clock, node, session_id)
    found = await only(service)
    assert found.state is SessionState.TROUBLE
    assert found.trouble is not None
    assert (found.trouble.kind, found.trouble.why) == (TroubleKind.UNDELIVERED, "no such chat")
    await service.suspend_session(await service.session_key_for(direct()))
    suspended = await only(service)
    assert suspended.trouble is not None
    assert suspended.trouble.kind is TroubleKind.SET_ASIDE
    assert await listed(service, states=ListedStates.TROUBLE) == [session_id]


async def test_ended_session_says_why_and_where_its_lineage_began(service: SessionStore) -> None:
    first = await talk(service, direct(), "hello")
    key = await service.session_key_for(direct())
    await service.compress_session(key, [user_says("short")])
    await service.reset_session(key)
    page = await service.list_page(ALL, EVERY)
    assert {each.root for each in page.items} == {first}
    (oldest,) = [each for each in page.items if each.session.id == first]
    assert (oldest.state, oldest.session.reason) == (SessionState.ENDED, EndReason.COMPRESSED)


async def test_last_words_are_short_and_say_whose_they_are(service: SessionStore) -> None:
    session_id = await talk(service, direct(), "hello " * 1_000)
    found = await only(service)
    assert found.last is not None
    assert found.last.role == "user"
    assert found.last.text.startswith("hello hello")
    assert len(found.last.text) == 200
    await service.record_turn(session_id, [agent_calls("c1"), tool_answers("c1")])
    assert (await only(service)).last == found.last
    await service.record_turn(session_id, [agent_says("so it is\n\n\u202edone")])
    said = (await only(service)).last
    assert said is not None
    assert (said.role, said.text) == ("assistant", "so it is done")
    await service.rewind_session(session_id)
    assert (await only(service)).last is None


async def test_tools_are_named_where_nothing_was_said(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    await service.record_turn(entry.session_id, [agent_calls("c1")])
    last = (await only(service)).last
    assert last is not None
    assert (last.text, last.calls_tools) == ("look", True)


@pytest.mark.parametrize("sign", ["x", "é", "\\", '"', "\U0001f600", "\n"])
async def test_long_message_is_shown_by_its_beginning(service: SessionStore, sign: str) -> None:
    await talk(service, direct(), "so " + sign * 200_000)
    last = (await only(service)).last
    assert last is not None
    assert last.role == "user"
    assert last.text.startswith("so")
    assert len(last.text) <= PREVIEW_CHARACTERS


async def test_long_message_in_parts_is_shown_by_its_text(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    parts = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:" + "x" * 9_000}},
    ]
    await service.record_turn(entry.session_id, [user_says(parts)])
    last = (await only(service)).last
    assert last is not None
    assert last.text == "look"


async def found_by(service: SessionStore, query: str, viewer: Viewer = ALL) -> list[tuple[str, bool]]:
    found = await service.find_sessions(query, viewer)
    return [(each.listed.session.id, each.hit is None) for each in found]


async def test_sessions_are_found_by_title_name_and_words(
    service: SessionStore, clock: SettableClock
) -> None:
    said = await talk(service, direct("ann"), "we go to Bergen")
    clock.advance(timedelta(minutes=1))
    called = await talk(service, direct("bob", chat_name="Bergen Støtte"), "hello")
    clock.advance(timedelta(minutes=1))
    titled = await talk(service, direct("carl"), "hello")
    await service.set_title(titled, "Trip to bergen", ALL)
    assert await found_by(service, "bergen") == [(titled, True), (called, True), (said, False)]
    assert await found_by(service, "bergen støt") == [(called, True)]
    assert await found_by(service, "trip berg") == [(titled, True)]
    await service.set_title(titled, "Elsewhere", ALL)
    assert await found_by(service, "trip") == []
    assert await found_by(service, "elsewhere") == [(titled, True)]


async def test_names_of_others_are_not_found(service: SessionStore) -> None:
    await talk(service, direct("ann", chat_name="Secret plans"), "hello")
    mine = await talk(service, direct("bob", chat_name="Secret garden"), "hello")
    assert await found_by(service, "secret", await service.viewer_for(direct("bob"))) == [(mine, True)]
    assert await found_by(service, "secret", Viewer(frozenset())) == []


async def test_strange_words_find_nothing_and_do_no_harm(service: SessionStore) -> None:
    await talk(service, direct("ann", chat_name="100% _'\"\\ \u202eplain"), "hello")
    for query in ("%", "_", "zzz", "x" * 300, "'; DROP"):
        try:
            assert await found_by(service, query) == []
        except errors.InvalidQuery:
            continue
    assert len(await found_by(service, "plain")) == 1


async def called(service: SessionStore) -> dict[str, str | None]:
    return {each.session.id: each.called for each in (await service.list_page(ALL, EVERY)).items}


ON_PAGE = SessionSource(platform=Platform.WEB, chat_id="1", user_id="ann", user_name="Ann")


async def test_first_words_are_listed_where_a_chat_has_no_name(service: SessionStore) -> None:
    said = ["\n", "how many rows?", "and columns?"]
    nameless = await talk(service, ON_PAGE, *said)
    named = await talk(service, replace(ON_PAGE, chat_id="2", chat_name="Rows"), *said)
    other = await talk(service, direct("ann"), *said)
    assert await called(service) == {nameless: "how many rows?", named: None, other: None}


async def rotate(service: SessionStore, text: str) -> str:
    """Something is said after the session has ended by itself."""
    await service.suspend_session(await service.session_key_for(ON_PAGE))
    return await talk(service, ON_PAGE, text)


async def test_chat_without_a_name_is_called_the_same_when_its_session_has_ended_by_itself(
    service: SessionStore,
) -> None:
    """By its first words until somebody gives it a title, and by that from then on; a fresh start by hand is
    called by its own words."""

    first = await talk(service, ON_PAGE, "how many rows?")
    second = await rotate(service, "and columns?")
    third = await rotate(service, "and cells?")
    assert await called(service) == dict.fromkeys((first, second, third), "how many rows?")
    await service.set_title(second, "Rows of 2023", ALL)
    fourth = await rotate(service, "and sheets?")
    since = dict.fromkeys((second, third, fourth), "Rows of 2023")
    assert await called(service) == {first: "how many rows?", **since}
    await service.reset_session(await service.session_key_for(ON_PAGE))
    fresh = await talk(service, ON_PAGE, "something else")
    assert (await called(service))[fresh] == "something else"


async def test_chat_without_a_name_is_not_called_by_what_was_forgotten(service: SessionStore) -> None:
    first = await talk(service, ON_PAGE, "how many rows?")
    second = await rotate(service, "and columns?")
    await service.end_session(first, EndReason.FORGOTTEN)
    assert (await called(service))[second] == "and columns?"
