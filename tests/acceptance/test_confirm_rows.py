"""Every row of the confirmation service's table, over real HTTP, in both ways of running it."""

import json
import re
import resource
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import httpx
import pytest

from tests import loopback
from tests.acceptance import program
from tests.acceptance.services import serving, token_of

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


Running = tuple[str, int]
"""The address of a service that runs, and its process."""
Way = Callable[[Path], AbstractContextManager[Running]]


@contextmanager
def alone(home: Path) -> Iterator[Running]:
    with serving(home, "--rate-limit", "3") as service:
        yield service.url, service.process.pid


@contextmanager
def beside_a_gateway(home: Path) -> Iterator[Running]:
    port = loopback.free_port()
    folder = home / ".frontdesk"
    folder.mkdir(exist_ok=True)
    settings = f'[agent]\ndriver = "scripted"\n[server]\nport = 0\n[confirm]\nport = {port}\nrate_limit = 3\n'
    (folder / "frontdesk.toml").write_text(settings)
    with program.start(home, "run", "--log-level", "error", terminal=False) as process:
        found = re.search(r"confirmation at (http://[\d.:]+);", program.read_until(process, "/approvals."))
        assert found
        yield found[1], process.pid


class Desk:
    """The service with somebody who decides."""

    def __init__(self, url: str, token: str, process: int) -> None:
        self.process = process
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
def way(request: pytest.FixtureRequest) -> Way:
    way: Way = request.param
    return way


@contextmanager
def opened(way: Way, home: Path) -> Iterator[Desk]:
    with way(home) as (url, process):
        desk = Desk(url, token_of(home), process)
        yield desk
        desk.agent.close()
        desk.approver.close()


@pytest.fixture
def desk(tmp_path: Path, way: Way) -> Iterator[Desk]:
    with opened(way, tmp_path) as desk:
        yield desk


def let_time_pass(home: Path, column: str, seconds: int) -> None:
    """Everything in the store was so much earlier; no service may have it meanwhile."""
    with closing(apsw.Connection(str(home / ".frontdesk" / "state.db"))) as connection:
        connection.execute(f"UPDATE confirmations SET {column} = {column} - {seconds} * 1000000")
        assert connection.changes() > 0


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


def test_unreadable_time_is_five_minutes(desk: Desk) -> None:
    given: tuple[Any, ...] = ("soon", None, [], True)
    taken = [desk.ask(action=f"send_{number}", timeout_seconds=each) for number, each in enumerate(given)]
    assert [each["timeout_seconds"] for each in taken] == [300] * len(given)
    assert desk.ask(action="send_late", timeout_seconds=10**6)["timeout_seconds"] == 3600


def test_late_decision_is_told_that_the_time_was_over(way: Way, tmp_path: Path) -> None:
    with opened(way, tmp_path) as desk:
        asked = desk.ask(timeout_seconds=30)
    let_time_pass(tmp_path, "expires_at", 31)
    with opened(way, tmp_path) as desk:
        assert desk.decide(asked, "approve", 409)["confirmation_status"] == "expired"
        shown = desk.agent.get(f"/confirm/{asked['id']}").json()
        assert (shown["status"], shown["resolved_by"]) == ("expired", "system:timeout")
        assert desk.agent.get("/health").json()["pending_count"] == 0


def test_lapsed_grant_is_gone_and_asked_again_once(way: Way, tmp_path: Path) -> None:
    with opened(way, tmp_path) as desk:
        asked = desk.ask()
        desk.decide(asked, "approve")
    let_time_pass(tmp_path, "resolved_at", 61)
    with opened(way, tmp_path) as desk:
        path, said = f"/confirm/{asked['id']}/redeem", {"digest": asked["digest"]}
        refused = desk.agent.post(path, json=said)
        told = refused.json()
        assert (refused.status_code, told["refused"]) == (410, "lapsed")
        renewal = desk.agent.get(f"/confirm/{told['renewal']}").json()
        assert (renewal["status"], renewal["digest"]) == ("pending", asked["digest"])
        assert desk.agent.post(path, json=said).json()["renewal"] == told["renewal"]


