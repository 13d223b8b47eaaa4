"""Values that nobody's page sends, to rows of the public port on every store: none of them is our fault."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from frontdesk.model.access import Role
from tests.integration.visiting import open_reception

NUMBERS = ("999999999999999999", "-999999999999999999", "9" * 19, "-" + "9" * 19, "9" * 400)
TEXTS = ("\0", "matrix:a\0b", "\ud7ff", "\U0010ffff", "1~a\0", "1~\u00a0")
ODD = (*NUMBERS, *TEXTS)
USUAL = {"role": "user", "principal": "matrix:x"}
SERVER_FAULT = 500


async def status(client: httpx.AsyncClient, method: str, path: str, **more: Any) -> int:
    async with client.stream(method, path, **more) as answer:
        return answer.status_code


def sent(schema: dict[str, Any], value: str) -> Any:
    """A value as its field takes it, as far as that can be told."""
    kinds = {schema.get("type"), *(each.get("type") for each in schema.get("anyOf", ()))}
    if kinds & {"integer", "number"} and value.lstrip("-").isdecimal():
        return int(value)
    return [value] if "array" in kinds else value


def asked(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each field of each row with each value."""
    for path, methods in document["paths"].items():
        if "{" in path or path.startswith(("/v1/", "/login")):
            continue
        for each in methods.get("get", {}).get("parameters", ()):
            if each["in"] == "query":
                yield from (("GET", path, {"params": {each["name"]: value}}) for value in ODD)
        body = methods.get("post", {}).get("requestBody", {}).get("content", {}).get("application/json", {})
        named = body.get("schema", {}).get("$ref", "").rpartition("/")[2]
        described = document["components"]["schemas"].get(named, {}) if path.startswith("/api/v1/") else {}
        others = {name: USUAL.get(name, "x") for name in described.get("required", ())}
        for name, field in described.get("properties", {}).items():
            yield from (("POST", path, {"json": others | {name: sent(field, value)}}) for value in ODD)


async def test_no_odd_value_after_the_question_mark_or_in_a_body_is_our_fault(store_url: str) -> None:
    async with open_reception(store_url) as visited:
        owner = await visited.visitor(Role.ADMINISTRATOR, "token:owner")
        requests = list(asked((await visited.nobody.get("/openapi.json")).json()))
        assert {method for method, _, _ in requests} == {"GET", "POST"}
        faults = [
            (path, more)
            for method, path, more in requests
            if await status(owner, method, path, **more) >= SERVER_FAULT
        ]
        assert not faults
        hidden = await owner.get("/sessions", params={"q": "person:\0"})
        assert hidden.status_code == httpx.codes.BAD_REQUEST
        revoked = await owner.post("/api/v1/people/revoke", json={"principal": "matrix:a\0b"})
        assert revoked.status_code == httpx.codes.BAD_REQUEST
        assert "U+0000" in revoked.json()["detail"]


@pytest.mark.parametrize("after", ["999999999999999999", "-999999999999999999"])
async def test_place_beyond_the_calendar_is_a_place(store_url: str, after: str) -> None:
    async with open_reception(store_url) as visited:
        owner = await visited.visitor(Role.ADMINISTRATOR, "token:owner")
        shown = (await owner.get("/api/v1/passes", params={"after": after})).raise_for_status().json()
        assert bool(shown["items"]) == (not after.startswith("-"))
