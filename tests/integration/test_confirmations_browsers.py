"""Browsers on the same machine: no page from elsewhere reads or changes anything."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests import counts
from tests.integration.confirming import ANN, ASKED, FORM, Desk, opened, problem

FOREIGN_ORIGINS = [
    "https://evil.example",
    "http://evil.example:6000",
    "null",
    "http://localhost:3000",
    "http://127.0.0.1",
    "http://127.0.0.1:1",
    "file://",
    "chrome-extension://abcdef",
    "http://desk.example.evil.example",
    "",
]
FOREIGN_HOSTS = ["evil.example", "evil.example:6000", "127.0.0.1.nip.io", "localhost.evil.example", "0.0.0.0"]


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with opened() as opened_desk:
        yield opened_desk


def everything(asked: dict[str, Any]) -> list[tuple[str, str, Any]]:
    """Every address, as somebody who may use it would."""
    return [
        ("POST", "/confirm", ASKED | {"details": {"n": 2}}),
        ("GET", "/confirm", None),
        ("GET", f"/confirm/{asked['id']}", None),
        ("POST", asked["approve_url"], {}),
        ("POST", asked["deny_url"], {}),
        ("POST", f"/confirm/{asked['id']}/redeem", {"digest": asked["digest"]}),
        ("GET", "/audit", None),
        ("GET", "/events", None),
        ("GET", "/rules", None),
        ("POST", "/rules", {"effect": "deny"}),
        ("DELETE", "/rules/r_1", None),
        ("GET", "/health", None),
        ("GET", "/openapi.json", None),
    ]


async def test_page_of_another_origin_gets_nothing_anywhere(desk: Desk, tell: counts.Tell) -> None:
    asked = await desk.ask()
    tries = 0
    for origin in FOREIGN_ORIGINS:
        for method, path, body in everything(asked):
            headers = ANN | {"origin": origin}
            answer = await desk.http.request(method, path, json=body, headers=headers)
            assert "another origin" in problem(answer, 403)["detail"]
            assert not [name for name in answer.headers if name.startswith("access-control-")]
            tries += 1
    tell("requests of pages on another origin: none was served", tries)
    assert await desk.status(asked["id"]) == "pending"
    assert await desk.service.pending_count() == 1


@pytest.mark.parametrize("site", ["cross-site", "same-site", "CROSS-SITE", "nonsense"])
async def test_fetch_from_another_site_gets_nothing_anywhere(desk: Desk, site: str) -> None:
    asked = await desk.ask()
    for method, path, body in everything(asked):
        answer = await desk.http.request(method, path, json=body, headers=ANN | {"sec-fetch-site": site})
        problem(answer, 403)
    assert await desk.status(asked["id"]) == "pending"


async def test_own_origin_and_the_address_bar_are_served(desk: Desk) -> None:
    own = str(desk.http.base_url).rstrip("/")
    for headers in ({"origin": own}, {"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"}):
        assert (await desk.http.get("/health", headers=headers)).status_code == 200


async def test_host_that_is_not_ours_gets_nothing_anywhere(desk: Desk) -> None:
    """A name that was made to lead to this machine is not one of its names."""
    asked = await desk.ask()
    for host in FOREIGN_HOSTS:
        for method, path, body in everything(asked):
            headers = ANN | {"host": host, "origin": f"http://{host}"}
            problem(await desk.http.request(method, path, json=body, headers=headers), 421)
    assert await desk.status(asked["id"]) == "pending"


async def test_preflight_is_never_granted(desk: Desk) -> None:
    asked = await desk.ask()
    for _, path, _ in everything(asked):
        headers = {
            "origin": "https://evil.example",
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization, content-type",
        }
        answer = await desk.http.options(path, headers=headers)
        problem(answer, 405)
        assert not [name for name in answer.headers if name.startswith("access-control-")]


FORMS = [
    FORM,
    "multipart/form-data; boundary=x",
    "text/plain",
    "text/json",
    "application/x-ndjson",
    "application/json; charset=utf-16",
    "application/jsonp",
    "",
]


@pytest.mark.parametrize("path", ["/confirm", "approve_url", "deny_url", "redeem"])
async def test_forms_are_refused(desk: Desk, path: str) -> None:
    asked = await desk.ask()
    where = asked.get(path) or (f"/confirm/{asked['id']}/redeem" if path == "redeem" else path)
    headers = {} if path in ("/confirm", "redeem") else ANN
    for kind in FORMS:
        for content in (json.dumps(ASKED).encode(), b"a=b", b""):
            answer = await desk.http.post(where, content=content, headers=headers | {"content-type": kind})
            problem(answer, 415)
    assert await desk.status(asked["id"]) == "pending"
    assert await desk.service.pending_count() == 1


async def test_body_without_a_type_is_refused(desk: Desk) -> None:
    problem(await desk.http.post("/confirm", content=json.dumps(ASKED).encode()), 415)
    kind = {"content-type": 'Application/JSON; charset="UTF-8"'}
    assert (await desk.http.post("/confirm", content=json.dumps(ASKED), headers=kind)).status_code == 202


async def test_looking_changes_nothing(desk: Desk) -> None:
    asked = await desk.ask()
    before = [row.hash for row in await desk.service.audit_newest(100)]
    for _, path, _ in everything(asked):
        if path != "/events":
            for method in ("GET", "HEAD"):
                await desk.http.request(method, path, headers=ANN)
    assert [row.hash for row in await desk.service.audit_newest(100)] == before


async def test_request_that_is_no_http_leaves_the_service_standing(desk: Desk) -> None:
    port = desk.http.base_url.port
    for raw in (
        b"\x16\x03\x01 nonsense",
        b"POST /confirm HTTP/1.1\r\ncontent-length: x\r\n\r\n",
        b"\x00" * 100,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(raw)
        writer.write_eof()
        await reader.read()
        writer.close()
        await writer.wait_closed()
    assert (await desk.http.get("/health")).status_code == 200
