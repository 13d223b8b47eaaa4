"""What turns came to: noted in each turn's own row when it ends, and added up by day some time later."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from typing import Any

import msgspec
from msgspec.structs import asdict

from frontdesk.contracts.store import Row, Work
from frontdesk.logs import get_logger
from frontdesk.model.turns import FINISHED, TurnState, TurnTally
from frontdesk.model.usage import CurvePoint, UsageDay, bucket_of
from frontdesk.stores.columns import EPOCH, MICROS_A_MINUTE, UNREADABLE, clean
from frontdesk.stores.rows import USAGE_DAY
from frontdesk.stores.work import Noun, glances, reads, writes_lazily

MICROS_A_DAY = 24 * 60 * MICROS_A_MINUTE
FIRST_DAY = EPOCH.date().toordinal()
BATCH = 500
NAME_CHARACTERS = 100
MOST_AT_ONCE = 10**12
"""Of anything in one turn, whatever its agent says: sums stay within what a column holds."""
MOST_LOOKED_AT = 2_000
"""Of what is not added up yet, when somebody asks."""
SUMMED = tuple(
    name for name in UsageDay.__struct_fields__ if name not in ("day", "platform", "profile", "model")
)
POINT = tuple(name for name in CurvePoint.__struct_fields__ if name != "number")

Sums = dict[tuple[Any, ...], dict[str, Any]]

log = get_logger(__name__)
_read = msgspec.json.Decoder(TurnTally).decode


class UsageFigures(Noun):
    async def fold_all(self) -> None:
        """Add up everything that is noted, some at a time, so that nobody waits for it."""
        while await self._waits() and await self.fold(BATCH) == BATCH:
            continue

    @glances
    def _waits(self) -> Work[bool]:
        return bool((yield "tallies", {"limit": 1}))

    @writes_lazily
    def fold(self, limit: int) -> Work[int]:
        """Add up what some turns came to; how many. What is added is no longer noted, or neither."""
        found = yield "tallies_locked", {"limit": limit}
        days, points = _sums(found)
        # In one order, so that two nodes that add at once do not wait for each other in a circle.
        for (day, platform, profile, model), sums in sorted(days.items()):
            named = {"day": day, "platform": platform, "profile": profile, "model": model}
            yield "add_usage_day", {**named, **sums}
        for (day, model, number), sums in sorted(points.items()):
            yield "add_usage_curve", {"day": day, "model": model, "number": number, **sums}
        for row in found:
            yield "forget_tally", {"number": row[0]}
        return len(found)

    @reads
    def days(self, first: date, last: date) -> Work[list[UsageDay]]:
        """What the turns of these days came to, with what is noted and not added up yet."""
        low, high = _number(first), _number(last)
        noted, _ = _sums((yield "tallies", {"limit": MOST_LOOKED_AT}))
        found = [USAGE_DAY.facts(row) for row in (yield "usage_days", {"first": low, "last": high})]
        known: Sums = {
            (each["day"], each["platform"], each["profile"], each["model"]): {
                name: each[name] for name in SUMMED
            }
            for each in found
        }
        _add(known, {key: sums for key, sums in noted.items() if low <= key[0] <= high})
        return [
            UsageDay(day=_day(day), platform=platform, profile=profile, model=model, **sums)
            for (day, platform, profile, model), sums in sorted(known.items())
        ]

    @reads
    def curve(self, first: date, last: date, model: str | None = None) -> Work[list[CurvePoint]]:
        """What turns of these days came to by how many messages their session had; of one model or all."""
        low, high = _number(first), _number(last)
        _, noted = _sums((yield "tallies", {"limit": MOST_LOOKED_AT}))
        values = {"first": low, "last": high, "model": model}
        known: Sums = {
            (number,): dict(zip(POINT, map(_plain, sums), strict=True))
            for number, *sums in (yield "usage_curve", values)
        }
        for (day, of_model, number), sums in noted.items():
            if low <= day <= high and model in (None, of_model):
                _add(known, {(number,): sums})
        return [CurvePoint(number=number, **sums) for (number,), sums in sorted(known.items())]


def _number(day: date) -> int:
    return day.toordinal() - FIRST_DAY


def _day(number: int) -> date:
    return date.fromordinal(number + FIRST_DAY)


def _plain(amount: Any) -> int | float:
    """A sum; PostgreSQL gives sums of whole numbers as decimals."""
    return amount if isinstance(amount, int | float) else int(amount)


def _add(known: Sums, more: Sums) -> None:
    for key, sums in more.items():
        before = known.get(key)
        known[key] = {name: sums[name] + (before[name] if before else 0) for name in sums}


def _sums(found: Iterable[Row]) -> tuple[Sums, Sums]:
    """What turns came to, by day, platform, profile and model; and by day, model and message number."""
    days: Sums = defaultdict(lambda: dict.fromkeys(SUMMED, 0))
    points: Sums = defaultdict(lambda: dict.fromkeys(POINT, 0))
    for _, platform, at, state, written in found:
        day = at // MICROS_A_DAY
        attempts = _tallies(written)
        for tally in attempts:
            # One that is to be run again is counted when it ends.
            ended = tally is attempts[-1] and state in FINISHED
            spent = asdict(tally) | {"turns": int(ended), "failed": int(ended and state == TurnState.FAILED)}
            profile, model = _name(tally.profile), _name(tally.model)
            of_day = days[day, platform, profile, model]
            of_point = points[day, model, bucket_of(tally.number)]
            for name in SUMMED:
                of_day[name] += min(spent[name], MOST_AT_ONCE)
            for name in POINT:
                of_point[name] += min(spent[name], MOST_AT_ONCE)
    return dict(days), dict(points)


def _name(written: str) -> str:
    """As every database takes it, and no longer than a name is."""
    return (clean(written) or "")[:NAME_CHARACTERS]


def _tallies(written: str) -> list[TurnTally]:
    """The attempts of a turn; those that cannot be read count for nothing."""
    try:
        return [_read(each) for each in written.split("\n")]
    except UNREADABLE as error:
        log.warning("tally_unreadable", why=str(error))
        return []
