"""An hour spent on getting one action approved with an approver's cookie, an agent's token and every GET, but
without the proof. All that was thought of is in ``thief.py``; nothing of it changes anything."""

import asyncio
import random
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import msgspec
import pytest

from frontdesk.channels.api_server.channel import Channel
from frontdesk.channels.api_server.options import Options
from frontdesk.flow import audits
from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.formats import links
from frontdesk.model.confirmations import Caller, CallerKind, Confirmation, Mode, Settings
from frontdesk.model.rules import Effect, Rule
from frontdesk.stores.store import Store
from frontdesk.web import ports, public, server
from frontdesk.web.confirmations import ServedConfirmations
from frontdesk.web.operations import LOOKING, PROOF_HEADER, Operation
from frontdesk.web.visitors import COOKIE
from tests import counts
from tests.contracts.asking import pages as log_pages
from tests.flow.harness import open_house
from tests.integration import thief
from tests.integration.confirming import LINK_KEY, TOKENS, credentials
from tests.integration.thief import Answer, Loot, Try

SECRET = "aB3dE5gH7jK9mN2pQ4"
ANN = Caller(id="token:ann", kind=CallerKind.APPROVER)
BOT, ROB = (Caller(id=f"token:{name}", kind=CallerKind.AGENT) for name in ("bot", "rob"))
MOST = counts.count(150, 1_000_000)
"""Of each kind."""
LONG_SECONDS = 3600


class Scene(msgspec.Struct, kw_only=True):
    service: ConfirmationService
    store: Store
    http: httpx.AsyncClient
    """Ann's browser."""
    loot: Loot
    proof: str
    """Ann's, which the thief must never see."""
    tried: int = 0

    async def state(self) -> Any:
        """Everything that an attempt could have changed."""
        asked = [(each.id, each.status, each.approvals) for each in await self.service.list(100)]
        kept = [each.id for each in await self.service.rules()], await self.service.pauses()
        kinds = [str(row.entry.kind) for row in await self.service.audit_newest(1000)]
        return sorted(asked), kept, [kind for kind in kinds if kind not in ("refused", "redeem_refused")]

    def judge(self, each: Try, answer: Answer) -> None:
        """No attempt succeeds, and nothing is shown that a cookie may not open."""
        assert each.method in LOOKING or answer.status == 0 or answer.status >= 400, (each, answer.text)
        assert answer.status < 500, (each, answer.text)
        assert answer.status != 200 or "content-security-policy: default-src 'none'" in answer.head
        for kept in (SECRET, self.proof, TOKENS["ann"], "set-cookie:"):
            assert kept not in answer.text, (each, answer.text)

    async def attempt(self, tries: Iterable[Try]) -> None:
        self.tried += await thief.run(self.loot, tries, self.judge)


def paths_of(rows: Iterable[Operation], wanted: str) -> tuple[tuple[str, str], ...]:
    return tuple((row.method, re.sub(r"{\w+}", wanted, row.path)) for row in rows)


async def sign_in(http: httpx.AsyncClient, name: str, **headers: str) -> tuple[str, str]:
    own = {"x-frontdesk-page": "1", "origin": str(http.base_url).rstrip("/")} | headers
    http.cookies.clear()
    answer = await http.post("/login", json={"token": TOKENS[name]}, headers=own)
    return http.cookies[COOKIE], answer.raise_for_status().json()["proof"]


async def act(http: httpx.AsyncClient, path: str, session: tuple[str, str], **body: Any) -> httpx.Response:
    """As the page of somebody with both, cookie and proof."""
    own = {"x-frontdesk-page": "1", "origin": str(http.base_url).rstrip("/")}
    headers = own | {"cookie": f"{COOKIE}={session[0]}", PROOF_HEADER: session[1]}
    http.cookies.clear()
    return await http.post(f"/approvals/{path}", json=body, headers=headers)


