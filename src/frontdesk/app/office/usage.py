"""What is asked about usage: what was spent, on what, and whether long sessions get worse."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, date, timedelta
from typing import TypedDict

from frontdesk import errors
from frontdesk.app.office.counters import Counter
from frontdesk.model import pages, policies, routing
from frontdesk.model.lists import ListedSession, SessionFilter
from frontdesk.model.usage import CurvePoint, UsageDay

USUAL_DAYS, MOST_DAYS = 14, 366
MOST_SESSIONS = 1_000
"""So many of a person's sessions at most are added up."""
MOST_RANKED = 200


class TurnsSpent(TypedDict):
    """What turns came to. Of a person only what their sessions count is known: null is what is not."""

    turns: int | None
    failed: int | None
    messages: int
    tools: int | None
    """Results of tools."""
    failures: int | None
    """Of those, errors."""
    tokens: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cost_usd: float


class SpentOnDay(TurnsSpent):
    day: str
    """Of UTC."""


class SpentOn(TurnsSpent):
    name: str
    """Of the platform, model or profile; empty for an agent's own model."""


class UsageReport(TypedDict):
    """What was used in some days: each of them, and what for, of which the 200 that cost most are named."""

    total: TurnsSpent
    today: TurnsSpent
    days: list[SpentOnDay]
    """The oldest first; empty for a person, whose sessions are known as a whole."""
    platforms: list[SpentOn]
    models: list[SpentOn]
    profiles: list[SpentOn]


class MarathonPoint(TurnsSpent):
    message: int
    """The first of the message numbers that it stands for."""
    tool_error_rate: float | None
    tokens_per_turn: float
    cost_per_turn: float


class MarathonCurve(TypedDict):
    """What turns came to, by how many messages their session had."""

    points: list[MarathonPoint]
    warn_at: int | None
    """From which message on the agent is told that the session ends soon, by the usual settings."""
    limit_at: int | None
    """At which message the session is followed by another one."""


class UsageCounter(Counter):
    async def usage(self, days: int = USUAL_DAYS) -> UsageReport:
        """What was used in the last days, today included; of a person, by their conversations that were
        active in that time."""
        last = self._clock.now().astimezone(UTC).date()
        first = _first(last, days)
        if not self._viewer.administrator:
            return await self._own_usage(first)
        found = await self._store.usage.days(first, last)
        by_day = _by(found, lambda each: each.day.isoformat())
        each_day = [(first + timedelta(days=number)).isoformat() for number in range(days)]
        return {
            "total": _sum(found),
            "today": _sum(by_day.get(last.isoformat(), ())),
            "days": [{"day": day, **_sum(by_day.get(day, ()))} for day in each_day],
            "platforms": _ranked(_by(found, lambda each: each.platform), _sum),
            "models": _ranked(_by(found, lambda each: each.model), _sum),
            "profiles": _ranked(_by(found, lambda each: each.profile or routing.DEFAULT), _sum),
        }

    async def marathon(self, days: int = USUAL_DAYS) -> MarathonCurve:
        """How often tools failed, how many tokens a turn took and what it cost, by the number of its message
        in the session."""
        last = self._clock.now().astimezone(UTC).date()
        points = await self._store.usage.curve(_first(last, days), last)
        limit = self._conversations.config.default_reset_policy.max_messages
        return {
            "points": [_point(each) for each in points],
            "warn_at": round(policies.near(limit)) if limit else None,
            "limit_at": limit or None,
        }

    async def _own_usage(self, first: date) -> UsageReport:
        """By the viewer's own sessions: what each has used is written in it."""
        found: list[UsageDay] = []
        after: str | None = None
        while len(found) < MOST_SESSIONS:
            page = await self._conversations.list_page(
                self._viewer, SessionFilter(), limit=pages.MOST_ITEMS, after=after
            )
            recent = [each for each in page.items if each.session.entry.updated_at.date() >= first]
            found += map(_of_session, recent)
            after = page.next
            if after is None or len(recent) < len(page.items):
                break
        today = self._clock.now().astimezone(UTC).date()
        return {
            "total": _own(found),
            "today": _own([each for each in found if each.day == today]),
            "days": [],
            "platforms": _ranked(_by(found, lambda each: each.platform), _own),
            "models": _ranked(_by(found, lambda each: each.model), _own),
            "profiles": _ranked(_by(found, lambda each: each.profile), _own),
        }


def _first(last: date, days: int) -> date:
    if not 1 <= days <= MOST_DAYS:
        raise errors.InvalidInput(what=f"days = {days}", why=f"use a number from 1 to {MOST_DAYS}")
    return last - timedelta(days=days - 1)


def _of_session(listed: ListedSession) -> UsageDay:
    entry = listed.session.entry
    return UsageDay(
        day=entry.updated_at.astimezone(UTC).date(),
        platform=str(entry.platform or ""),
        profile=listed.profile or routing.DEFAULT,
        model=(entry.model_override or {}).get("model", ""),
        messages=entry.message_count,
        input_tokens=entry.input_tokens,
        output_tokens=entry.output_tokens,
        cache_read_tokens=entry.cache_read_tokens,
        cost_usd=entry.estimated_cost_usd,
    )


def _by(found: Iterable[UsageDay], name: Callable[[UsageDay], str]) -> dict[str, list[UsageDay]]:
    groups: dict[str, list[UsageDay]] = defaultdict(list)
    for each in found:
        groups[name(each)].append(each)
    return groups


def _own(found: Iterable[UsageDay]) -> TurnsSpent:
    """What sessions tell: no turns, and nothing of tools."""
    return {**_sum(found), "turns": None, "failed": None, "tools": None, "failures": None}


def _ranked(groups: dict[str, list[UsageDay]], add: Callable[[list[UsageDay]], TurnsSpent]) -> list[SpentOn]:
    """What cost most first, no more of them than somebody looks through."""
    sums: list[SpentOn] = [{"name": name, **add(found)} for name, found in groups.items()]
    return sorted(sums, key=lambda each: (-each["cost_usd"], -each["tokens"], each["name"]))[:MOST_RANKED]


def _sum(found: Iterable[UsageDay | CurvePoint]) -> TurnsSpent:
    every = list(found)
    days = [each for each in every if isinstance(each, UsageDay)]
    taken, given = sum(each.input_tokens for each in every), sum(each.output_tokens for each in every)
    return {
        "turns": sum(each.turns for each in every),
        "failed": sum(each.failed for each in days),
        "messages": sum(each.messages for each in days),
        "tools": sum(each.tools for each in every),
        "failures": sum(each.failures for each in every),
        "tokens": taken + given,
        "input_tokens": taken,
        "output_tokens": given,
        "cache_read_tokens": sum(each.cache_read_tokens for each in days),
        "cost_usd": sum((each.cost_usd for each in every), 0.0),
    }


def _point(point: CurvePoint) -> MarathonPoint:
    spent, turns = _sum([point]), max(point.turns, 1)
    return {
        **spent,
        "message": point.number,
        "tool_error_rate": point.error_rate,
        "tokens_per_turn": spent["tokens"] / turns,
        "cost_per_turn": spent["cost_usd"] / turns,
    }
