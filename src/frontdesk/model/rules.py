"""Rules: which actions are refused, allowed or asked for, by action and argument, and on which terms."""

import fnmatch
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from frontdesk import errors
from frontdesk.logs import get_logger
from frontdesk.model import paths, spellings
from frontdesk.model.confirmations import (
    DIGEST,
    HIGH_RISK_ACTIONS,
    MAX_TIMEOUT_SECONDS,
    AskedAction,
    Mode,
    Party,
    Terms,
    is_high_risk,
)
from frontdesk.model.inspecting import is_readable
from frontdesk.model.people import bare_name

STRICT_QUORUM = 2
MAX_QUORUM = 20
UNCLEAR = (TypeError, ValueError, OverflowError, RecursionError)
"""What comes of a comparison that cannot be made."""

log = get_logger(__name__)


class Effect(StrEnum):
    DENY = "deny"
    ASK = "ask"
    ALLOW = "allow"


class Comparison(StrEnum):
    """How an argument is compared. With a value of another kind it cannot be."""

    EQUALS = "equals"
    LIKE = "like"
    """With *, ? and [..] as in file names; case counts."""
    ABOVE = "above"
    BELOW = "below"
    PRESENT = "present"


class Condition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an argument must be; ``argument`` names it with dots: ``target.path``.

    A key may have dots of its own. A rule that denies or asks looks at whatever the name may mean; one that
    allows fits only where it means one thing, an argument in an argument."""

    argument: str
    test: Comparison = Comparison.EQUALS
    value: Any = None


class Rule(Party, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every part that is set must fit. A remembered decision is a rule that allows, and has an end."""

    id: str
    effect: Effect
    action: str | None = None
    """The action's name, with *, ? and [..] as in file names; none fits every action, and allows none.

    A rule that allows fits exactly this spelling, the others whatever reads like it."""
    digest: str | None = None
    """Exactly this action with these arguments."""
    conditions: tuple[Condition, ...] = ()
    session_key: str | None = None
    """Only what is asked in this conversation."""
    quorum: int = 1
    needs_reason: bool = False
    created_by: str = ""
    created_at: datetime | None = None
    expires_at: datetime | None = None

    @property
    def terms(self) -> Terms:
        who = msgspec.structs.asdict(self.party)
        return Terms(**who, quorum=max(self.quorum, 1), needs_reason=self.needs_reason, rule=self.id)

    def _is_here(self, asked: AskedAction) -> bool:
        """Whether it is asked in the rule's conversation. To allow something it takes the gateway's word for
        that: whoever else asks can name any conversation."""
        if self.session_key is None:
            return True
        told = asked.turn_id is not None or self.effect is not Effect.ALLOW
        return told and self.session_key == asked.session_key

    def fits(self, asked: AskedAction, details: Mapping[str, Any], now: datetime) -> bool:
        if self.expires_at is not None and self.expires_at <= now:
            return False
        if not self._is_here(asked):
            return False
        if self.digest is not None and self.digest != asked.digest:
            return False
        if not self._names(asked.action):
            return False
        holds = _certainly_holds if self.effect is Effect.ALLOW else _holds
        return all(holds(condition, details) for condition in self.conditions)

    def _names(self, action: str) -> bool:
        if self.action is None or fnmatch.fnmatchcase(action, self.action):
            return True
        if self.effect is Effect.ALLOW:
            return False
        return spellings.fits(action, self.action)

    def check(self, now: datetime) -> None:
        """Refuse a rule that fits nothing or asks for more people than may decide, or that would let through
        what is always asked, or everything, or for ever."""
        why = self._why_impossible() or (self._why_too_wide(now) if self.effect is Effect.ALLOW else None)
        if why:
            what = f"The rule for {self.action!r}" if self.action else "The rule"
            raise errors.InvalidInput(what=what, why=why)

    def _why_impossible(self) -> str | None:
        if self.digest is not None and not DIGEST.fullmatch(self.digest):
            return "no action has its digest: one has 64 signs of 0-9 and a-f"
        if not 1 <= self.quorum <= MAX_QUORUM:
            return f"its quorum is not from 1 to {MAX_QUORUM}"
        named = frozenset(map(bare_name, self.named(timedelta.max)))
        if self.effect is Effect.ASK and self.approvers and len(named) < self.quorum:
            return f"it names {len(named)} who may decide, and wants {self.quorum}"
        return None

    def _why_too_wide(self, now: datetime) -> str | None:
        if not self.action and not self.digest:
            return "one that allows names an action or a digest"
        if self.action and any(fnmatch.fnmatchcase(each, self.action) for each in HIGH_RISK_ACTIONS):
            return "it covers what is always asked"
        if self.action and is_high_risk(self.action):
            return "it is always asked"
        if self.expires_at is None or self.expires_at <= now:
            return "one that allows needs an end in the future"
        return None


