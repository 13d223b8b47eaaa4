"""The confirmation service over real HTTP: each row of its table, and each code."""

import asyncio
import base64
import hashlib
import json
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from frontdesk import errors
from frontdesk.confirm.client import Client
from frontdesk.formats import canonical
from frontdesk.model import audit
from frontdesk.model.confirmations import (
    AT_ONCE_SECONDS,
    HIGH_RISK_ACTIONS,
    MOST_AT_ONCE,
    MOST_PENDING,
    Mode,
)
from frontdesk.testing import SettableClock
from frontdesk.web.endpoints import ANYBODY
from tests.integration.confirming import ANN, ASKED, BOT, EVE, ROB, Desk, opened, problem

MIB = 1024 * 1024
SOON = {"expires_at": "2999-01-01T00:00:00Z"}


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with opened() as opened_desk:
        yield opened_desk


async def test_submission_waits_and_says_how_to_decide(desk: Desk) -> None:
    answer = await desk.http.post("/confirm", json=ASKED)
    assert answer.status_code == 202
    told = answer.json()
    assert (told["action"], told["status"], told["timeout_seconds"]) == ("send_mail", "pending", 300)
    assert told["message"]
    assert told["approve_url"] == f"/confirm/{told['id']}/approve"
    assert told["deny_url"] == f"/confirm/{told['id']}/deny"
    assert told["digest"] == canonical.digest(canonical.payload("send_mail", ASKED["details"]))  # type: ignore[arg-type]
    assert not told["repeated"]


async def test_message_leads_approvers_to_the_page() -> None:
    async with opened(page_url="https://desk.example/") as desk:
        told = await desk.ask()
    assert f"https://desk.example/approvals/{told['id']}" in told["message"]


async def test_shown_request_has_every_field_of_the_table(desk: Desk) -> None:
    asked = await desk.ask(requester=" builder ", session_key=" key ", timeout_seconds=60)
    shown = (await desk.http.get(f"/confirm/{asked['id']}")).json()
    created = datetime.fromisoformat(shown["created_at_iso"])
    assert created.timestamp() == pytest.approx(shown["created_at"])
    expected = {
        "id": asked["id"],
        "action": "send_mail",
        "description": "Write to the press",
        "details": ASKED["details"],
        "requester": "builder",
        "session_key": "key",
        "status": "pending",
        "resolved_by": None,
        "resolved_at": None,
        "created_at": shown["created_at"],
        "timeout_seconds": 60,
        "created_at_iso": shown["created_at_iso"],
        "resolved_at_iso": None,
    }
    assert {name: shown[name] for name in expected} == expected


async def test_details_that_are_null_or_missing_are_empty(desk: Desk) -> None:
    for number, fields in enumerate(({"details": None}, {})):
        body = {"action": f"a{number}", "description": "d"} | fields
        asked = (await desk.http.post("/confirm", json=body)).json()
        shown = (await desk.http.get(f"/confirm/{asked['id']}")).json()
        assert (shown["details"], shown["requester"], shown["session_key"]) == ({}, "agent", None)


TIMEOUTS: list[tuple[Any, int]] = [
    (1, 30),
    (30, 30),
    (45.9, 45),
    (3600, 3600),
    (10**9, 3600),
    ("60", 60),
    ("soon", 300),
    (None, 300),
    ([], 300),
]


async def test_timeout_is_kept_within_its_bounds(desk: Desk) -> None:
    for number, (given, used) in enumerate(TIMEOUTS):
        asked = await desk.ask(details={"n": number}, timeout_seconds=given)
        assert asked["timeout_seconds"] == used


UNUSABLE: list[bytes] = [
    b"",
    b"{",
    b"nonsense",
    b"[]",
    b'"text"',
    b"null",
    b"\xff",
    b'{"action": "a"}',
    b'{"description": "d"}',
    b'{"action": " \\t", "description": "d"}',
    b'{"action": "a", "description": "  "}',
    b'{"action": 1, "description": "d"}',
    b'{"action": "a", "description": "d", "details": []}',
    b'{"action": "a", "description": "d", "details": "text"}',
    b'{"action": "a", "description": "d", "requester": 1}',
    b'{"action": "a", "description": "d\\u0000"}',
    b'{"action": "a", "description": "d", "callback_url": "http://169.254.169.254/"}',
]


