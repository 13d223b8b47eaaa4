"""How a turn ends: answered, stopped, failed, or given up."""

from datetime import datetime

from msgspec.structs import replace

from frontdesk.flow import notices, offering
from frontdesk.flow.hearing import AgentRun
from frontdesk.flow.parts import UNHEARD, Parts
from frontdesk.formats import quoting
from frontdesk.logs import get_logger
from frontdesk.model import events
from frontdesk.model.deliveries import Delivery
from frontdesk.model.platforms import READ_BY_PROGRAMS
from frontdesk.model.policies import EndReason
from frontdesk.model.turns import Ending, Turn, TurnState

MAX_ERROR_CHARACTERS = 2_000
"""Of what is kept about a failure."""

UNANSWERED = "The agent gave no answer."
NOTHING_TO_SAY = "(There is nothing to say to this.)"
FAILED = "Sorry, this went wrong and your message was not answered: {why}"
SET_ASIDE = (
    "Sorry, your message could not be answered: every attempt broke off. The conversation was set aside;"
    " your next message starts a new one."
)
RETRIED = "Your message is tried again: {text}"
GIVEN_UP = "Your message was given up by whoever runs this gateway, and will not be answered: {text}"
QUOTED_CHARACTERS = 80
"""Of the message that it is about."""

log = get_logger(__name__)


async def answered(parts: Parts, turn: Turn, run: AgentRun) -> Ending:
    speech, state = run.speech, TurnState.DONE
    answer = "" if speech.is_silent else speech.answer  # files are no silence
    choice = None if speech.is_silent else speech.choice
    text = "\n\n".join(filter(None, (answer, *run.unsent)))
    if choice:
        said = await offering.offer(parts, turn, text, choice, files=run.files)
        speech.offer(choice)
    elif text or run.files:
        said = await parts.answers_beside(turn, text, run.files)
        if (run.files or run.unsent) and said[0].text.startswith(answer):
            # Whoever follows the turn hears what stands for files, too.
            parts.live.tell(turn.id, events.Text(text=said[0].text.removeprefix(answer)))
    elif speech.is_silent:
        # A message that showed something meanwhile cannot be taken back everywhere.
        said, state = parts.notices(turn, NOTHING_TO_SAY, final=True) if turn.draft else (), TurnState.SILENT
    else:
        said = parts.notices(turn, UNANSWERED, final=True)
    rows = speech.close()
    if speech.summary is not None:
        rows.append(speech.summarize())
    return Ending(
        state=state,
        messages=tuple(rows),
        deliveries=said,
        clears_mark=run.session.entry.resume_pending,
    )


async def stopped(parts: Parts, turn: Turn, run: AgentRun, limit: EndReason | None) -> Ending:
    """What was said so far stays in the transcript, and reaches the chat; and why, if it was a limit."""
    answer, why = run.speech.answer, None
    if limit:
        log.info("turn_cut_short", turn=turn.id, reason=str(limit))
        why = notices.cut_short(limit, run.policy)
    if answer and why:  # whoever follows the turn hears the gateway's words, too
        parts.live.tell(turn.id, events.Text(text=f"\n\n{why}"))
    text, files = "\n\n".join(filter(None, (answer, *run.unsent, why))), run.files
    if answer or files:
        said = await parts.answers_beside(turn, text, files)
    else:
        said = parts.notices(turn, text or notices.STOPPED, final=True)
    rows = tuple(run.speech.close(finish_reason="stopped"))
    return Ending(state=TurnState.INTERRUPTED, messages=rows, deliveries=said, error=why)


def failed(parts: Parts, turn: Turn, run: AgentRun, failure: events.Failed) -> Ending:
    text = FAILED.format(why=quoting.clean_text(failure.message))
    return Ending(
        state=TurnState.FAILED,
        messages=tuple(run.speech.close(finish_reason="error")),
        deliveries=parts.notices(turn, text, final=True),
        error=what_failed(failure),
    )


def what_failed(failure: events.Failed) -> str:
    return quoting.clean_text(failure.detail or failure.message, MAX_ERROR_CHARACTERS)


def set_aside_notices(parts: Parts, now: datetime, turn: Turn) -> tuple[Delivery, ...]:
    return parts.last_word(turn, SET_ASIDE, delivery_id=f"{turn.id}-aside-{turn.attempts}", at=now)


def retried_notices(parts: Parts, now: datetime, turn: Turn) -> tuple[Delivery, ...]:
    if turn.kind in UNHEARD:
        return ()
    text = RETRIED.format(text=_quoted(turn))
    return parts.notices(turn, text, delivery_id=f"{turn.id}-again-{turn.attempts}", at=now)


def given_up_notices(parts: Parts, now: datetime, turn: Turn) -> tuple[Delivery, ...]:
    """A message of its own, where a person reads: a program has its answer."""
    if str(turn.source.platform) in READ_BY_PROGRAMS:
        return ()
    apart = replace(turn, draft=None)
    return parts.last_word(
        apart, GIVEN_UP.format(text=_quoted(turn)), delivery_id=f"{turn.id}-given-up", at=now
    )


def _quoted(turn: Turn) -> str:
    return quoting.one_line(turn.text, QUOTED_CHARACTERS)