@asynccontextmanager
async def listening(app: Any) -> AsyncIterator[tuple[str, int]]:
    with ports.listening("127.0.0.1", 0) as opened:
        async with server.serving_app(app, opened):
            yield "127.0.0.1", opened.getsockname()[1]


async def submit(service: ConfirmationService, caller: Caller = BOT, **details: Any) -> Confirmation:
    data = {
        "action": "send_mail",
        "description": "Because",
        "details": details,
        "timeout_seconds": LONG_SECONDS,
    }
    return (await service.submit(data, caller)).confirmation


def link_to(asked: Confirmation, until: timedelta = timedelta()) -> str:
    link = links.decision(asked.id, asked.digest, "token:ann", asked.expires_at + until)
    return links.sign(LINK_KEY, link)


@asynccontextmanager
async def staged(url: str, mode: Mode) -> AsyncIterator[Scene]:
    """A gateway with everything that it serves, somebody who signed in, and what was stolen from them."""
    async with AsyncExitStack() as stack:
        channel = Channel(Options(tokens={"carol": lambda: "carols-token-0123456789"}))
        settings = Settings(mode=mode, rate_limit=1000)
        opening = open_house(url, notebook=channel, confirming=settings)  # type: ignore[arg-type]
        house = await stack.enter_async_context(opening)
        service = house.gateway.parts.confirmations
        served = ServedConfirmations(service, credentials(), LINK_KEY)
        address = await stack.enter_async_context(server.serving(house.gateway, port=0, confirmations=served))
        where = {"public": (address.host, address.port)}
        where["page"] = await stack.enter_async_context(listening(served.make_page_app("127.0.0.1")))
        where["service"] = await stack.enter_async_context(listening(served.make_app("127.0.0.1")))
        stack.callback(served.close)
        page_url = f"http://127.0.0.1:{where['page'][1]}"
        http = await stack.enter_async_context(httpx.AsyncClient(base_url=page_url, trust_env=False))
        loot, proof = await robbed(service, served, http, where)
        yield Scene(service=service, store=house.gateway.parts.store, http=http, loot=loot, proof=proof)


async def robbed(
    service: ConfirmationService, served: ServedConfirmations, http: httpx.AsyncClient, where: Any
) -> tuple[Loot, str]:
    """Requests, a rule and a pause; and everything that the thief got hold of."""
    hidden = await submit(service, ROB, to="b@example.org", password=SECRET)
    for number in range(5):
        await service.deny((await submit(service, ROB, number=number)).id, ANN)
    await service.add_rule(Rule(id="r_kept", effect=Effect.DENY, action="other"), ANN)
    wanted = await submit(service, to="press@example.org", password=SECRET[::-1])
    named, decided = await submit(service, number=1), await submit(service, number=2)
    await service.approve(decided.id, ANN)
    old = await sign_in(http, "ann")
    session = await sign_in(http, "ann", cookie=f"{COOKIE}={old[0]}")
    proofs = [(await sign_in(http, name))[1] for name in ("eve", "ann")]
    looked = [(await act(http, f"{each.id}/reveal", session)).json()["seen"] for each in (wanted, hidden)]
    given = [link_to(named), link_to(decided), link_to(wanted, -timedelta(days=1)), link_to(wanted)[:-2]]
    rows = {"page": paths_of([*served.entrance.operations, *served.pages.operations], wanted.id)}
    channels = (("POST", "/v1/chat/completions"), ("GET", "/v1/models"))
    rows["public"] = (*paths_of(public.OPERATIONS, wanted.id), *rows["page"], *channels)
    rows["service"] = paths_of(served.api.operations, wanted.id)
    loot = Loot(
        ports=where,
        rows=rows,
        cookie=session[0],
        agent=TOKENS["bot"],
        wanted=wanted.id,
        digest=wanted.digest,
        others=tuple((each.id, each.digest) for each in (hidden, named, decided)),
        ended=old,
        proofs=tuple(proofs),
        links=tuple(given),
        looks=tuple(looked),
    )
    return loot, session[1]


