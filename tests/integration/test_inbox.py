"""Approvals over the HTTP API: the same care as on the pages, and the same people."""

import re
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import httpx
import pytest

from frontdesk.model.access import Role
from frontdesk.model.confirmations import Caller, CallerKind, Confirmation, Status
from frontdesk.web.confirmations import pages
from tests.flow.harness import poll
from tests.integration.visiting import Visited, open_reception

SECRET = "aB3dE5gH7jK9mN2pQ4rS6tU8"
PREFIX = "/api/v1/approvals"


@pytest.fixture
async def reception() -> AsyncIterator[Visited]:
    async with open_reception("sqlite:///:memory:") as opened:
        yield opened


async def submit(reception: Visited, action: str = "say", **details: Any) -> dict[str, Any]:
    agent = Caller(id="token:bot", kind=CallerKind.AGENT)
    request = {"action": action, "description": "Because.", "details": details or {"to": "all"}}
    asked = await reception.house.gateway.parts.confirmations.submit(request, agent)
    return {"id": asked.confirmation.id, "digest": asked.confirmation.digest}


async def decide(client: httpx.AsyncClient, asked: dict[str, Any], **said: Any) -> httpx.Response:
    said = {"approves": True, "digest": asked["digest"]} | said
    return await client.post(f"{PREFIX}/{asked['id']}/decision", json=said)


async def test_request_is_listed_shown_and_decided(reception: Visited) -> None:
    ann = await reception.visitor(Role.APPROVER, "telegram:1")
    asked = await submit(reception)
    listed = (await ann.get(PREFIX)).json()
    assert [each["id"] for each in listed["items"]] == [asked["id"]]
    assert listed["waiting"] == 1
    shown = (await ann.get(f"{PREFIX}/{asked['id']}")).json()
    assert (shown["status"], shown["digest"], shown["obstacle"]) == ("pending", asked["digest"], None)
    assert any("all" in line["text"] for line in shown["card"]["lines"])
    told = await decide(ann, asked, reason="fine")
    assert (told.status_code, told.json()["status"]) == (httpx.codes.OK, "approved")
    after = (await ann.get(f"{PREFIX}/{asked['id']}")).json()
    assert (after["resolved_by"], after["reason"]) == ("telegram:1", "fine")
    assert (await decide(ann, asked)).status_code == httpx.codes.CONFLICT


async def test_request_leads_to_the_conversation_that_asked_whoever_may_see_it(reception: Visited) -> None:
    house, confirmations = reception.house, reception.house.gateway.parts.confirmations
    await house.say("!approve remove_file", source=house.source("ann", chat_name="Ops room"))

    async def pending() -> Confirmation | None:
        found = await confirmations.list(10, Status.PENDING)
        return found[0] if found else None

    asked = await poll(pending)
    session_id = await house.sessions.peek_session_id(asked.session_key or "")
    link = f'<a href="/sessions/{session_id}"><bdi>Ops room</bdi></a>'
    for role, person, is_shown in (
        (Role.VIEWER, "telegram:9", True),
        (Role.APPROVER, "matrix:ann", True),
        (Role.APPROVER, "matrix:bob", False),
    ):
        visitor = await reception.visitor(role, person)
        listed = (await visitor.get("/approvals")).text
        assert ('<q class="said">Ops room</q>' in listed, asked.requester in listed) == (
            is_shown,
            not is_shown,
        )
        page = (await visitor.get(f"/approvals/{asked.id}")).text
        facts = page.partition('id="facts"')[2].partition("</dl>")[0]
        assert (link in facts, "Ops room" in page, asked.requester in facts) == (
            is_shown,
            is_shown,
            not is_shown,
        )
    decider = await reception.visitor(Role.APPROVER, "telegram:1")
    await decide(decider, {"id": asked.id, "digest": asked.digest})

    async def used() -> datetime | None:
        return (await confirmations.find(asked.id)).redeemed_at

    await poll(used)
    looker = await reception.visitor(Role.VIEWER, "telegram:8")
    page = (await looker.get(f"/approvals/{asked.id}")).text
    assert '<q class="said">Ops room</q>, ' in page
    assert asked.requester not in page.partition('id="facts"')[0]


