"""Callbacks over real HTTP: signed, repeated until they are heard, to no other address than was named."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from frontdesk import ConfirmationServer, errors, plugins
from frontdesk.app import confirmations
from frontdesk.app.confirmations import open_confirmations
from frontdesk.contracts import channels
from frontdesk.flow.confirmations.callbacks import MOST_ATTEMPTS, DecisionCallbacks
from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.formats import webhooks
from frontdesk.model.confirmations import Caller, CallerKind, Settings
from frontdesk.stores.store import Store
from frontdesk.testing import SettableClock
from tests import loopback
from tests.flow.harness import PATIENCE_SECONDS, poll

SECRET = "a secret that signs what programs are told"
AGENT = Caller(id="token:agent", kind=CallerKind.AGENT)
ANN = Caller(id="token:ann", kind=CallerKind.APPROVER)


class Program:
    """Answers with the statuses it was told, then with 204."""

    def __init__(self, *statuses: int) -> None:
        self._statuses = list(statuses)
        self.heard: list[channels.Request] = []

    async def handle(self, request: channels.Request) -> channels.Response:
        self.heard.append(request)
        status = self._statuses.pop(0) if self._statuses else 204
        return channels.Response(status=status, headers={"location": "/elsewhere"} if status == 307 else {})

    async def has_heard(self, count: int) -> list[channels.Request]:
        async def look() -> list[channels.Request] | None:
            return self.heard if len(self.heard) >= count else None

        return await poll(look)


async def decide(tmp_path: Path, program: Program, count: int) -> str:
    """Ask, approve, and wait until the program was called so often; the confirmation's id."""
    routes = [
        channels.Route(method="POST", path=path, handle=program.handle) for path in ("/decided", "/elsewhere")
    ]
    async with loopback.served(routes) as url:
        settings = Settings(callbacks=(f"{url}/",))
        store = f"sqlite:///{tmp_path}/state.db"
        async with open_confirmations(store, settings, callback_secret=lambda: SECRET) as service:
            data = {"action": "send", "description": "Send it?", "callback_url": f"{url}/decided"}
            asked = (await service.submit(data, AGENT)).confirmation
            await service.approve(asked.id, ANN)
            await program.has_heard(count)
            return asked.id


async def test_decision_is_posted_and_signed(tmp_path: Path) -> None:
    program = Program()
    asked = await decide(tmp_path, program, 1)
    (heard,) = program.heard
    assert webhooks.verify([SECRET], heard.headers, heard.body, now=datetime.now(UTC)) == asked
    told = json.loads(heard.body)
    assert (told["id"], told["status"], told["resolved_by"]) == (asked, "approved", ANN.id)


@pytest.mark.parametrize("status", [500, 307])
async def test_what_was_not_heard_is_repeated_and_no_redirection_followed(
    tmp_path: Path, status: int
) -> None:
    program = Program(status)
    await decide(tmp_path, program, 2)
    assert [each.path for each in program.heard] == ["/decided", "/decided"]


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest",
        "file:///etc/passwd",
        "https://good.example.evil/",
        "https://good.example/told/../admin",
        "https://good.example/told/%2E%2e/admin",
        "https://good.example/told/..%2Fadmin",
        "https://good.example/told/..\\admin",
        "https://good.example/told/./admin",
        "https://good.example/told/a#b",
        "https://good.example/told/a\nb",
        "https://good.example/told/a b",
        "https://good.example/told/\u202eb",
        "https://good.example:port/told/",
        "https://[good.example/told/",
    ],
)
async def test_address_that_nobody_allowed_is_refused(tmp_path: Path, url: str) -> None:
    settings = Settings(
        callbacks=("https://good.example/told/", "https://good.example:port", "https://[", "file:")
    )
    async with open_confirmations(f"sqlite:///{tmp_path}/state.db", settings) as service:
        data = {"action": "send", "description": "Send it?", "callback_url": url}
        with pytest.raises(errors.InvalidInput, match="callback_url"):
            await service.submit(data, AGENT)
        assert await service.pending_count() == 0


@pytest.mark.parametrize("url", ["https://ann@good.example/", "https://a:b@good.example/", "ftp://x/", "x"])
async def test_address_is_one_of_the_web_without_a_user(tmp_path: Path, url: str) -> None:
    settings = Settings(callbacks=(url,))
    async with open_confirmations(f"sqlite:///{tmp_path}/state.db", settings) as service:
        data = {"action": "send", "description": "Send it?", "callback_url": url}
        with pytest.raises(errors.InvalidInput, match="callback_url"):
            await service.submit(data, AGENT)


