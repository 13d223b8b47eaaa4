"""Rules: deny first, the ten always asked, what is remembered only where it certainly fits."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk import errors
from frontdesk.model import rules
from frontdesk.model.confirmations import (
    HIGH_RISK_ACTIONS,
    Caller,
    CallerKind,
    Mode,
    Submission,
    Terms,
    is_high_risk,
)
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


OF_ANOTHER_KIND = [
    (Comparison.LIKE, "prod*", ["prod-1"]),
    (Comparison.LIKE, "prod*", {"name": "prod-1"}),
    (Comparison.LIKE, "prod*", 5),
    (Comparison.LIKE, "prod*", None),
    (Comparison.LIKE, 5, "5"),
    (Comparison.EQUALS, "prod", ["prod"]),
    (Comparison.EQUALS, "prod", {"name": "prod"}),
    (Comparison.EQUALS, None, [None]),
    (Comparison.EQUALS, ["prod"], "prod"),
    (Comparison.EQUALS, ["prod"], ["prod", "test"]),
    (Comparison.EQUALS, [1], [True]),
    (Comparison.EQUALS, {"name": "prod"}, {"name": ["prod"]}),
    (Comparison.EQUALS, 5, "5"),
    (Comparison.EQUALS, True, "true"),
    (Comparison.ABOVE, 5, [6]),
]


@pytest.mark.parametrize(("test", "value", "argument"), OF_ANOTHER_KIND)
@pytest.mark.parametrize("effect", Effect)
def test_argument_of_another_kind_gets_around_no_rule(
    effect: Effect, test: Comparison, value: object, argument: object
) -> None:
    doubtful = rule(effect, action="send*", conditions=(Condition(argument="it", test=test, value=value),))
    known = [doubtful] if effect is Effect.ALLOW else [doubtful, rule(Effect.ALLOW, action="send*")]
    assert decide(known, details={"it": argument}) is Effect.ASK


@pytest.mark.parametrize("target", ["prod-1", ["prod-1"], [{"name": "prod-1"}], 5])
@pytest.mark.parametrize("test", [Comparison.LIKE, Comparison.PRESENT])
def test_argument_in_what_is_no_object_gets_around_no_rule(test: Comparison, target: object) -> None:
    denying = rule(Effect.DENY, conditions=(Condition(argument="target.name", test=test, value="prod*"),))
    known = [denying, rule(Effect.ALLOW, action="send_mail")]
    assert decide(known, details={"target": target}) is Effect.ASK


@pytest.mark.parametrize(
    ("value", "argument"), [(["a"], ["a"]), ({"a": 1, "b": [2]}, {"b": [2], "a": 1}), (None, None)]
)
def test_the_same_list_or_object_fits(value: object, argument: object) -> None:
    known = [rule(Effect.DENY, conditions=(Condition(argument="it", value=value),))]
    assert decide(known, details={"it": argument}) is Effect.DENY


@pytest.mark.parametrize("details", [{}, {"to": "ann"}, {"target": None}, {"target": {}}])
def test_rule_about_a_missing_argument_does_not_fit(details: dict[str, Any]) -> None:
    condition = Condition(argument="target.name", test=Comparison.LIKE, value="*")
    known = [rule(Effect.DENY, conditions=(condition,)), rule(Effect.ALLOW, action="send_mail")]
    assert decide(known, details=details) is Effect.ALLOW


DOTTED = [
    {"a.b.c": 1},
    {"a": {"b": {"c": 1}}},
    {"a.b": {"c": 1}},
    {"a": {"b.c": 1}},
    {"a.b.c": 1, "a": {"b": {"c": 2}}},
    {"a.b.c": 2, "a": {"b": {"c": 1}}},
    {"a.b.c": 1, "a": "text"},
    {"a.b.c": "text", "a": {"b.c": 1}},
]


@pytest.mark.parametrize("details", DOTTED)
@pytest.mark.parametrize(
    ("test", "value"), [(Comparison.EQUALS, 1), (Comparison.BELOW, 2), (Comparison.PRESENT, None)]
)
def test_key_with_dots_gets_around_no_rule(test: Comparison, value: object, details: dict[str, Any]) -> None:
    where = (Condition(argument="a.b.c", test=test, value=value),)
    allowing = rule(Effect.ALLOW, action="send_mail")
    assert decide([allowing, rule(Effect.DENY, conditions=where)], details=details) is Effect.DENY
    assert decide([allowing, rule(Effect.ASK, conditions=where)], details=details) is Effect.ASK


@pytest.mark.parametrize("details", DOTTED)
def test_rule_that_allows_fits_no_argument_that_can_be_meant_otherwise(details: dict[str, Any]) -> None:
    where = (Condition(argument="a.b.c", value=1),)
    nested = details == {"a": {"b": {"c": 1}}}
    allowing = rule(Effect.ALLOW, action="send_mail", conditions=where)
    assert decide([allowing], details=details) is (Effect.ALLOW if nested else Effect.ASK)


@pytest.mark.parametrize("details", [{"a.b": 2}, {"a.b": 2, "a": {"b": 3}}, {"a.c": 1}, {"b": 1}])
def test_other_keys_with_dots_are_no_matter_of_a_rule(details: dict[str, Any]) -> None:
    known = [
        rule(Effect.DENY, conditions=(Condition(argument="a.b", value=1),)),
        rule(Effect.ALLOW, action="send_mail"),
    ]
    assert decide(known, details=details) is Effect.ALLOW


@pytest.mark.parametrize(
    "key", ["Path", "p\u0430th", "pa_th", "PATH", "path\u200b", "\uff50\uff41\uff54\uff48"], ids=ascii
)
def test_key_that_reads_like_another_gets_around_no_rule(key: str) -> None:
    where = (Condition(argument="path", test=Comparison.LIKE, value="/etc/*"),)
    denying, allowing = rule(Effect.DENY, conditions=where), rule(Effect.ALLOW, action="send_mail")
    assert decide([denying, allowing], details={key: "/etc/passwd"}) is Effect.DENY
    assert decide([denying, allowing], details={key: "/srv/a", "path": "/srv/b"}) is Effect.ALLOW
    inside = (Condition(argument="path", test=Comparison.LIKE, value="/srv/*"),)
    within = rule(Effect.ALLOW, action="send_mail", conditions=inside)
    assert decide([within], details={"path": "/srv/a"}) is Effect.ALLOW
    assert decide([within], details={"path": "/srv/a", key: "/etc"}) is Effect.ASK


def test_null_is_no_other_plain_value() -> None:
    known = [
        rule(Effect.DENY, conditions=(Condition(argument="to"),)),
        rule(Effect.ALLOW, action="send_mail"),
    ]
    assert [decide(known, details={"to": to}) for to in ("ann", 5, False)] == [Effect.ALLOW] * 3


@pytest.mark.parametrize(
    "action",
    [
        "drop_table",
        "Drop_Table",
        "DROP_TABLE",
        "ｄｒｏｐ_table",
        "dr\u200bop_table",
        "drоp_table",
        " drop_table",
        "dr\u03c3p_table",
        "dr0p_tab1e",
        "drop-table",
        "clrop_table",
    ],
)
def test_rules_that_deny_or_ask_fit_however_the_action_is_written(action: str) -> None:
    allowing = rule(Effect.ALLOW, action="*", conditions=())
    for pattern in ("drop_*", "DROP_*", "[D]rop_?able"):
        assert decide([allowing, rule(Effect.DENY, action=pattern)], wanted(action)) is Effect.DENY
        ruling = rules.decide(
            [allowing, rule(Effect.ASK, action=pattern, quorum=2)], wanted(action), {}, Mode.SOLO, NOW
        )
        assert (ruling.effect, ruling.terms.quorum) == (Effect.ASK, 2)


@pytest.mark.parametrize("action", ["Send_mail", "send_mаil", "send_mail\u200b", " send_mail"])
def test_rule_that_allows_fits_exactly(action: str) -> None:
    assert decide([rule(Effect.ALLOW, action="send_mail")], wanted(action)) is Effect.ASK


def test_pattern_takes_sets_of_characters() -> None:
    known = [rule(Effect.DENY, action="node[0-9]_[!s]*")]
    assert decide(known, wanted("node1_wipe")) is Effect.DENY
    assert decide(known, wanted("node1_show")) is Effect.ASK


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


def terms_of(*known: Rule) -> Terms:
    return rules.decide(known, wanted(), {}, Mode.SOLO, NOW).terms


def deciders(terms: Terms, seconds: int) -> set[str]:
    people = (Caller(id=name, kind=CallerKind.APPROVER) for name in ("ann", "bob", "carol", "dan"))
    return {each.id for each in people if terms.may_decide(each.person, timedelta(seconds=seconds))}


def asking(*approvers: str, after: int | None = None, to: tuple[str, ...] = (), **fields: Any) -> Rule:
    return rule(Effect.ASK, approvers=approvers, escalate_after_seconds=after, escalate_to=to, **fields)


def test_escalation_of_one_rule_does_not_override_the_approvers_of_another() -> None:
    terms = terms_of(asking("ann"), asking("bob", after=60, to=("carol",)))
    assert deciders(terms, 0) == deciders(terms, 60) == set()
    terms = terms_of(asking("ann"), rule(Effect.ASK, escalate_after_seconds=60, escalate_to=("carol",)))
    assert deciders(terms, 0) == deciders(terms, 60) == {"ann"}


def test_whom_every_rule_admits_decides_from_when_they_all_do() -> None:
    terms = terms_of(asking("ann", "bob", after=60, to=("carol",)), asking("bob", after=90, to=("carol",)))
    assert [deciders(terms, seconds) for seconds in (0, 60, 90)] == [{"bob"}, {"bob"}, {"bob", "carol"}]
    assert (terms.escalate_after_seconds, terms.escalate_to) == (90, ("carol",))


def test_person_is_admitted_by_each_rule_under_any_name() -> None:
    terms = terms_of(asking("token:ann"), asking("matrix:ann"))
    ann = Caller(id="token:ann", kind=CallerKind.APPROVER, people=frozenset({"matrix:ann"}))
    assert terms.may_decide(ann.person, timedelta())
    assert not terms.may_decide(Caller(id="token:ann", kind=CallerKind.APPROVER).person, timedelta())


def test_people_are_told_again_when_the_first_rule_wants_it_if_nobody_is_added() -> None:
    terms = terms_of(rule(Effect.ASK, escalate_after_seconds=90), rule(Effect.ASK, escalate_after_seconds=60))
    assert (terms.escalate_after_seconds, terms.approvers) == (60, ())


def test_escalation_after_any_time_is_taken() -> None:
    terms = terms_of(asking("ann", after=2**53, to=("bob",)), asking("ann", "bob"))
    assert deciders(terms, 3600) == {"ann"}


@pytest.mark.parametrize("effect", Effect)
@pytest.mark.parametrize("quorum", [-1, 0, 21])
def test_quorum_out_of_bounds_is_refused(effect: Effect, quorum: int) -> None:
    with pytest.raises(errors.InvalidInput):
        rule(effect, action="send_mail", quorum=quorum).check(NOW)


@pytest.mark.parametrize(
    "asked",
    [
        asking("ann", quorum=2),
        asking("ann", "ann", quorum=2),
        asking("ann", to=("bob",), quorum=2),
        asking("ann", after=60, to=("ann",), quorum=2),
    ],
)
def test_rule_that_asks_for_more_people_than_it_names_is_refused(asked: Rule) -> None:
    with pytest.raises(errors.InvalidInput):
        asked.check(NOW)


@pytest.mark.parametrize(
    "asked",
    [asking(quorum=20), asking("ann", "bob", quorum=2), asking("ann", after=60, to=("bob",), quorum=2)],
)
def test_quorum_that_can_be_reached_is_taken(asked: Rule) -> None:
    asked.check(NOW)


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


@pytest.mark.parametrize("effect", Effect)
@pytest.mark.parametrize("digest", ["", "d", "d" * 63, "d" * 65, "D" * 64, "g" * 64, "d" * 64 + "\n", "*"])
def test_rule_with_a_digest_that_no_action_has_is_refused(effect: Effect, digest: str) -> None:
    with pytest.raises(errors.InvalidInput):
        rule(effect, action="send_mail", digest=digest).check(NOW)


def test_exact_rule_with_an_end_is_taken() -> None:
    rule(Effect.ALLOW, digest="d" * 64).check(NOW)
    rule(Effect.ALLOW, action="send_mail").check(NOW)


def spellings(action: str) -> list[str]:
    first, *others = action.split("_")
    return [
        action,
        action.upper(),
        action.replace("_", "-"),
        action.replace("_", " "),
        f" {action}\t",
        first + "".join(map(str.capitalize, others)),
        action.replace("_", ""),
        action.replace("_", "::"),
        f"{action}\u200b",
        "\u2060".join(action),
        f"{action}\x00",
        f"{action}\u3164",
        action.translate(str.maketrans("aeopcdsi", "аеорсԁѕі")),
        action.upper().translate(str.maketrans("AEOPTMH", "ΑΕΟΡΤΜΗ")),
        action.translate(str.maketrans("aeodi", "áèøđı")),
        action.translate(
            str.maketrans(
                "abcdefghijklmnopqrstuvwxyz", "ａｂｃｄｅｆｇｈｉｊｋｌｍｎｏｐｑｒｓｔｕｖｗｘｙｚ"
            )
        ),
        action.replace("l", "I").replace("o", "0"),
    ]


@pytest.mark.parametrize("action", sorted(HIGH_RISK_ACTIONS))
def test_the_ten_are_known_however_they_are_written(action: str) -> None:
    assert [each for each in spellings(action) if not is_high_risk(each)] == []
    assert not is_high_risk(f"{action}_not")


@pytest.mark.parametrize("action", ["", "удалить_данные", "show_data", "delete_date", "データ", "\u200b"])
def test_other_names_are_none_of_the_ten(action: str) -> None:
    assert not is_high_risk(action)


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
def test_the_ten_are_never_allowed_by_any_rules(tell: counts.Tell) -> None:
    tried = 0

    @settings(max_examples=counts.count(200, 10_000))
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
    tell("sets of rules: none of the ten was allowed", tried)


def test_rule_that_cannot_be_evaluated_asks_on_its_terms() -> None:
    condition = Condition(argument="amount", test=Comparison.ABOVE, value=1_000)
    known = [rule(Effect.ASK, conditions=(condition,), quorum=3, needs_reason=True)]
    for amount in ("5000", None, [1]):
        terms = rules.decide(known, wanted(), {"amount": amount}, Mode.SOLO, NOW).terms
        assert (terms.quorum, terms.needs_reason) == (3, True)


def test_rule_for_a_conversation_allows_only_what_the_gateway_says_is_asked_there() -> None:
    here = rule(Effect.ALLOW, action="send_mail", session_key="chat")
    assert decide([here], wanted(session_key="chat", turn_id="t_1")) is Effect.ALLOW
    assert decide([here], wanted(session_key="chat")) is Effect.ASK
    assert decide([rule(Effect.DENY, session_key="chat")], wanted(session_key="chat")) is Effect.DENY
