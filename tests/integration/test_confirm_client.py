"""``frontdesk.confirm`` against the real service over HTTP: what is approved is what is carried out."""

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import ConfirmationServer, errors
from frontdesk.config.confirm import TokenHolders
from frontdesk.confirm import Client, Decision, SyncClient, Ticket, confirmed
from frontdesk.formats import canonical
from frontdesk.model.confirmations import Mode, Status
from tests.approvers import Approver, approver, server, url
from tests.counts import count

__all__ = ["approver", "server", "url"]

AGENT_TOKEN, OTHER_TOKEN = "the-agent's-own-token", "another-agent's-token"


@pytest.fixture
def person(approver: Approver) -> Iterator[Callable[..., None]]:
    """Decides in the background; errors of theirs are raised at the end."""
    with ThreadPoolExecutor(4) as pool:
        deciding = []

        def decide(*arguments: Any, **said: Any) -> None:
            deciding.append(pool.submit(approver.decide, *arguments, **said))

        yield decide
        for each in deciding:
            each.result()


class TestSteps:
    def test_request_is_waited_for_and_redeemed_once(self, url: str, person: Callable[..., None]) -> None:
        client = SyncClient(url)
        person()
        ticket = client.request("reboot", "Reboot it", {"host": "db1", "delay": 5})
        assert client.wait(ticket).approved
        redeemed = client.redeem(ticket)
        assert redeemed.payload == b'{"action":"reboot","details":{"delay":5,"host":"db1"}}'
        assert redeemed.details == {"host": "db1", "delay": 5}
        with pytest.raises(errors.GrantUnusable, match="used before"):
            client.redeem(ticket)

    async def test_async_client_does_the_same(self, url: str, person: Callable[..., None]) -> None:
        client = Client(url)
        person()
        ticket = await client.request("reboot", "Reboot it", {"host": "db1"}, timeout_seconds=60)
        assert (ticket.timeout_seconds, ticket.automatic) == (60, False)
        decision = await client.wait(ticket)
        assert (decision.status, decision.resolved_by) == (Status.APPROVED, "token:approver")
        assert (await client.redeem(ticket)).details == {"host": "db1"}

    def test_denial_names_who_and_why(self, url: str, person: Callable[..., None]) -> None:
        person("deny", reason="not on a Friday")
        with pytest.raises(errors.Denied, match=r"'reboot' was denied by token:approver \(not on a Friday\)"):
            SyncClient(url).obtain("reboot", "Reboot it")

    def test_denied_action_is_refused_at_once_when_it_is_asked_again(
        self, url: str, person: Callable[..., None]
    ) -> None:
        client = SyncClient(url)
        person("deny")
        with pytest.raises(errors.Denied):
            client.obtain("reboot", "Reboot it")
        with pytest.raises(errors.Denied, match="denied a while ago"):
            client.request("reboot", "Reboot it")

    def test_ticket_that_nobody_decided_about_is_pending(self, url: str) -> None:
        client = SyncClient(url)
        decision = client.wait(client.request("reboot", "Reboot it"), seconds=0)
        assert decision.status is Status.PENDING
        with pytest.raises(errors.NotConfirmed):
            decision.check()

    def test_redeeming_before_the_decision_is_refused(self, url: str) -> None:
        client = SyncClient(url)
        ticket = client.request("reboot", "Reboot it")
        with pytest.raises(errors.GrantUnusable, match="nobody has decided yet"):
            client.redeem(ticket)

    def test_redeeming_another_action_is_refused(self, url: str, person: Callable[..., None]) -> None:
        client = SyncClient(url)
        person()
        ticket = client.request("reboot", "Reboot it", {"host": "db1"})
        assert client.wait(ticket).approved
        forged = Ticket(id=ticket.id, action="reboot", digest=canonical.digest(b"something else"))
        with pytest.raises(errors.DigestMismatch):
            client.redeem(forged)
        assert client.redeem(ticket).details == {"host": "db1"}

    def test_unknown_confirmation_is_named(self, url: str) -> None:
        with pytest.raises(errors.UnknownConfirmation, match="c_nothing"):
            SyncClient(url).wait(Ticket(id="c_nothing", action="x", digest="0"))

    def test_same_key_is_the_same_request(self, url: str) -> None:
        client = SyncClient(url)
        first, again = (client.request("reboot", "Reboot it", idempotency_key="k1") for _ in range(2))
        assert first.id == again.id

    def test_rate_limit_says_how_long_its_window_is(self, tmp_path: Path) -> None:
        server = ConfirmationServer(port=0, db_path=":memory:", rate_limit=1, home=tmp_path)
        client = SyncClient(server.start_background())
        client.request("reboot", "Reboot it", {"host": "db1"})
        with pytest.raises(errors.RateLimited) as refused:
            client.request("reboot", "Reboot it", {"host": "db2"})
        assert vars(refused.value)["window_seconds"] == 3600
        server.stop()

    @pytest.mark.parametrize(
        "details",
        [{"n": 2**53}, {"n": float("nan")}, {"text": "\ud800"}, {"raw": b"bytes"}, {1: "a key"}],
        ids=["large", "nan", "half a character", "bytes", "key"],
    )
    def test_details_without_one_exact_form_are_refused_before_they_are_sent(
        self, details: dict[Any, Any], approver: Approver, url: str
    ) -> None:
        with pytest.raises(errors.InexactJson):
            SyncClient(url).request("reboot", "Reboot it", details)
        assert approver.pending() == []

    def test_blank_action_is_refused_by_the_service(self, url: str) -> None:
        with pytest.raises(errors.InvalidInput, match="action"):
            SyncClient(url).request("  ", "Nothing")

    @pytest.mark.parametrize("token", ["", "two words", "ümlaut", "line\nbreak"])
    def test_token_that_no_header_can_hold_is_refused(self, token: str) -> None:
        with pytest.raises(errors.InvalidInput):
            SyncClient(token=token)

    @pytest.mark.parametrize("address", ["", "localhost:6000", "ftp://host", "http://", "http://[1:2"])
    def test_address_that_is_none_is_refused(self, address: str) -> None:
        with pytest.raises(errors.InvalidInput):
            Client(address)


