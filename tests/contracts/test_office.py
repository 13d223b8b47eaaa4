"""The office over every store: what the owner of a gateway can ask for."""

import json
from datetime import timedelta

import msgspec
import pytest

from frontdesk import GatewayConfig, Platform, SessionSource, SessionStore, errors
from frontdesk.app.office import Office
from frontdesk.app.office import people as people_counter
from frontdesk.flow.authorization import Authorization
from frontdesk.model.access import Access, Role, Strangers
from frontdesk.model.deliveries import Delivery
from frontdesk.model.lanes import chat_lane
from frontdesk.model.lists import LISTED_CHARACTERS
from frontdesk.model.turns import Admission, Turn
from frontdesk.model.visitors import Visitor
from frontdesk.stores import loading
from frontdesk.testing import SettableClock
from tests.contracts.conftest import OpenSessionStore
from tests.contracts.samples import LASTING, user_says

ANN = SessionSource(platform=Platform.TELEGRAM, chat_id="1", user_id="1", user_name="Ann")
BOB = SessionSource(platform=Platform.SLACK, chat_id="C1", user_id="2", user_name="Bob")


def office_of(service: SessionStore, clock: SettableClock) -> Office:
    return Office(service.store, service, clock=clock)


async def talk(service: SessionStore, source: SessionSource, text: str) -> str:
    entry = await service.get_or_create_session(source)
    await service.append_to_transcript(entry.session_id, {"role": "user", "content": text})
    await service.append_to_transcript(entry.session_id, {"role": "assistant", "content": f"re: {text}"})
    return entry.session_id


async def test_everybodys_sessions_are_seen_latest_first(service: SessionStore, clock: SettableClock) -> None:
    first = await talk(service, ANN, "from ann")
    clock.advance(timedelta(minutes=5))
    second = await talk(service, BOB, "from bob")
    office = office_of(service, clock)
    assert [each["id"] for each in await office.list_sessions()] == [second, first]
    assert [each["id"] for each in await office.list_sessions(active_minutes=1)] == [second]
    assert {hit["session_id"] for hit in await office.search("from")} == {first, second}


async def test_ended_sessions_are_listed_when_asked_for(service: SessionStore, clock: SettableClock) -> None:
    ended = await talk(service, ANN, "hello")
    await service.reset_session(await service.session_key_for(ANN))
    office = office_of(service, clock)
    assert ended not in [each["id"] for each in await office.list_sessions()]
    (found,) = [each for each in await office.list_sessions(all=True) if each["id"] == ended]
    assert (found["state"], found["end_reason"]) == ("ended", "new")


async def test_words_and_a_state_find_in_pages_what_has_both(
    service: SessionStore, clock: SettableClock
) -> None:
    ended = await talk(service, ANN, "zebra")
    await service.reset_session(await service.session_key_for(ANN))
    for number in range(6):
        clock.advance(timedelta(minutes=1))
        await talk(service, msgspec.structs.replace(BOB, chat_id=f"C{number}"), "zebra")
    office = office_of(service, clock)
    only = await office.browse_sessions(words="zebra", states="ended", limit=3)
    assert ([each["id"] for each in only["items"]], only["next"]) == ([ended], None)
    place, seen = None, []
    while True:
        page = await office.browse_sessions(words="zebra", after=place, limit=3)
        seen.append([each["id"] for each in page["items"]])
        place = page["next"]
        if place is None:
            break
    assert [len(each) for each in seen] == [3, 3, 1]
    assert len({name for each in seen for name in each}) == 7


async def test_filter_that_is_not_there_is_named(service: SessionStore, clock: SettableClock) -> None:
    office = office_of(service, clock)
    with pytest.raises(errors.InvalidInput, match=r"platform 'slak'.*telegram"):
        await office.browse_sessions(platform="slak")
    with pytest.raises(errors.InvalidInput, match="platform ''"):
        await office.count_states(platform="")
    with pytest.raises(errors.InvalidInput, match=r"states 'foo'.*ended"):
        await office.browse_sessions(states="foo")
    with pytest.raises(errors.InvalidInput, match="cursor"):
        await office.browse_sessions(words="zebra", after="zzz")


async def test_export_holds_the_whole_session(service: SessionStore, clock: SettableClock) -> None:
    session_id = await talk(service, ANN, "grüße\n你好")
    office = office_of(service, clock)
    lines = "".join([piece async for piece in office.export_session(session_id)]).splitlines()
    shown = dict(await office.show_session(session_id))
    head, *messages = map(json.loads, lines)
    assert messages == shown.pop("transcript")
    assert shown.pop("is_whole")
    assert head == {"session": shown}