def test_rule_denies_and_what_was_denied_is_muted(desk: Desk) -> None:
    rule = {"effect": "deny", "action": "post"}
    assert desk.approver.post("/rules", json=rule).status_code == 201
    assert desk.ask(403, action="post")["confirmation_status"] == "denied"
    asked = desk.ask()
    desk.decide(asked, "deny", reason="no")
    assert desk.ask(403)["confirmation_status"] == "denied"
    assert desk.ask(details={"other": True})["status"] == "pending"


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_other_types_than_json_are_refused(desk: Desk, kind: str) -> None:
    body = b'{"action":"send","description":"x"}'
    answer = desk.agent.post("/confirm", content=body, headers={"content-type": kind})
    assert (answer.status_code, "error" in answer.json()) == (415, True)


def test_key_means_one_request(desk: Desk) -> None:
    asked = {"action": "send", "description": "Send it?"}
    headers = {"idempotency-key": "k1"}
    first, again = (desk.agent.post("/confirm", json=asked, headers=headers) for _ in range(2))
    assert (first.status_code, again.json()["id"]) == (202, first.json()["id"])
    other = desk.agent.post("/confirm", json=asked | {"action": "post"}, headers=headers)
    assert other.status_code == 422


def test_store_that_takes_nothing_is_unavailable_until_it_does(desk: Desk) -> None:
    """The process may write no file any longer, as on a full disk."""
    _, most = resource.prlimit(desk.process, resource.RLIMIT_FSIZE)
    resource.prlimit(desk.process, resource.RLIMIT_FSIZE, (0, most))
    answer = desk.agent.post("/confirm", json={"action": "send", "description": "x"})
    assert (answer.status_code, "error" in answer.json()) == (503, True)
    assert int(answer.headers["retry-after"]) >= 1
    resource.prlimit(desk.process, resource.RLIMIT_FSIZE, (most, most))
    assert desk.ask()["status"] == "pending"


def test_audit_gives_no_more_than_its_most(way: Way, tmp_path: Path) -> None:
    with opened(way, tmp_path) as desk:
        desk.decide(desk.ask(), "deny")
        for _ in range(250):
            rule = desk.approver.post("/rules", json={"effect": "deny", "action": "post"}).json()
            assert desk.approver.delete(f"/rules/{rule['id']}").status_code == 204
    multiply(tmp_path, 501)
    with opened(way, tmp_path) as desk:
        for view in ("", "&view=events"):
            found = desk.approver.get(f"/audit?limit=100000{view}").json()
            assert (found["count"], len(found["entries"])) == (500, 500)
        assert desk.approver.get("/audit").json()["count"] == 50


def multiply(home: Path, times: int) -> None:
    """Put copies of the one request that there is into the store: no service takes so many in a minute."""
    with closing(apsw.Connection(str(home / ".frontdesk" / "state.db"))) as connection:
        for table, name in (("confirmations", "id"), ("confirmation_payloads", "confirmation_id")):
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            kept = [each for each in columns if each not in ("number", name)]
            connection.execute(
                f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {times})"
                f" INSERT INTO {table} ({', '.join([name, *kept])})"
                f" SELECT {', '.join([f'{name} || i', *kept])} FROM {table}, n"
            )
            assert connection.changes() == times


def test_events_are_followed_as_they_come(desk: Desk) -> None:
    asked = desk.ask()
    with desk.approver.stream("GET", "/events", headers={"last-event-id": "0"}) as stream:
        events = (json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: "))
        assert next(events)["kind"] == "submitted"
        desk.decide(asked, "approve")
        assert next(events)["kind"] == "approved"
    assert desk.agent.get("/events").status_code == 401


def test_token_that_nobody_has_is_unknown(desk: Desk) -> None:
    wrong = {"authorization": "Bearer wrong"}
    for method, path in (("POST", "/confirm"), ("GET", "/audit")):
        answer = desk.agent.request(method, path, headers=wrong)
        assert (answer.status_code, "does not know the token" in answer.json()["error"]) == (401, True)
