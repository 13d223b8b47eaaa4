"""The daily boundary in every zone: one reset a local day, whatever the clock does.

A day's boundary is the first moment at which the wall clock shows that day's hour or more; the tests find it
their own way, from the list of a zone's offsets. A conversation gets one reset for each day whose boundary
its clock passes between two activities, however often that happens, and none for a day that it skips.
"""

import bisect
import functools
import random
import zoneinfo
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import accumulate, pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import errors
from frontdesk.model import policies, sessions
from frontdesk.model.policies import EndReason, ResetMode, SessionResetPolicy
from tests import counts

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
FIRST_DAY, LAST_DAY = date(2024, 1, 1), date(2030, 12, 31)
ORDINARY_HOURS = (0, 4, 23)

# Zones with changes at midnight, by half an hour, by two hours, four times a year, backwards or not at all.
TELLING_ZONES = [
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/Asuncion",
    "America/Havana",
    "America/New_York",
    "America/Nuuk",
    "America/Santiago",
    "America/Scoresbysund",
    "America/St_Johns",
    "Antarctica/Troll",
    "Asia/Almaty",
    "Asia/Beirut",
    "Asia/Kathmandu",
    "Atlantic/Azores",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Europe/Dublin",
    "Pacific/Apia",
    "Pacific/Chatham",
    "UTC",
]
ZONES = sorted(zoneinfo.available_timezones()) if counts.proving() else TELLING_ZONES


class Span(NamedTuple):
    """A time during which a zone's offset stays the same."""

    begin: datetime
    end: datetime
    offset: timedelta


def midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


@functools.cache
def spans(zone: tzinfo, first: date = FIRST_DAY, last: date = LAST_DAY) -> list[Span]:
    begin, end = midnight(first) - 7 * DAY, midnight(last) + 14 * DAY
    days = [begin + n * DAY for n in range((end - begin).days + 1)]
    pairs = [pair for pair in pairwise(days) if offset(pair[0], zone) != offset(pair[1], zone)]
    edges = [begin, *(change_within(*pair, zone) for pair in pairs), end]
    return [Span(left, right, offset(left, zone)) for left, right in pairwise(edges)]


def offset(moment: datetime, zone: tzinfo) -> timedelta:
    found = moment.astimezone(zone).utcoffset()
    assert found is not None
    return found