@pytest.mark.parametrize("format", ["jsonl", "markdown"])
async def test_no_more_of_a_long_session_is_held_than_may_be(
    service: SessionStore, clock: SettableClock, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over HTTP the newest is shown, and that it is not all; an export has all of it, a few at a time."""
    monkeypatch.setattr(loading, "GIVEN_BYTES", 5_000)
    before = await talk(service, ANN, "begun")
    said = [letter * size for letter, size in {"a": 9_000, "b": 2_000, "c": 2_000, "d": 9_000}.items()]
    await service.record_turn(before, [user_says(each) for each in said])
    entry = await service.compress_session(await service.session_key_for(ANN), [user_says("short")])
    assert entry is not None
    owner = office_of(service, clock)
    visitor = owner.seen_by(Visitor(id="telegram:1", name="Ann", role=Role.USER))
    shown = await visitor.show_session(before)
    assert [each["content"][0] for each in shown["transcript"]] == ["d"]
    assert not shown["is_whole"]
    short = await visitor.show_session(entry.session_id)
    assert ([each["content"] for each in short["transcript"]], short["is_whole"]) == (["short"], True)
    whole = await owner.show_session(before)
    assert [each["content"] for each in whole["transcript"]][-4:] == said
    pieces = [piece async for piece in visitor.export_session(entry.session_id, format, ancestors=True)]
    assert [text in "".join(pieces) for text in (*said, "begun", "short")] == [True] * 6


async def test_export_of_a_long_session_reads_no_more_at_once_than_may_be(
    service: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "GIVEN_BYTES", 5_000)
    session_id = await talk(service, ANN, "begun")
    said = [user_says(letter * size) for letter, size in {"a": 9_000, "b": 2_000, "c": 2_000}.items()]
    await service.record_turn(session_id, said)
    parts = [part async for part in service.store.transcripts.timed_parts(session_id)]
    sizes = [[len(message["content"]) for message, _ in part] for part in parts]
    assert [size for each in sizes for size in each][-3:] == [9_000, 2_000, 2_000]
    assert all(sum(each) <= 5_000 or len(each) == 1 for each in sizes)


async def test_no_answer_grows_with_what_somebody_wrote(service: SessionStore, clock: SettableClock) -> None:
    long, now = "heron " * 20_000, clock.now()
    session_id, key = await talk(service, ANN, long), await service.session_key_for(ANN)
    await service.record_turn(session_id, [user_says(long)] * 20)
    for number in range(20):
        turn = Turn(id=str(number), session_key=key, source=ANN, text=long, content=long, received_at=now)
        await service.store.turns.accept(turn, lambda *_: Admission())
    letters = [
        Delivery(
            id=str(number), lane=chat_lane(ANN), to=ANN, text=long, session_id=session_id, created_at=now
        )
        for number in range(20)
    ]
    await service.store.deliveries.add(letters)
    owner = office_of(service, clock)
    visitor = owner.seen_by(Visitor(id="anybody", name="Ann", role=Role.ADMINISTRATOR))
    turns, deliveries = await visitor.page_turns(), await visitor.page_deliveries("waiting")
    for rows in (turns["items"], deliveries["items"]):
        assert [(each["text"], each["is_whole"]) for each in rows] == [(long[:LISTED_CHARACTERS], False)] * 20
    found = await visitor.search("heron", 200)
    assert [each["is_whole"] for each in found] == [False] * len(found)
    answers = (
        turns,
        deliveries,
        found,
        await visitor.open_turns(session_id),
        await visitor.browse_sessions(),
        await visitor.browse_sessions(words="heron"),
        await visitor.describe_session(session_id),
        await visitor.health(),
    )
    assert [each for each in map(msgspec.json.encode, answers) if len(each) > 2 * len(long)] == []
    shown = (await owner.page_turns())["items"], await owner.search("heron")
    assert [len(each) > 20 * len(long) for each in map(msgspec.json.encode, shown)] == [True, True]


async def test_names_of_a_person_are_listed_as_far_as_somebody_reads(
    open_session_store: OpenSessionStore, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people_counter, "MOST_NAMES", 1)
    service = await open_session_store(GatewayConfig())
    people, office = Authorization(service.store, service.config, clock=clock), office_of(service, clock)
    for name in ("telegram:1", "slack:2"):
        await office.allow_person(name)
    code = await people.begin_link(ANN, await people.look(ANN))
    await people.link(code, await people.look(BOB))
    (person,) = (await office.list_links())["items"]
    assert (person["names"], person["is_whole"]) == (["slack:2"], False)


async def test_people_are_let_in_and_sent_away(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    access = {"telegram": Access(strangers=Strangers.PAIR)}
    service = await open_session_store(GatewayConfig(access=access))
    authorization = Authorization(service.store, service.config, clock=clock)
    answer = await authorization.answer_stranger(ANN, await authorization.check(ANN))
    office = office_of(service, clock)
    assert answer is not None
    assert [each["principal"] for each in await office.pending_people()] == ["telegram:1"]
    code = answer.partition("whoever runs me: ")[2].split()[0]
    assert (await office.approve_person(code))["role"] == "user"
    assert [each["name"] for each in (await office.list_people())["items"]] == ["Ann"]
    assert await office.revoke_person("telegram:1")
    assert await office.list_people() == {"items": [], "next": None}


async def test_people_links_and_the_log_are_told_in_pages(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(GatewayConfig(access={"telegram": Access(strangers=Strangers.PAIR)}))
    people, office = Authorization(service.store, service.config, clock=clock), office_of(service, clock)
    for name in ("telegram:2", "telegram:3", "slack:2", "slack:3"):
        await office.allow_person(name)
    for user in "23":
        one, other = (
            SessionSource(platform=platform, chat_id=user, user_id=user)
            for platform in (Platform.TELEGRAM, Platform.SLACK)
        )
        await people.link(await people.begin_link(one, await people.look(one)), await people.look(other))
    names: list[str] = []
    known = await office.list_people(limit=3)
    names += [each["principal"] for each in known["items"]]
    names += [each["principal"] for each in (await office.list_people(known["next"]))["items"]]
    assert names == ["slack:2", "slack:3", "telegram:2", "telegram:3"]
    linked = await office.list_links(limit=1)
    rest = await office.list_links(linked["next"])
    found = [each["names"] for each in (*linked["items"], *rest["items"])]
    assert sorted(found) == [["slack:2", "telegram:2"], ["slack:3", "telegram:3"]]
    assert await office.unlink_person("slack:3")
    assert await people.answer_stranger(ANN, await people.check(ANN))
    assert await office.refuse_person("telegram:1")
    assert await office.pending_people() == []
    told = await office.list_audit(limit=3)
    assert [(each["number"], each["kind"]) for each in told["items"]] == [
        (8, "person_refused"),
        (7, "people_unlinked"),
        (6, "people_linked"),
    ]
    older = await office.list_audit(after=told["next"])
    assert [each["number"] for each in older["items"]] == [5, 4, 3, 2, 1]
    assert await office.list_audit(after="1") == {"items": [], "next": None}


async def test_what_is_not_there_is_named(service: SessionStore, clock: SettableClock) -> None:
    office = office_of(service, clock)
    with pytest.raises(errors.SessionNotFound):
        await office.show_session("nobody")
    with pytest.raises(errors.UnknownDelivery):
        await office.resend_delivery("nothing")
    with pytest.raises(errors.InvalidInput):
        await office.list_sessions(limit=-1)


async def test_status_of_a_store_without_a_gateway(open_session_store: OpenSessionStore) -> None:
    sessions = await open_session_store(LASTING)
    status = await Office(sessions.store, sessions).status()
    assert not status["running"]
    assert (status["turns"], status["deliveries"], status["channels"]) == ({}, {}, [])


async def test_owner_says_that_work_runs_by_session_or_key(
    service: SessionStore, clock: SettableClock
) -> None:
    session_id, office = await talk(service, ANN, "hello"), office_of(service, clock)
    key = await service.session_key_for(ANN)
    begun = await office.begin_background(session_id, "build", 60)
    assert (begun["session_key"], begun["name"]) == (key, "build")
    await office.begin_background(key)
    assert {work["name"] for work in await office.list_background()} == {"build", "work"}
    assert await office.end_background(key, "build")
    assert await office.end_background(session_id)
    assert not await office.end_background(session_id)
    assert await office.list_background() == []


@pytest.mark.parametrize("unknown", ["20260101_000000_00000000", "agent:main:telegram:dm:nobody"])
async def test_work_of_an_unknown_conversation_is_refused(
    service: SessionStore, clock: SettableClock, unknown: str
) -> None:
    with pytest.raises(errors.SessionNotFound):
        await office_of(service, clock).begin_background(unknown)