async def test_unusable_submission_is_refused(desk: Desk) -> None:
    for body in UNUSABLE:
        problem(
            await desk.http.post("/confirm", content=body, headers={"content-type": "application/json"}), 400
        )
        assert await desk.service.pending_count() == 0


INEXACT: list[str] = [
    '{"a": 1, "a": 2}',
    '{"a": NaN}',
    '{"a": Infinity}',
    '{"a": 1e400}',
    '{"a": "\\ud800"}',
    '{"a": 9007199254740992}',
    '{"a": -9007199254740992}',
    "[" * 100_000,
]


async def test_json_that_could_be_read_in_two_ways_is_refused(desk: Desk) -> None:
    for details in INEXACT:
        body = f'{{"action": "a", "description": "d", "details": {details}}}'
        problem(
            await desk.http.post("/confirm", content=body, headers={"content-type": "application/json"}), 400
        )
        assert await desk.service.pending_count() == 0


@pytest.mark.parametrize("streamed", [True, False])
async def test_body_over_a_mebibyte_is_refused(desk: Desk, streamed: bool) -> None:
    body = json.dumps(ASKED | {"details": {"text": "x" * MIB}}).encode()

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 65536):
            yield body[start : start + 65536]

    content: Any = pieces() if streamed else body
    answer = await desk.http.post("/confirm", content=content, headers={"content-type": "application/json"})
    assert str(MIB) in problem(answer, 413)["detail"]


async def test_body_of_nearly_a_mebibyte_is_taken(desk: Desk) -> None:
    asked = await desk.ask(details={"text": "x" * (MIB - 1000)})
    shown = (await desk.http.get(f"/confirm/{asked['id']}")).json()
    assert len(shown["details"]["text"]) == MIB - 1000


async def test_action_over_its_rate_is_told_the_window() -> None:
    async with opened(rate_limit=2) as desk:
        for number in range(2):
            await desk.ask(details={"n": number})
        told = problem(await desk.http.post("/confirm", json=ASKED | {"details": {"n": 3}}), 429)
        assert (told["remaining"], told["window_seconds"]) == (0, 3600)
        assert (await desk.ask(action="another"))["status"] == "pending"


async def test_whoever_asks_too_often_is_told_when_to_come_back() -> None:
    clock = SettableClock()
    async with opened(rate_limit=1, clock=clock) as desk:
        await desk.ask()
        clock.advance(seconds=100)
        refused = await desk.http.post("/confirm", json=ASKED | {"details": {}})
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "3500")


LATE_SECONDS = 60