def _certainly_holds(condition: Condition, details: Mapping[str, Any]) -> bool:
    """TypeError when the argument's name can be read in another way, too."""
    readings = list(_readings(condition.argument, details))
    if any(reading.dotted for reading in readings):
        raise TypeError("a key with dots in it can be meant")
    if any(reading.alike for reading in readings):
        raise TypeError("another key reads like it")
    return any(_compares(condition, reading.value, certainly=True) for reading in readings)


def _holds(condition: Condition, details: Mapping[str, Any]) -> bool:
    """Whether it does for anything that the argument's name may mean; TypeError when it does for none, and
    one of them is of a kind that cannot be compared so."""
    doubt: Exception | None = None
    for reading in _readings(condition.argument, details):
        try:
            if _compares(condition, reading.value, certainly=False):
                return True
        except UNCLEAR as error:
            doubt = error
    if doubt:
        raise doubt
    return False


def _compares(condition: Condition, value: object, *, certainly: bool) -> bool:
    """TypeError when the value is of a kind that cannot be compared so, ValueError when it is odd."""
    if isinstance(value, _Nothing):
        raise TypeError(value.why)
    match condition.test:
        case Comparison.PRESENT:
            return True
        case Comparison.EQUALS:
            if not certainly and isinstance(value, str) and isinstance(condition.value, str):
                return paths.possibly_like(value, paths.exactly(condition.value))
            return _same(value, condition.value)
        case Comparison.LIKE:
            if certainly:
                return paths.certainly_like(_text(value), _text(condition.value), condition.argument)
            return paths.possibly_like(_text(value), _text(condition.value))
        case Comparison.ABOVE:
            return _number(value) > _number(condition.value)
        case Comparison.BELOW:
            return _number(value) < _number(condition.value)


def _same(value: object, wanted: object) -> bool:
    """5 and 5.0 are one number. A list or an object is the same, or cannot be compared: what is looked for
    may be in it."""
    if _is_plain(value) and wanted is None:
        return value is None
    if _is_number(value) and _is_number(wanted):
        return value == wanted
    if type(value) is not type(wanted):
        raise TypeError(f"{_kind(value)} is compared with {_kind(wanted)}")
    if not _is_plain(value) and _written(value) != _written(wanted):
        raise TypeError(f"{_kind(value)} is compared with another one")
    return value == wanted


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _written(value: object) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{_kind(value)} is not a text")
    return value


