"""Confirmations: who may decide, and the bounds of what is asked."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from frontdesk import errors
from frontdesk.model.confirmations import (
    MOST_LISTED_BYTES,
    MOST_PENDING,
    Caller,
    CallerKind,
    Confirmation,
    Mode,
    Party,
    Status,
    Terms,
    clamp_timeout,
    is_reserved,
)

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ANN = Caller(id="token:ann", kind=CallerKind.APPROVER)


def asked(**fields: Any) -> Confirmation:
    values: dict[str, Any] = {
        "id": "c_1",
        "action": "send",
        "description": "Please",
        "digest": "d" * 64,
        "payload": b"{}",
        "requester": "token:bot",
        "created_at": NOW,
        "expires_at": NOW + timedelta(minutes=5),
    }
    return Confirmation(**values | fields)


def may(confirmation: Confirmation, caller: Caller, mode: Mode = Mode.TEAM, after: int = 0) -> bool:
    try:
        confirmation.check_decider(caller, mode, NOW + timedelta(seconds=after))
    except errors.NotAllowed:
        return False
    return True


def test_approver_decides() -> None:
    assert may(asked(), ANN)


@pytest.mark.parametrize("kind", [CallerKind.AGENT, CallerKind.ANYBODY])
def test_nobody_else_decides(kind: CallerKind) -> None:
    assert not may(asked(), Caller(id="token:ann", kind=kind))


def test_requester_never_decides_under_any_name() -> None:
    assert not may(asked(requester="token:ann"), ANN)
    other = Caller(id="matrix:ann", kind=CallerKind.APPROVER, people=frozenset({"token:bot"}))
    assert not may(asked(), other)


@pytest.mark.parametrize(("mode", "allowed"), [(Mode.SOLO, True), (Mode.TEAM, True), (Mode.STRICT, False)])
def test_person_behind_the_request_decides_except_in_strict_mode(mode: Mode, allowed: bool) -> None:
    assert may(asked(on_behalf_of="token:ann"), ANN, mode) == allowed


def test_only_named_people_decide_and_others_once_it_is_escalated() -> None:
    terms = Terms(approvers=("token:bob",), escalate_after_seconds=60, escalate_to=("token:ann",), rule="r")
    waiting = asked(terms=terms)
    assert may(waiting, Caller(id="token:bob", kind=CallerKind.APPROVER))
    assert not may(waiting, ANN, after=59)
    assert may(waiting, ANN, after=60)


def test_everybody_decides_whom_each_party_admits() -> None:
    bob = Party(approvers=("token:bob",), escalate_after_seconds=60, escalate_to=("token:ann",))
    waiting = asked(terms=Terms(rule="r,s", parties=(bob, Party(approvers=("token:bob", "token:ann")))))
    assert not may(waiting, ANN, after=59)
    assert may(waiting, ANN, after=60)
    waiting = asked(terms=Terms(rule="r,s", parties=(bob, Party(approvers=("token:bob",)))))
    assert not may(waiting, ANN, after=60)


def test_parties_come_back_from_json_and_terms_without_them_count() -> None:
    terms = Terms(
        approvers=("nobody",), parties=(Party(approvers=("token:ann",), escalate_to=("token:bob",)),)
    )
    assert msgspec.json.decode(msgspec.json.encode(terms), type=Terms) == terms
    before = msgspec.json.decode(b'{"quorum":2,"approvers":["token:bob"],"rule":"r"}', type=Terms)
    assert not before.may_decide(ANN.person, timedelta())


def test_decision_is_final() -> None:
    denied = asked().resolved(Status.DENIED, by="token:ann", at=NOW)
    for status in (Status.APPROVED, Status.DENIED, Status.EXPIRED):
        with pytest.raises(errors.AlreadyResolved):
            denied.resolved(status, by="token:bob", at=NOW)


def test_grant_ends_a_minute_after_the_decision() -> None:
    approved = asked().resolved(Status.APPROVED, by="token:ann", at=NOW)
    assert approved.grant_until == NOW + timedelta(seconds=60)
    assert asked().grant_until is None


@pytest.mark.parametrize(
    ("seconds", "over"), [(-61, True), (-59, False), (0, False), (299, False), (300, True)]
)
def test_request_is_overdue_after_its_time_and_long_before_it_was_made(seconds: int, over: bool) -> None:
    assert asked().is_overdue(NOW + timedelta(seconds=seconds)) is over
    decided = asked().resolved(Status.APPROVED, by="token:ann", at=NOW)
    assert not decided.is_overdue(NOW + timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("by", "by_rule", "at_once"),
    [("rule:r1", True, True), ("system:muted", False, True), ("token:ann", False, False)],
)
def test_what_was_denied_at_once_is_known_by_whose_word_it_was(by: str, by_rule: bool, at_once: bool) -> None:
    denied = asked().resolved(Status.DENIED, by=by, at=NOW)
    assert (denied.is_by_rule, denied.was_denied_at_once) == (by_rule, at_once)
    assert not asked().resolved(Status.APPROVED, by=by, at=NOW).was_denied_at_once


@pytest.mark.parametrize(
    "name",
    [
        "token:ann",
        "token\N{FULLWIDTH COLON}ann",
        "token\N{SMALL COLON}ann",
        "token\N{PRESENTATION FORM FOR VERTICAL COLON}ann",
        "token\N{RATIO}ann",
        "token\N{MODIFIER LETTER COLON}ann",
        "a\N{DOUBLE COLON EQUAL}b",
        "local",
        " Local ",
        "\N{CIRCLED LATIN SMALL LETTER L}ocal",
        "l\N{CYRILLIC SMALL LETTER O}cal",
        "lo-cal",
        "1ocal",
        "ｓｙｓｔｅｍ",
        "Rule",
        "t\N{COMBINING ACUTE ACCENT}oken",
    ],
)
def test_name_that_reads_like_one_of_somebody_whom_we_know_is_reserved(name: str) -> None:
    assert is_reserved(name)


@pytest.mark.parametrize(
    "name", ["agent", "builder", "tokenizer", "local-builder", "café", "日本", "token ann"]
)
def test_other_names_are_anybodys(name: str) -> None:
    assert not is_reserved(name)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (None, 300),
        ("soon", 300),
        (True, 300),
        ([], 300),
        ("inf", 300),
        ("nan", 300),
        (0, 30),
        (-5, 30),
        (29.9, 30),
        (45, 45),
        ("60", 60),
        (10**9, 3600),
    ],
)
def test_timeout_is_clamped_and_what_cannot_be_read_is_five_minutes(given: object, seconds: int) -> None:
    assert clamp_timeout(given) == seconds


def test_full_list_is_no_longer_than_one_request_may_be() -> None:
    """Whoever looks at the list waits until all of it is read."""
    assert MOST_PENDING * MOST_LISTED_BYTES <= 1024 * 1024
