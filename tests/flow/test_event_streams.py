"""Who follows over HTTP is told what is theirs, from the place where they were, once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec
import pytest

from frontdesk.contracts.ticks import Ticker
from frontdesk.formats.sealing import PlaceSeal
from frontdesk.model.access import Grant, Role
from frontdesk.model.audit import ABOUT_ACCESS, AuditKind
from frontdesk.model.feed import FeedEvent, FeedKind, FeedPosition
from frontdesk.model.visitors import Visitor
from frontdesk.stores.seals import Seals
from frontdesk.web import streams
from frontdesk.web.conditions import watching
from frontdesk.web.streams import EventStreams
from frontdesk.web.told import Bookmark, Sight, Telling
from tests.flow.harness import PATIENCE_SECONDS, House, Notebook, open_house, poll

ANN = Visitor(id="matrix:ann", name="Ann", role=Role.USER)
BEN = Visitor(id="matrix:ben", name="Ben", role=Role.USER)
ALL = Visitor(id="token:ops", name="ops", role=Role.VIEWER)


class Browser:
    """One side of a stream, as a browser reads it."""

    def __init__(self, opened: EventStreams, visitor: Visitor, after: str | None, **how: Any) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.last_id: str | None = after
        self.ids: list[str] = []
        self.signs = 0
        self.looks = True
        self.asked_anew = False
        self._came = asyncio.Event()
        self.task = asyncio.create_task(self._read(opened, visitor, after, **how))

    async def _read(self, opened: EventStreams, visitor: Visitor, after: str | None, **how: Any) -> None:
        stream = opened.events(visitor, after, may_look=self._may_look, **how)
        self._take_all(await stream.open())
        async for chunk in stream.pieces():
            self._take_all(chunk)

    def _take_all(self, chunk: bytes) -> None:
        for block in chunk.decode().split("\n\n"):
            self._take(dict(line.split(": ", 1) for line in block.splitlines() if line[:1] != ":"))
        self._came.set()

    async def _may_look(self, *, anew: bool = False) -> bool:
        self.asked_anew |= anew
        return self.looks

    def _take(self, fields: dict[str, str]) -> None:
        if "id" in fields:
            self.last_id = fields["id"]
            self.ids.append(fields["id"])
        if fields.get("event") == "here":
            self.signs += 1
        elif "data" in fields:
            self.events.append((fields["event"], msgspec.json.decode(fields["data"])))

    async def until(self, name: str, **facts: Any) -> None:
        """Until there was such an event."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not any(each == name and facts.items() <= told.items() for each, told in self.events):
                self._came.clear()
                await self._came.wait()

    async def is_told_another_id(self, than: str | None = None) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not self.ids or self.ids[-1] == than:
                self._came.clear()
                await self._came.wait()

    async def leave(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@asynccontextmanager
async def reading(
    opened: EventStreams, visitor: Visitor, after: str | None = None, **how: Any
) -> AsyncIterator[Browser]:
    browser = Browser(opened, visitor, after, **how)
    try:
        await browser.is_told_another_id()
        yield browser
    finally:
        await browser.leave()


def streams_of(house: House, seconds: float = 0.05) -> EventStreams:
    return EventStreams(house.gateway.parts.following, house.store.feed, house.store.seals, Ticker(seconds))


async def settled(house: House, turn_id: str) -> None:
    """Until everything about a turn has been written: its answer was sent."""
    await house.finished(turn_id)

    async def look() -> bool | None:
        sent = await house.store.deliveries.of_turn(turn_id)
        return all(each.state == "sent" for each in sent) or None

    await poll(look)


async def test_each_sees_their_own_and_a_viewer_sees_all(house: House) -> None:
    opened = streams_of(house)
    async with reading(opened, ANN) as ann, reading(opened, BEN) as ben, reading(opened, ALL) as everybody:
        first = await house.say("hello", "ann")
        second = await house.say("hello", "ben")
        for browser, turn in ((ann, first), (ben, second), (everybody, first), (everybody, second)):
            await browser.until("turn", turn_id=turn.turn_id, state="done")
            await browser.until("delivery", turn_id=turn.turn_id, state="sent")
        assert {told["turn_id"] for _, told in ann.events if "turn_id" in told} == {first.turn_id}
        assert {told["turn_id"] for _, told in ben.events if "turn_id" in told} == {second.turn_id}
        assert {told["owner"] for _, told in ann.events} == {"matrix:ann"}


async def test_who_follows_what_is_not_theirs_hears_nothing_of_it(house: House) -> None:
    await settled(house, (await house.say("hello", "ann")).turn_id)
    key, opened = await house.key("ann"), streams_of(house, seconds=3600)
    async with reading(opened, BEN, about=[key, "turn", ""]) as ben, reading(opened, ANN, about=[key]) as ann:
        ids = list(ben.ids)
        turn = await house.say("again", "ann")
        await ann.until("delivery", turn_id=turn.turn_id, state="sent")
        await house.say("mine", "ben")
        await ben.until("turn", state="done")
        assert {told["owner"] for _, told in ben.events} == {"matrix:ben"}
        assert len(ben.ids) - len(ids) == len(ben.events), "not even that something happened"


async def test_reconnected_browser_misses_nothing_and_hears_nothing_twice(house: House) -> None:
    opened = streams_of(house)
    await settled(house, (await house.say("first", "ann")).turn_id)
    place = await opened.place(ANN)
    heard: list[tuple[str, dict[str, Any]]] = []
    for number in range(4):
        async with reading(opened, ANN, place) as ann:
            turn = await house.say(f"while it listens {number}", "ann")
            await ann.until("turn", turn_id=turn.turn_id, state="running")
        heard += ann.events
        assert ann.last_id
        place = ann.last_id
        await settled(house, (await house.say(f"while it does not {number}", "ann")).turn_id)
    async with reading(opened, ANN, place) as ann:
        last = await house.say("last", "ann")
        await ann.until("delivery", turn_id=last.turn_id, state="sent")
    heard += ann.events
    whole = [told for _, told in heard]
    assert len(whole) == len({msgspec.json.encode(each) for each in whole})
    states: dict[str, list[str | None]] = {}
    for each in whole:
        states.setdefault(each["turn_id"], []).append(each.get("state"))
    assert len(states) == 9
    assert all({"running", "done", "sent"} <= set(each) for each in states.values())


async def test_place_that_is_not_known_starts_over(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = streams_of(house)
    for _ in range(3):
        await settled(house, (await house.say("hello", "ann")).turn_id)
    sealed = await opened.place(ANN)
    forged = ("A" if sealed[0] != "A" else "B") + sealed[1:]  # of its last character not every bit counts
    for unknown in ("", "x", "9" * 40, "1-2~x", "999999999999999-1", "-1-2", "1-2~" * 2_000, forged):
        for visitor in (ANN, ALL):
            async with reading(opened, visitor, unknown) as browser:
                await browser.until("reset")
                assert [name for name, _ in browser.events] == ["reset"]
    beginning = opened.telling.written(Bookmark(FeedPosition()), Sight.of(ANN))
    for visitor, place in ((ALL, "0-0"), (ANN, beginning)):
        async with reading(opened, visitor, place) as browser:
            await browser.until("turn", state="done")
            assert "reset" not in dict(browser.events)
    monkeypatch.setattr(streams, "READ_AT_ONCE", 2)
    monkeypatch.setattr(streams, "MOST_READ", 4)
    async with reading(opened, ANN, beginning) as ann:
        await ann.until("reset")
    await house.store.feed.prune(house.gateway.parts.clock.now())
    async with reading(opened, ANN, beginning) as ann:
        await ann.until("reset")
        turn = await house.say("from there on it goes on", "ann")
        await ann.until("turn", turn_id=turn.turn_id, state="done")


async def test_place_tells_nobody_how_much_happens_and_is_its_readers_alone(house: House) -> None:
    opened = streams_of(house)
    before = [await opened.place(ANN) for _ in range(20)]
    for _ in range(3):
        await settled(house, (await house.say("hello", "ben")).turn_id)
    after = [await opened.place(ANN) for _ in range(20)]
    assert len({*before, *after}) == 40, "not even whether anything happened"
    assert len({len(each) for each in (*before, *after)}) == 1
    assert Bookmark.read(before[0]) is None
    # Another node, or the same one after a start, reads it; for somebody else it is no place at all.
    elsewhere = EventStreams(opened.following, opened.feed, Seals(house.store.seals._engine))
    async with reading(elsewhere, ANN, before[0]) as ann:
        turn = await house.say("hello", "ann")
        await ann.until("turn", turn_id=turn.turn_id, state="done")
        assert "reset" not in dict(ann.events)
    for foreign, place in ((BEN, before[0]), (ALL, before[0]), (ANN, await opened.place(ALL))):
        async with reading(opened, foreign, place) as browser:
            await browser.until("reset")


async def test_stream_ends_with_the_right_to_look_and_with_us(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = streams_of(house)
    async with reading(opened, ANN) as ann, reading(opened, BEN) as ben, reading(opened, ALL) as other:
        ann.looks = ben.looks = False
        await house.store.people.unlink("matrix:ann", house.gateway.parts.clock.now(), by="local")
        await house.store.people.grant(let_in("matrix:ann"))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await ann.task  # by what the feed tells of her, at once
        assert not ann.events
        assert ann.asked_anew, "what was known of her is of before"
        monkeypatch.setattr(streams, "ASKED_SECONDS", 0)
        turn = await house.say("hello", "ben")
        await other.until("turn", turn_id=turn.turn_id, state="done")
        async with asyncio.timeout(PATIENCE_SECONDS):
            await ben.task
        assert not ben.events
        assert len(opened) == 1
        opened.close()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await other.task
        assert len(opened) == 0


def let_in(principal: str) -> Grant:
    now = datetime.now(UTC)
    return Grant(principal=principal, platform="matrix", role=Role.USER, granted_at=now, granted_by="x")


async def test_idle_stream_tells_that_it_is_there_and_from_where_it_would_go_on(house: House) -> None:
    opened = streams_of(house)
    async with reading(opened, BEN) as ben:
        before = ben.last_id
        await settled(house, (await house.say("hello", "ann")).turn_id)
        await ben.is_told_another_id(before)
        assert not ben.events
        assert ben.signs > 1, "which a page hears of"


class FailingNotebook(Notebook):
    """A channel that can say what is wrong with it."""

    why: str | None = None

    def trouble(self) -> str | None:
        return self.why


async def test_condition_of_the_gateway_is_told_to_those_who_see_it_once_per_change(
    store_url: str,
) -> None:
    notebook = FailingNotebook()
    async with open_house(store_url, notebook=notebook) as house:
        opened = streams_of(house)
        async with (
            watching(house.gateway, opened, seconds=0.01),
            reading(opened, ALL) as everybody,
            reading(opened, ALL, about=["turn"]) as somebody,
            reading(opened, ANN) as ann,
        ):
            for changes, why in enumerate(("the secret is gone", None, "the token is wrong"), 1):
                notebook.why = why
                await poll(partial(_reached, everybody, changes))
            await settled(house, (await house.say("hello", "ann")).turn_id)
            await ann.until("turn", state="done")
            assert [each for each, _ in everybody.events if each == "node"] == ["node"] * 3
            assert "node" not in {each for each, _ in [*somebody.events, *ann.events]}


async def _reached(browser: Browser, count: int) -> bool | None:
    return len(browser.events) >= count or None


def test_bookmark_remembers_what_was_told_ahead_of_others() -> None:
    mark = Bookmark(FeedPosition(5, 1)).moved(FeedPosition(9, 4), FeedPosition(7, 0))
    assert str(mark) == "7-0~9-4"
    again = Bookmark.read(str(mark))
    assert again
    assert again.knows(FeedPosition(9, 4))
    assert not again.knows(FeedPosition(8, 3))
    again = again.moved(FeedPosition(8, 3), FeedPosition(8, 3))
    assert str(again) == "8-3~9-4"
    assert str(again.moved(FeedPosition(9, 9), FeedPosition(9, 9))) == "9-9"


def test_same_is_written_once_and_nobody_is_told_what_another_sees() -> None:
    telling, begin, place = Telling(), Bookmark(FeedPosition(1, 1)), FeedPosition(1, 3)
    telling.seal = PlaceSeal(b"key")
    came = [
        FeedEvent(place=FeedPosition(1, number), at=datetime.now(UTC), kind=FeedKind.TURN, owner=owner)
        for number, owner in ((2, ANN.id), (3, BEN.id))
    ]
    first, again, ben, everybody = (
        telling.tell(begin, Sight.of(visitor), list(came), place) for visitor in (ANN, ANN, BEN, ALL)
    )
    assert again is first
    assert b"matrix:ben" not in first.chunk
    assert b"matrix:ann" not in ben.chunk
    assert everybody.chunk.count(b"event: turn") == 2
    assert {each.mark.written for each in (first, ben, everybody)} == {"1-3"}
    assert telling.tell(first.mark, Sight.of(ANN), came, place).chunk == b""


@pytest.mark.parametrize("role", [Role.USER, Role.APPROVER, Role.VIEWER, Role.ADMINISTRATOR])
def test_of_access_only_those_are_told_who_see_everything(role: Role) -> None:
    sight = Sight.of(Visitor(id="matrix:ann", name="Ann", role=role))
    kinds = [
        FeedEvent(place=FeedPosition(), at=datetime.now(UTC), kind=FeedKind.CONFIRMATION, state=str(kind))
        for kind in AuditKind
    ]
    shown = {each.state for each in kinds if sight.shows(each)}
    assert shown == {
        Role.USER: set(),
        Role.APPROVER: set(AuditKind) - ABOUT_ACCESS,
    }.get(role, set(AuditKind))
