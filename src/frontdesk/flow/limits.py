"""What the agent is told, for one turn only, when an allowance runs out, and when a session is over."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from frontdesk.formats import quoting
from frontdesk.model.policies import MESSAGES, TURN_MESSAGES, EndReason, Gauge, SessionResetPolicy
from frontdesk.model.sessions import SessionEntry
from frontdesk.model.spirals import Spiral, SpiralKind, Stage

HEAD = "**Session limit:** {used} {order}"
WRAP_UP = "Wrap up: finish what is open, begin nothing new, and save your state."
FINAL = (
    "This is the final response of this session: summarise what was done and what comes next."
    " Once the limit is reached, a new session begins."
)
SPIRALS: Mapping[SpiralKind, str] = {
    SpiralKind.REPEAT: "The last {count} tool calls{tool} were the same, with the same arguments.",
    SpiralKind.ERRORS: "{percent} % of the last tool results were errors{tool}.",
}
SPIRAL = (
    "**Tool calls:** {found} Do not go on like this: try another way, or say what stands in the way and ask."
    " If it happens again, this session ends and a new one begins."
)
TOOLS: Mapping[SpiralKind, str] = {
    SpiralKind.REPEAT: " (of {name})",
    SpiralKind.ERRORS: ", most often of {name}",
}
MAX_TOOL_CHARACTERS = 80


def limit_warning(info: Mapping[str, Any]) -> str | None:
    """The warning for a turn, or None when the limit is far or there is none.

    ``info`` is what ``get_message_limit_info`` gives once the incoming message is counted.
    """
    count, most = info["message_count"], info["max_messages"]
    gauge = Gauge(kind=MESSAGES, used=count, limit=most, turn=TURN_MESSAGES)
    return _limits_text([gauge]) if most > 0 else None


def turn_warnings(
    entry: SessionEntry, policy: SessionResetPolicy, spiral: Spiral | None = None, *, now: datetime
) -> str | None:
    """What a turn is told of every limit that is near and of a spiral; None when there is nothing to say.

    ``entry`` counts the incoming message; ``spiral`` is what the transcript before the turn ended in.
    """
    warnings = (_limits_text(policy.gauges(entry, now)), _spiral_text(spiral) if spiral else None)
    return "\n\n".join(filter(None, warnings)) or None


def reaches_limit(entry: SessionEntry, policy: SessionResetPolicy, *, now: datetime) -> bool:
    """Whether the turn that begins now is taken to be the session's last."""
    return any(gauge.final for gauge in policy.gauges(entry, now))


def rotation_reason(
    entry: SessionEntry,
    policy: SessionResetPolicy,
    spiral: Spiral | None = None,
    *,
    now: datetime,
    within_turn: bool = False,
) -> EndReason | None:
    """Why a session is over after a turn, or None: the first limit that is reached, else a spiral.

    ``entry`` counts all that the turn has used; ``spiral`` is what the transcript after it ends in.
    ``within_turn`` asks whether a turn may not even go on.
    """
    spun = EndReason.SPIRAL if spiral and spiral.stage is Stage.ROTATE else None
    return policy.limit_reason(entry, now, within_turn=within_turn) or spun


def ephemeral_prompt(context: str, extra: str | None, warning: str | None) -> str:
    """A turn's instructions, never stored: the context, the configured extra prompt, the warning."""
    parts = [part.strip() for part in (context, extra, warning) if part]
    return "\n\n".join(filter(None, parts))


def _limits_text(gauges: Sequence[Gauge]) -> str | None:
    close = [gauge for gauge in gauges if gauge.near or gauge.final]
    if not close:
        return None
    order = FINAL if any(gauge.final for gauge in close) else WRAP_UP
    return HEAD.format(used=" ".join(map(str, close)), order=order)


def _spiral_text(spiral: Spiral) -> str:
    name = quoting.quote_within(spiral.tool, MAX_TOOL_CHARACTERS) if spiral.tool else None
    tool = TOOLS[spiral.kind].format(name=name) if name else ""
    percent = round(spiral.share * 100)
    found = SPIRALS[spiral.kind].format(count=spiral.count, percent=percent, tool=tool)
    return SPIRAL.format(found=found)