def change_within(before: datetime, after: datetime, zone: tzinfo) -> datetime:
    while after - before > SECOND:
        middle = before + SECOND * ((after - before) // SECOND // 2)
        if offset(middle, zone) == offset(before, zone):
            before = middle
        else:
            after = middle
    return after


def changes(zone: tzinfo) -> list[datetime]:
    return [span.begin for span in spans(zone)[1:]]


def reached(day: date, hour: int, known: list[Span]) -> datetime:
    """When the wall clock first showed that hour of that day, or more."""
    wanted = datetime.combine(day, time(hour), UTC)
    moments = ((max(span.begin, wanted - span.offset), span.end) for span in known)
    return next(moment for moment, end in moments if moment < end)


def days_between(first: date, last: date) -> Iterator[date]:
    return (first + n * DAY for n in range((last - first).days + 1))


class Conversation:
    """A session under a daily policy that is active at each tick of an arbitrary clock."""

    def __init__(self, zone: ZoneInfo, hour: int, now: datetime) -> None:
        self.policy = SessionResetPolicy(
            mode=ResetMode.DAILY, at_hour=hour, max_messages=0, timezone=zone.key
        )
        self.zone = zone
        self.active = now
        self.served: tuple[datetime, ...] = ()
        self.resets: Counter[datetime] = Counter()

    def tick(self, now: datetime) -> None:
        reason = self.policy.stale_reason(
            last_activity=self.active, message_count=9, now=now, machine_zone=UTC, served=self.served
        )
        if reason is EndReason.DAILY:
            boundary = policies.latest_passing(now, self.policy.at_hour, self.zone)
            self.served = sessions.with_boundary(self.served, boundary)
            self.resets[boundary] += 1
        else:
            assert reason is None
        self.active = now


def wandering_clock(begin: datetime, end: datetime, chance: random.Random) -> Iterator[datetime]:
    """Ticks up to ten hours apart; now and then the clock is set back, or runs ahead and is corrected.

    All in all it strays by less than the boundaries that a conversation remembers.
    """
    now = furthest = begin
    while now < end:
        now += timedelta(seconds=chance.randint(1, 36_000))
        furthest = max(furthest, now)
        yield now
        stroke = chance.randint(1, 80)
        if stroke == 1:
            now = max(now - timedelta(minutes=chance.randint(1, 5 * 1440)), furthest - 7 * DAY)
        elif stroke == 2:
            ahead = timedelta(minutes=chance.randint(1, 5 * 1440))
            yield from (now + ahead + n * timedelta(hours=5) for n in range(chance.randint(1, 8)))
            yield now


@pytest.mark.prove
@pytest.mark.parametrize("name", ZONES)
def test_boundary_is_the_first_moment_at_which_the_clock_shows_the_hour(name: str) -> None:
    zone = ZoneInfo(name)
    known = spans(zone)
    around = {change.date() + n * DAY for change in changes(zone) for n in (-2, -1, 0, 1, 2)}
    for day in days_between(FIRST_DAY, LAST_DAY):
        for hour in range(24) if day in around else ORDINARY_HOURS:
            boundary = reached(day, hour, known)
            assert policies.passing_of(day, hour, zone) == boundary
            assert policies.latest_passing(boundary, hour, zone) == boundary
            assert policies.latest_passing(boundary - SECOND, hour, zone) < boundary


@pytest.mark.prove
@pytest.mark.parametrize("name", ZONES)
def test_wandering_clock_brings_exactly_one_reset_a_local_day(name: str) -> None:
    zone, chance = ZoneInfo(name), random.Random(name)
    last_day = LAST_DAY if counts.proving() else date(2025, 6, 30)
    hour = chance.randrange(24)
    expected = [reached(day, hour, spans(zone)) for day in days_between(FIRST_DAY, last_day)]
    conversation = Conversation(zone, hour, expected[0] - SECOND)
    for now in wandering_clock(expected[0] - SECOND, expected[-1] + timedelta(hours=1), chance):
        conversation.tick(now)
    resets = {boundary: times for boundary, times in conversation.resets.items() if boundary in set(expected)}
    assert resets == dict.fromkeys(expected, 1)
    assert set(conversation.resets.values()) == {1}


@st.composite
def walks(draw: st.DrawFn) -> tuple[ZoneInfo, int, list[datetime]]:
    """Moments around a change of the clock, in any order."""
    zone = ZoneInfo(draw(st.sampled_from([name for name in TELLING_ZONES if changes(ZoneInfo(name))])))
    now = draw(st.sampled_from(changes(zone))) + timedelta(minutes=draw(st.integers(-3000, 3000)))
    moves = draw(st.lists(st.integers(-4000, 4000), min_size=1, max_size=14))
    return zone, draw(st.integers(0, 23)), [now + timedelta(minutes=n) for n in accumulate(moves)]


@given(walks())
def test_day_is_reset_once_however_often_the_clock_passes_its_boundary(
    walk: tuple[ZoneInfo, int, list[datetime]],
) -> None:
    zone, hour, moments = walk
    first, last = min(moments).date() - 3 * DAY, max(moments).date() + 3 * DAY
    passings = [reached(day, hour, spans(zone)) for day in days_between(first, last)]
    steps = [(old, passings[bisect.bisect_right(passings, new) - 1]) for old, new in pairwise(moments)]
    crossed = {boundary for old, boundary in steps if old < boundary}
    conversation = Conversation(zone, hour, moments[0])
    for moment in moments[1:]:
        conversation.tick(moment)
    assert conversation.resets == dict.fromkeys(crossed, 1)


@pytest.mark.parametrize("ahead", [1, 15, 16, 17, 60, 3650])
def test_clock_that_ran_ahead_for_a_moment_costs_no_second_reset(ahead: int) -> None:
    zone, begin = ZoneInfo("Europe/Berlin"), datetime(2026, 3, 1, 12, tzinfo=UTC)
    conversation = Conversation(zone, 4, begin)
    conversation.tick(begin + ahead * DAY)
    for n in range(ahead + 3):
        conversation.tick(begin + n * DAY)
    assert len(conversation.resets) == ahead + 2
    assert set(conversation.resets.values()) == {1}


def test_clock_that_runs_ahead_for_long_still_gives_a_reset_every_day() -> None:
    zone, begin = ZoneInfo("Europe/Berlin"), datetime(2026, 3, 1, 12, tzinfo=UTC)
    conversation = Conversation(zone, 4, begin + 3650 * DAY)
    for n in range(40):
        conversation.tick(begin + (3650 + n) * DAY)
    conversation.resets.clear()
    for n in range(40):
        conversation.tick(begin + n * DAY)
        conversation.tick(begin + n * DAY - timedelta(hours=11))
        conversation.tick(begin + n * DAY)
    assert list(conversation.resets.values()) == [1] * 40


def berlin(*when: int, fold: int = 0) -> datetime:
    return datetime(*when, tzinfo=ZoneInfo("Europe/Berlin"), fold=fold).astimezone(UTC)  # type: ignore[arg-type,misc]


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ((2026, 1, 10, 12), (2026, 1, 10, 4)),
        ((2026, 1, 10, 4), (2026, 1, 10, 4)),
        ((2026, 1, 10, 3, 59, 59), (2026, 1, 9, 4)),
        ((2026, 1, 10, 0), (2026, 1, 9, 4)),
        ((2026, 1, 1, 1), (2025, 12, 31, 4)),
    ],
)
def test_before_the_hour_the_boundary_is_yesterdays(now: tuple[int, ...], expected: tuple[int, ...]) -> None:
    found = policies.latest_passing(berlin(*now), 4, ZoneInfo("Europe/Berlin"))
    assert found == berlin(*expected)
    assert found.tzinfo is UTC


