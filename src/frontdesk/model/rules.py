"""Rules: which actions are refused, allowed or asked for, by action and argument, and on which terms."""

import fnmatch
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.logs import get_logger
from frontdesk.model.confirmations import HIGH_RISK_ACTIONS, Mode, Submission, Terms, is_high_risk

STRICT_QUORUM = 2

log = get_logger(__name__)


class Effect(StrEnum):
    DENY = "deny"
    ASK = "ask"
    ALLOW = "allow"


class Comparison(StrEnum):
    """How an argument is compared."""

    EQUALS = "equals"
    LIKE = "like"
    """With * and ? as in file names; only a text fits."""
    ABOVE = "above"
    BELOW = "below"
    PRESENT = "present"


class Condition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an argument must be; ``argument`` names it with dots: ``target.path``."""

    argument: str
    test: Comparison = Comparison.EQUALS
    value: Any = None


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every part that is set must fit. A remembered decision is a rule that allows, and has an end."""

    id: str
    effect: Effect
    action: str | None = None
    """The action's name, with * and ? as in file names; none fits every action, and allows none."""
    digest: str | None = None
    """Exactly this action with these arguments."""
    conditions: tuple[Condition, ...] = ()
    session_key: str | None = None
    """Only what is asked in this conversation."""
    quorum: int = 1
    approvers: tuple[str, ...] = ()
    needs_reason: bool = False
    escalate_after_seconds: int | None = None
    escalate_to: tuple[str, ...] = ()
    created_by: str = ""
    created_at: datetime | None = None
    expires_at: datetime | None = None

    @property
    def terms(self) -> Terms:
        return Terms(
            quorum=max(self.quorum, 1),
            approvers=self.approvers,
            needs_reason=self.needs_reason,
            escalate_after_seconds=self.escalate_after_seconds,
            escalate_to=self.escalate_to,
            rule=self.id,
        )

    def fits(self, submission: Submission, details: Mapping[str, Any], now: datetime) -> bool:
        if self.expires_at is not None and self.expires_at <= now:
            return False
        if self.session_key is not None and self.session_key != submission.session_key:
            return False
        if self.digest is not None and self.digest != submission.digest:
            return False
        if self.action is not None and not fnmatch.fnmatchcase(submission.action, self.action):
            return False
        return all(_holds(condition, details) for condition in self.conditions)

    def check(self, now: datetime) -> None:
        """Refuse a rule that would let through what is always asked, or everything, or for ever."""
        if self.effect is not Effect.ALLOW:
            return
        if not self.action and not self.digest:
            raise errors.InvalidInput(what="The rule", why="one that allows names an action or a digest")
        if self.action and any(fnmatch.fnmatchcase(each, self.action) for each in HIGH_RISK_ACTIONS):
            raise errors.InvalidInput(
                what=f"The rule for {self.action!r}", why="it covers what is always asked"
            )
        if self.action and is_high_risk(self.action):
            raise errors.InvalidInput(what=f"The rule for {self.action!r}", why="it is always asked")
        if self.expires_at is None or self.expires_at <= now:
            raise errors.InvalidInput(what="The rule", why="one that allows needs an end in the future")


def _holds(condition: Condition, details: Mapping[str, Any]) -> bool:
    found, value = _argument(condition.argument, details)
    if not found or condition.test is Comparison.PRESENT:
        return found
    match condition.test:
        case Comparison.EQUALS:
            return _same(value, condition.value)
        case Comparison.LIKE:
            return isinstance(value, str) and fnmatch.fnmatchcase(value, str(condition.value))
        case Comparison.ABOVE:
            return _number(value) > _number(condition.value)
        case Comparison.BELOW:
            return _number(value) < _number(condition.value)


def _same(value: object, wanted: object) -> bool:
    """5 and 5.0 are one number; nothing else of another kind is the same."""
    if _is_number(value) and _is_number(wanted):
        return value == wanted
    return type(value) is type(wanted) and value == wanted


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


def _argument(name: str, details: Mapping[str, Any]) -> tuple[bool, Any]:
    value: Any = details
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return False, None
        value = value[part]
    return True, value


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules say to a submission."""

    effect: Effect
    terms: Terms = Terms()


def decide(
    rules: Iterable[Rule], submission: Submission, details: Mapping[str, Any], mode: Mode, now: datetime
) -> Ruling:
    """Deny first; then the ten are asked; then what needs several people, or others; then what is remembered;
    then it is asked. A rule that cannot be evaluated asks, on its terms where it has some."""
    fitting = [(rule, _fits(rule, submission, details, now)) for rule in rules]
    found = [rule for rule, fits in fitting if fits]
    if any(rule.effect is Effect.DENY for rule in found):
        denying = next(rule for rule in found if rule.effect is Effect.DENY)
        return Ruling(effect=Effect.DENY, terms=denying.terms)
    asking = [rule.terms for rule, fits in fitting if rule.effect is Effect.ASK and fits is not False]
    high = is_high_risk(submission.action)
    terms = _together(asking, STRICT_QUORUM if high and mode is Mode.STRICT else 1)
    doubtful = any(fits is None for _, fits in fitting)
    allowing = [rule for rule in found if rule.effect is Effect.ALLOW and (rule.action or rule.digest)]
    if high or asking or doubtful or mode is Mode.STRICT or not allowing:
        return Ruling(effect=Effect.ASK, terms=terms)
    return Ruling(effect=Effect.ALLOW, terms=allowing[0].terms)


def _fits(rule: Rule, submission: Submission, details: Mapping[str, Any], now: datetime) -> bool | None:
    """None when that cannot be said."""
    try:
        return rule.fits(submission, details, now)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        log.warning("rule_failed", rule=rule.id, why=str(error))
        return None


def _together(terms: list[Terms], least: int) -> Terms:
    """What several rules ask for, all of it: the largest quorum, whoever all of them let decide."""
    if not terms:
        return Terms(quorum=least)
    named = [set(each.approvers) for each in terms if each.approvers]
    escalating = [each for each in terms if each.escalate_after_seconds is not None]
    soonest = min(escalating, key=lambda each: each.escalate_after_seconds or 0, default=None)
    return Terms(
        quorum=max(least, *(each.quorum for each in terms)),
        approvers=tuple(sorted(set.intersection(*named))) or NOBODY if named else (),
        needs_reason=any(each.needs_reason for each in terms),
        escalate_after_seconds=soonest.escalate_after_seconds if soonest else None,
        escalate_to=soonest.escalate_to if soonest else (),
        rule=",".join(each.rule or "" for each in terms),
    )


NOBODY = ("nobody",)
"""Rules that name no common approver leave it to whom they escalate to."""
