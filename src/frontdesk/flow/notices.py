"""What agents and people are told of an automatic reset: one true text for each reason."""

from collections.abc import Mapping

from frontdesk.model import amounts
from frontdesk.model.policies import LIMITS, EndReason, SessionResetPolicy
from frontdesk.model.sessions import SessionEntry

ENDINGS: Mapping[EndReason, str] = {
    EndReason.IDLE: "had been inactive for more than {idle}",
    EndReason.DAILY: "ended with the daily reset at {hour}",
    EndReason.SPIRAL: "was ended because its tool calls kept failing or repeating",
    EndReason.SUSPENDED: "was suspended",
    EndReason.RESUME_PENDING_EXPIRED: "was interrupted and not continued in time",
    **{limit.reason: "reached its {limit} limit" for limit in LIMITS},
}
"""How the previous session came to its end, for the agent."""

REASONS: Mapping[EndReason, str] = {
    EndReason.IDLE: "inactive for {idle}",
    EndReason.DAILY: "daily schedule at {hour}",
    EndReason.SPIRAL: "tool calls kept failing or repeating",
    EndReason.SUSPENDED: "the previous session was suspended",
    EndReason.RESUME_PENDING_EXPIRED: "interrupted and not continued in time",
    **{limit.reason: "reached {limit} limit" for limit in LIMITS},
}
"""Why there is a new session, for people."""

NOTE = "**Previous session:** This session is new: the previous one {ending}."
NOTE_CHECKPOINT = "The working directory was checkpointed when it ended."
NOTE_HANDED_OVER = "A hand-over from it stands at the beginning of this session."
NOTE_SEARCH = "Its transcript is kept and can be searched."

STOPPED = "Stopped before there was an answer."
CUT_SHORT = "I stopped here: this conversation {ending}."

NOTICE = "New session: {reason}."
PRESERVED = "Your conversation so far is preserved. To get back to it: {resume}"
PRESERVED_WITH_CHECKPOINT = (
    "Your conversation so far is preserved, with a checkpoint of the working directory."
    " To get back to it: {resume}"
)
HANDED_OVER = "A summary was handed over to the new session."
SETTING = "Resets and these notices are set in session_reset."
FACTS = "Session id: {session_id}"


def reset_note(
    entry: SessionEntry, policy: SessionResetPolicy, *, checkpointed: bool = False, handed_over: bool = False
) -> str | None:
    """The note before the context block in a new session's first prompt; None without an automatic reset."""
    ending = _text_for(entry, policy, ENDINGS)
    if ending is None:
        return None
    parts = (
        NOTE.format(ending=ending),
        NOTE_CHECKPOINT if checkpointed else "",
        NOTE_HANDED_OVER if handed_over else "",
        NOTE_SEARCH,
    )
    return " ".join(part for part in parts if part)


def reset_notice(
    entry: SessionEntry,
    policy: SessionResetPolicy,
    *,
    checkpointed: bool = False,
    handed_over: bool = False,
    previous: str | None = None,
) -> str | None:
    """What people are told of an automatic reset; None when there was none or nobody is to be told.

    ``previous`` is the id of the session before.
    """
    reason = _text_for(entry, policy, REASONS)
    told = policy.notify and entry.platform not in policy.notify_exclude_platforms
    if reason is None or not (told and entry.reset_had_activity):
        return None
    preserved = PRESERVED_WITH_CHECKPOINT if checkpointed else PRESERVED
    lines = (
        NOTICE.format(reason=reason),
        preserved.format(resume=f"/resume {previous}" if previous else "/resume"),
        HANDED_OVER if handed_over else "",
        SETTING,
        FACTS.format(session_id=entry.session_id),
    )
    return "\n".join(line for line in lines if line)


def cut_short(reason: EndReason, policy: SessionResetPolicy) -> str:
    """What people are told of a turn that a limit has stopped."""
    return CUT_SHORT.format(ending=_filled(reason, policy, ENDINGS))


def _text_for(entry: SessionEntry, policy: SessionResetPolicy, texts: Mapping[EndReason, str]) -> str | None:
    """The text of the entry's reason."""
    reason = entry.auto_reset_reason
    if not entry.was_auto_reset or reason is None or reason not in texts:
        return None
    return _filled(reason, policy, texts)


def _filled(reason: EndReason, policy: SessionResetPolicy, texts: Mapping[EndReason, str]) -> str:
    """Only settings are filled in, nothing that people chose."""
    name = ""
    for limit in LIMITS:
        if limit.reason is reason:  # with its number, unless the policy was changed and has none any more
            number = getattr(policy, limit.setting)
            name = f"{limit.shown(number)} {limit.name}" if number else limit.name
    idle = amounts.duration(policy.idle_minutes)
    return texts[reason].format(idle=idle, hour=f"{policy.at_hour}:00", limit=name)