class TestAgents:
    """In mode team an agent is known by its token."""

    @pytest.fixture
    def server(self, tmp_path: Path) -> Iterator[ConfirmationServer]:
        people = TokenHolders(agents={"ci": lambda: AGENT_TOKEN, "other": lambda: OTHER_TOKEN})
        server = ConfirmationServer(
            port=0, db_path=tmp_path / "state.db", home=tmp_path, mode=Mode.TEAM, people=people
        )
        server.start_background()
        yield server
        server.stop()

    def test_agent_with_a_token_asks_and_carries_out(self, url: str, person: Callable[..., None]) -> None:
        person()
        assert SyncClient(url, AGENT_TOKEN).obtain("reboot", "Reboot it", {"host": "db1"}).details

    def test_nobody_else_asks(self, url: str, server: ConfirmationServer) -> None:
        for token in (None, "a-wrong-one", server.keys.token()):
            with pytest.raises(errors.NotAllowed):
                SyncClient(url, token).request("reboot", "Reboot it")

    def test_another_agent_does_not_redeem(self, url: str, person: Callable[..., None]) -> None:
        client = SyncClient(url, AGENT_TOKEN)
        person()
        ticket = client.request("reboot", "Reboot it")
        assert client.wait(ticket).approved
        with pytest.raises((errors.NotAllowed, errors.UnknownConfirmation)):
            SyncClient(url, OTHER_TOKEN).redeem(ticket)
        assert client.redeem(ticket).details == {}