async def test_list_comes_in_pages_on_the_page_and_for_programs(
    reception: Visited, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await reception.visitor(Role.APPROVER, "telegram:1")
    asked = [(await submit(reception, number=number))["id"] for number in range(3)]
    first = (await ann.get(PREFIX, params={"limit": 2})).json()
    assert {each["id"] for each in first["items"]} == {*asked[1:]}
    then = (await ann.get(PREFIX, params={"limit": 2, "after": first["next"]})).json()
    assert ([each["id"] for each in then["items"]], then["next"], then["waiting"]) == (asked[:1], None, 3)
    assert (await ann.get(PREFIX, params={"after": "nonsense"})).status_code == httpx.codes.BAD_REQUEST
    monkeypatch.setattr(pages, "MOST_SHOWN", 2)
    shown = (await ann.get("/approvals")).text
    assert asked[0] not in shown
    assert "3 wait" in shown
    (older,) = re.findall(r'data-key="n" href="([^"]+)"', shown)
    last = (await ann.get(older)).text
    assert [each in last for each in asked] == [True, False, False]
    assert "Newest" in last


async def test_what_is_hidden_is_looked_at_before_it_is_approved(reception: Visited) -> None:
    ann = await reception.visitor(Role.APPROVER, "telegram:1")
    asked = await submit(reception, token=SECRET)
    shown = await ann.get(f"{PREFIX}/{asked['id']}")
    assert shown.json()["card"]["hidden"]
    assert SECRET not in shown.text
    assert (await decide(ann, asked)).status_code == httpx.codes.BAD_REQUEST
    uncovered = await ann.post(f"{PREFIX}/{asked['id']}/reveal", json={})
    assert SECRET in uncovered.text
    ben = await reception.visitor(Role.APPROVER, "telegram:2")
    assert (await decide(ben, asked, seen=uncovered.json()["seen"])).status_code == httpx.codes.BAD_REQUEST
    told = await decide(ann, asked, seen=uncovered.json()["seen"])
    assert told.json()["status"] == "approved"


async def test_target_of_one_of_the_ten_is_typed(reception: Visited) -> None:
    ann = await reception.visitor(Role.APPROVER, "telegram:1")
    asked = await submit(reception, "wipe_database", database="customers")
    shown = await ann.get(f"{PREFIX}/{asked['id']}")
    assert shown.json()["card"]["to_type"]
    assert (await decide(ann, asked)).status_code == httpx.codes.BAD_REQUEST
    assert (await decide(ann, asked, target="customers")).json()["status"] == "approved"


async def test_another_action_than_the_one_that_was_shown_is_not_approved(reception: Visited) -> None:
    ann = await reception.visitor(Role.APPROVER, "telegram:1")
    asked = await submit(reception)
    answer = await decide(ann, asked | {"digest": "0" * 64})
    assert answer.status_code == httpx.codes.PRECONDITION_FAILED


async def test_viewer_sees_what_is_asked_and_decides_nothing(reception: Visited) -> None:
    viewer = await reception.visitor(Role.VIEWER, "telegram:3")
    asked = await submit(reception, token=SECRET)
    assert (await viewer.get(f"{PREFIX}/{asked['id']}")).json()["obstacle"]
    for path, said in (("decision", {"approves": False, "digest": asked["digest"]}), ("reveal", {})):
        answer = await viewer.post(f"{PREFIX}/{asked['id']}/{path}", json=said)
        assert answer.status_code == httpx.codes.FORBIDDEN
        assert SECRET not in answer.text
    listed = await viewer.get("/approvals")
    assert asked["id"] in listed.text
    assert 'type="checkbox"' not in listed.text
    shown = await viewer.get(f"/approvals/{asked['id']}")
    assert "data-approves" not in shown.text
    assert "data-reveal" not in shown.text


async def test_places_say_how_much_waits_to_those_who_see_requests(reception: Visited) -> None:
    await submit(reception)
    for role, sees in ((Role.ADMINISTRATOR, True), (Role.APPROVER, True), (Role.USER, False)):
        client = await reception.visitor(role, "telegram:1")
        shown = (await client.get("/sessions")).text
        assert ('<span class="chip wait">1' in shown) is sees
    approver = await reception.visitor(Role.APPROVER, "telegram:2")
    inside = (await approver.get("/approvals")).text
    assert "/sessions" in inside
    assert "/settings" not in inside
