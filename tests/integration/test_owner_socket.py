"""The owner's socket: who gets through it, and that the office is the same through it and over the store."""

import asyncio
import inspect
import json
import os
import re
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import pytest

from frontdesk import Platform, SessionSource, SessionStore, config, errors
from frontdesk.agents import scripted
from frontdesk.app import sockets
from frontdesk.app.confirmations import open_confirmations, prepare_keys
from frontdesk.app.gateway import Gateway
from frontdesk.app.office import Office
from frontdesk.app.sockets import SocketClient
from frontdesk.app.terminal import Terminal
from frontdesk.channels import local
from frontdesk.cli.asking import reach_office, reach_terminal
from frontdesk.cli.confirm.reaching import OwnService, reach_service
from frontdesk.confirm import steps
from frontdesk.contracts.channels import Channel, Incoming
from frontdesk.model import deliveries
from frontdesk.model.confirmations import Settings
from frontdesk.model.running import Running
from frontdesk.web import bounds, owner, server
from frontdesk.web.confirmations.serving import make_served, serving_alone
from tests.flow.harness import Notebook, poll

NOBODY = 65_534


def loaded(home: Path) -> config.Config:
    return config.load(None, {"HOME": str(home), "FRONTDESK_HOME": str(home / "home")})


@asynccontextmanager
async def running(
    settings: config.Config, path: Path | None = None
) -> AsyncIterator[tuple[Gateway, Notebook]]:
    """A gateway with a terminal and a chat platform, served on its socket."""
    notebook = Notebook()
    channels: list[Channel] = [notebook, local.Channel(local.Options())]
    async with await SessionStore.open(settings.store_url, settings.gateway) as sessions:
        agent = scripted.Driver(scripted.Options())
        gateway = Gateway(sessions, agent, channels, running=Running(drain_seconds=1.0))
        path = path or sockets.socket_of(settings.home)
        async with gateway.started(), server.serving(gateway, port=0, socket=path, grace_seconds=1):
            yield gateway, notebook


@pytest.fixture
def settings(tmp_path: Path) -> config.Config:
    return loaded(tmp_path)


async def everything(happening: Any) -> list[dict[str, Any]]:
    async with asyncio.timeout(60), aclosing(happening):
        return [happened async for happened in happening]


async def test_only_the_owner_can_reach_the_socket_file(settings: config.Config) -> None:
    path = sockets.socket_of(settings.home)
    async with running(settings):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert not path.exists()


async def test_folder_that_was_open_to_others_is_closed(settings: config.Config) -> None:
    path = sockets.socket_of(settings.home)
    path.parent.mkdir(parents=True, mode=0o777)
    path.parent.chmod(0o777)
    async with running(settings):
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody can get to."""
    with tempfile.TemporaryDirectory(prefix="frontdesk-") as folder:
        yield Path(folder)


def let_everybody_in(path: Path) -> None:
    path.parent.chmod(0o755)
    path.chmod(0o777)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
async def test_other_users_are_cut_off_even_where_the_file_lets_them(
    settings: config.Config, open_folder: Path
) -> None:
    path = open_folder / "gateway.sock"
    async with running(settings, path):
        let_everybody_in(path)
        assert b"200 OK" in await asyncio.to_thread(greet, path, os.geteuid())
        assert await asyncio.to_thread(greet, path, NOBODY) == b""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
async def test_other_users_take_no_place_from_the_owner(
    settings: config.Config, open_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = open_folder / "gateway.sock"
    async with running(settings, path):
        let_everybody_in(path)
        with socket.socket(socket.AF_UNIX) as own:
            own.connect(str(path))
            command = [sys.executable, "-I", "-c", CROWDING, str(path), str(NOBODY)]
            done = await asyncio.create_subprocess_exec(*command)
            assert await done.wait() == 0
            ports = await SocketClient(path).call("GET", "/ports")
            own.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            assert b"200 OK" in await asyncio.to_thread(own.recv, 1000)
    refused = {port["name"]: port["refused"] for port in ports}
    assert refused["owner's socket"] == {"of_another_user": bounds.OWNERS.connections + 100}
    told = [each.getMessage() for each in caplog.records if "connections_refused" in each.getMessage()]
    assert len(told) == 1


CROWDING = f"""
import os, socket, sys
os.setuid(int(sys.argv[2]))
for _ in range({bounds.OWNERS.connections + 100}):
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(sys.argv[1])
        try:
            line.recv(1)
        except ConnectionResetError:
            pass