async def test_address_below_an_allowed_one_is_taken(tmp_path: Path) -> None:
    settings = Settings(callbacks=("https://good.example/told/",))
    async with open_confirmations(f"sqlite:///{tmp_path}/state.db", settings) as service:
        url = "https://good.example/told/a..b/%C3%BC?to=../c&d=@e"
        data = {"action": "send", "description": "Send it?", "callback_url": url}
        assert (await service.submit(data, AGENT)).confirmation.callbacks == (url,)


class Dripping:
    """Answers a byte at a time, for ever: after a status when it has one to tell, else within the headers."""

    def __init__(self, status: bytes) -> None:
        self._begin = b"HTTP/1.1 " + status + b"\r\ncontent-length: 1000000\r\n"
        self._begin += b"\r\n" if status else b"x: "
        self.over = asyncio.Event()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(self._begin)
            while not writer.is_closing():
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.01)
        self.over.set()


@asynccontextmanager
async def dripping(status: bytes) -> AsyncIterator[tuple[Dripping, str]]:
    server = Dripping(status)
    async with await asyncio.start_server(server.answer, "127.0.0.1", 0) as listening:
        yield server, f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
        await server.over.wait()


@asynccontextmanager
async def caller(secret: Callable[[], str] = lambda: SECRET) -> AsyncIterator[confirmations.CallbackClient]:
    opened = confirmations.CallbackClient(secret)
    try:
        yield opened
    finally:
        await opened.aclose()


@pytest.mark.parametrize(("status", "heard"), [(b"200 OK", True), (b"500 No", False)])
async def test_answer_that_never_ends_is_not_read(status: bytes, heard: bool) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS), dripping(status) as (_, url), caller() as opened:
        assert await opened.call(url, "c_1", b"{}") is heard


async def test_headers_that_never_end_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirmations, "CALL_SECONDS", 0.3)
    async with asyncio.timeout(PATIENCE_SECONDS), dripping(b"") as (_, url), caller() as opened:
        assert await opened.call(url, "c_1", b"{}") is False


@pytest.mark.parametrize("secret", [None, "short"])
async def test_call_that_cannot_be_signed_fails_until_it_is_given_up(
    secret: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    def find() -> str:
        if secret is None:
            raise errors.MissingSecret(where="CALLBACK_SECRET", setting="confirm.callback_secret_env")
        return secret

    clock, url = SettableClock(), "sqlite:///:memory:"
    store: Store = await plugins.load_store(url)(url)
    service = ConfirmationService(store, Settings(callbacks=("http://127.0.0.1:9/",)), clock=clock)
    data = {"action": "send", "description": "Send it?", "callback_url": "http://127.0.0.1:9/"}
    asked = (await service.submit(data, AGENT)).confirmation
    await service.approve(asked.id, ANN)
    with caplog.at_level(logging.WARNING, "frontdesk"):
        async with caller(find) as opened:
            calls = DecisionCallbacks(store, opened.call, clock)
            tried = 0
            for _ in range(MOST_ATTEMPTS + 3):
                tried += await calls.call_due()
                clock.advance(hours=1)
    await store.close()
    assert tried == MOST_ATTEMPTS
    assert caplog.text.count("callback_failed") == MOST_ATTEMPTS
    assert "callback_given_up" in caplog.text
    assert "short" not in caplog.text


class TestStopping:
    @pytest.fixture
    def failed(self, tmp_path: Path) -> Iterator[ConfirmationServer]:
        """A server whose file another one has."""
        first, second = (
            ConfirmationServer(port=0, db_path=tmp_path / "state.db", home=tmp_path) for _ in range(2)
        )
        first.start_background()
        yield second
        first.stop()

    def test_server_that_did_not_start_can_be_stopped(self, failed: ConfirmationServer) -> None:
        with pytest.raises(errors.StoreLocked):
            failed.start_background()
        failed.stop()
        failed.stop()

    async def test_server_that_did_not_start_in_the_loop_can_be_stopped(
        self, failed: ConfirmationServer
    ) -> None:
        with pytest.raises(errors.StoreLocked):
            await failed.start()
        await failed.stop()
        await failed.stop()

    def test_server_is_stopped_twice_and_started_again(self, tmp_path: Path) -> None:
        server = ConfirmationServer(port=0, db_path=tmp_path / "state.db", home=tmp_path)
        for _ in range(2):
            assert httpx.get(f"{server.start_background()}/health").is_success
            server.stop()
            server.stop()
