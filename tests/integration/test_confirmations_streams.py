"""Waiting for a decision and following events over real HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from frontdesk.model.confirmations import Confirmation, Status
from frontdesk.web.confirmations import waiting
from tests.integration.confirming import ANN, BOT, Desk, opened, problem, until_waiting


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with opened(quiet_seconds=0.05) as opened_desk:
        yield opened_desk


async def test_long_poll_answers_as_soon_as_it_is_decided(desk: Desk) -> None:
    asked = await desk.ask()
    looking = asyncio.create_task(
        desk.http.get(f"/confirm/{asked['id']}", headers={"prefer": "respond-async, wait=25"})
    )
    await until_waiting(desk, 1)
    await desk.http.post(asked["approve_url"], headers=ANN)
    answer = await looking
    assert answer.json()["status"] == "approved"
    assert answer.headers["preference-applied"] == "wait=25"


async def test_whoever_waits_reads_the_request_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = await desk.ask()
    assert desk.store is not None
    kept, read = desk.store.confirmations, []
    find = kept.find

    async def counted(confirmation_id: str) -> Confirmation | None:
        read.append(confirmation_id)
        return await find(confirmation_id)

    monkeypatch.setattr(kept, "find", counted)
    waiting = asyncio.ensure_future(desk.service.wait(asked["id"], 30))
    for number in range(5):
        await desk.ask(details={"n": number})
    await desk.http.post(asked["approve_url"], headers=ANN)
    assert (await waiting).status is Status.APPROVED
    assert read == [asked["id"]]


async def test_long_poll_of_something_decided_does_not_wait(desk: Desk) -> None:
    asked = await desk.approved()
    answer = await desk.http.get(f"/confirm/{asked['id']}", headers={"prefer": "wait=60"}, timeout=60)
    assert answer.json()["status"] == "approved"


async def test_long_poll_gives_what_waits_when_its_time_is_over(desk: Desk) -> None:
    asked = await desk.ask()
    answer = await desk.http.get(f"/confirm/{asked['id']}", headers={"prefer": "wait=1"})
    assert (answer.json()["status"], answer.headers["preference-applied"]) == ("pending", "wait=1")


@pytest.mark.parametrize(
    "prefer", ["", "wait", "wait=soon", "wait=-1", "wait=1.5", "return=minimal", "wait=1234567"]
)
async def test_preference_that_cannot_be_read_is_passed_over(desk: Desk, prefer: str) -> None:
    asked = await desk.ask()
    answer = await desk.http.get(f"/confirm/{asked['id']}", headers={"prefer": prefer})
    assert answer.status_code == 200
    assert "preference-applied" not in answer.headers


@pytest.mark.parametrize(
    ("prefer", "seconds"),
    [
        ("wait=25", 25),
        ("Wait=5", 5),
        ('wait="7"', 7),
        ("a=b, wait = 3; x=y", 3),
        ("wait=999", 60),
        ("", None),
    ],
)
def test_preference_is_read_as_others_write_it(prefer: str, seconds: int | None) -> None:
    assert waiting.waiting_seconds(prefer) == seconds


async def test_nobody_waits_for_what_they_may_not_see(desk: Desk) -> None:
    asked = await desk.ask()
    headers = BOT | {"prefer": "wait=60"}
    problem(await desk.http.get(f"/confirm/{asked['id']}", headers=headers), 404)


async def test_whoever_waits_has_an_answer_when_the_service_ends(desk: Desk) -> None:
    asked = await desk.ask()
    looking = asyncio.create_task(desk.http.get(f"/confirm/{asked['id']}", headers={"prefer": "wait=60"}))
    await until_waiting(desk, 1)
    desk.app.close()
    assert (await asyncio.wait_for(looking, 60)).json()["status"] == "pending"


class Listener:
    """Reads server-sent events as a browser does."""

    def __init__(self, answer: httpx.Response) -> None:
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        self._lines = answer.aiter_lines()

    async def event(self) -> dict[str, Any]:
        """The next event; comments are passed over."""
        fields: dict[str, str] = {}
        async for line in self._lines:
            name, _, value = line.partition(": ")
            if not line and "data" in fields:
                return {"id": fields["id"], "event": fields["event"], "data": json.loads(fields["data"])}
            fields |= {name: value} if name else {}
        raise EOFError

    async def comment(self) -> str:
        return await anext(line async for line in self._lines if line.startswith(":"))

    async def rest(self) -> list[str]:
        return [line async for line in self._lines if line and not line.startswith(":")]


async def test_events_are_told_as_they_happen(desk: Desk) -> None:
    await desk.ask(details={"n": "before"})
    async with desk.http.stream("GET", "/events", headers=ANN) as answer:
        listener = Listener(answer)
        await listener.comment()
        asked = await desk.approved()
        first, second = await listener.event(), await listener.event()
    assert [each["event"] for each in (first, second)] == ["submitted", "approved"]
    assert [each["id"] for each in (first, second)] == ["2", "3"]
    assert first["data"]["confirmation_id"] == second["data"]["confirmation_id"] == asked["id"]
    assert (second["data"]["actor"], second["data"]["digest"]) == ("token:ann", asked["digest"])
    assert second["data"]["previous"] == first["data"]["hash"]


async def test_events_go_on_after_the_last_one_that_was_seen(desk: Desk) -> None:
    await desk.approved()
    await desk.ask(details={"n": 2})
    async with desk.http.stream("GET", "/events", headers=ANN | {"last-event-id": "1"}) as answer:
        listener = Listener(answer)
        assert [(await listener.event())["id"] for _ in range(2)] == ["2", "3"]
        await desk.ask(details={"n": 3})
        assert (await listener.event())["id"] == "4"
    async with desk.http.stream("GET", "/events", headers=ANN | {"last-event-id": "0"}) as answer:
        listener = Listener(answer)
        assert [(await listener.event())["id"] for _ in range(4)] == ["1", "2", "3", "4"]


async def test_quiet_stream_says_that_it_is_still_there(desk: Desk) -> None:
    async with desk.http.stream("GET", "/events", headers=ANN) as answer:
        listener = Listener(answer)
        assert await listener.comment() == ": here"
        assert [await listener.comment() for _ in range(3)] == [": still here"] * 3


async def test_events_end_when_the_service_ends(desk: Desk) -> None:
    async with desk.http.stream("GET", "/events", headers=ANN) as answer:
        listener = Listener(answer)
        await listener.comment()
        desk.app.close()
        assert await asyncio.wait_for(listener.rest(), 60) == ["retry: 2000"]


@pytest.mark.parametrize("last", ["x", "-1", "1.5", "9" * 30, "1, 2"])
async def test_unreadable_last_event_is_refused(desk: Desk, last: str) -> None:
    problem(await desk.http.get("/events", headers=ANN | {"last-event-id": last}), 400)


async def test_client_that_leaves_ends_its_stream(desk: Desk) -> None:
    for _ in range(3):
        async with desk.http.stream("GET", "/events", headers=ANN) as answer:
            await Listener(answer).comment()
    assert (await desk.http.get("/health")).status_code == 200
