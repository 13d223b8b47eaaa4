"""The confirmation service over real HTTP on loopback, with everybody who might call."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import msgspec

from frontdesk import plugins
from frontdesk.app.confirmations import watching
from frontdesk.contracts.clock import Clock
from frontdesk.contracts.ticks import Ticker
from frontdesk.flow.clockwatch import since_boot
from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.model.confirmations import Mode, Settings
from frontdesk.stores.store import Store
from frontdesk.web import bounds, ports, server
from frontdesk.web.bounds import Listeners, PortLimits
from frontdesk.web.confirmations import Credentials, ServedConfirmations
from frontdesk.web.guesses import WINDOW_SECONDS, Guesses
from tests.patience import PATIENCE_SECONDS

MEMORY = "sqlite:///:memory:"
TOKENS = {name: f"{name}-token-0123456789abcdef" for name in ("ann", "eve", "bot", "rob")}
LINK_KEY = b"k" * 32
FORM = "application/x-www-form-urlencoded"

ASKED = {"action": "send_mail", "description": "Write to the press", "details": {"to": "press@example.org"}}


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {TOKENS[name]}"}


ANN, EVE = bearer("ann"), bearer("eve")
"""Approvers."""
BOT, ROB = bearer("bot"), bearer("rob")
"""Agents."""


class Desk(msgspec.Struct, frozen=True, kw_only=True):
    http: httpx.AsyncClient
    service: ConfirmationService
    app: ServedConfirmations
    store: Store | None = None

    async def ask(self, headers: dict[str, str] | None = None, **fields: Any) -> dict[str, Any]:
        """Hand a request in that waits then."""
        answer = await self.http.post("/confirm", json=ASKED | fields, headers=headers)
        assert answer.status_code == 202, answer.text
        told: dict[str, Any] = answer.json()
        return told

    async def approved(self, headers: dict[str, str] | None = None, **fields: Any) -> dict[str, Any]:
        asked = await self.ask(headers, **fields)
        assert (await self.http.post(asked["approve_url"], headers=ANN)).status_code == 200
        return asked

    async def status(self, confirmation_id: str) -> str:
        return str((await self.service.find(confirmation_id)).status)


async def until_waiting(desk: Desk, count: int) -> None:
    """Until so many wait for a decision."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            if desk.app.streams.waiting == count:
                return
            await asyncio.sleep(0.01)


def unguarded() -> Guesses:
    """One that slows nobody: between two guesses is as much time as it takes."""
    return Guesses(itertools.count(step=WINDOW_SECONDS).__next__)


def credentials(guesses: Guesses | None = None) -> Credentials:
    """Everybody's tokens. Guessing is slowed only where ``guesses`` says so."""
    return Credentials(
        guesses=guesses or unguarded(),
        approvers={name: lambda name=name: TOKENS[name] for name in ("ann", "eve")},  # type: ignore[misc]
        agents={name: lambda name=name: TOKENS[name] for name in ("bot", "rob")},  # type: ignore[misc]
        people={"ann": ["matrix:@ann"]},
    )


@asynccontextmanager
async def opened_service(
    url: str, settings: Settings, clock: Clock | None
) -> AsyncIterator[tuple[ConfirmationService, Store]]:
    store: Store = await plugins.load_store(url)(url)
    elapsed = since_boot if clock is None else lambda: clock.now().timestamp()
    async with watching(ConfirmationService(store, settings, clock=clock, elapsed=elapsed)) as service:
        try:
            yield service, store
        finally:
            await store.close()


@asynccontextmanager
async def opened(
    url: str = MEMORY,
    *,
    clock: Clock | None = None,
    known: Credentials | None = None,
    quiet_seconds: float = 15.0,
    limits: PortLimits = bounds.USUAL,
    **settings: Any,
) -> AsyncIterator[Desk]:
    chosen = Settings(**settings)
    known = known or credentials()
    async with opened_service(url, chosen, clock) as (service, store):
        served = ServedConfirmations(
            service, known, LINK_KEY, page_url=chosen.page_url, ticks=Ticker(quiet_seconds)
        )
        async with served_app(served.make_app("127.0.0.1", ("desk.example",)), limits) as http:
            try:
                yield Desk(http=http, service=service, app=served, store=store)
            finally:
                served.close()


@asynccontextmanager
async def opened_pages(
    *,
    service: ConfirmationService | None = None,
    clock: Clock | None = None,
    known: Credentials | None = None,
    page_url: str | None = None,
    quiet_seconds: float = 15.0,
    **settings: Any,
) -> AsyncIterator[Desk]:
    """The pages for people, of a service of their own or of one that is there."""
    async with AsyncExitStack() as stack:
        used = (
            service
            or (await stack.enter_async_context(opened_service(MEMORY, Settings(**settings), clock)))[0]
        )
        known = known or credentials()
        served = ServedConfirmations(
            used,
            known,
            LINK_KEY,
            page_url=page_url,
            public_url=page_url,
            clock=clock,
            ticks=Ticker(quiet_seconds),
        )
        http = await stack.enter_async_context(served_app(served.make_page_app("127.0.0.1")))
        stack.callback(served.close)
        yield Desk(http=http, service=used, app=served)


@asynccontextmanager
async def served_app(app: Any, limits: PortLimits = bounds.USUAL) -> AsyncIterator[httpx.AsyncClient]:
    with ports.listening("127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        async with (
            server.serving_app(app, listening, Listeners(limits=limits)),
            httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as client,
        ):
            yield client


def problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    """A problem document with that status, whole."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told: dict[str, Any] = answer.json()
    assert (told["type"], told["status"]) == (f"urn:frontdesk:{told['code']}", status)
    assert told["title"]
    assert told["error"] == told["detail"] != ""
    assert "traceback" not in answer.text.lower()
    return told


STRICTER = (Mode.TEAM, Mode.STRICT)
