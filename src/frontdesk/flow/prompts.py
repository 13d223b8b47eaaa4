"""What an agent is given: the message as the transcript has it, and the instructions for one turn."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from frontdesk.flow import context, handover, limits, notices, sending, times
from frontdesk.flow.parts import Parts
from frontdesk.formats import quoting, tokens
from frontdesk.logs import get_logger
from frontdesk.model import events, messages, spirals
from frontdesk.model.messages import Plain, Role
from frontdesk.model.policies import SessionResetPolicy
from frontdesk.model.sessions import Session
from frontdesk.model.sources import SessionSource
from frontdesk.model.transcripts import NewestRows
from frontdesk.model.turns import Turn

MAX_NAME_CHARACTERS = 80
MAX_QUOTE_CHARACTERS = 500
MOST_PLACES = 1_000
ASKED_FOR = "Whoever writes asks you to heed this in your answer to the next message:\n{instructions}"
LEFT_OUT = "[What was said before this is left out: the conversation is too long to be read whole.]"

Content = str | list[dict[str, Any]]

log = get_logger(__name__)


def user_message(parts: Parts, turn: Turn, content: Content) -> Plain:
    """The message as the transcript has it: before it what it answers, and in a shared session the sender's
    name."""
    if turn.quote and (quoted := quoting.clean_text(turn.quote.text or "", MAX_QUOTE_CHARACTERS)):
        whose = "your" if turn.quote.is_ours else "the message"
        content = _with_line(
            content, f"(in answer to {whose} {quoting.quote_within(quoted, MAX_QUOTE_CHARACTERS)})"
        )
    author = turn.author
    if parts.conversations.is_shared(turn.source) or (author and author.is_guest):
        content = _with_line(content, f"[{_sender(turn)}]", " ")
    message: Plain = {"role": "user", "content": content, "timestamp": turn.received_at.isoformat()}
    if author:
        message["author"] = author.name
    if turn.source.message_id:
        message["platform_message_id"] = turn.source.message_id
    if turn.sent_at and (written := times.written_at(turn)):
        message[times.WRITTEN] = written.isoformat()
    return message


def _with_line(content: Content, line: str, then: str = "\n") -> Content:
    """The content behind a line of ours."""
    if isinstance(content, str):
        return f"{line}{then}{content}"
    return [{"type": "text", "text": line}, *content]


def given_rows(transcript: Sequence[Plain]) -> list[Plain]:
    """The rows that are the agent's business: what was said and done, and the hand-over."""
    given = [row if row["role"] != Role.SESSION_META else handover.as_given(row) for row in transcript]
    return [row for row in given if row["role"] != Role.SESSION_META]


def given_newest(newest: NewestRows, *, had_tools: bool) -> list[Plain]:
    """The same of what is loaded for a turn; where that is not the whole conversation, it says so first."""
    given = given_rows(messages.conversation(newest.messages) if had_tools else newest.messages)
    return given if newest.is_whole else [{"role": str(Role.SYSTEM), "content": LEFT_OUT}, *given]


def system_prompt(
    parts: Parts,
    turn: Turn,
    session: Session,
    policy: SessionResetPolicy,
    with_tools: Sequence[Plain],
    *,
    tells_times: bool,
) -> str:
    """The turn's instructions, never stored. ``with_tools`` is the transcript, where tools were called."""
    entry, (block, extra) = session.entry, _of_place(parts, turn.source)
    note = None
    if entry.was_auto_reset:
        handed_over = handover.is_due(session)
        note = notices.reset_note(entry, policy, checkpointed=session.checkpointed, handed_over=handed_over)
    whole = f"{note}\n\n{block}" if note else block
    whole = f"{whole}\n\n{times.TOLD}" if tells_times else whole
    if turn.instructions:
        extra = "\n\n".join(filter(None, (extra, ASKED_FOR.format(instructions=turn.instructions))))
    return limits.ephemeral_prompt(whole, extra, _warning(parts, turn, session, policy, with_tools))


def _of_place(parts: Parts, source: SessionSource) -> tuple[str, str]:
    """The block about the place of a message and what is bound to it: the same in every turn, so they are
    made once for each place."""
    place = replace(source, message_id=None) if source.message_id else source
    known = parts.places.get(place)
    if known is None:
        facts = replace(
            context.build_session_context(place, parts.connected_for(place)),
            schedules=False,
            sends_to=sending.chats_for_agent(parts, place) if parts.abilities_of(place).sends else None,
        )
        block = context.build_session_context_prompt(facts, redact_pii=parts.running.redact_pii)
        bound = parts.conversations.config.get_instructions(place)
        extra = parts.conversations.config.profile_at(place).prompt or parts.running.extra_prompt
        known = block, "\n\n".join(filter(None, (bound, extra)))
        if len(parts.places) >= MOST_PLACES:
            parts.places.clear()
        parts.places[place] = known
    return known


def prompt_tokens(assignment: events.Assignment, session: Session) -> int:
    """About how many tokens the agent's model reads: as many as the last time, else by its length."""
    known = session.entry.last_prompt_tokens
    texts = (assignment.system, *map(messages.text_of, assignment.messages))
    return known or sum(map(tokens.likely_tokens, texts))


def _warning(
    parts: Parts, turn: Turn, session: Session, policy: SessionResetPolicy, with_tools: Sequence[Plain]
) -> str | None:
    """What the agent is told of its limits. The answer is worth more than a warning that cannot be made."""
    try:
        spiral = spirals.look(with_tools, policy) if with_tools else None
        return limits.turn_warnings(session.as_limited(), policy, spiral, now=parts.clock.now())
    except Exception:
        log.exception("warning_failed", turn=turn.id)
        return None


def _sender(turn: Turn) -> str:
    source = turn.source
    named = turn.author.name if turn.author else source.user_name or source.user_id
    name = quoting.clean_text(named or "", MAX_NAME_CHARACTERS)
    return name.replace("[", "(").replace("]", ")").replace("\n", " ") or "unknown"