def test_skipped_hour_counts_at_the_jump() -> None:
    found = policies.passing_of(date(2026, 3, 29), 2, ZoneInfo("Europe/Berlin"))
    assert found == datetime(2026, 3, 29, 1, tzinfo=UTC) == berlin(2026, 3, 29, 3)


def test_repeated_hour_counts_the_first_time() -> None:
    zone = ZoneInfo("Europe/Berlin")
    assert policies.passing_of(date(2026, 10, 25), 2, zone) == datetime(2026, 10, 25, 0, tzinfo=UTC)
    second_time = berlin(2026, 10, 25, 2, 30, fold=1)
    assert policies.latest_passing(second_time, 2, zone) == datetime(2026, 10, 25, 0, tzinfo=UTC)


def test_skipped_midnight_counts_at_the_jump() -> None:
    zone = ZoneInfo("Asia/Beirut")
    (jump,) = [change for change in changes(zone) if change.year == 2026 and change.month == 3]
    assert policies.passing_of(jump.astimezone(zone).date(), 0, zone) == jump
    assert policies.latest_passing(jump, 0, zone) == jump
    assert policies.latest_passing(jump - SECOND, 0, zone) < jump


def test_hour_skipped_into_the_next_day_counts_at_the_jump() -> None:
    zone = ZoneInfo("America/Nuuk")
    (jump,) = [change for change in changes(zone) if change.year == 2026 and change.month == 3]
    assert jump.astimezone(zone).hour == 0
    eve = (jump - SECOND).astimezone(zone).date()
    assert policies.passing_of(eve, 23, zone) == policies.passing_of(eve + DAY, 0, zone) == jump
    assert policies.latest_passing(jump, 23, zone) == jump


def test_clock_set_back_over_midnight_keeps_the_new_days_boundary() -> None:
    zone = ZoneInfo("America/St_Johns")  # until 2011 it was set back at one minute past midnight
    first_midnight = datetime(2010, 11, 7, 0, tzinfo=zone).astimezone(UTC)
    set_back = first_midnight + timedelta(minutes=1)
    assert set_back.astimezone(zone).date() == date(2010, 11, 6)
    for moment in (first_midnight, set_back, set_back + timedelta(hours=3)):
        assert policies.latest_passing(moment, 0, zone) == first_midnight


def test_jump_is_found_to_the_second() -> None:
    zone = ZoneInfo("America/St_Johns")  # until 2011 it was set forward at one minute past midnight
    jump = datetime(2010, 3, 14, 3, 31, tzinfo=UTC)
    assert jump.astimezone(zone).time() == time(1, 1)
    assert policies.passing_of(date(2010, 3, 14), 1, zone) == jump


@pytest.mark.parametrize("zone", [UTC, ZoneInfo("Etc/GMT+12"), ZoneInfo("Pacific/Kiritimati")])
def test_zone_without_changes_is_plain_arithmetic(zone: tzinfo) -> None:
    now = datetime(2026, 5, 5, 12, tzinfo=UTC)
    found = policies.latest_passing(now, 4, zone)
    assert found.astimezone(zone).time() == time(4)
    assert now - DAY < found <= now


@pytest.mark.parametrize(
    "name", ["", "Mars/Olympus", "Europe", "../UTC", "/etc/localtime", "a\x00b", "\ud800", "x" * 5000]
)
def test_zone_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(errors.InvalidSetting, match=r"timezone is .*IANA name"):
        policies.load_zone(name)


def test_zone_is_found_by_its_iana_name() -> None:
    assert policies.load_zone("Asia/Tokyo") is ZoneInfo("Asia/Tokyo")
