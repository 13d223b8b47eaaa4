"""Budgets: how much may be asked of people, and how much may be decided without them."""

import math
from datetime import datetime, timedelta

from frontdesk import errors
from frontdesk.contracts.store import Work
from frontdesk.model.confirmations import (
    AT_ONCE_SECONDS,
    MOST_AT_ONCE,
    MOST_CALLBACKS,
    MOST_KEYS,
    MOST_PENDING,
    Confirmation,
    Settings,
    Submission,
    is_reserved,
)
from frontdesk.model.spellings import skeleton
from frontdesk.stores.columns import from_micros, to_micros
from frontdesk.stores.confirmations.asked import at


def check_load(action: str, settings: Settings, now: datetime) -> Work[None]:
    """An action counts however it is written. What was asked for after now, by a clock that was set back,
    counts as long as what was asked before. What was withdrawn counts, too: people were told of it."""
    window = timedelta(seconds=settings.window_seconds)
    ((lately, first_at, waiting, ends_at),) = yield (
        "confirmation_load",
        {
            "reads_as": skeleton(action),
            "since": to_micros(now - window),
            "until": to_micros(now + window),
            **at(now),
        },
    )
    if lately >= settings.rate_limit:
        raise errors.RateLimited(
            action=action,
            limit=settings.rate_limit,
            window_seconds=settings.window_seconds,
            retry_after_seconds=_seconds_until(first_at, window, now, most=settings.window_seconds),
        )
    if waiting >= MOST_PENDING:
        raise errors.TooManyPending(
            pending=waiting,
            window_seconds=settings.window_seconds,
            retry_after_seconds=_seconds_until(ends_at, timedelta(0), now, most=settings.window_seconds),
        )


def check_haste(submission: Submission, now: datetime) -> Work[None]:
    """Nobody's time limits what no person decides; the space that it takes does. Those without a credential
    share one allowance: a name that anybody can change bounds nobody."""
    window = timedelta(seconds=AT_ONCE_SECONDS)
    ((lately, first_at),) = yield (
        "decided_at_once" if is_reserved(submission.requester) else "decided_at_once_of_strangers",
        {
            "requester": submission.requester,
            "since": to_micros(now - window),
            "until": to_micros(now + window),
        },
    )
    if lately >= MOST_AT_ONCE:
        raise errors.RateLimited(
            action=submission.action,
            limit=MOST_AT_ONCE,
            window_seconds=AT_ONCE_SECONDS,
            retry_after_seconds=_seconds_until(first_at, window, now, most=AT_ONCE_SECONDS),
        )


def check_keys(waiting: Confirmation, now: datetime) -> Work[None]:
    """Who joins a request with ever new keys takes space, too."""
    ((known,),) = yield "count_confirmation_keys", {"confirmation_id": waiting.id}
    if known >= MOST_KEYS:
        raise _joined_too_often(waiting, MOST_KEYS, now)


def check_callbacks(waiting: Confirmation, now: datetime) -> None:
    """And so does who joins it with ever new addresses."""
    if len(waiting.callbacks) >= MOST_CALLBACKS:
        raise _joined_too_often(waiting, MOST_CALLBACKS, now)


def _joined_too_often(waiting: Confirmation, limit: int, now: datetime) -> errors.RateLimited:
    ends_at, most = to_micros(waiting.expires_at), waiting.timeout_seconds
    return errors.RateLimited(
        action=waiting.action,
        limit=limit,
        window_seconds=most,
        retry_after_seconds=_seconds_until(ends_at, timedelta(0), now, most=most),
    )


def _seconds_until(first_at: int | None, window: timedelta, now: datetime, *, most: int) -> int:
    """In how many seconds, one at least, there is room again when nobody decides before."""
    if first_at is None:
        return max(most, 1)
    left = (from_micros(first_at) + window - now).total_seconds()
    return max(1, min(math.ceil(left), most))