"""

GREETING = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
with socket.socket(socket.AF_UNIX) as line:
    line.connect(sys.argv[1])
    try:
        line.sendall(b"GET / HTTP/1.1\\r\\nhost: x\\r\\nconnection: close\\r\\n\\r\\n")
        sys.stdout.buffer.write(line.recv(1000))
    except (BrokenPipeError, ConnectionResetError):
        pass
"""


def greet(path: Path, user: int) -> bytes:
    """What the gateway answers to a process of a user."""
    command = [sys.executable, "-I", "-c", GREETING, str(path), str(user)]
    return subprocess.run(command, capture_output=True, check=True, timeout=60).stdout


async def test_socket_that_a_dead_gateway_left_is_replaced(settings: config.Config) -> None:
    path = sockets.socket_of(settings.home)
    path.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with pytest.raises(errors.NoGateway):
        await SocketClient(path).call("GET", "/")
    async with running(settings):
        assert await SocketClient(path).call("GET", "/") == {"program": "frontdesk"}


async def test_socket_of_a_living_gateway_is_not_taken(settings: config.Config) -> None:
    path = sockets.socket_of(settings.home)
    async with running(settings) as (gateway, _):
        with pytest.raises(errors.GatewayRunning, match=f"process {os.getpid()}"):
            async with server.serving(gateway, port=0, socket=path):
                pass
        assert await SocketClient(path).call("GET", "/") == {"program": "frontdesk"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_lock_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = sockets.socket_of(tmp_path)
    path.parent.mkdir(parents=True)
    path.with_name(sockets.LOCK).symlink_to("/dev/full")
    with pytest.raises(errors.CannotListen, match=str(path)), sockets.listening(path):
        pass


async def test_longer_path_than_the_kernel_takes_works(tmp_path: Path) -> None:
    settings = loaded(tmp_path / ("long" * 30))
    async with running(settings), reach_office(settings) as office:
        assert type(office) is not Office
        assert (await office.status())["ready"]


async def test_message_is_accepted_followed_and_collected(settings: config.Config) -> None:
    async with running(settings):
        terminal = await reach_terminal(settings.home)
        receipt = await terminal.accept("hello")
        *_, end = await everything(terminal.follow(receipt["turn_id"]))
        assert (end["type"], end["state"]) == ("end", "done")
        (waiting,) = await terminal.uncollected()
        assert waiting["text"] == "echo: hello"
        assert [each["id"] for each in end["deliveries"]] == [waiting["id"]]
        await terminal.collected([waiting["id"]])
        assert await terminal.uncollected() == []


async def test_what_happens_is_streamed_from_the_first_moment_on(settings: config.Config) -> None:
    async with running(settings):
        terminal = await reach_terminal(settings.home)
        happening = await everything(
            terminal.say('!stream 3; !tool look {"path": "ü"}; !say done', follow=True)
        )
    kinds = [kind for kind, _ in groupby(happened["type"] for happened in happening)]
    assert kinds == ["accepted", "text", "call", "result", "text", "end"]
    assert "".join(each["text"] for each in happening if each["type"] == "text") == "1 2 3 done"
    call = next(happened for happened in happening if happened["type"] == "call")
    assert json.loads(call["arguments"]) == {"path": "ü"}


async def test_piece_is_seen_before_the_turn_has_ended(settings: config.Config) -> None:
    async with running(settings), asyncio.timeout(60):
        terminal = await reach_terminal(settings.home)
        async with aclosing(terminal.say("!say first; !hang", follow=True)) as happening:
            seen = [await anext(happening), await anext(happening)]
        assert seen[1] == {"type": "text", "text": "first"}


async def test_message_that_waits_is_told_so_at_once(settings: config.Config) -> None:
    async with running(settings), asyncio.timeout(60):
        terminal = await reach_terminal(settings.home)
        await terminal.accept("!hang")
        async with aclosing(terminal.say("next", follow=True)) as happening:
            accepted, notice = await anext(happening), await anext(happening)
        assert accepted["waiting"] == 1
        assert notice["type"] == "notice"
        assert "queued" in notice["text"]


async def test_who_leaves_finds_the_answer_later(settings: config.Config) -> None:
    async with running(settings):
        terminal = await reach_terminal(settings.home)
        async with aclosing(terminal.say("!sleep 0.2; later", follow=True)) as happening:
            await anext(happening)

        async def look() -> list[dict[str, Any]] | None:
            return await terminal.uncollected() or None

        assert [each["text"] for each in await poll(look)] == ["echo: later"]


async def test_chats_are_conversations_of_their_own(settings: config.Config) -> None:
    async with running(settings):
        terminal = await reach_terminal(settings.home)
        for chat in ("cli", "work"):
            await everything(terminal.say(f"in {chat}", chat, follow=True))
        assert [each["text"] for each in await terminal.uncollected("work")] == ["echo: in work"]
        async with reach_office(settings) as office:
            keys = {session["key"] for session in await office.list_sessions()}
    assert len(keys) == 2


async def test_same_event_is_the_same_message(settings: config.Config) -> None:
    async with running(settings):
        terminal = await reach_terminal(settings.home)
        first = await terminal.accept("hello", event_id="e1")
        assert (await terminal.accept("hello", event_id="e1"))["turn_id"] == first["turn_id"]


async def test_answers_of_other_chats_cannot_be_noted_as_collected(settings: config.Config) -> None:
    async with running(settings):
        terminal = await reach_terminal(settings.home)
        *_, end = await everything(terminal.say("hello", follow=True))
        await terminal.collected([each["id"] for each in end["deliveries"]], "work")
        assert len(await terminal.uncollected()) == 1


async def test_titles_are_those_of_ones_own_conversations(settings: config.Config) -> None:
    async with running(settings):
        terminal = await reach_terminal(settings.home)
        for chat, title in (("work", "Garden plans"), ("home", "Private plans")):
            await everything(terminal.say("hello", chat, follow=True))
            await everything(terminal.say(f"/title {title}", chat, follow=True))
        assert await terminal.titles("work") == ["Garden plans"]
        assert await terminal.titles("elsewhere") == []


@pytest.mark.parametrize("chat", ["", " ", "a\nb", "x" * 65])
async def test_name_that_is_none_is_refused(settings: config.Config, chat: str) -> None:
    async with running(settings):
        terminal = await reach_terminal(settings.home)
        with pytest.raises(errors.InvalidInput, match="visible characters"):
            await terminal.accept("hello", chat)


async def test_errors_are_raised_on_the_other_side_as_they_are(settings: config.Config) -> None:
    async with running(settings):
        line = SocketClient(sockets.socket_of(settings.home))
        terminal = owner.far(Terminal, owner.TERMINAL, line)
        with pytest.raises(errors.UnknownTurn, match="t_1"):
            await everything(terminal.follow("t_1"))
        with pytest.raises(errors.InvalidMessage):
            await everything(terminal.say("  ", follow=True))
        with pytest.raises(errors.InvalidInput, match="unknown field `nope`"):
            await line.call("POST", "/office/status", {"nope": 1})
        with pytest.raises(errors.InvalidInput, match="JSON"):
            await anext(line.stream("POST", "/messages", msgspec.Raw(b"{")))
        with pytest.raises(errors.GatewayUnreachable, match="Not Found"):
            await line.call("POST", "/office/_find", {})


async def test_gateway_that_stops_in_the_middle_is_named(settings: config.Config) -> None:
    async with asyncio.timeout(60):
        async with running(settings):
            terminal = await reach_terminal(settings.home)
            happening = terminal.say("!hang", follow=True)
            await anext(happening)
        with pytest.raises(errors.GatewayGone):
            async for _ in happening:
                pass


async def test_without_a_gateway_there_is_nobody_to_talk_to(settings: config.Config) -> None:
    with pytest.raises(errors.NoGateway, match="frontdesk run"):
        await reach_terminal(settings.home)


async def test_question_makes_no_database(settings: config.Config) -> None:
    async with reach_office(settings) as office:
        assert await office.list_sessions() == []
    assert not settings.home.exists()


async def test_store_that_somebody_else_has_is_named(settings: config.Config) -> None:
    async with await SessionStore.open(settings.store_url):
        with pytest.raises(errors.StoreLocked):
            async with reach_office(settings):
                pass


def test_every_question_of_the_office_is_asked_on_the_other_side() -> None:
    questions = {name for name, method in vars(Office).items() if inspect.isfunction(method)}
    far = owner.far(Office, owner.OFFICE, SocketClient(Path("nowhere")))
    assert vars(type(far)).keys() >= {name for name in questions if not name.startswith("_")}
    for name in vars(type(far)).keys() & questions - {"__init__"}:
        assert inspect.signature(getattr(type(far), name)) == inspect.signature(getattr(Office, name))


@asynccontextmanager
async def through_the_socket(settings: config.Config) -> AsyncIterator[tuple[Office, Gateway]]:
    async with running(settings) as (gateway, notebook), reach_office(settings) as office:
        await happen(gateway, notebook)
        assert type(office) is not Office
        yield office, gateway


@asynccontextmanager
async def over_the_store(settings: config.Config) -> AsyncIterator[tuple[Office, Gateway]]:
    async with running(settings) as (gateway, notebook):
        await happen(gateway, notebook)
    async with reach_office(settings) as office:
        assert type(office) is Office
        yield office, gateway


ANN = SessionSource(platform=Platform("matrix"), chat_id="c1", user_id="ann", user_name="Ann")


async def happen(gateway: Gateway, notebook: Notebook) -> None:
    """A conversation with a tool, a reset, and an answer that did not arrive."""
    notebook.outcomes = [deliveries.NotSent(why="no such chat", hopeless=True)]
    for text in ('!tool look {"x": 1}; the answer', "/new", "second"):
        receipt = await gateway.desk.accept(Incoming(source=ANN, text=text))
        await everything(Terminal(gateway).follow(receipt.turn_id))

    async def settled() -> bool | None:
        return None if {"pending", "sending"} & set(await gateway.parts.store.deliveries.counts()) else True

    await poll(settled)


Road = Callable[[config.Config], AbstractAsyncContextManager[tuple[Office, Gateway]]]
ROADS = pytest.mark.parametrize("road", [through_the_socket, over_the_store])


@ROADS
async def test_sessions_are_listed_with_and_without_ended_ones(settings: config.Config, road: Road) -> None:
    async with road(settings) as (office, _):
        (current,) = await office.list_sessions()
        both = await office.list_sessions(all=True)
        assert len(await office.list_sessions(limit=1, all=True)) == 1
        assert await office.list_sessions(active_minutes=0) == []
        assert await office.list_sessions(active_minutes=0, all=True) == []
    assert both[0]["id"] == current["id"]
    assert {session["state"] for session in both} == {"open", "ended"}
    assert (current["platform"], current["where"]) == ("matrix", "DM with Ann (c1)")


@ROADS
async def test_session_is_shown_with_its_messages(settings: config.Config, road: Road) -> None:
    async with road(settings) as (office, _):
        ended = (await office.list_sessions(all=True))[1]
        shown = await office.show_session(ended["id"])
        with pytest.raises(errors.SessionNotFound):
            await office.show_session("nope")
    assert shown["end_reason"] == "new"
    assert [row["role"] for row in shown["transcript"]] == ["user", "assistant", "tool", "assistant"]
    assert all(row["timestamp"] for row in shown["transcript"])


@ROADS
async def test_search_finds_everybodys_messages(settings: config.Config, road: Road) -> None:
    async with road(settings) as (office, _):
        hits = await office.search("answer")
        assert len(await office.search("answer", limit=1)) == 1
        with pytest.raises(errors.InvalidQuery):
            await office.search("")
    assert {hit["role"] for hit in hits} == {"user", "assistant"}


@ROADS
async def test_session_is_exported_as_lines_and_as_markdown(settings: config.Config, road: Road) -> None:
    async with road(settings) as (office, _):
        ended = (await office.list_sessions(all=True))[1]["id"]
        lines = "".join([piece async for piece in office.export_session(ended)]).splitlines()
        markdown = "".join([piece async for piece in office.export_session(ended, "markdown")])
        with pytest.raises(errors.InvalidInput, match="markdown"):
            await anext(office.export_session(ended, "html"))
        with pytest.raises(errors.SessionNotFound):
            await anext(office.export_session("nope"))
    read = [json.loads(line) for line in lines]
    assert read[0]["session"]["id"] == ended
    assert [row["role"] for row in read[1:]] == ["user", "assistant", "tool", "assistant"]
    assert all(datetime.fromisoformat(row["timestamp"]).tzinfo for row in read[1:])
    assert "**user:** !tool look" in markdown
    assert '`look` {"x": 1}' in markdown


@ROADS
async def test_answer_that_did_not_arrive_is_listed_and_sent_again(
    settings: config.Config, road: Road
) -> None:
    async with road(settings) as (office, gateway):
        (dead,) = await office.list_deliveries()
        assert (dead["state"], dead["error"], dead["where"]) == ("dead", "no such chat", "DM with Ann (c1)")
        assert (await office.status())["deliveries"] == {"dead": 1}
        again = await office.resend_delivery(dead["id"])
        assert again["resent"]
        assert await office.list_deliveries() == []
        with pytest.raises(errors.UnknownDelivery):
            await office.resend_delivery("d_1")
        if gateway.ready:

            async def sent() -> bool | None:
                found = await gateway.parts.store.deliveries.find(dead["id"])
                return True if found and found.state is deliveries.DeliveryState.SENT else None

            await poll(sent)
            assert not (await office.resend_delivery(dead["id"]))["resent"]


@ROADS
async def test_status_says_whether_a_gateway_runs(settings: config.Config, road: Road) -> None:
    async with road(settings) as (office, gateway):
        status = await office.status()
    assert status["running"] is status["ready"] is (road is through_the_socket)
    assert status["turns"] == {}
    if status["running"]:
        assert (status["node"], status["process"]) == (gateway.node, os.getpid())
        assert {"platform": "local", "account": None} in status["channels"]
        assert status["refused"] is not None
        assert status["refused"]["counts"] == {}
    else:
        assert status["refused"] is None


async def test_refused_messages_are_counted_by_reason_where_the_owner_sees_them(
    settings: config.Config,
) -> None:
    nobody = SessionSource(platform=Platform("matrix"), chat_id="", user_id=None)
    async with running(settings) as (gateway, _), reach_office(settings) as office:
        stranger = SessionSource(platform=Platform.TELEGRAM, chat_id="7", user_id="7")
        for incoming in (
            Incoming(source=stranger, text="let me in"),
            Incoming(source=stranger, text="please"),
            Incoming(source=nobody, text="hello"),
            Incoming(source=ANN, text=" "),
        ):
            with pytest.raises(errors.FrontdeskError):
                await gateway.desk.accept(incoming)
        refused = (await office.status())["refused"]
        *_, end = await everything(Terminal(gateway).say("/status", follow=True))
    assert refused is not None
    assert refused["counts"] == {"InvalidMessage": 1, "Unroutable": 1, "stranger": 2}
    assert datetime.fromisoformat(refused["since"]) <= datetime.now(UTC)
    assert "2 stranger" in end["deliveries"][-1]["text"]


@ROADS
async def test_message_is_explained(settings: config.Config, road: Road) -> None:
    async with road(settings) as (office, _):
        explained = await office.explain(ANN.to_dict())
        (current,) = await office.list_sessions()
    assert explained["session_key"] == current["key"]
    assert explained["session"]["session_id"] == current["id"]
    assert explained["access"]["channel"] is (road is through_the_socket)


async def test_explanation_says_whether_the_sender_is_let_in_and_why(settings: config.Config) -> None:
    stranger = SessionSource(platform=Platform.TELEGRAM, chat_id="7", user_id="7")
    async with running(settings) as (gateway, _), reach_office(settings) as office:
        known = (await office.explain(ANN.to_dict()))["access"]
        unknown = (await office.explain(stranger.to_dict()))["access"]
        owner = (await office.explain(SessionSource.local_cli().to_dict()))["access"]
        assert gateway.parts.authorization.refused == {}
    assert known == {
        "channel": True,
        "allowed": True,
        "rule": "channel_credential",
        "role": "user",
        "who": "matrix:ann",
    }
    assert (unknown["channel"], unknown["allowed"], unknown["rule"]) == (False, False, "stranger")
    assert (owner["allowed"], owner["rule"], owner["role"]) == (True, "local", "administrator")


@ROADS
async def test_stranger_is_let_in_by_code_and_sent_away_again(tmp_path: Path, road: Road) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "frontdesk.toml").write_text('[channels.telegram]\nstrangers = "pair"\n')
    settings = loaded(tmp_path)
    code = await knock(settings)
    async with road(settings) as (office, _):
        (waiting,) = await office.pending_people()
        assert waiting["principal"] == "telegram:7"
        with pytest.raises(errors.WrongCode):
            await office.approve_person("ABCDEFGH")
        with pytest.raises(errors.InvalidInput, match="approver"):
            await office.approve_person(code, "king")
        grant = await office.approve_person(code, "approver")
        assert (grant["principal"], grant["role"]) == ("telegram:7", "approver")
        assert await office.pending_people() == []
        assert [each["principal"] for each in (await office.list_people())["items"]] == ["telegram:7"]
        assert await office.revoke_person("telegram:7") is True
        assert await office.revoke_person("telegram:7") is False