class TestDecorator:
    def test_function_runs_with_what_was_approved(self, url: str, person: Callable[..., None]) -> None:
        called = []

        @confirmed("delete", client=SyncClient(url))
        def delete(path: str, /, *names: str, force: bool = False, **more: Any) -> str:
            """Delete files."""
            called.append((path, names, force, more))
            return "gone"

        person()
        assert delete("/tmp", "a", "b", depth=2) == "gone"
        assert called == [("/tmp", ("a", "b"), False, {"depth": 2})]

    def test_people_see_every_argument_and_the_defaults(
        self, url: str, approver: Approver, person: Callable[..., None]
    ) -> None:
        @confirmed(client=SyncClient(url), description=lambda path, force: f"Delete {path}")
        def delete(path: str, force: bool = True) -> None:
            pass

        person()
        delete("/tmp")
        (asked,) = approver.get("/confirm")["confirmations"]
        assert (asked["action"], asked["description"]) == ("delete", "Delete /tmp")
        assert asked["details"] == {"path": "/tmp", "force": True}

    def test_changing_the_arguments_after_asking_changes_nothing(self, url: str, approver: Approver) -> None:
        """Approve A, run B: the list is changed by somebody else while people look at it."""
        names = ["a"]
        called: list[list[str]] = []

        @confirmed("delete", client=SyncClient(url))
        def delete(names: list[str]) -> None:
            called.append(names)

        caller = threading.Thread(target=delete, args=(names,))
        caller.start()
        asked = approver.wait_for_one()
        names.append("everything else")
        approver.post(f"/confirm/{asked['id']}/approve", digest=asked["digest"])
        caller.join()
        assert called == [["a"]]
        assert called[0] is not names

    async def test_async_function_is_awaited(self, url: str, person: Callable[..., None]) -> None:
        @confirmed("delete", client=Client(url))
        async def delete(path: str) -> str:
            await asyncio.sleep(0)
            return path

        person()
        assert await delete("/tmp") == "/tmp"

    def test_denied_call_does_not_run(self, url: str, person: Callable[..., None]) -> None:
        @confirmed("delete", client=SyncClient(url))
        def delete(path: str) -> None:
            raise AssertionError("it ran")

        person("deny")
        with pytest.raises(errors.Denied):
            delete("/tmp")

    def test_methods_keep_their_self_to_themselves(self, url: str, person: Callable[..., None]) -> None:
        class Disk:
            @confirmed("delete", client=SyncClient(url), unseen=["self"])
            def delete(self, path: str) -> tuple[str, str]:
                return type(self).__name__, path

        person()
        assert Disk().delete("/tmp") == ("Disk", "/tmp")

    def test_argument_that_is_no_json_is_refused_before_anybody_is_asked(
        self, url: str, approver: Approver
    ) -> None:
        @confirmed("delete", client=SyncClient(url))
        def delete(path: Path) -> None:
            raise AssertionError("it ran")

        with pytest.raises(errors.InexactJson, match="PosixPath"):
            delete(Path("/tmp"))
        assert approver.pending() == []

    def test_misuse_is_found_when_the_function_is_defined(self) -> None:
        def generate() -> Iterator[int]:
            yield 1

        async def run() -> None: ...

        with pytest.raises(errors.InvalidInput, match="generator"):
            confirmed("x")(generate)
        with pytest.raises(errors.InvalidInput, match="is async"):
            confirmed("x", client=SyncClient())(run)
        with pytest.raises(errors.InvalidInput, match="is not async"):
            confirmed("x", client=Client())(lambda: None)
        with pytest.raises(errors.InvalidInput, match="no argument self"):
            confirmed("x", unseen=["self"])(lambda: None)


