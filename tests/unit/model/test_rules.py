"""Rules: deny first, the ten always asked, what is remembered only where it certainly fits."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk import errors
from frontdesk.model import rules
from frontdesk.model.confirmations import HIGH_RISK_ACTIONS, Mode, Submission, is_high_risk
from frontdesk.model.rules import Comparison, Condition, Effect, Rule
from tests import counts

NOW = datetime(2026, 3, 1, tzinfo=UTC)
LATER = NOW + timedelta(days=1)
NUMBERS = iter(range(10**9))


def wanted(action: str = "send_mail", **fields: Any) -> Submission:
    return Submission(
        action=action, description="Please", payload=b"{}", digest="d" * 64, requester="token:a", **fields
    )


def rule(effect: Effect, **fields: Any) -> Rule:
    return Rule(id=f"r{next(NUMBERS)}", effect=effect, **{"expires_at": LATER} | fields)


def decide(
    known: list[Rule], asked: Submission | None = None, details: dict[str, Any] | None = None, **more: Any
) -> Effect:
    mode = more.get("mode", Mode.SOLO)
    return rules.decide(known, asked or wanted(), details or {}, mode, more.get("now", NOW)).effect


def test_without_rules_it_is_asked() -> None:
    assert decide([]) is Effect.ASK


def test_deny_comes_before_everything() -> None:
    known = [rule(Effect.ALLOW, action="send_mail"), rule(Effect.DENY, action="send_*")]
    assert decide(known) is Effect.DENY


def test_asking_comes_before_allowing() -> None:
    assert decide([rule(Effect.ALLOW, action="send_mail"), rule(Effect.ASK, quorum=2)]) is Effect.ASK


@pytest.mark.parametrize(
    "fields",
    [
        {"action": "send_post"},
        {"session_key": "another"},
        {"digest": "e" * 64},
        {"expires_at": NOW},
        {"conditions": (Condition(argument="to", value="bob"),)},
        {"conditions": (Condition(argument="cc", test=Comparison.PRESENT),)},
        {"conditions": (Condition(argument="to.name", value="ann"),)},
    ],
)
def test_rule_that_does_not_fit_allows_nothing(fields: dict[str, Any]) -> None:
    allowing = rule(Effect.ALLOW, **{"action": "send_mail"} | fields)
    assert decide([allowing], details={"to": "ann"}) is Effect.ASK


@pytest.mark.parametrize(
    ("test", "value", "argument", "fits"),
    [
        (Comparison.EQUALS, 5.0, 5, True),
        (Comparison.EQUALS, True, 1, False),
        (Comparison.EQUALS, "5", 5, False),
        (Comparison.LIKE, "/tmp/*", "/tmp/a", True),
        (Comparison.LIKE, "/tmp/*", "/etc/a", False),
        (Comparison.LIKE, "*", 5, False),
        (Comparison.ABOVE, 10, 11, True),
        (Comparison.BELOW, 10, 10, False),
    ],
)
def test_conditions(test: Comparison, value: object, argument: object, fits: bool) -> None:
    condition = Condition(argument="it", test=test, value=value)
    allowing = rule(Effect.ALLOW, action="send_mail", conditions=(condition,))
    assert (decide([allowing], details={"it": argument}) is Effect.ALLOW) == fits


def test_rule_that_cannot_be_evaluated_asks() -> None:
    doubtful = rule(Effect.DENY, conditions=(Condition(argument="n", test=Comparison.ABOVE, value=5),))
    allowing = rule(Effect.ALLOW, action="send_mail")
    assert decide([allowing, doubtful], details={"n": "many"}) is Effect.ASK


def test_nothing_is_remembered_in_strict_mode() -> None:
    assert decide([rule(Effect.ALLOW, action="send_mail")], mode=Mode.STRICT) is Effect.ASK


def test_the_ten_need_two_in_strict_mode() -> None:
    ruling = rules.decide([], wanted("delete_data"), {}, Mode.STRICT, NOW)
    assert ruling.terms.quorum == 2


def test_terms_of_several_rules_all_count() -> None:
    known = [
        rule(Effect.ASK, quorum=2, approvers=("a", "b")),
        rule(Effect.ASK, needs_reason=True, approvers=("b", "c")),
    ]
    terms = rules.decide(known, wanted(), {}, Mode.SOLO, NOW).terms
    assert (terms.quorum, terms.approvers, terms.needs_reason) == (2, ("b",), True)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"action": "*"},
        {"action": "deploy_*"},
        {"action": "delete_data"},
        {"action": "Delete-Data"},
        {"action": "send_mail", "expires_at": None},
        {"action": "send_mail", "expires_at": NOW},
    ],
)
def test_rule_that_allows_too_much_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidInput):
        rule(Effect.ALLOW, **fields).check(NOW)


def test_exact_rule_with_an_end_is_taken() -> None:
    rule(Effect.ALLOW, digest="d" * 64).check(NOW)
    rule(Effect.ALLOW, action="send_mail").check(NOW)


def spellings(action: str) -> list[str]:
    return [action, action.upper(), action.replace("_", "-"), action.replace("_", " "), f" {action}\t"]


@pytest.mark.parametrize("action", sorted(HIGH_RISK_ACTIONS))
def test_the_ten_are_known_however_they_are_written(action: str) -> None:
    assert all(is_high_risk(each) for each in spellings(action))
    assert not is_high_risk(f"{action}_not")


PATTERNS = st.one_of(
    st.none(), st.just("*"), st.sampled_from(sorted(HIGH_RISK_ACTIONS)), st.text("*?_adeltwxyz", max_size=12)
)
RULES = st.builds(
    Rule,
    id=st.text("abc", min_size=1),
    effect=st.sampled_from([Effect.ALLOW, Effect.ASK]),
    action=PATTERNS,
    digest=st.sampled_from([None, "d" * 64]),
    conditions=st.lists(
        st.builds(
            Condition,
            argument=st.sampled_from(["a", "a.b"]),
            test=st.sampled_from(Comparison),
            value=st.sampled_from([1, "x", None]),
        ),
        max_size=2,
    ).map(tuple),
    quorum=st.integers(-1, 3),
    expires_at=st.sampled_from([None, LATER]),
)


@pytest.mark.prove
def test_the_ten_are_never_allowed_by_any_rules(capsys: pytest.CaptureFixture[str]) -> None:
    tried = 0

    @settings(max_examples=counts.count(500, 10_000))
    @given(
        known=st.lists(RULES, max_size=6),
        action=st.sampled_from(sorted(HIGH_RISK_ACTIONS)).flatmap(
            lambda name: st.sampled_from(spellings(name))
        ),
        mode=st.sampled_from(Mode),
        details=st.dictionaries(st.sampled_from(["a", "b"]), st.integers() | st.text(max_size=2), max_size=2),
    )
    def try_rules(known: list[Rule], action: str, mode: Mode, details: dict[str, Any]) -> None:
        nonlocal tried
        tried += 1
        assert rules.decide(known, wanted(action), details, mode, NOW).effect is Effect.ASK

    try_rules()
    with capsys.disabled():
        print(f"\n  {tried} sets of rules: none of the ten was allowed")


def test_rule_that_cannot_be_evaluated_asks_on_its_terms() -> None:
    condition = Condition(argument="amount", test=Comparison.ABOVE, value=1_000)
    known = [rule(Effect.ASK, conditions=(condition,), quorum=3, needs_reason=True)]
    for amount in ("5000", None, [1]):
        terms = rules.decide(known, wanted(), {"amount": amount}, Mode.SOLO, NOW).terms
        assert (terms.quorum, terms.needs_reason) == (3, True)