async def knock(settings: config.Config) -> str:
    """A stranger writes; the code that they are shown."""
    telegram = Notebook("telegram", authenticates=False, reliable_sender_ids=True)
    async with await SessionStore.open(settings.store_url, settings.gateway) as sessions:
        gateway = Gateway(sessions, scripted.Driver(scripted.Options()), [telegram])
        async with gateway.started():
            source = SessionSource(platform=Platform.TELEGRAM, chat_id="7", user_id="7")
            with pytest.raises(errors.NotAllowed):
                await gateway.desk.accept(Incoming(source=source, text="hi"))
            (offer,) = await telegram.wait_for(1, "notice")
    return offer.partition("whoever runs me: ")[2].split()[0]


API = Platform.API_SERVER
SEVERAL = {
    "named": SessionSource(platform=API, chat_id="ann/work", user_id="ann", user_name="ann"),
    "another": SessionSource(platform=API, chat_id="ann/home", user_id="ann", user_name="ann"),
    "fresh": SessionSource(platform=API, chat_id="/ann/0123", user_id="ann", user_name="ann"),
    "order": SessionSource(platform=Platform.WEBHOOK, account="shop", chat_id="42", user_name="Ada"),
    "other order": SessionSource(platform=Platform.WEBHOOK, account="shop", chat_id="43", user_name="Ada"),
    "terminal": SessionSource.local_cli(),
    "its chat": SessionSource(platform=Platform.LOCAL, chat_id="work", chat_name="work"),
}


