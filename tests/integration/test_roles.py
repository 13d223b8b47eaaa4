"""Every row of the public port as every role: nobody is shown what is another's, or does what they may not.

A row that this does not know fails: it says of each what is to be put into its address and its body.
"""

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from frontdesk.files import FileShelf
from frontdesk.model import deliveries
from frontdesk.model.access import Role
from frontdesk.model.people import Author
from frontdesk.web.pages import assets
from tests.flow.harness import House
from tests.integration.visiting import Visited, open_reception

PEARL, RUBY = "annspearl", "bobsruby"
"""What Ann says, and what Bob does: words that nobody else has."""
ANN, BOB = "matrix:ann", "matrix:bob"
OPEN = {
    "/livez",
    "/readyz",
    "/manifest.webmanifest",
    "/static/{version}/{name}.css",
    "/static/{version}/{name}.js",
    "/static/{version}/{name}.svg",
    "/static/{version}/{name}.png",
    "/login",
}
"""Rows for everybody: they show nothing of anybody's."""
BY_LINK = re.compile(r"/approvals(/|$)")
"""Rows whose page itself tells visitors apart: a link that was made for somebody opens them, too."""
STREAMS = "text/event-stream"
NOT_THEIR_ROLE = "may not do this: this takes "
BODIES: dict[str, dict[str, Any]] = {
    "approve_person": {"code": "AAAA-BBBB"},
    "revoke_person": {"principal": BOB},
    "write_message": {"text": "hello"},
    "start_chat": {"text": "hello"},
    "rename_session": {"title": "Mine"},
}
"""What is sent to rows that take something; others are sent an empty object."""


class Row(msgspec.Struct, frozen=True):
    method: str
    path: str
    operation: dict[str, Any]

    @property
    def roles(self) -> set[str] | None:
        """Who may, where the row says so."""
        roles = self.operation.get("x-roles")
        return None if roles is None else set(roles)

    @property
    def form(self) -> str:
        return next(iter(self.operation["responses"].get("200", {}).get("content", {})), "")

    def params(self) -> list[str]:
        return re.findall(r"{(\w+)}", self.path)


class Walk(msgspec.Struct, frozen=True, kw_only=True):
    reception: Visited
    rows: list[Row]
    theirs: dict[str, dict[str, str]]
    """What each of the two has, by the name that addresses have for it."""

    async def send(self, client: httpx.AsyncClient, row: Row, whose: str) -> httpx.Response:
        """A request that would be answered, if whoever sends it may; of a stream its head alone."""
        missing = set(row.params()) - self.theirs[whose].keys()
        assert not missing, f"{row.path}: say in `theirs` what {missing} is"
        path = row.path.format_map(self.theirs[whose])
        query = {
            each["name"]: self.theirs[whose].get(each["name"], "x")
            for each in row.operation["parameters"]
            if each["in"] == "query" and each["required"]
        }
        body = BODIES.get(row.operation["operationId"], {}) if row.method != "GET" else None
        headers = {"x-frontdesk-page": "1", "origin": self.reception.url, "sec-fetch-site": "same-origin"}
        asking = client.stream(row.method, path, params=query, json=body, headers=headers)
        async with asking as answer:
            if row.form != STREAMS or answer.status_code != httpx.codes.OK:
                await answer.aread()
            return answer


@pytest.fixture
async def walk(tmp_path: Path) -> AsyncIterator[Walk]:
    shelf = FileShelf(tmp_path / "files")
    async with open_reception("sqlite:///:memory:", shelf=shelf) as reception:
        house, theirs = reception.house, {}
        for name, word in (("ann", PEARL), ("bob", RUBY)):
            house.notebook.outcomes.append(deliveries.NotSent(gone=True, why=f"no such room as {word}"))
            receipt = await house.say(f"!say {word}", name)
            await house.finished(receipt.turn_id)
            key = await house.key(name)
            session_id = await house.sessions.peek_session_id(key)
            assert session_id is not None
            (said, *_) = await house.store.deliveries.of_turn(receipt.turn_id)
            theirs[name] = {"session_id": session_id, "turn_id": receipt.turn_id, "delivery_id": said.id}
            theirs[name] |= {"query": word, "id": "c_0000000000000000", "checkpoint": "1"}
            theirs[name] |= {"version": assets.VERSION, "name": "style"}
            theirs[name] |= await filed(house, name, word)
        document = (await reception.nobody.get("/openapi.json")).json()
        rows = [
            Row(method.upper(), path, told)
            for path, methods in document["paths"].items()
            for method, told in methods.items()
        ]
        yield Walk(reception=reception, rows=rows, theirs=theirs)


