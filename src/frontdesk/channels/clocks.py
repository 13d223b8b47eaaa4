"""Our clock beside a platform's, by the time that stands in its answers."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from frontdesk.model import findings
from frontdesk.model.findings import Finding

MOST_SKEW = timedelta(seconds=30)
SKEWED = "this machine's clock is {seconds} seconds {way} {whose}: set it by NTP"

Answered = tuple[str, datetime] | None
"""The time by the platform's clock when it last answered, as it wrote that, and by ours."""


def skew(answered: Answered) -> timedelta:
    """How far our clock is ahead of the platform's, as far as that can be told and is much."""
    if answered is None:
        return timedelta()
    told, here = answered
    try:
        ahead = here - parsedate_to_datetime(told).astimezone(UTC)
    except (ValueError, OverflowError):
        return timedelta()
    return ahead if abs(ahead) > MOST_SKEW else timedelta()


def compare(answered: Answered, whose: str) -> list[Finding]:
    """What is to be said of our clock; ``whose`` the other one is, as in "Telegram's"."""
    ahead = skew(answered)
    if not ahead:
        return []
    way = "ahead of" if ahead > timedelta() else "behind"
    told = SKEWED.format(seconds=round(abs(ahead).total_seconds()), way=way, whose=whose)
    return [findings.warning(told)]
