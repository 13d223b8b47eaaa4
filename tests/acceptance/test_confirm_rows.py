"""Every row of the confirmation service's table, over real HTTP, in both ways of running it."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance import program
from tests.acceptance.test_confirm import free_port, serving, token_of

FIELDS = {
    "id",
    "action",
    "description",
    "details",
    "requester",
    "session_key",
    "status",
    "resolved_by",
    "resolved_at",
    "created_at",
    "timeout_seconds",
    "created_at_iso",
    "resolved_at_iso",
}


@contextmanager
def alone(home: Path) -> Iterator[str]:
    with serving(home, "--rate-limit", "3") as service:
        yield service.url


@contextmanager
def beside_a_gateway(home: Path) -> Iterator[str]:
    port = free_port()
    folder = home / ".frontdesk"
    folder.mkdir()
    settings = f'[agent]\ndriver = "scripted"\n[server]\nport = 0\n[confirm]\nport = {port}\nrate_limit = 3\n'
    (folder / "frontdesk.toml").write_text(settings)
    with program.start(home, "run", "--log-level", "error", terminal=False) as process:
        found = re.search(r"confirmation at (http://[\d.:]+);", program.read_until(process, "/approvals."))
        assert found
        yield found[1]


class Desk:
    """The service with somebody who decides."""

    def __init__(self, url: str, token: str) -> None:
        self.agent = httpx.Client(base_url=url, trust_env=False)
        self.approver = httpx.Client(
            base_url=url, trust_env=False, headers={"authorization": f"Bearer {token}"}
        )

    def ask(self, status: int = 202, **fields: Any) -> dict[str, Any]:
        answer = self.agent.post("/confirm", json={"action": "send", "description": "Send it?"} | fields)
        assert answer.status_code == status, answer.text
        return dict(answer.json())

    def decide(self, asked: dict[str, Any], verb: str, status: int = 200, **said: str) -> dict[str, Any]:
        answer = self.approver.post(asked[f"{verb}_url"], json=said)
        assert answer.status_code == status, answer.text
        return dict(answer.json())


@pytest.fixture(params=[alone, beside_a_gateway])
def desk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Desk]:
    with request.param(tmp_path) as url:
        desk = Desk(url, token_of(tmp_path))
        yield desk
        desk.agent.close()
        desk.approver.close()


def test_request_waits_and_has_its_fields(desk: Desk) -> None:
    asked = desk.ask(action=" send ", details={"to": "ann"}, timeout_seconds=1)
    assert (asked["action"], asked["status"], asked["timeout_seconds"]) == ("send", "pending", 30)
    assert {"id", "message", "approve_url", "deny_url"} <= asked.keys()
    shown = desk.agent.get(f"/confirm/{asked['id']}").json()
    assert shown.keys() >= FIELDS
    assert (shown["details"], shown["requester"], shown["resolved_by"]) == ({"to": "ann"}, "agent", None)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"action":"send"}', b'{"action":" ","description":"x"}', b'{"a":1,"a":2}']
)
def test_what_cannot_be_used_is_a_bad_request(desk: Desk, body: bytes) -> None:
    answer = desk.agent.post("/confirm", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, "error" in answer.json()) == (400, True)


def test_bounds_of_length_and_number(desk: Desk) -> None:
    long = json.dumps({"action": "send", "description": "x", "details": {"x": "x" * 2**20}})
    answer = desk.agent.post("/confirm", content=long, headers={"content-type": "application/json"})
    assert answer.status_code == 413
    for number in range(3):
        desk.ask(details={"number": number})
    refused = desk.ask(429, details={"number": 3})
    assert (refused["remaining"], refused["window_seconds"]) == (0, 3600)


def test_decisions(desk: Desk) -> None:
    asked = desk.ask()
    assert desk.agent.post(asked["approve_url"]).status_code == 401
    approved = desk.decide(asked, "approve", approver="Ann")
    assert (approved["status"], approved["resolved_by"]) == ("approved", "token:approver")
    assert desk.decide(asked, "deny", 409)["confirmation_status"] == "approved"
    other = desk.ask(details={"other": True})
    assert desk.decide(other, "deny", denier="Ann", reason="no")["status"] == "denied"
    assert desk.approver.post("/confirm/c_unknown/approve").status_code == 404
    assert desk.agent.get("/confirm/c_unknown").status_code == 404


def test_grant_is_redeemed_once_for_exactly_the_action(desk: Desk) -> None:
    asked = desk.ask()
    path, digest = f"/confirm/{asked['id']}/redeem", asked["digest"]
    assert desk.agent.post(path, json={"digest": digest}).status_code == 409
    desk.decide(asked, "approve")
    assert desk.agent.post(path, json={"digest": "0" * 64}).status_code == 412
    redeemed = desk.agent.post(path, json={"digest": digest})
    assert (redeemed.status_code, redeemed.json()["payload"]["action"]) == (200, "send")
    assert desk.agent.post(path, json={"digest": digest}).status_code == 410


def test_rule_allows_and_the_log_has_everything(desk: Desk) -> None:
    rule = {"effect": "allow", "action": "send", "expires_at": "2099-01-01T00:00:00Z"}
    assert desk.approver.post("/rules", json=rule).status_code == 201
    assert desk.approver.post("/rules", json=rule | {"action": "delete_data"}).status_code == 400
    assert desk.ask(200)["status"] == "auto_approved"
    desk.ask(action="delete_data")
    assert desk.agent.get("/audit").status_code == 401
    found = desk.approver.get("/audit?limit=0").json()
    assert (found["count"], found["entries"][0]["action"]) == (1, "delete_data")
    events = desk.approver.get("/audit?view=events").json()["entries"]
    assert [each["kind"] for each in events] == ["submitted", "auto_approved", "rule_added"]
    health = desk.agent.get("/health").json()
    assert (health["status"], health["pending_count"]) == ("ok", 1)
    assert desk.agent.get("/openapi.json").json()["openapi"].startswith("3.1")
