"""The OpenAPI document: it names everything that is served, and schemathesis finds nothing against it."""

import asyncio
import contextlib
import importlib.util
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from frontdesk import errors
from frontdesk.model.confirmations import Caller, CallerKind, Mode, Status
from tests import counts
from tests.counts import count
from tests.generating import count_operations, count_requests, run_schemathesis
from tests.integration.confirming import TOKENS, Desk, opened

APPROVER = Caller(id="token:ann", kind=CallerKind.APPROVER)
# What is right in form may still meet a state: a request that is unknown, decided, another one or too much.
SETTINGS = """
[checks]
positive_data_acceptance.expected-statuses = ["2xx", 403, 404, 409, 410, 412, 422, 429]

# A rule's parts have to fit together, which a schema does not say.
[[operations]]
include-name = "POST /rules"
checks.positive_data_acceptance.expected-statuses = ["2xx", 400]

# Names have to be visible and addresses safe, which a schema does not say either; what a key was used for
# before may be erased by now.
[[operations]]
include-name = "POST /confirm"
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 403, 409, 410, 422, 429]

[[operations]]
include-path = "/events"
enabled = false
"""
TOKEN = """
[auth.openapi.{scheme}]
bearer = "{token}"
"""


def described(mode: Mode) -> dict[str, Any]:
    async def fetch() -> dict[str, Any]:
        async with opened(mode=mode) as desk:
            told: dict[str, Any] = (await desk.http.get("/openapi.json")).json()
            return told

    return asyncio.run(fetch())


def test_document_names_every_address_and_who_may_use_it() -> None:
    told = described(Mode.TEAM)
    assert told["openapi"].startswith("3.1")
    found = {(method, path) for path, methods in told["paths"].items() for method in methods}
    assert found == {
        ("post", "/confirm"),
        ("get", "/confirm"),
        ("get", "/confirm/{id}"),
        ("post", "/confirm/{id}/approve"),
        ("post", "/confirm/{id}/deny"),
        ("post", "/confirm/{id}/redeem"),
        ("post", "/confirm/{id}/erase"),
        ("post", "/confirm/{id}/reveal"),
        ("get", "/audit"),
        ("get", "/audit/standings"),
        ("get", "/events"),
        ("get", "/rules"),
        ("post", "/rules"),
        ("delete", "/rules/{id}"),
        ("get", "/pauses"),
        ("post", "/pauses/lift"),
        ("get", "/health"),
    }
    assert told["paths"]["/confirm/{id}/approve"]["post"]["security"] == [{"approver": []}]
    assert told["paths"]["/confirm"]["post"]["security"] == [{"agent": []}]
    assert described(Mode.SOLO)["paths"]["/confirm"]["post"]["security"] == [{}, {"agent": []}]


def test_document_says_what_may_be_missing() -> None:
    schemas = described(Mode.SOLO)["components"]["schemas"]
    shown = schemas["ShownConfirmation"]["properties"]
    assert shown["details"] == {"type": ["object", "null"]}
    assert shown["details_omitted"]["type"] == "boolean"
    assert "too long for a list" in shown["details_omitted"]["description"]
    assert schemas["RedeemedPayload"]["properties"]["payload"] == {"type": "object"}
    assert {"submitted", "redeemed", "unreadable"} <= set(schemas["AuditEvent"]["properties"]["kind"]["enum"])


RETRY = {"$ref": "#/components/headers/Retry-After"}


def test_document_says_which_headers_come_with_what() -> None:
    told = described(Mode.SOLO)
    headers = told["components"]["headers"]
    assert headers["Retry-After"]["schema"]["type"] == "integer"
    for path, methods in told["paths"].items():
        for operation in methods.values():
            answered = operation["responses"]
            assert {"400", "403", "421", "500", "503"} <= answered.keys(), path
            assert all("X-Request-Id" in each["headers"] for each in answered.values())
            assert answered["503"]["headers"]["Retry-After"] == RETRY
            assert "401" not in answered or "WWW-Authenticate" in answered["401"]["headers"]
    assert told["paths"]["/confirm"]["post"]["responses"]["429"]["headers"]["Retry-After"] == RETRY
    references = set(re.findall(r"'#/components/headers/([\w-]+)'", str(told)))
    assert references == headers.keys()


async def test_malformed_http_is_answered_as_the_document_says() -> None:
    told = await asyncio.to_thread(described, Mode.SOLO)
    async with opened() as desk:
        url = desk.http.base_url
        reader, writer = await asyncio.open_connection(url.host, url.port)
        writer.write(b"this is not HTTP\r\n\r\n")
        answer = await reader.read()
        writer.close()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/problem+json" in answer.lower()
    assert [*told["paths"]["/health"]["get"]["responses"]["400"]["content"]] == ["application/problem+json"]


def test_every_reference_of_the_document_leads_somewhere() -> None:
    told = described(Mode.SOLO)
    references = set(re.findall(r"'#/components/schemas/(\w+)'", str(told)))
    assert references
    assert references <= told["components"]["schemas"].keys()
    names = [operation["operationId"] for methods in told["paths"].values() for operation in methods.values()]
    assert len(names) == len(set(names))


@asynccontextmanager
async def deciding(desk: Desk) -> AsyncIterator[None]:
    """Somebody who approves whatever waits, so that there is room for more, and something to redeem."""

    async def decide() -> None:
        while True:
            for asked in await desk.service.list(100, Status.PENDING):
                with contextlib.suppress(errors.AlreadyResolved, errors.ReasonMissing, errors.NotAllowed):
                    await desk.service.approve(asked.id, APPROVER, reason="fine")
            await asyncio.sleep(0.05)

    task = asyncio.create_task(decide())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


SCHEMES = {Mode.SOLO: {"approver": "ann"}, Mode.TEAM: {"approver": "ann", "agent": "bot"}}
"""Whose token is shown where one is asked for."""


@pytest.mark.prove
@pytest.mark.timeout(count(600, 3600))
@pytest.mark.parametrize("mode", SCHEMES)
@pytest.mark.skipif(not importlib.util.find_spec("schemathesis"), reason="schemathesis is not installed")
async def test_schemathesis_finds_nothing(mode: Mode, tmp_path: Path, tell: counts.Tell) -> None:
    tokens = (TOKEN.format(scheme=scheme, token=TOKENS[name]) for scheme, name in SCHEMES[mode].items())
    settings = tmp_path / "schemathesis.toml"
    settings.write_text(SETTINGS + "".join(tokens), encoding="utf-8")
    async with (
        opened(mode=mode, rate_limit=10**6, prompts_per_hour=10**6, callbacks=("",)) as desk,
        deciding(desk),
    ):
        told = await run_schemathesis(desk.http, settings)
        assert (await desk.http.get("/health")).status_code == 200
    paths = (await asyncio.to_thread(described, mode))["paths"]
    operations = {(method, path) for path, methods in paths.items() for method in methods}
    assert count_operations(told) == len(operations - {("get", "/events")})
    counted = count_requests(told)
    tell("requests made from the description of the API: each was answered as it says", counted)