class TestTrouble:
    def test_service_that_is_not_there_is_named(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(errors.ServiceUnreachable, match=address):
            SyncClient(address, patience_seconds=0).request("reboot", "Reboot it")

    def test_restarts_of_the_service_are_waited_out(self, tmp_path: Path) -> None:
        """The service is stopped and started again between every two steps, on the same port."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port: int = free.getsockname()[1]

        def start() -> ConfirmationServer:
            server = ConfirmationServer(port=port, db_path=tmp_path / "state.db", home=tmp_path)
            server.start_background()
            return server

        server = start()
        client = SyncClient(f"http://127.0.0.1:{port}")
        ticket = client.request("reboot", "Reboot it", {"host": "db1"})
        with ThreadPoolExecutor() as pool:
            waiting = pool.submit(client.wait, ticket)
            server.stop()
            server = start()
            with Approver(client.url, server.keys.token()) as approver:
                approver.decide()
            assert waiting.result().approved
            server.stop()
            redeeming = pool.submit(client.redeem, ticket)
            server = start()
            assert redeeming.result().details == {"host": "db1"}
        server.stop()

    @pytest.mark.parametrize(
        ("status", "body"),
        [(200, b"no JSON"), (200, b"{}"), (200, b'{"id": 1}'), (500, b""), (302, b""), (404, b"<html>")],
    )
    def test_answers_that_make_no_sense_are_errors(self, status: int, body: bytes) -> None:
        with answering(status, body) as address, pytest.raises(errors.FrontdeskError):
            SyncClient(address, patience_seconds=0).request("reboot", "Reboot it")

    def test_other_bytes_than_were_approved_are_not_given_to_anybody(self) -> None:
        """A service that hands out another action, under an id that was approved."""
        ticket = Ticket(id="c_1", action="reboot", digest=canonical.digest(canonical.payload("reboot", {})))
        answer = {"id": "c_1", "digest": ticket.digest, "payload_base64": "eyJhY3Rpb24iOiJkZWxldGUifQ=="}
        with answering(200, json.dumps(answer).encode()) as address, pytest.raises(errors.DigestMismatch):
            SyncClient(address).redeem(ticket)


class answering:
    """A server that says the same to everybody."""

    def __init__(self, status: int, body: bytes) -> None:
        head = f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self._answer = head.encode() + body
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> str:
        self._thread.start()
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def _serve(self) -> None:
        with self._socket:
            connection, _ = self._socket.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(self._answer)

    def __exit__(self, *_: object) -> None:
        self._thread.join()


class TestEmbedding:
    async def test_server_is_started_and_stopped_in_the_loop(self, tmp_path: Path) -> None:
        server = ConfirmationServer(port=0, db_path=":memory:", home=tmp_path)
        url = await server.start()
        ticket = await Client(url).request("reboot", "Reboot it")
        assert ticket.approve_url == f"/confirm/{ticket.id}/approve"
        await server.stop()
        with pytest.raises(errors.ServiceUnreachable):
            await Client(url, patience_seconds=0).request("reboot", "Reboot it")

    def test_file_that_another_has_open_is_refused(self, tmp_path: Path, server: ConfirmationServer) -> None:
        second = ConfirmationServer(port=0, db_path=tmp_path / "state.db", home=tmp_path)
        with pytest.raises(errors.StoreLocked):
            second.start_background()

    def test_credential_is_made_once_and_only_the_owner_reads_it(self, tmp_path: Path) -> None:
        servers = [ConfirmationServer(port=0, db_path=":memory:", home=tmp_path) for _ in range(2)]
        assert [server.keys.is_first_look() for server in servers] == [True, False]
        assert servers[0].keys.token() == servers[1].keys.token()
        files = [tmp_path / "confirm" / name for name in ("approver.token", "link.key")]
        assert [file.stat().st_mode & 0o777 for file in files] == [0o600, 0o600]
        assert (tmp_path / "confirm").stat().st_mode & 0o777 == 0o700
        assert {file.name for file in (tmp_path / "confirm").iterdir()} == {file.name for file in files}

    def test_starting_at_once_makes_one_credential(self, tmp_path: Path) -> None:
        with ThreadPoolExecutor(8) as pool:
            servers = list(
                pool.map(lambda _: ConfirmationServer(db_path=":memory:", home=tmp_path), range(8))
            )
        assert len({server.keys.token() for server in servers}) == 1
        assert sum(server.keys.is_first_look() for server in servers) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@contextmanager
def served_to(tokens: Sequence[str], home: Path) -> Iterator[tuple[str, Approver]]:
    """A service that knows an agent by each of the tokens: its address, and somebody who approves."""
    people = TokenHolders(
        agents={f"agent{number}": partial(str, token) for number, token in enumerate(tokens)}
    )
    server = ConfirmationServer(
        port=0, db_path=home / "state.db", home=home, mode=Mode.TEAM, people=people, rate_limit=100_000
    )
    url = server.start_background()
    try:
        with Approver(url, server.keys.token()) as approver:
            yield url, approver
    finally:
        server.stop()


@pytest.mark.prove
def test_decorated_function_never_runs_with_anything_but_the_approved_arguments(tmp_path: Path) -> None:
    """Generated calls, approved by a rule that lets everything through, so that nobody has to. Of one agent
    only so many are decided at once."""
    tokens = [f"the-token-of-agent-{number:04}" for number in range(count(2, 40))]
    with served_to(tokens, tmp_path) as (url, approver):
        calls = _call_and_compare(url, approver, tokens)
    assert calls >= count(30, 1000)
    print(f"{calls} generated calls ran with exactly the approved arguments")


def _call_and_compare(url: str, approver: Approver, tokens: Sequence[str]) -> int:
    approver.post("/rules", effect="allow", action="act", expires_at="2999-01-01T00:00:00Z")
    calls = 0

    @given(st.lists(JSON, max_size=3), st.dictionaries(st.text(max_size=8), JSON, max_size=3))
    def check(args: list[Any], kwargs: dict[str, Any]) -> None:
        nonlocal calls
        seen: list[tuple[Any, Any]] = []

        @confirmed("act", client=SyncClient(url, tokens[calls % len(tokens)]))
        def act(*args: Any, **kwargs: Any) -> None:
            seen.append((args, kwargs))

        act(*args, **kwargs)
        calls += 1
        asked = approver.get("/confirm?limit=1")["confirmations"][0]
        assert seen == [(tuple(args), kwargs)]
        assert asked["details"] == {"args": args, "kwargs": kwargs}

    check()
    return calls


def test_decision_is_a_record_that_can_be_checked() -> None:
    Decision(id="c", action="a", status=Status.APPROVED).check()
    with pytest.raises(errors.Expired, match="'a'"):
        Decision(id="c", action="a", status=Status.EXPIRED).check()