async def test_sessions_of_one_person_can_be_told_apart(settings: config.Config) -> None:
    async with await SessionStore.open(settings.store_url) as sessions:
        for source in SEVERAL.values():
            await sessions.get_or_create_session(source)
        listed = await Office(sessions.store, sessions).list_sessions()
    assert {each["where"] for each in listed} == {
        "DM with ann (ann/work)",
        "DM with ann (ann/home)",
        "DM with ann (/ann/0123)",
        "DM with Ada (42)",
        "DM with Ada (43)",
        "CLI terminal",
        "CLI terminal (work)",
    }
    assert {each["account"] for each in listed} == {None, "shop"}


async def test_one_socket_answers_for_the_gateway_and_for_its_confirmations(settings: config.Config) -> None:
    keys, path = prepare_keys(settings.home), sockets.socket_of(settings.home)
    async with AsyncExitStack() as stack:
        gateway, _ = await stack.enter_async_context(running(settings, settings.home / "other.sock"))
        served = make_served(gateway.parts.confirmations, keys, settings.confirm.people, None)
        stack.callback(served.close)
        await stack.enter_async_context(server.serving(gateway, port=0, socket=path, confirmations=served))
        found = await reach_service(settings, None)
        assert isinstance(found, OwnService)
        assert found.url == str(path)
        assert (await found.talk(steps.say("GET", "/confirm")))["count"] == 0
        document = await SocketClient(path).call("GET", "/openapi.json")
    assert {"/confirm", "/office/status", "/messages"} <= document["paths"].keys()
    assert not sockets.service_socket_of(settings.home).exists()
    rows = [row for methods in document["paths"].values() for row in methods.values()]
    assert len({row["operationId"] for row in rows}) == len(rows)
    references = set(re.findall(r"'#/components/schemas/(\w+)'", str(document)))
    assert references <= document["components"]["schemas"].keys()