async def filed(house: House, name: str, word: str) -> dict[str, str]:
    """Somebody's files: one that they have sent, and one that they have not."""
    filing, by = house.gateway.parts.filing, f"matrix:{name}"

    async def pieces() -> AsyncIterator[bytes]:
        yield word.encode()

    sent, unsent = [await filing.bring(pieces(), f"{word}.txt", None, by) for _ in range(2)]
    author = Author(id=by, name=name)
    files = await filing.brought([sent.turn_id], by)
    receipt = await house.say("look", name, author=author, files=files)
    await house.finished(receipt.turn_id)
    assert sent.digest
    return {"file_id": unsent.turn_id, "digest": sent.digest}


def restricted(walk: Walk) -> Iterator[Row]:
    """Rows that are not for everybody; each of them says for whom."""
    for row in walk.rows:
        if row.path in OPEN or BY_LINK.match(row.path):
            continue
        assert row.roles, f"{row.method} {row.path} says for nobody what they need"
        yield row


async def test_nobody_without_a_pass_is_answered(walk: Walk) -> None:
    for row in restricted(walk):
        answer = await walk.send(walk.reception.nobody, row, "bob")
        assert answer.status_code == httpx.codes.UNAUTHORIZED, row.path
        assert RUBY not in answer.text


@pytest.mark.parametrize("role", Role)
async def test_each_role_is_answered_where_it_may_and_refused_where_not(walk: Walk, role: Role) -> None:
    client = await walk.reception.visitor(role, ANN)
    for row in restricted(walk):
        answer = await walk.send(client, row, "ann")
        refused = answer.status_code == httpx.codes.FORBIDDEN and NOT_THEIR_ROLE in answer.text
        assert refused == (row.roles is not None and role not in row.roles), f"{row.method} {row.path}"
        assert answer.status_code not in (401, 500), f"{row.method} {row.path}: {answer.text}"


@pytest.mark.parametrize("role", [Role.USER, Role.APPROVER])
async def test_one_person_is_shown_nothing_of_another(walk: Walk, role: Role) -> None:
    client = await walk.reception.visitor(role, ANN)
    for row in walk.rows:
        answer = await walk.send(client, row, "bob")
        if row.form == STREAMS and answer.status_code == httpx.codes.OK:
            continue
        told = answer.text
        assert RUBY not in told.replace(f"query={RUBY}", ""), f"{row.method} {row.path}"
        if {"session_id", "turn_id", "delivery_id"}.isdisjoint(row.params()):
            assert walk.theirs["bob"]["session_id"] not in told, f"{row.method} {row.path}"
        else:
            assert answer.status_code in (403, 404), f"{row.method} {row.path}: {answer.status_code}"
    said, *_ = [each for each in await walk.reception.house.transcript("bob") if each["role"] == "user"]
    assert RUBY in said["content"]
    assert await walk.reception.house.store.files.brought(BOB), "what he brought is still his"


async def test_what_is_theirs_is_shown_to_each(walk: Walk) -> None:
    client = await walk.reception.visitor(Role.USER, ANN)
    shown = [
        row.path
        for row in walk.rows
        if row.method == "GET" and row.form != STREAMS and PEARL in (await walk.send(client, row, "ann")).text
    ]
    assert "/api/v1/sessions/{session_id}" in shown
    assert "/api/v1/sessions/{session_id}/files/{digest}" in shown


async def test_whatever_changes_something_for_programs_takes_a_key(walk: Walk) -> None:
    changing = [
        row
        for row in walk.rows
        if row.path.startswith("/api/v1/") and row.method != "GET" and "json" in row.form
    ]
    assert changing
    keyless = [
        row.path
        for row in changing
        if "idempotency-key" not in {each["name"].lower() for each in row.operation["parameters"]}
    ]
    assert [path for path in keyless if not path.endswith("/verify")] == []