def _number(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{_kind(value)} is not a number")
    return float(value)


def _kind(value: object) -> str:
    """For the log, which has no arguments in it."""
    return f"a value of type {type(value).__name__}"


class _Nothing(NamedTuple):
    """In place of a value: what should hold it is no object."""

    why: str


class _Reading(NamedTuple):
    """Something that an argument's name may mean."""

    value: Any
    dotted: bool = False
    """A key on the way has a dot in it."""
    alike: bool = False
    """A key on the way is written in another way."""


_AT_FIRST = _Reading(None)


def _readings(name: str, holder: object, way: _Reading = _AT_FIRST) -> Iterator[_Reading]:
    """All that a name leads to: a dot in it is a step, or a part of a key. No more than there are values."""
    if holder is None:
        return
    if not isinstance(holder, Mapping):
        yield way._replace(value=_Nothing(f"{_kind(holder)} holds no {name!r}"))
        return
    yield from _called(name, holder, way)
    for dot in (place for place, sign in enumerate(name) if sign == "."):
        for step in _called(name[:dot], holder, way):
            yield from _readings(name[dot + 1 :], step.value, step)


def _called(name: str, holder: Mapping[str, Any], way: _Reading) -> Iterator[_Reading]:
    """What goes by a name, and by whatever reads like it."""
    dotted = way.dotted or "." in name
    if name in holder:
        yield _Reading(holder[name], dotted, way.alike)
    shape = spellings.skeleton(name)
    for key, value in holder.items():
        if key != name and spellings.skeleton(key) == shape:
            yield _Reading(value, dotted, alike=True)


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules say to what is asked."""

    effect: Effect
    terms: Terms = Terms()


def is_always_asked(action: str, details: Mapping[str, Any]) -> bool:
    """Whether it is one of the ten, or holds something that nobody can read."""
    return is_high_risk(action) or not is_readable(details)


def decide(
    rules: Iterable[Rule], asked: AskedAction, details: Mapping[str, Any], mode: Mode, now: datetime
) -> Ruling:
    """Deny first; then the ten are asked, and what nobody can read; then what needs several people, or
    others; then what is remembered; then it is asked. A rule that cannot be evaluated asks, on its terms
    where it has some."""
    fitting = [(rule, _fits(rule, asked, details, now)) for rule in rules]
    found = [rule for rule, fits in fitting if fits]
    if denying := [rule for rule in found if rule.effect is Effect.DENY]:
        return Ruling(effect=Effect.DENY, terms=denying[0].terms)
    asking = [rule.terms for rule, fits in fitting if rule.effect is Effect.ASK and fits is not False]
    allowing = [rule for rule in found if rule.effect is Effect.ALLOW and (rule.action or rule.digest)]
    if not allowing and mode is not Mode.STRICT:  # it is asked, whatever stands in it
        return Ruling(effect=Effect.ASK, terms=_together(asking, 1))
    high = is_always_asked(asked.action, details)
    terms = _together(asking, STRICT_QUORUM if high and mode is Mode.STRICT else 1)
    doubtful = any(fits is None for _, fits in fitting)
    if high or asking or doubtful or mode is Mode.STRICT:
        return Ruling(effect=Effect.ASK, terms=terms)
    return Ruling(effect=Effect.ALLOW, terms=allowing[0].terms)


def _fits(rule: Rule, asked: AskedAction, details: Mapping[str, Any], now: datetime) -> bool | None:
    """None when that cannot be said."""
    try:
        return rule.fits(asked, details, now)
    except UNCLEAR as error:
        log.warning("rule_failed", rule=rule.id, why=str(error))
        return None


def _together(terms: list[Terms], least: int) -> Terms:
    """What several rules ask for, all of it: the largest quorum, and whoever each of them lets decide."""
    parties = tuple(each.party for each in terms if each.approvers)
    after = _first_change(parties, terms)
    first = _common(parties, BEFORE)
    then = _common(parties, timedelta(seconds=after)) if after is not None else first
    return Terms(
        quorum=max(least, *(each.quorum for each in terms)) if terms else least,
        approvers=tuple(sorted(first)) or NOBODY if parties else (),
        needs_reason=any(each.needs_reason for each in terms),
        escalate_after_seconds=after,
        escalate_to=tuple(sorted(then - first)),
        rule=",".join(each.rule or "" for each in terms) or None,
        parties=parties,
    )


def _first_change(parties: tuple[Party, ...], terms: list[Terms]) -> int | None:
    """When somebody more may decide; else, when the first rule wants people to be told again."""
    wanted = {each.escalate_after_seconds for each in terms}
    after = sorted(each for each in wanted if each is not None and 0 <= each < MAX_TIMEOUT_SECONDS)
    first = _common(parties, BEFORE)
    changes = (each for each in after if _common(parties, timedelta(seconds=each)) != first)
    return next(changes, after[0] if after else None)


def _common(parties: tuple[Party, ...], waited: timedelta) -> frozenset[str]:
    named = [party.named(waited) for party in parties]
    return frozenset.intersection(*named) if named else frozenset()


BEFORE = timedelta.min
"""Before any rule escalates."""
NOBODY = ("nobody",)
"""Who is named when the rules have no name in common; a person may still go by a name in each."""