async def test_service_that_runs_alone_is_asked_on_a_socket_of_its_own(settings: config.Config) -> None:
    keys = prepare_keys(settings.home)
    async with (
        open_confirmations("sqlite:///:memory:", Settings()) as service,
        serving_alone(service, keys, settings.confirm.people, host="127.0.0.1", port=0) as addresses,
    ):
        found = await reach_service(settings, None)
        assert found.url == str(sockets.service_socket_of(settings.home))
        assert (await found.talk(steps.say("GET", "/rules")))["rules"] == []
        greeting = await SocketClient(Path(found.url)).call("GET", "/")
        with pytest.raises(errors.NoGateway):
            await reach_terminal(settings.home)
    assert greeting == {"program": "frontdesk", "confirmations": addresses.url}


async def test_work_in_the_background_is_told_through_the_socket(settings: config.Config) -> None:
    async with running(settings) as (gateway, _), reach_office(settings) as office:
        entry = await gateway.parts.conversations.get_or_create_session(SessionSource.local_cli())
        begun = await office.begin_background(entry.session_id, "build", 60)
        assert begun["session_key"] == entry.session_key
        assert await gateway.parts.conversations.is_busy(entry.session_key)
        assert [work["name"] for work in await office.list_background()] == ["build"]
        assert await office.end_background(entry.session_id, "build")
        assert not await gateway.parts.conversations.is_busy(entry.session_key)
