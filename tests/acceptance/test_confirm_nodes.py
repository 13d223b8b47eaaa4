"""Three processes of the confirmation service on one PostgreSQL schema: people decide at all at once."""

import asyncio
import json
import random
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import counts
from tests.acceptance import program
from tests.acceptance.services import Service, serving

APPROVERS = ("ann", "bob", "cat")
TOKENS = {name: f"{name}-token-0123456789abcdef" for name in APPROVERS}
VARIABLES = {f"{name.upper()}_TOKEN": token for name, token in TOKENS.items()}
SETTINGS = "[confirm.approvers_env]\n" + "".join(f'{name} = "{name.upper()}_TOKEN"\n' for name in APPROVERS)
VERBS = ("approve", "deny")
RACES = counts.count(20, 1000)


class Node:
    """A service, the agent that asks there, and the approver who decides there."""

    def __init__(self, agent: httpx.AsyncClient, approver: httpx.AsyncClient) -> None:
        self._agent = agent
        self._approver = approver

    async def ask(self, number: int) -> dict[str, Any]:
        asked = {"action": "send", "description": "Send it?", "details": {"number": number}}
        answer = await self._agent.post("/confirm", json=asked)
        if answer.json().get("code") == "requester_paused":  # by chance, many in a row were denied
            (pause,) = (await self._approver.get("/pauses")).json()["pauses"]
            lifted = await self._approver.post("/pauses/lift", json={"requester": pause["requester"]})
            assert lifted.status_code == HTTPStatus.NO_CONTENT, lifted.text
            answer = await self._agent.post("/confirm", json=asked)
        assert answer.status_code == HTTPStatus.ACCEPTED, answer.text
        return dict(answer.json())

    async def decide(self, asked: dict[str, Any], verb: str) -> httpx.Response:
        return await self._approver.post(asked[f"{verb}_url"])

    async def redeem(self, asked: dict[str, Any]) -> httpx.Response:
        return await self._agent.post(f"/confirm/{asked['id']}/redeem", json={"digest": asked["digest"]})

    async def look(self, asked: dict[str, Any]) -> dict[str, Any]:
        return dict((await self._agent.get(f"/confirm/{asked['id']}")).json())


@pytest.fixture
def store(postgres_url: str) -> str:
    return f"{postgres_url}?schema=t{uuid.uuid4().hex}"


@pytest.fixture
def services(tmp_path: Path, store: str) -> Iterator[list[Service]]:
    """Each has a home of its own; only the store is shared."""
    with ExitStack() as running:
        yield [running.enter_context(_serving(tmp_path / name, store)) for name in APPROVERS]


def _serving(home: Path, store: str) -> Any:
    folder = home / ".frontdesk"
    folder.mkdir(parents=True)
    (folder / "frontdesk.toml").write_text(SETTINGS)
    return serving(home, "--rate-limit", "1000000", port=0, FRONTDESK_STORE_URL=store, **VARIABLES)


@asynccontextmanager
async def reached(services: list[Service]) -> AsyncIterator[list[Node]]:
    async with AsyncExitStack() as opened:

        async def client(url: str, **headers: str) -> httpx.AsyncClient:
            made = httpx.AsyncClient(
                base_url=url, headers=headers, timeout=program.PATIENCE_SECONDS, trust_env=False
            )
            return await opened.enter_async_context(made)

        yield [
            Node(await client(service.url), await client(service.url, authorization=f"Bearer {TOKENS[name]}"))
            for service, name in zip(services, APPROVERS, strict=True)
        ]


async def race(nodes: list[Node], number: int, order: random.Random) -> str:
    """Everybody decides at once, each node both ways; who wins, and that nothing else happened."""
    asked = await order.choice(nodes).ask(number)
    voices = [(node, verb) for node in nodes for verb in VERBS]
    order.shuffle(voices)
    answers = await asyncio.gather(*(node.decide(asked, verb) for node, verb in voices))
    (won,) = (answer.json() for answer in answers if answer.status_code == HTTPStatus.OK)
    lost = [answer for answer in answers if answer.status_code == HTTPStatus.CONFLICT]
    assert len(lost) == len(voices) - 1, [answer.text for answer in answers]
    assert {answer.json()["confirmation_status"] for answer in lost} == {won["status"]}
    seen = await asyncio.gather(*(node.look(asked) for node in nodes))
    assert {(each["status"], each["resolved_by"]) for each in seen} == {(won["status"], won["resolved_by"])}
    redeemed = Counter(each.status_code for each in await asyncio.gather(*(n.redeem(asked) for n in nodes)))
    once = {HTTPStatus.OK: 1, HTTPStatus.GONE: len(nodes) - 1}
    assert redeemed == (once if won["status"] == "approved" else {HTTPStatus.CONFLICT: len(nodes)})
    return str(won["status"])


async def test_of_all_who_decide_at_three_processes_one_wins_and_one_redeems(
    services: list[Service], store: str, tell: counts.Tell
) -> None:
    order = random.Random(RACES)
    async with reached(services) as nodes:
        won = Counter([await race(nodes, number, order) for number in range(RACES)])
    kinds = Counter(logged(services[0].home, store))
    assert (kinds["approved"], kinds["denied"]) == (won["approved"], won["denied"])
    assert (kinds["submitted"], kinds["redeemed"]) == (RACES, won["approved"])
    tell("contested decisions at three processes: one winner each", RACES)


def logged(home: Path, store: str) -> Iterator[str]:
    """What the audit log tells, after it was verified."""
    verified = program.run(home, "audit", "verify", FRONTDESK_STORE_URL=store)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    exported = program.run(home, "audit", "export", FRONTDESK_STORE_URL=store)
    for line in exported.stdout.splitlines():
        yield json.loads(json.loads(line)["body"])["kind"]