@pytest.mark.parametrize("step", ["read_strict", "payload"])
async def test_others_are_answered_while_a_long_body_is_read(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    others, real = threading.Event(), getattr(canonical, step)

    def slow(*given: Any) -> Any:
        assert others.wait(LATE_SECONDS), "nobody else was served meanwhile"
        return real(*given)

    monkeypatch.setattr(canonical, step, slow)
    asking = asyncio.ensure_future(desk.ask(details={"text": "x" * 40_000}))
    await asyncio.sleep(0.1)
    assert (await desk.http.get("/health")).status_code == 200
    others.set()
    assert (await asking)["status"] == "pending"


async def test_form_is_checked_before_the_rate_and_costs_nothing() -> None:
    async with opened(rate_limit=1) as desk:
        for _ in range(5):
            problem(await desk.http.post("/confirm", json={"action": "send_mail"}), 400)
        await desk.ask()
        problem(await desk.http.post("/confirm", json=ASKED | {"description": ""}), 400)


async def test_more_than_people_can_look_at_is_refused() -> None:
    async with opened(rate_limit=1000) as desk:
        answers = [
            await desk.http.post("/confirm", json=ASKED | {"details": {"n": number}})
            for number in range(MOST_PENDING + 1)
        ]
        assert {answer.status_code for answer in answers[:-1]} == {202}
        told = problem(answers[-1], 429)
        assert (told["remaining"], told["window_seconds"], told["pending"]) == (0, 3600, MOST_PENDING)
        assert 0 < int(answers[-1].headers["retry-after"]) <= 300


async def test_same_request_that_waits_is_the_same(desk: Desk) -> None:
    first, again = await desk.ask(), await desk.ask()
    assert (again["id"], again["repeated"]) == (first["id"], True)
    assert (await desk.ask(session_key="elsewhere"))["id"] != first["id"]


@pytest.mark.parametrize("empty", [True, False])
async def test_approval_says_who_decided_and_when(desk: Desk, empty: bool) -> None:
    asked = await desk.ask()
    body: Any = {} if empty else {"json": {"approver": " Ann the Great "}}
    answer = await desk.http.post(asked["approve_url"], headers=ANN, **body)
    assert answer.status_code == 200
    told = answer.json()
    assert (told["id"], told["action"], told["status"]) == (asked["id"], "send_mail", "approved")
    assert told["resolved_by"] == "token:ann", "a name in the body never stands for who it is"
    assert told["resolved_as"] == (None if empty else "Ann the Great")
    shown = (await desk.http.get(f"/confirm/{asked['id']}")).json()
    assert shown["resolved_at"] == told["resolved_at"] >= shown["created_at"]
    assert shown["resolved_by"] == "token:ann"
    assert datetime.fromisoformat(shown["resolved_at_iso"]).timestamp() == pytest.approx(told["resolved_at"])


async def test_denial_keeps_name_and_reason(desk: Desk) -> None:
    asked = await desk.ask()
    body = {"denier": "Eve", "reason": " not on a Friday "}
    told = (await desk.http.post(asked["deny_url"], headers=EVE, json=body)).json()
    assert (told["status"], told["resolved_by"], told["resolved_as"]) == ("denied", "token:eve", "Eve")
    shown = (await desk.http.get(f"/confirm/{asked['id']}")).json()
    assert (shown["status"], shown["reason"]) == ("denied", "not on a Friday")


@pytest.mark.parametrize("verb", ["approve", "deny"])
async def test_unknown_request_is_not_found(desk: Desk, verb: str) -> None:
    for wrong in ("c_0000000000000000", "%00", "%F0%9F%92%A9", "x" * 65, "a%2Fb", "c_1%20", "'--"):
        problem(await desk.http.post(f"/confirm/{wrong}/{verb}", headers=ANN), 404)
        problem(await desk.http.get(f"/confirm/{wrong}", headers=ANN), 404)


@pytest.mark.parametrize("first", ["approve", "deny"])
@pytest.mark.parametrize("then", ["approve", "deny"])
async def test_second_decision_is_told_the_first(desk: Desk, first: str, then: str) -> None:
    asked = await desk.ask()
    assert (await desk.http.post(asked[f"{first}_url"], headers=ANN)).status_code == 200
    told = problem(await desk.http.post(asked[f"{then}_url"], headers=EVE), 409)
    expected = {"approve": "approved", "deny": "denied"}[first]
    assert (told["confirmation_status"], told["id"]) == (expected, asked["id"])
    assert await desk.status(asked["id"]) == expected


async def test_late_decision_is_told_that_it_expired() -> None:
    clock = SettableClock()
    async with opened(clock=clock) as desk:
        asked = await desk.ask(timeout_seconds=30)
        clock.advance(seconds=31)
        assert (
            problem(await desk.http.post(asked["approve_url"], headers=ANN), 409)["confirmation_status"]
            == "expired"
        )
        shown = (await desk.http.get(f"/confirm/{asked['id']}")).json()
        assert (shown["status"], shown["resolved_by"]) == ("expired", "system:timeout")


NO_DECISIONS: list[bytes] = [
    b"[]",
    b"x",
    b'{"approver": 1}',
    b'{"aprover": "Ann"}',
    b'{"reason": []}',
    b'{"digest": "a", "digest": "b"}',
]


async def test_unusable_decision_decides_nothing(desk: Desk) -> None:
    for body in NO_DECISIONS:
        asked = await desk.ask()
        headers = ANN | {"content-type": "application/json"}
        problem(await desk.http.post(asked["approve_url"], content=body, headers=headers), 400)
        assert await desk.status(asked["id"]) == "pending"


async def test_decision_about_another_action_is_refused(desk: Desk) -> None:
    asked = await desk.ask()
    for digest in ("0" * 64, "", "nonsense", asked["digest"].upper()):
        answer = await desk.http.post(asked["approve_url"], headers=ANN, json={"digest": digest})
        problem(answer, 412)
    assert await desk.status(asked["id"]) == "pending"
    answer = await desk.http.post(asked["approve_url"], headers=ANN, json={"digest": asked["digest"]})
    assert answer.status_code == 200


async def test_redeeming_gives_the_bytes_that_were_approved_once(desk: Desk) -> None:
    asked = await desk.approved(details={"b": [1.0, "ü"], "a": {}})
    path = f"/confirm/{asked['id']}/redeem"
    told = (await desk.http.post(path, json={"digest": asked["digest"]})).json()
    payload = base64.b64decode(told["payload_base64"])
    assert payload == '{"action":"send_mail","details":{"a":{},"b":[1,"ü"]}}'.encode()
    assert hashlib.sha256(payload).hexdigest() == told["digest"] == asked["digest"]
    assert told["payload"] == json.loads(payload)
    again = problem(await desk.http.post(path, json={"digest": asked["digest"]}), 410)
    assert (again["refused"], again["confirmation_status"]) == ("redeemed", "approved")


async def test_redeeming_at_the_same_time_gives_them_to_one(desk: Desk) -> None:
    asked = await desk.approved()
    tries = (
        desk.http.post(f"/confirm/{asked['id']}/redeem", json={"digest": asked["digest"]}) for _ in range(20)
    )
    assert sorted(answer.status_code for answer in await asyncio.gather(*tries)) == [200] + [410] * 19


async def test_redeeming_another_digest_is_refused_and_written_down(desk: Desk) -> None:
    asked = await desk.approved()
    path = f"/confirm/{asked['id']}/redeem"
    problem(await desk.http.post(path, json={"digest": "0" * 64}), 412)
    problem(await desk.http.post(path), 400)
    problem(await desk.http.post(path, json={}), 400)
    events = (await desk.http.get("/audit?view=events", headers=ANN)).json()["entries"]
    assert [event["kind"] for event in events] == ["redeem_refused", "approved", "submitted"]
    assert (await desk.http.post(path, json={"digest": asked["digest"]})).status_code == 200


@pytest.mark.parametrize(("verb", "status"), [(None, "pending"), ("deny", "denied")])
async def test_redeeming_what_is_not_approved_is_a_conflict(
    desk: Desk, verb: str | None, status: str
) -> None:
    asked = await desk.ask()
    if verb:
        await desk.http.post(asked[f"{verb}_url"], headers=ANN)
    answer = await desk.http.post(f"/confirm/{asked['id']}/redeem", json={"digest": asked["digest"]})
    told = problem(answer, 409)
    assert (told["confirmation_status"], told["refused"]) == (status, status)


async def test_lapsed_grant_is_gone_and_names_its_renewal_once() -> None:
    clock = SettableClock()
    async with opened(clock=clock) as desk:
        asked = await desk.approved()
        clock.advance(seconds=61)
        path = f"/confirm/{asked['id']}/redeem"
        told = problem(await desk.http.post(path, json={"digest": asked["digest"]}), 410)
        assert told["refused"] == "lapsed"
        renewal = (await desk.http.get(f"/confirm/{told['renewal']}")).json()
        assert (renewal["status"], renewal["digest"], renewal["renewal_of"]) == (
            "pending",
            asked["digest"],
            asked["id"],
        )


async def test_allowed_action_is_approved_at_once(desk: Desk) -> None:
    rule = {"effect": "allow", "action": "send_mail"} | SOON
    assert (await desk.http.post("/rules", json=rule, headers=ANN)).status_code == 201
    answer = await desk.http.post("/confirm", json=ASKED)
    assert answer.status_code == 200
    told = answer.json()
    assert (told["status"], told["auto_approved"], told["action"]) == ("auto_approved", True, "send_mail")
    shown = (await desk.http.get(f"/confirm/{told['id']}")).json()
    assert shown["status"] == "approved"
    answer = await desk.http.post(f"/confirm/{told['id']}/redeem", json={"digest": told["digest"]})
    assert answer.json()["payload"]["action"] == "send_mail"
    kinds = [
        each["kind"] for each in (await desk.http.get("/audit?view=events", headers=ANN)).json()["entries"]
    ]
    assert kinds == ["redeemed", "auto_approved", "rule_added"]


async def test_denied_by_a_rule_is_forbidden_with_its_status(desk: Desk) -> None:
    await desk.http.post("/rules", json={"effect": "deny", "action": "send_*"}, headers=ANN)
    told = problem(await desk.http.post("/confirm", json=ASKED), 403)
    assert told["confirmation_status"] == "denied"
    shown = (await desk.http.get(f"/confirm/{told['id']}")).json()
    assert (shown["status"], shown["details"], shown["details_omitted"]) == ("denied", None, False)
    listed = (await desk.http.get("/audit", headers=ANN)).json()["entries"]
    assert [(each["id"], each["details_omitted"]) for each in listed] == [(told["id"], False)]


async def test_denied_at_once_over_and_over_is_refused_in_the_end(desk: Desk) -> None:
    await desk.http.post("/rules", json={"effect": "deny", "action": "send_*"}, headers=ANN)
    for _ in range(MOST_AT_ONCE):
        problem(await desk.http.post("/confirm", json=ASKED), 403)
    told = problem(await desk.http.post("/confirm", json=ASKED), 429)
    assert (told["remaining"], told["window_seconds"]) == (0, AT_ONCE_SECONDS)


async def test_denied_again_at_once_is_forbidden_with_its_status(desk: Desk) -> None:
    asked = await desk.ask()
    await desk.http.post(asked["deny_url"], headers=ANN)
    told = problem(await desk.http.post("/confirm", json=ASKED), 403)
    assert told["confirmation_status"] == "denied"
    assert (await desk.http.post("/confirm", json=ASKED | {"details": {}})).status_code == 202


async def test_idempotency_key_makes_one_of_many(desk: Desk) -> None:
    headers = {"idempotency-key": "order-1"}
    first = await desk.ask(headers)
    await desk.http.post(first["deny_url"], headers=ANN)
    again = problem(await desk.http.post("/confirm", json=ASKED, headers=headers), 403)
    assert (again["id"], again["confirmation_status"]) == (first["id"], "denied")
    problem(await desk.http.post("/confirm", json=ASKED | {"action": "other"}, headers=headers), 422)
    assert (await desk.service.list(10))[0].id == first["id"]


async def test_key_of_an_approved_request_gives_it_again(desk: Desk) -> None:
    headers = {"idempotency-key": "order-2"}
    first = await desk.approved(headers)
    answer = await desk.http.post("/confirm", json=ASKED, headers=headers)
    assert answer.status_code == 200
    told = answer.json()
    assert (told["id"], told["status"], told["auto_approved"], told["repeated"]) == (
        first["id"],
        "approved",
        False,
        True,
    )


async def test_key_of_an_expired_request_is_no_success() -> None:
    clock = SettableClock()
    async with opened(clock=clock) as desk:
        first = await desk.ask({"idempotency-key": "order-3"}, timeout_seconds=30)
        clock.advance(seconds=31)
        await desk.service.sweep()
        answer = await desk.http.post("/confirm", json=ASKED, headers={"idempotency-key": "order-3"})
        told = problem(answer, 409)
        assert (told["id"], told["confirmation_status"]) == (first["id"], "expired")


async def test_idempotency_key_of_a_grant_that_was_used_says_so(desk: Desk) -> None:
    headers = {"idempotency-key": "order-4"}
    asked = await desk.approved(headers)
    again = await desk.http.post("/confirm", json=ASKED, headers=headers)
    assert (again.status_code, again.json()["id"]) == (200, asked["id"])
    redeemed = await desk.http.post(f"/confirm/{asked['id']}/redeem", json={"digest": asked["digest"]})
    assert redeemed.status_code == 200
    told = problem(await desk.http.post("/confirm", json=ASKED, headers=headers), 410)
    assert (told["id"], told["refused"], told["confirmation_status"]) == (asked["id"], "redeemed", "approved")
    assert "used before" in told["error"]
    client, details = Client(str(desk.http.base_url)), {"to": "press@example.org"}
    with pytest.raises(errors.GrantUnusable, match="used before") as refused:
        await client.request("send_mail", "Write to the press", details, idempotency_key="order-4")
    assert (refused.value.refused, vars(refused.value)["confirmation_id"]) == ("redeemed", asked["id"])


async def test_idempotency_key_of_an_erased_grant_says_so(desk: Desk) -> None:
    headers = {"idempotency-key": "order-5"}
    asked = await desk.approved(headers)
    assert (await desk.http.post(f"/confirm/{asked['id']}/erase", headers=ANN)).status_code == 200
    told = problem(await desk.http.post("/confirm", json=ASKED, headers=headers), 410)
    assert (told["id"], told["refused"]) == (asked["id"], "erased")


async def test_unusable_idempotency_key_is_refused(desk: Desk) -> None:
    for key in (b"", b"x" * 256, b"\xfc"):
        headers = [(b"idempotency-key", key)]
        problem(await desk.http.post("/confirm", json=ASKED, headers=headers), 400)


async def test_health_counts_what_waits(desk: Desk) -> None:
    assert (await desk.http.get("/health")).json()["pending_count"] == 0
    asked = await desk.ask()
    told = (await desk.http.get("/health")).json()
    assert (told["status"], told["pending_count"]) == ("ok", 1)
    assert abs(told["timestamp"] - datetime.now(UTC).timestamp()) < 60
    await desk.http.post(asked["deny_url"], headers=ANN)
    assert (await desk.http.get("/health")).json()["pending_count"] == 0


async def test_health_does_not_count_what_is_overdue() -> None:
    clock = SettableClock()
    async with opened(clock=clock) as desk:
        asked = await desk.service.submit(ASKED, ANYBODY)
        clock.set(asked.confirmation.expires_at)
        assert (await desk.http.get("/health")).json()["pending_count"] == 0


async def test_audit_has_an_entry_for_each_request_newest_first(desk: Desk) -> None:
    first = await desk.approved(details={"n": 1})
    second = await desk.ask(details={"n": 2})
    told = (await desk.http.get("/audit", headers=ANN)).json()
    assert told["count"] == 2
    assert [(entry["id"], entry["status"]) for entry in told["entries"]] == [
        (second["id"], "pending"),
        (first["id"], "approved"),
    ]


@pytest.mark.parametrize(("path", "name"), [("/audit", "entries"), ("/confirm", "confirmations")])
async def test_lists_leave_long_details_out(desk: Desk, path: str, name: str) -> None:
    long = await desk.ask(details={"text": "x" * 70_000})
    await desk.ask(details={"text": "x"})
    told = (await desk.http.get(path, headers=ANN)).json()[name]
    assert [(each["details"], each["details_omitted"]) for each in told] == [
        ({"text": "x"}, False),
        (None, True),
    ]
    shown = (await desk.http.get(f"/confirm/{long['id']}")).json()
    assert (shown["details"], shown["details_omitted"]) == ({"text": "x" * 70_000}, False)


async def test_list_is_never_longer_than_it_can_be_read() -> None:
    async with opened(rate_limit=1000, prompts_per_hour=1000) as desk:
        for number in range(20):
            for action in range(14):
                asked = await desk.ask(action=f"a{action}", details={"n": number, "text": "x" * 16_000})
                await desk.http.post(asked["approve_url"], headers=ANN)
        answer = await desk.http.get("/audit?limit=500", headers=ANN)
    told = answer.json()["entries"]
    assert len(told) == 280
    omitted = [each["details_omitted"] for each in told]
    assert omitted == sorted(omitted)
    assert 0 < sum(omitted) < len(told)
    assert len(answer.content) < 5 * MIB


LIMITS = [("2", 2), ("1", 1), ("0", 1), ("-7", 1), ("501", 3), ("9" * 40, 3)]


async def test_limit_is_kept_within_its_bounds(desk: Desk) -> None:
    for number in range(3):
        await desk.ask(details={"n": number})
    for limit, entries in LIMITS:
        for path in ("/audit?limit=", "/audit?view=events&limit=", "/confirm?limit="):
            assert (await desk.http.get(path + limit, headers=ANN)).json()["count"] == entries


UNREADABLE: list[str] = [
    "limit=x",
    "limit=",
    "limit=1&limit=2",
    "view=all",
    "lmit=1",
    "limit=1.5",
    "limit=" + "9" * 5000,
]


async def test_unreadable_question_is_refused(desk: Desk) -> None:
    for query in UNREADABLE:
        problem(await desk.http.get(f"/audit?{query}", headers=ANN), 400)


async def test_events_of_the_audit_log_can_be_verified(desk: Desk) -> None:
    await desk.approved()
    rows = (await desk.http.get("/audit?view=events", headers=ANN)).json()["entries"]
    assert [row["number"] for row in rows] == [2, 1]
    previous = audit.GENESIS
    for row in reversed(rows):
        assert row["previous"] == previous
        previous = audit.chain_hash(row["number"], previous, row["body"].encode())
        assert row["hash"] == previous


async def test_list_can_be_narrowed_to_a_status(desk: Desk) -> None:
    waiting = await desk.ask(details={"n": 1})
    denied = await desk.ask(details={"n": 2})
    await desk.http.post(denied["deny_url"], headers=ANN)
    for status, expected in (("pending", waiting), ("denied", denied)):
        told = (await desk.http.get(f"/confirm?status={status}", headers=ANN)).json()
        assert [each["id"] for each in told["confirmations"]] == [expected["id"]]
    assert (await desk.http.get("/confirm?status=expired", headers=ANN)).json()["count"] == 0
    problem(await desk.http.get("/confirm?status=lost", headers=ANN), 400)


async def test_rules_are_kept_listed_and_revoked(desk: Desk) -> None:
    wanted: dict[str, Any] = {
        "effect": "ask",
        "action": "send_*",
        "conditions": [{"argument": "to", "test": "like", "value": "*@example.org"}],
        "quorum": 2,
        "needs_reason": True,
    }
    rule = (await desk.http.post("/rules", json=wanted, headers=ANN)).json()
    assert rule["created_by"] == "token:ann"
    assert {name: rule[name] for name in wanted} == wanted
    told = (await desk.http.get("/rules", headers=EVE)).json()
    assert (told["count"], [each["id"] for each in told["rules"]]) == (1, [rule["id"]])
    assert (await desk.http.delete(f"/rules/{rule['id']}", headers=EVE)).status_code == 204
    problem(await desk.http.delete(f"/rules/{rule['id']}", headers=EVE), 404)
    assert (await desk.http.get("/rules", headers=ANN)).json() == {"count": 0, "rules": []}


async def test_quorum_waits_for_two_people_and_a_reason(desk: Desk) -> None:
    rule = {"effect": "ask", "action": "send_mail", "quorum": 2, "needs_reason": True}
    await desk.http.post("/rules", json=rule, headers=ANN)
    asked = await desk.ask()
    problem(await desk.http.post(asked["approve_url"], headers=ANN), 400)
    for _ in range(2):
        told = (await desk.http.post(asked["approve_url"], headers=ANN, json={"reason": "fine"})).json()
        assert (told["status"], told["quorum"], told["approvals"]) == ("pending", 2, ["token:ann"])
    told = (await desk.http.post(asked["approve_url"], headers=EVE, json={"reason": "fine"})).json()
    assert told["status"] == "approved"


NO_RULES: list[dict[str, Any]] = [
    {},
    {"effect": "perhaps"},
    {"effect": "allow"} | SOON,
    {"effect": "allow", "action": "x"},
    {"effect": "allow", "action": "x", "expires_at": "2001-01-01T00:00:00Z"},
    {"effect": "allow", "action": "x", "expires_at": "2999-01-01T00:00:00"},
    {"effect": "allow", "action": "*"} | SOON,
    {"effect": "allow", "action": "wipe_d\u0251tabase"} | SOON,
    {"effect": "allow", "digest": "d" * 63} | SOON,
    {"effect": "deny", "digest": "D" * 64},
    {"effect": "ask", "digest": "d" * 64 + "\n"},
    {"effect": "ask", "quorum": 0},
    {"effect": "ask", "id": "mine"},
    {"effect": "ask", "created_by": "token:eve"},
    {"effect": "ask", "conditions": [{"argument": ""}]},
]


async def test_unusable_rule_is_refused(desk: Desk) -> None:
    for rule in NO_RULES:
        problem(await desk.http.post("/rules", json=rule, headers=ANN), 400)
        assert (await desk.http.get("/rules", headers=ANN)).json()["count"] == 0


async def test_no_rule_allows_one_of_the_ten(desk: Desk) -> None:
    for action in sorted(HIGH_RISK_ACTIONS):
        rule = {"effect": "allow", "action": action} | SOON
        problem(await desk.http.post("/rules", json=rule, headers=ANN), 400)


async def test_one_of_the_ten_in_look_alikes_is_asked_under_a_pattern_that_fits_it(desk: Desk) -> None:
    rule = {"effect": "allow", "action": "wipe_d\u0251*"} | SOON
    assert (await desk.http.post("/rules", json=rule, headers=ANN)).status_code == 201
    assert (await desk.http.post("/confirm", json=ASKED | {"action": "wipe_d\u0251ta"})).status_code == 200
    assert (
        await desk.http.post("/confirm", json=ASKED | {"action": "wipe_d\u0251tabase"})
    ).status_code == 202


async def test_odd_path_is_asked_where_a_plain_one_is_allowed(desk: Desk) -> None:
    where = [{"argument": "path", "test": "like", "value": "/tmp/*"}]
    rule = {"effect": "allow", "action": "remove", "conditions": where} | SOON
    assert (await desk.http.post("/rules", json=rule, headers=ANN)).status_code == 201
    for path, status in (
        ("/tmp/a", 200),
        ("/tmp/../etc/passwd", 202),
        ("/tmp/a\n/etc/passwd", 202),
        ("/tmp/a /etc/passwd", 202),
        ("/tmp/\u2025/etc", 202),
    ):
        answer = await desk.http.post(
            "/confirm", json=ASKED | {"action": "remove", "details": {"path": path}}
        )
        assert answer.status_code == status, path


async def test_wrong_method_is_told_the_right_ones(desk: Desk) -> None:
    answer = await desk.http.put("/confirm", json=ASKED)
    problem(answer, 405)
    assert set(answer.headers["allow"].split(", ")) >= {"GET", "POST"}
    problem(await desk.http.get("/nothing"), 404)
    problem(await desk.http.get("/confirm/"), 404)


async def test_store_that_does_not_answer_is_unavailable_and_names_no_path(desk: Desk) -> None:
    assert desk.store
    await desk.store.close()
    answer = await desk.http.get("/health")
    assert "/" not in problem(answer, 503)["detail"]
    assert int(answer.headers["retry-after"]) >= 1


async def test_agents_in_a_team_have_their_own_requests() -> None:
    async with opened(mode=Mode.TEAM) as desk:
        asked = await desk.ask(BOT, requester="somebody else")
        shown = (await desk.http.get(f"/confirm/{asked['id']}", headers=BOT)).json()
        assert shown["requester"] == "token:bot"
        problem(await desk.http.get(f"/confirm/{asked['id']}", headers=ROB), 404)
        await desk.http.post(asked["approve_url"], headers=ANN)
        path, body = f"/confirm/{asked['id']}/redeem", {"digest": asked["digest"]}
        problem(await desk.http.post(path, json=body, headers=ROB), 404)
        problem(await desk.http.post(path, json=body, headers=ANN), 403)
        problem(await desk.http.post(path, json=body), 401)
        assert (await desk.http.post(path, json=body, headers=BOT)).status_code == 200


async def test_request_that_was_forgotten_is_not_found() -> None:
    clock = SettableClock()
    async with opened(clock=clock, keep_days=2) as desk:
        asked = await desk.approved()
        redeemed = {"digest": asked["digest"]}
        assert (await desk.http.post(f"/confirm/{asked['id']}/redeem", json=redeemed)).status_code == 200
        clock.advance(days=2, seconds=1)
        await desk.service.tidy()
        problem(await desk.http.get(f"/confirm/{asked['id']}", headers=ANN), 404)
        problem(await desk.http.post(asked["approve_url"], headers=ANN), 404)
        problem(await desk.http.post(f"/confirm/{asked['id']}/redeem", json=redeemed), 404)
        assert (await desk.http.get("/audit", headers=ANN)).json()["entries"] == []
        events = (await desk.http.get("/audit?view=events", headers=ANN)).json()["entries"]
        assert [event["kind"] for event in events] == ["pruned", "redeemed", "approved", "submitted"]


async def test_revealing_answers_the_payload_and_is_in_the_log(desk: Desk) -> None:
    details = {"password": "hunter2", "argv": ["--token", "x"]}
    asked = await desk.ask(details=details)
    answer = await desk.http.post(f"/confirm/{asked['id']}/reveal", headers=ANN)
    assert answer.json() == {
        "id": asked["id"],
        "digest": asked["digest"],
        "payload": {"action": "send_mail", "details": details},
    }
    (row,) = await desk.service.audit_newest(1)
    assert (row.entry.kind, row.entry.actor, row.entry.confirmation_id, row.entry.digest) == (
        "revealed",
        "token:ann",
        asked["id"],
        asked["digest"],
    )
    assert b"hunter2" not in row.body
    assert await desk.status(asked["id"]) == "pending"


async def test_nothing_is_revealed_of_what_was_erased_or_never_there(desk: Desk) -> None:
    asked = await desk.ask()
    await desk.http.post(asked["deny_url"], headers=ANN)
    await desk.http.post(f"/confirm/{asked['id']}/erase", headers=ANN)
    problem(await desk.http.post(f"/confirm/{asked['id']}/reveal", headers=ANN), 410)
    problem(await desk.http.post("/confirm/c_0000000000000000/reveal", headers=ANN), 404)
