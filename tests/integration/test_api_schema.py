"""The description of the API for programs: it names every address, and schemathesis finds nothing wrong."""

import importlib.util
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk import SessionStore
from frontdesk.agents import scripted
from frontdesk.app.gateway import Gateway
from frontdesk.channels import api_server
from frontdesk.model.running import Running
from frontdesk.web import server
from tests import counts
from tests.counts import count
from tests.generating import count_operations, count_requests, run_schemathesis

# What is right in form may name what is not there, wants what is not done here, or says nothing.
SETTINGS = """
[checks]
positive_data_acceptance.expected-statuses = ["2xx", 400, 404, 409, 422]

[auth.openapi.user]
bearer = "ada-token-0123456789"
"""
ADDRESSES = {
    ("post", "/v1/chat/completions"),
    ("get", "/v1/models"),
    ("get", "/v1/models/{model}"),
    ("post", "/v1/responses"),
    ("get", "/v1/responses/{response_id}"),
    ("get", "/v1/responses/{response_id}/input_items"),
    ("post", "/v1/responses/{response_id}/cancel"),
}

on_sqlite = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)


@asynccontextmanager
async def served(store_url: str, *accounts: str) -> AsyncIterator[str]:
    options = api_server.Options(tokens={"ada": lambda: "ada-token-0123456789"})
    channels = [api_server.Channel(options, account) for account in (None, *accounts)]
    async with await SessionStore.open(store_url) as sessions:
        agent = scripted.Driver(scripted.Options())
        gateway = Gateway(sessions, agent, channels, running=Running(drain_seconds=1.0))
        async with gateway.started(), server.serving(gateway, port=0) as address:
            yield address.url


async def read_document(url: str) -> dict[str, Any]:
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        told: dict[str, Any] = (await client.get(f"{url}/openapi.json")).json()
        return told


@on_sqlite
async def test_document_has_every_address_and_no_name_of_an_account(store_url: str) -> None:
    async with served(store_url, "hidden") as url:
        told = await read_document(url)
    found = {(method, path) for path, methods in told["paths"].items() for method in methods}
    assert {each for each in found if each[1].startswith("/v1")} == ADDRESSES
    assert "hidden" not in str(told)
    assert all(told["paths"][path][method]["security"] == [{"user": []}] for method, path in ADDRESSES)
    references = set(re.findall(r"'#/components/(\w+)/([\w-]+)'", str(told)))
    assert references
    assert all(name in told["components"][kind] for kind, name in references)


async def test_hostile_texts_come_back_as_they_were(store_url: str) -> None:
    odd = "a\0b\u2028\u202e\ufeff<script>\x7f🙂"
    body = {"input": odd, "instructions": odd, "user": odd, "metadata": {odd: odd}}
    headers = {"authorization": "Bearer ada-token-0123456789"}
    async with (
        served(store_url) as url,
        httpx.AsyncClient(base_url=f"{url}/v1", trust_env=False, timeout=60, headers=headers) as client,
    ):
        made = (await client.post("/responses", json=body)).json()
        found = (await client.get(f"/responses/{made['id']}")).json()
        on = await client.post("/responses", json={"input": "on", "previous_response_id": made["id"]})
        fork = await client.post("/responses", json={"input": "fork", "previous_response_id": made["id"]})
    assert found | {"usage": None} == made | {"usage": None}
    assert (found["instructions"], found["user"], found["metadata"]) == (odd, odd, {odd: odd})
    assert found["output"][0]["content"][0]["text"] == f"echo: {odd}"
    assert (on.status_code, fork.status_code) == (200, 200)
    assert fork.json()["conversation"] != on.json()["conversation"] == found["conversation"]


@on_sqlite
@pytest.mark.prove
@pytest.mark.timeout(count(600, 3600))
@pytest.mark.skipif(not importlib.util.find_spec("schemathesis"), reason="schemathesis is not installed")
async def test_schemathesis_finds_nothing_in_the_api_for_programs(
    store_url: str, tmp_path: Path, tell: counts.Tell
) -> None:
    settings = tmp_path / "schemathesis.toml"
    settings.write_text(SETTINGS, encoding="utf-8")
    async with served(store_url) as url, httpx.AsyncClient(base_url=url, trust_env=False) as client:
        told = await run_schemathesis(client, settings, "--include-path-regex", "^/v1/")
    assert count_operations(told) == len(ADDRESSES)
    tell("requests made from the description of the API for programs", count_requests(told))