def some(tries: Iterable[Try]) -> list[Try]:
    """As many as this run has time for; the same ones each time."""
    found = list(tries)
    return found if len(found) <= MOST else random.Random(12).sample(found, MOST)


@pytest.mark.prove
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("engine", "mode"), [("sqlite", Mode.SOLO), ("postgresql", Mode.TEAM)])
async def test_cookie_token_and_every_get_without_the_proof_change_nothing(
    engine: str, mode: Mode, tmp_path: Path, request: pytest.FixtureRequest, tell: counts.Tell
) -> None:
    url = f"sqlite:///{tmp_path}/state.db"
    if engine == "postgresql":
        url = f"{request.getfixturevalue('postgres_url')}?schema=test_{uuid4().hex}"
    async with staged(url, mode) as scene:
        before = await scene.state()
        for family in thief.FAMILIES:
            await scene.attempt(some(family(scene.loot)))
            assert await scene.state() == before, family.__name__
        await race(scene)
        assert scene.proof not in scene.loot.found
        await check_log(scene)
        tell(
            "attempts with a stolen cookie, an agent's token and every GET: none changed anything",
            scene.tried,
        )
        # All the while the one who signed in could decide.
        session = scene.loot.cookie, scene.proof
        said = {"approves": False, "digest": scene.loot.digest}
        told = await act(scene.http, f"{scene.loot.wanted}/decision", session, **said)
        assert told.json()["status"] == "denied"


async def race(scene: Scene) -> None:
    """Ann decides about something else and signs in again, while the thief decides what she does not."""
    loot, rounds = scene.loot, counts.count(2, 40)
    path = f"/approvals/{loot.wanted}/decision"
    vote = next(body for target, body in loot.goals() if target == path)
    for number in range(rounds):
        another = await submit(scene.service, number=str(number))
        mine = await sign_in(scene.http, "ann")
        stolen = loot.forged(cookie=f"{COOKIE}={mine[0]}")
        tries = [thief.post(path, stolen, vote) for _ in range(10)]
        said = {"approves": True, "digest": another.digest}
        deciding = act(scene.http, f"{another.id}/decision", mine, **said)
        again = sign_in(scene.http, "ann", cookie=f"{COOKIE}={mine[0]}")
        _, (decided, renewed) = await asyncio.gather(scene.attempt(tries), in_turn(deciding, again))
        assert decided.json()["status"] == "approved"
        await scene.attempt(
            thief.post(path, loot.forged(cookie=f"{COOKIE}={cookie}", x_frontdesk_proof=proof), vote)
            for cookie, proof in ((mine[0], mine[1]), (renewed[0], mine[1]), (mine[0], renewed[1]))
        )
    wanted = await scene.service.find(loot.wanted)
    assert (wanted.status, wanted.approvals) == ("pending", ())


async def in_turn(*doing: Any) -> list[Any]:
    return [await each for each in doing]


async def check_log(scene: Scene) -> None:
    """The log is whole, and has who was refused what: the one whose cookie it was, and the agent."""
    assert (await audits.verify(log_pages(scene.store.confirmations))).whole
    rows = await scene.service.audit_newest(1000)
    refused = {
        (row.entry.actor, row.entry.facts["why"].partition(":")[0])
        for row in rows
        if row.entry.kind == "refused"
    }
    assert {("token:ann", "decide"), ("token:ann", "reveal"), ("token:ann", "sign_out")} <= refused
    assert {("token:bot", "approve"), ("token:bot", "add_rule"), ("token:bot", "lift_pause")} <= refused
    about = [row.entry for row in rows if row.entry.confirmation_id == scene.loot.wanted]
    assert {str(entry.kind) for entry in about} <= {"submitted", "refused", "revealed", "redeem_refused"}
    assert sum(entry.kind == "revealed" for entry in about) == 1, "Ann's own"
