"""The public port over real HTTP: the channels' addresses, health, and what is refused."""

import asyncio
import contextlib
import json
import logging
import socket
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk import Platform, SessionSource, SessionStore, errors
from frontdesk.agents import scripted
from frontdesk.app.gateway import Gateway
from frontdesk.channels import api_server, webhook
from frontdesk.contracts import channels
from frontdesk.formats import webhooks
from frontdesk.model.running import Running
from frontdesk.stores.store import Store
from frontdesk.web import endpoints, ports, server
from frontdesk.web.addresses import PublicAddress
from frontdesk.web.endpoints import Served
from frontdesk.web.middleware import Hosts
from frontdesk.web.operations import Table, Who
from tests import loopback
from tests.flow.harness import Notebook, open_house, poll

LIMIT_BYTES = 1000
ANN = SessionSource(platform=Platform("matrix"), chat_id="c", user_id="ann")
SECRET = "whsec_c2l4dGVlbiBieXRlcyBvciBtb3JlIG9mIGl0"


class Wired(Notebook):
    """A channel with addresses of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[channels.Request] = []
        self.left = asyncio.Event()

    @property
    def routes(self) -> Sequence[channels.Route]:
        return [
            channels.Route(
                method="POST", path="/wired/{room}", handle=self._take, max_body_bytes=LIMIT_BYTES
            ),
            channels.Route(method="PUT", path="/wired/{room}", handle=self._take),
            channels.Route(method="GET", path="/stream", handle=self._stream),
            channels.Route(method="GET", path="/broken", handle=self._break),
            channels.Route(method="GET", path="/half", handle=self._half),
        ]

    async def _take(self, request: channels.Request) -> channels.Response:
        self.requests.append(request)
        return channels.Response(status=202, body=b"taken", headers={"content-type": "text/plain"})

    async def _stream(self, _: channels.Request) -> channels.Response:
        return channels.Response(status=200, body=self._endless())

    async def _endless(self) -> AsyncIterator[bytes]:
        try:
            yield b"first\n"
            await asyncio.Event().wait()
        finally:
            self.left.set()

    async def _break(self, _: channels.Request) -> channels.Response:
        raise RuntimeError("the password is swordfish")

    async def _half(self, _: channels.Request) -> channels.Response:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"first\n"
            raise RuntimeError("in the middle")

        return channels.Response(status=200, body=pieces())


@asynccontextmanager
async def opened(url: str, **more: Any) -> AsyncIterator[tuple[httpx.AsyncClient, Wired, Gateway]]:
    wired = Wired()
    async with (
        open_house(url, notebook=wired) as house,
        server.serving(house.gateway, port=0, **more) as address,
        httpx.AsyncClient(base_url=address.url, trust_env=False) as client,
    ):
        yield client, wired, house.gateway


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/state.db"


def problem(answer: httpx.Response, status: int) -> str:
    """What a problem document says; that it is one."""
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert (told["status"], told["type"]) == (status, f"urn:frontdesk:{told['code']}")
    assert told["title"]
    return str(told["detail"])


async def test_channel_gets_the_request_whole(store_url: str) -> None:
    async with opened(store_url) as (client, wired, _):
        answer = await client.post("/wired/a%20b?x=1&y=%C3%BC", content=b"\x00body", headers={"X-Own": "Z"})
    assert (answer.status_code, answer.content) == (202, b"taken")
    (request,) = wired.requests
    assert (request.method, request.path, request.body) == ("POST", "/wired/a b", b"\x00body")
    assert (request.params, request.query) == ({"room": "a b"}, {"x": "1", "y": "ü"})
    assert (request.headers["x-own"], request.client) == ("Z", "127.0.0.1")


async def test_every_method_of_an_address_is_served(store_url: str) -> None:
    async with opened(store_url) as (client, wired, _):
        assert (await client.put("/wired/a", content=b"x" * (LIMIT_BYTES + 1))).status_code == 202
    assert [request.method for request in wired.requests] == ["PUT"]


async def test_unknown_address_is_a_problem(store_url: str) -> None:
    async with opened(store_url) as (client, _, _):
        assert problem(await client.get("/nothing"), 404)
        assert problem(await client.get("/wired/a/"), 404)


async def test_wrong_method_is_told_the_right_ones(store_url: str) -> None:
    async with opened(store_url) as (client, _, _):
        answer = await client.get("/wired/a")
    problem(answer, 405)
    assert set(answer.headers["allow"].split(", ")) == {"POST", "PUT"}


@pytest.mark.parametrize("streamed", [True, False])
async def test_longer_body_than_the_address_takes_is_refused(store_url: str, streamed: bool) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(LIMIT_BYTES // 100 + 1):
            yield b"x" * 100

    async with opened(store_url) as (client, wired, _):
        body: Any = pieces() if streamed else b"x" * (LIMIT_BYTES + 1)
        assert str(LIMIT_BYTES) in problem(await client.post("/wired/a", content=body), 413)
        assert (await client.post("/wired/a", content=b"x" * LIMIT_BYTES)).status_code == 202
    assert len(wired.requests) == 1


async def test_too_long_body_is_refused_before_it_is_sent(store_url: str) -> None:
    """A client that only announces its gigabyte has its answer already."""
    async with opened(store_url) as (client, _, _):
        port = client.base_url.port
        assert port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /wired/a HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000000\r\n\r\n")
        assert b" 413 " in await reader.readline()
        writer.close()
        await writer.wait_closed()


async def test_fault_of_ours_is_logged_and_not_shown(
    store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(store_url) as (client, _, _):
        answer = await client.get("/broken")
        assert "swordfish" not in problem(answer, 500)
        assert (await client.get("/livez")).status_code == 200
    (record,) = [each for each in caplog.records if "event=request_failed" in each.getMessage()]
    assert record.exc_info
    assert answer.headers["x-request-id"] in record.getMessage()


async def test_answer_that_breaks_in_the_middle_does_not_look_complete(store_url: str) -> None:
    async with opened(store_url) as (client, _, _):
        with pytest.raises(httpx.RemoteProtocolError):
            await client.get("/half")


async def test_stream_comes_piece_by_piece_and_ends_when_the_client_leaves(store_url: str) -> None:
    async with opened(store_url) as (client, wired, _):
        async with client.stream("GET", "/stream") as answer:
            assert await anext(answer.aiter_lines()) == "first"
            assert not wired.left.is_set()
        async with asyncio.timeout(60):
            await wired.left.wait()


async def test_answers_say_that_they_are_not_to_be_kept_or_guessed_at(store_url: str) -> None:
    async with opened(store_url) as (client, _, _):
        for path in ("/livez", "/nothing", "/broken"):
            headers = (await client.get(path)).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cache-control"] == "no-store"
            assert "server" not in headers
            assert "access-control-allow-origin" not in headers


async def test_request_id_is_kept_when_it_is_one(store_url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with opened(store_url) as (client, _, _):
        kept = await client.post("/wired/a", headers={"X-Request-ID": "abc-1.2"})
        made = await client.post("/wired/a", headers={"X-Request-ID": "a b event=forged"})
    assert kept.headers["x-request-id"] == "abc-1.2"
    assert "forged" not in made.headers["x-request-id"]
    assert any("event=request_served request=abc-1.2" in each.getMessage() for each in caplog.records)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8642", "127.0.0.1", "127.8.8.8:1", "[::1]:8642"])
async def test_loopback_names_are_ours(store_url: str, host: str) -> None:
    async with opened(store_url) as (client, _, _):
        assert (await client.get("/livez", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "10.0.0.1", "[::2]"])
async def test_other_names_are_refused_on_loopback(store_url: str, host: str) -> None:
    async with opened(store_url, names=["desk.example"]) as (client, _, _):
        assert problem(await client.get("/livez", headers={"Host": host}), 421)
        assert (await client.get("/livez", headers={"Host": "desk.example:443"})).status_code == 200


def test_other_addresses_and_configured_names_are_ours_when_we_listen_to_the_world() -> None:
    unnamed, named = Hosts("0.0.0.0"), Hosts("0.0.0.0", ["desk.example"])
    own = socket.gethostname()
    for host in (own, f"{own.upper()}:8642", f"{own.partition('.')[0]}.local", "localhost", "10.0.0.1:8642"):
        assert unnamed.admits(host)
        assert named.admits(host)
    for host in ("whatever.example", f"{own}.whatever.example", "10.0.0.1.nip.io", ""):
        assert not unnamed.admits(host)
        assert not Hosts("192.0.2.7").admits(host)
    assert Hosts("192.0.2.7").admits("192.0.2.7:8642")
    assert Hosts("desk.example").admits("desk.example")
    assert not Hosts("127.0.0.1").admits("10.0.0.1")
    assert named.admits("desk.example")
    assert named.admits("10.0.0.1:8642")
    assert not named.admits("whatever.example")
    assert not named.admits("")
    proxied = Hosts("0.0.0.0", (), PublicAddress.of("https://desk.example/frontdesk"))
    assert proxied.admits("desk.example")
    assert proxied.admits("10.0.0.1:8642")
    assert not proxied.admits("whatever.example")


async def test_alive_and_ready_while_the_gateway_works(store_url: str) -> None:
    async with opened(store_url) as (client, _, _):
        assert (await client.get("/livez")).json() == {"status": "alive"}
        assert (await client.get("/readyz")).json() == {"status": "ready"}


async def test_probes_may_add_to_the_address(store_url: str) -> None:
    async with opened(store_url) as (client, _, _):
        for path in ("/livez?verbose", "/readyz?verbose=1&t=123"):
            assert (await client.get(path)).status_code == 200


async def test_alive_but_not_ready_while_the_gateway_drains(store_url: str) -> None:
    async with opened(store_url) as (client, _, gateway):
        await gateway.desk.accept(channels.Incoming(source=ANN, text="!sleep 60"))
        closing = asyncio.create_task(gateway.close())
        await asyncio.sleep(0)
        assert "shutting down" in problem(await client.get("/readyz"), 503)
        assert (await client.get("/livez")).status_code == 200
        await closing


class Troubled:
    """A store whose sessions do not answer, or answer with an error."""

    def __init__(self, store: Store, hangs: bool) -> None:
        self._store = store
        self._hangs = hangs

    @property
    def sessions(self) -> Any:
        return self

    async def count(self, at_most: int) -> int:
        if self._hangs:
            await asyncio.Event().wait()
        raise errors.StoreUnavailable(path="x", why="secret")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.mark.parametrize("hangs", [True, False])
async def test_not_ready_while_the_store_is_away(store_url: str, hangs: bool) -> None:
    async with await SessionStore.open(store_url) as sessions:
        troubled: Any = Troubled(sessions.store, hangs)
        gateway = Gateway(SessionStore(troubled), scripted.Driver(scripted.Options()), [])
        async with (
            gateway.started(),
            server.serving(gateway, port=0) as address,
            httpx.AsyncClient(base_url=address.url, trust_env=False) as client,
        ):
            told = problem(await client.get("/readyz"), 503)
            assert "store" in told
            assert "secret" not in told
            assert (await client.get("/livez")).status_code == 200


async def test_document_names_what_the_port_serves_but_for_channels(store_url: str) -> None:
    async with opened(store_url) as (client, wired, _):
        answer = await client.get("/openapi.json")
        elsewhere = await client.get("/openapi.json", headers={"origin": "https://evil.example"})
    problem(elsewhere, 403)
    assert answer.json()["paths"].keys() == {"/livez", "/readyz"}
    assert wired.routes


@pytest.mark.parametrize("who", [Who.REQUESTER, Who.READER, Who.APPROVER, Who.OWNER])
def test_row_is_not_served_on_a_port_where_nobody_tells_who_asks(who: Who) -> None:
    table = Table(who=who)
    table.add("GET", "/secret")(lambda *_: None)
    with pytest.raises(ValueError, match="/secret is for"):
        endpoints.make_app([Served(table, None)], Hosts("127.0.0.1"), ("", ""))


async def test_used_port_is_named(store_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with open_house(store_url) as house:
            with pytest.raises(errors.AddressInUse) as caught:
                async with server.serving(house.gateway, port=port):
                    pass
    assert (caught.value.host, caught.value.port) == ("127.0.0.1", port)  # type: ignore[attr-defined]
    assert str(port) in str(caught.value)


@pytest.mark.parametrize("where", [{"host": "192.0.2.1"}, {"port": 70000}, {"host": "no.such.invalid"}])
async def test_address_that_cannot_be_had_is_named(store_url: str, where: dict[str, Any]) -> None:
    async with open_house(store_url) as house:
        with pytest.raises(errors.CannotListen):
            async with server.serving(house.gateway, **{"port": 0} | where):
                pass


async def test_serving_says_where_and_stops_when_cancelled(store_url: str) -> None:
    told: asyncio.Future[server.ServerAddress] = asyncio.get_running_loop().create_future()

    async def serve(gateway: Gateway) -> None:
        async with server.serving(gateway, port=0) as address:
            told.set_result(address)
            await asyncio.Event().wait()

    async with open_house(store_url) as house:
        serving = asyncio.create_task(serve(house.gateway))
        address = await told
        async with httpx.AsyncClient(base_url=address.url, trust_env=False) as client:
            assert (await client.get("/livez")).status_code == 200
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(address.host, address.port)


async def test_stream_that_never_ends_does_not_hold_up_the_end(store_url: str) -> None:
    wired = Wired()
    async with open_house(store_url, notebook=wired) as house, contextlib.AsyncExitStack() as after:
        async with server.serving(house.gateway, port=0, grace_seconds=0) as address:
            client = await after.enter_async_context(httpx.AsyncClient(trust_env=False))
            answer = await after.enter_async_context(client.stream("GET", f"{address.url}/stream"))
            lines = answer.aiter_lines()
            assert await anext(lines) == "first"
        with pytest.raises(httpx.RemoteProtocolError):
            await anext(lines)
        async with asyncio.timeout(60):
            await wired.left.wait()


async def test_signed_message_is_answered_by_a_signed_callback(
    store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with loopback.receiver() as receiver, await SessionStore.open(store_url) as sessions:
        options = webhook.Options(callback_url=receiver.url, secrets=(lambda: SECRET,))
        channel = webhook.Channel(options, "billing")
        agent = scripted.Driver(scripted.Options())
        gateway = Gateway(sessions, agent, [channel], running=Running(drain_seconds=1.0))
        async with gateway.started(), server.serving(gateway, port=0) as address:
            body = json.dumps({"text": "hello", "chat_id": "c1"}).encode()
            now = int(time.time())
            headers = {
                webhooks.ID: "msg",
                webhooks.TIMESTAMP: str(now),
                webhooks.SIGNATURE: webhooks.sign(SECRET, "msg", now, body),
            }
            async with httpx.AsyncClient(base_url=address.url, trust_env=False) as client:
                accepted = await client.post("/channels/webhook/billing", content=body, headers=headers)
                assert accepted.status_code == 202

                async def look() -> loopback.Received | None:
                    return receiver.received[0] if receiver.received else None

                await poll(look)
        assert json.loads(receiver.received[0].body)["text"] == "echo: hello"
    (said,) = (line for line in caplog.messages if "event=message_accepted" in line)
    assert f" request={accepted.headers['x-request-id']}" in said
    (began,) = (line for line in caplog.messages if "event=turn_began" in line)
    assert f"turn={accepted.json()['turn_id']}" in began
    assert "request=" not in began


async def test_event_id_used_again_in_another_chat_is_the_first_message(store_url: str) -> None:
    async with open_house(store_url) as house:
        first = await house.say("one", event_id="e1", source=house.source("ann"))
        again = await house.say("two", event_id="e1", source=house.source("bob"))
    assert again.repeated
    assert (again.turn_id, again.session_key) == (first.turn_id, first.session_key)


async def test_completion_is_streamed_through_the_port(store_url: str) -> None:
    async with await SessionStore.open(store_url) as sessions:
        channel = api_server.Channel(api_server.Options(tokens={"ada": lambda: "ada-token-0123456789"}))
        agent = scripted.Driver(scripted.Options())
        gateway = Gateway(sessions, agent, [channel], running=Running(drain_seconds=1.0))
        async with gateway.started(), server.serving(gateway, port=0) as address:
            request = {"model": "x", "stream": True, "messages": [{"role": "user", "content": "!stream 3"}]}
            headers = {"authorization": "Bearer ada-token-0123456789"}
            async with (
                httpx.AsyncClient(base_url=address.url, trust_env=False) as client,
                client.stream("POST", "/v1/chat/completions", json=request, headers=headers) as answer,
            ):
                lines = [line async for line in answer.aiter_lines() if line]
    assert lines[-1] == "data: [DONE]"
    pieces = [json.loads(line[6:])["choices"][0]["delta"].get("content") for line in lines[:-1]]
    assert "".join(piece or "" for piece in pieces).strip() == "1 2 3"


def test_answers_do_not_wait_for_the_other_side_to_acknowledge_their_beginning() -> None:
    with ports.listening("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
