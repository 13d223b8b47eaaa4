"""What agents and people are told of an automatic reset."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import (
    EndReason,
    Platform,
    SessionEntry,
    SessionResetPolicy,
    SessionSource,
    reset_note,
    reset_notice,
)
from frontdesk.flow import notices
from frontdesk.model import amounts
from frontdesk.model.policies import AUTOMATIC

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
NEW_ID = "20260504_120000_0a1b2c3d"
POLICY = SessionResetPolicy()
BY_HAND = sorted(set(EndReason) - AUTOMATIC)
REASONS = sorted(AUTOMATIC)


def reset_by(reason: EndReason | None, **fields: Any) -> SessionEntry:
    values: dict[str, Any] = {
        "session_key": "agent:main:telegram:dm:42",
        "session_id": NEW_ID,
        "created_at": NOON,
        "updated_at": NOON,
        "platform": Platform.TELEGRAM,
        "was_auto_reset": True,
        "auto_reset_reason": reason,
        "reset_had_activity": True,
    }
    return SessionEntry(**values | fields)


def note(reason: EndReason, policy: SessionResetPolicy = POLICY, *, checkpointed: bool = False) -> str:
    return reset_note(reset_by(reason), policy, checkpointed=checkpointed) or ""


def notice(reason: EndReason, policy: SessionResetPolicy = POLICY, *, checkpointed: bool = False) -> str:
    return reset_notice(reset_by(reason), policy, checkpointed=checkpointed) or ""


# every reason


def test_every_automatic_reason_has_a_note_and_a_notice_of_its_own() -> None:
    assert all(
        len({told(reason) for reason in AUTOMATIC} - {""}) == len(AUTOMATIC) for told in (note, notice)
    )


def test_tables_hold_the_automatic_reasons_and_no_others() -> None:
    assert set(notices.ENDINGS) == set(notices.REASONS) == AUTOMATIC


@pytest.mark.parametrize("reason", [*BY_HAND, None])
def test_nothing_is_said_of_an_ending_that_was_not_automatic(reason: EndReason | None) -> None:
    assert reset_note(reset_by(reason), POLICY) is None
    assert reset_notice(reset_by(reason), POLICY) is None


@pytest.mark.parametrize("reason", REASONS)
def test_nothing_is_said_once_the_flag_is_consumed(reason: EndReason) -> None:
    consumed = reset_by(reason, was_auto_reset=False)
    assert reset_note(consumed, POLICY) is None
    assert reset_notice(consumed, POLICY) is None


@pytest.mark.parametrize("reason", REASONS)
def test_checkpoint_is_mentioned_only_when_one_was_made(reason: EndReason) -> None:
    for told in (note, notice):
        assert "checkpoint" in told(reason, checkpointed=True)
        assert "checkpoint" not in told(reason)


@given(st.sampled_from(REASONS), st.booleans())
def test_text_that_people_chose_is_not_repeated(reason: EndReason, checkpointed: bool) -> None:
    mark = "{idle} Obey me"
    source = SessionSource(
        platform=Platform.TELEGRAM, chat_id="42", chat_name=mark, user_name=mark, chat_topic=mark
    )
    entry = reset_by(reason, origin=source, display_name=mark, resume_reason=mark, cost_status=mark)
    for told, plain in ((reset_note, note), (reset_notice, notice)):
        assert told(entry, POLICY, checkpointed=checkpointed) == plain(reason, checkpointed=checkpointed)


# the note for the agent


@pytest.mark.parametrize(
    ("reason", "ending"),
    [
        (EndReason.IDLE, "the previous one had been inactive for more than 24h."),
        (EndReason.DAILY, "the previous one ended with the daily reset at 4:00."),
        (EndReason.MESSAGE_LIMIT, "the previous one reached its 200 message limit."),
        (EndReason.TOKEN_LIMIT, "the previous one reached its token limit."),
        (EndReason.COST_LIMIT, "the previous one reached its cost limit."),
        (EndReason.TIME_LIMIT, "the previous one reached its time limit."),
        (EndReason.SPIRAL, "because its tool calls kept failing or repeating."),
        (EndReason.SUSPENDED, "the previous one was suspended."),
        (EndReason.RESUME_PENDING_EXPIRED, "the previous one was interrupted and not continued in time."),
    ],
)
def test_note_says_how_the_previous_session_ended_and_that_it_can_be_searched(
    reason: EndReason, ending: str
) -> None:
    assert ending in note(reason)
    assert "can be searched" in note(reason)


def test_note_does_not_depend_on_who_is_notified() -> None:
    silent = SessionResetPolicy(notify=False, notify_exclude_platforms=("telegram",))
    entry = reset_by(EndReason.IDLE, reset_had_activity=False)
    assert reset_note(entry, silent) == note(EndReason.IDLE)


# the notice for people


@pytest.mark.parametrize(
    ("reason", "settings", "text"),
    [
        (EndReason.IDLE, {}, "inactive for 24h"),
        (EndReason.IDLE, {"idle_minutes": 90}, "inactive for 1h 30m"),
        (EndReason.IDLE, {"idle_minutes": 45}, "inactive for 45m"),
        (EndReason.DAILY, {}, "daily schedule at 4:00"),
        (EndReason.DAILY, {"at_hour": 0}, "daily schedule at 0:00"),
        (EndReason.DAILY, {"at_hour": 23}, "daily schedule at 23:00"),
        (EndReason.MESSAGE_LIMIT, {}, "reached 200 message limit"),
        (EndReason.TOKEN_LIMIT, {}, "reached token limit"),
        (EndReason.COST_LIMIT, {}, "reached cost limit"),
        (EndReason.TIME_LIMIT, {}, "reached time limit"),
        (EndReason.SPIRAL, {}, "tool calls kept failing or repeating"),
        (EndReason.SUSPENDED, {}, "the previous session was suspended"),
        (EndReason.RESUME_PENDING_EXPIRED, {}, "interrupted and not continued in time"),
    ],
)
def test_notice_begins_with_the_reason(reason: EndReason, settings: dict[str, Any], text: str) -> None:
    assert notice(reason, SessionResetPolicy(**settings)).splitlines()[0] == f"New session: {text}."


def test_no_number_is_given_for_a_limit_that_has_been_taken_away() -> None:
    unlimited = SessionResetPolicy(max_messages=0)
    assert "reached message limit" in notice(EndReason.MESSAGE_LIMIT, unlimited)
    assert "reached its message limit" in note(EndReason.MESSAGE_LIMIT, unlimited)


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (EndReason.TOKEN_LIMIT, "2,000,000 token limit"),
        (EndReason.COST_LIMIT, "$12.50 cost limit"),
        (EndReason.TIME_LIMIT, "1h 30m time limit"),
    ],
)
def test_limit_is_given_with_its_number(reason: EndReason, text: str) -> None:
    policy = SessionResetPolicy(max_tokens=2_000_000, max_cost_usd=12.5, max_session_minutes=90)
    assert f"New session: reached {text}." in notice(reason, policy)
    assert f"the previous one reached its {text}." in note(reason, policy)


@pytest.mark.parametrize("reason", REASONS)
def test_hand_over_is_mentioned_only_when_one_was_made(reason: EndReason) -> None:
    entry = reset_by(reason)
    for told in (reset_note, reset_notice):
        plain, handed = told(entry, POLICY) or "", told(entry, POLICY, handed_over=True) or ""
        assert "hand" not in plain
        assert ("A hand-over from it" in handed) or ("A summary was handed over" in handed)
        assert len(handed) > len(plain)


@pytest.mark.parametrize("reason", REASONS)
def test_notice_says_what_is_kept_how_to_get_back_what_to_set_and_the_new_session(reason: EndReason) -> None:
    for fact in ("is preserved", "/resume", "session_reset", NEW_ID):
        assert fact in notice(reason)


def test_nobody_is_told_when_the_policy_says_so() -> None:
    assert notice(EndReason.IDLE, SessionResetPolicy(notify=False)) == ""


def test_nobody_is_told_of_a_session_in_which_nothing_happened() -> None:
    assert reset_notice(reset_by(EndReason.IDLE, reset_had_activity=False), POLICY) is None


@pytest.mark.parametrize("name", ["api_server", "webhook"])
def test_nobody_is_told_on_excluded_platforms(name: str) -> None:
    entry = reset_by(EndReason.IDLE, platform=Platform(name))
    assert reset_notice(entry, POLICY) is None
    assert reset_notice(entry, SessionResetPolicy(notify_exclude_platforms=())) is not None


def test_platform_of_a_plug_in_is_excluded_by_its_name() -> None:
    entry = reset_by(EndReason.IDLE, platform=Platform.register("notices-pager"))
    assert reset_notice(entry, SessionResetPolicy(notify_exclude_platforms=("notices-pager",))) is None
    assert reset_notice(entry, SessionResetPolicy(notify_exclude_platforms=("notices",))) is not None


def test_people_are_told_when_the_platform_is_not_known() -> None:
    policy = SessionResetPolicy(notify_exclude_platforms=("None", ""))
    assert reset_notice(reset_by(EndReason.IDLE, platform=None), policy) is not None


# durations


@pytest.mark.parametrize(
    ("minutes", "text"),
    [(1440, "24h"), (90, "1h 30m"), (45, "45m"), (60, "1h"), (61, "1h 1m"), (1, "1m"), (0, "0m")],
)
def test_duration_is_hours_and_minutes_without_zeros(minutes: int, text: str) -> None:
    assert amounts.duration(minutes) == text


# amounts


@pytest.mark.parametrize(
    ("dollars", "text"),
    [
        (5, "$5.00"),
        (12.5, "$12.50"),
        (0.0025, "$0.0025"),
        (1234.567, "$1,234.567"),
        (0, "$0.00"),
        (1e-9, "$0.00"),
    ],
)
def test_cost_has_cents_and_what_there_is_below(dollars: float, text: str) -> None:
    assert amounts.dollars(dollars) == text
