"""``frontdesk confirm mcp``: an MCP server as agents start it, over its standard input and output."""

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from frontdesk import ConfirmationServer
from frontdesk.cli.confirm import protocol
from tests.acceptance import forks, program
from tests.approvers import Approver, approver, server, url

__all__ = ["approver", "server", "url"]

WIPE = {"action": "wipe_database", "description": "Make room", "details": {"name": "old "}}
META = {protocol.VERSION: "2026-07-28", protocol.CAPABILITIES: {}}

needs_mcp = pytest.mark.skipif(
    not find_spec("mcp"), reason="the package mcp is not installed: pip install mcp"
)


class Agent:
    """Speaks JSON-RPC to the program, line by line."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._number = 0

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        answer = self.hear()
        assert answer["id"] == self._number
        return answer

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        result: dict[str, Any] = self.ask("tools/call", name=name, arguments=arguments)["result"]
        return result

    def send(self, message: Any) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def write(self, line: bytes) -> None:
        assert self._process.stdin
        self._process.stdin.write(line)
        self._process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self._process.stdout
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        assert answer["jsonrpc"] == "2.0"
        return answer


@contextmanager
def starting(home: Path, url: str) -> Iterator[Agent]:
    command = [str(program.FRONTDESK), "confirm", "mcp", "--url", url]
    pipe = subprocess.PIPE
    with forks.popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, env=program.environment(home), cwd=home
    ) as process:
        try:
            yield Agent(process)
            _, written = process.communicate(timeout=program.PATIENCE_SECONDS)
            assert (process.returncode, written) == (0, b"")
        finally:
            process.kill()


@pytest.fixture
def agent(tmp_path: Path, url: str) -> Iterator[Agent]:
    with starting(tmp_path, url) as agent:
        yield agent


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        *((known, known) for known in protocol.HANDSHAKES),
        ("2026-07-28", protocol.HANDSHAKES[0]),
        ("1999-01-01", protocol.HANDSHAKES[0]),
    ],
)
def test_handshake_agrees_on_a_version(agent: Agent, asked: str, answered: str) -> None:
    greeting = agent.ask("initialize", protocolVersion=asked, capabilities={}, clientInfo={"name": "t"})
    assert greeting["result"]["protocolVersion"] == answered
    assert greeting["result"]["capabilities"] == {"tools": {}}
    agent.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert agent.ask("ping")["result"] == {}


def test_tools_are_listed_with_what_they_take(agent: Agent) -> None:
    tools = {tool["name"]: tool for tool in agent.ask("tools/list")["result"]["tools"]}
    assert set(tools) == {"request_confirmation", "redeem_confirmation"}
    assert tools["request_confirmation"]["inputSchema"]["required"] == ["action", "description"]
    assert tools["redeem_confirmation"]["inputSchema"]["required"] == ["id", "digest"]


def test_agent_asks_a_person_decides_and_the_agent_gets_exactly_that(
    agent: Agent, approver: Approver
) -> None:
    asked = agent.call("request_confirmation", wait_seconds=0, **WIPE)
    facts = asked["structuredContent"]
    assert (facts["status"], asked["isError"]) == ("pending", False)
    seen = approver.decide()
    assert seen["details"] == WIPE["details"]
    redeemed = agent.call("redeem_confirmation", id=facts["id"], digest=facts["digest"])
    assert redeemed["structuredContent"]["details"] == WIPE["details"]
    assert redeemed["structuredContent"]["payload"] in redeemed["content"][0]["text"]
    again = agent.call("redeem_confirmation", id=facts["id"], digest=facts["digest"])
    assert (again["isError"], "used before" in again["content"][0]["text"]) == (True, True)


def test_waiting_for_a_person_holds_up_nothing_else(agent: Agent, approver: Approver) -> None:
    call = {"name": "request_confirmation", "arguments": WIPE | {"wait_seconds": 60}}
    agent.send({"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": call})
    assert agent.ask("ping")["result"] == {}
    approver.decide()
    answer = agent.hear()
    assert (answer["id"], answer["result"]["structuredContent"]["status"]) == ("slow", "approved")


def test_denial_is_an_error_that_says_so(agent: Agent, approver: Approver) -> None:
    with ThreadPoolExecutor() as pool:
        deciding = pool.submit(approver.decide, "deny", reason="keep it")
        answer = agent.call("request_confirmation", **WIPE)
        deciding.result()
    assert (answer["isError"], answer["structuredContent"]["status"]) == (True, "denied")
    assert "keep it" in answer["content"][0]["text"]
    assert "Do not do it." in answer["content"][0]["text"]


def test_call_that_was_cancelled_is_not_answered(agent: Agent) -> None:
    call = {"name": "request_confirmation", "arguments": WIPE | {"wait_seconds": 3000}}
    agent.send({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": call})
    agent.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}})
    assert agent.ask("ping")["result"] == {}


def test_input_that_ends_ends_the_program_in_the_middle_of_a_wait(agent: Agent) -> None:
    """Whoever started it ends its input, and looks at its exit code."""
    call = {"name": "request_confirmation", "arguments": WIPE | {"wait_seconds": 3000}}
    agent.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"no JSON\n", -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "id": 2}\n', -32700),
        (b"[1]\n", -32600),
        (b"[]\n", -32600),
        (b'{"id": 1, "method": "ping"}\n', -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}\n', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 7}\n', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}\n', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "resources/list"}\n', -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "rm"}}\n', -32602),
        (b"\xff\xfe\n", -32700),
        (b"[" * 100_000 + b"\n", -32700),
    ],
)
def test_what_is_no_request_is_answered_with_an_error(agent: Agent, line: bytes, code: int) -> None:
    agent.write(line)
    assert agent.hear()["error"]["code"] == code
    assert agent.ask("ping")["result"] == {}


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"action": "x"},
        {"action": 1, "description": "y"},
        {"action": "x", "description": "y", "details": []},
        {"action": "x", "description": "y", "more": 1},
        {"action": " ", "description": "y"},
    ],
)
def test_wrong_arguments_are_told_to_the_agent(
    agent: Agent, approver: Approver, arguments: dict[str, Any]
) -> None:
    answer = agent.call("request_confirmation", **arguments)
    assert answer["isError"]
    assert approver.pending() == []


def test_service_that_is_away_is_told_to_the_agent(agent: Agent, server: ConfirmationServer) -> None:
    server.stop()
    answer = agent.call("request_confirmation", **WIPE)
    assert (answer["isError"], "cannot be asked" in answer["content"][0]["text"]) == (True, True)


def test_newest_revision_needs_no_handshake(agent: Agent) -> None:
    found = agent.ask("server/discover", _meta=META)["result"]
    assert found["supportedVersions"][0] == "2026-07-28"
    assert found["resultType"] == "complete"
    listed = agent.ask("tools/list", _meta=META)["result"]
    assert (len(listed["tools"]), listed["resultType"], listed["ttlMs"]) == (2, "complete", 0)
    refused = agent.ask("tools/list", _meta=META | {protocol.VERSION: "2099-01-01"})["error"]
    assert (refused["code"], "2026-07-28" in refused["data"]["supported"]) == (-32022, True)
    assert agent.ask("ping", _meta=META)["error"]["code"] == -32601


def test_progress_is_told_to_who_asks_for_it(tmp_path: Path, url: str, approver: Approver) -> None:
    with starting(tmp_path, url) as agent:
        call = {"name": "request_confirmation", "arguments": WIPE | {"wait_seconds": 60}}
        params = call | {"_meta": {"progressToken": "p"}}
        agent.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        told = agent.hear()
        assert (told["method"], told["params"]["progressToken"]) == ("notifications/progress", "p")
        approver.decide()
        assert agent.hear()["result"]["structuredContent"]["status"] == "approved"


@needs_mcp
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_official_client_asks_and_redeems(
    mode: str, tmp_path: Path, url: str, approver: Approver
) -> None:
    import mcp  # noqa: PLC0415 - not installed everywhere

    parameters = mcp.StdioServerParameters(
        command=str(program.FRONTDESK),
        args=["confirm", "mcp", "--url", url],
        env=program.environment(tmp_path),
    )
    async with mcp.Client(parameters, mode=mode) as client:
        listed = await client.list_tools()
        assert {tool.name for tool in listed.tools} == {"request_confirmation", "redeem_confirmation"}
        with ThreadPoolExecutor() as pool:
            deciding = pool.submit(approver.decide)
            asked = await client.call_tool("request_confirmation", WIPE)
            deciding.result()
        assert asked.structured_content
        facts = {name: asked.structured_content[name] for name in ("id", "digest")}
        redeemed = await client.call_tool("redeem_confirmation", facts)
        assert redeemed.structured_content
        assert redeemed.structured_content["details"] == WIPE["details"]
        print(f"mcp {version('mcp')}, mode {mode}: revision {client.protocol_version}")


def test_nobody_is_asked_through_the_program_of_the_agent(
    tmp_path: Path, url: str, approver: Approver
) -> None:
    """It could answer by itself."""
    offered: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}}
    with starting(tmp_path, url) as agent:
        agent.ask("initialize", protocolVersion="2025-11-25", capabilities=offered, clientInfo={"name": "t"})
        call = {"name": "request_confirmation", "arguments": WIPE | {"wait_seconds": 60}}
        agent.send({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call})
        approved = {"action": "accept", "content": {"approved": True}}
        for number in range(20):
            agent.send({"jsonrpc": "2.0", "id": number, "result": approved})
        assert [asked["status"] for asked in approver.pending()] in ([], ["pending"])
        approver.decide("deny")
        answer = agent.hear()
        assert (answer["id"], answer["result"]["structuredContent"]["status"]) == (7, "denied")
