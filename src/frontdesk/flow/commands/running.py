"""Commands about what is going on: stop, status, usage."""

import asyncio
from datetime import datetime
from functools import partial

from frontdesk.flow import notices
from frontdesk.flow.commands import CommandRequest, CommandTable, Refusal, views
from frontdesk.flow.hearing import CLEANUP_SECONDS
from frontdesk.flow.parts import Parts
from frontdesk.logs import get_logger
from frontdesk.model import amounts
from frontdesk.model.deliveries import Delivery
from frontdesk.model.resolution import mark_expired
from frontdesk.model.sessions import Session, SessionEntry
from frontdesk.model.sources import ChatType
from frontdesk.model.turns import HELD_BACK, PROMPT, Busy, Ending, Turn, TurnKind, TurnState

GRACE_SECONDS = 1.0
MOST_TURNS_COUNTED = 1_000
UNDER_WAY = (TurnState.RUNNING, TurnState.WAITING)
ANSWERED = (TurnKind.MESSAGE, TurnKind.COMMAND)

BROKEN_OFF = "it was stopped and did not end"
LET_GO = (
    "Nothing was running, but the conversation was to go on by itself after an interruption. It is set aside:"
    " your next message starts a new one. To get back to it: {resume}"
)

EXPIRED = (
    "It was interrupted long ago: your next message starts a new conversation, /retry goes on in this one."
)
NOTHING_SAID = "To the last message there was nothing to say."
WAITS = f"Now: your message waits: {HELD_BACK}."

log = get_logger(__name__)

COMMANDS = CommandTable()


@COMMANDS.add(
    "/steer text", "Say something to the agent in the middle of what it does now.", takes_in=Busy.STEER
)
@COMMANDS.add("/queue text", "Say something to the agent after what it does now.", takes_in=Busy.QUEUE)
async def ask_for_text(_: Parts, request: CommandRequest) -> str:
    name = request.turn.text.split()[0]
    return Refusal(f"Say what for the agent: {name} and the text of a message.")


@COMMANDS.add("/stop", "Stop what is running.", kind=TurnKind.CONTROL)
async def stop(parts: Parts, request: CommandRequest) -> str:
    now = parts.clock.now()
    turn = await parts.store.turns.request_stop(
        request.key, now, partial(_tell, parts, now), by=request.turn.sender
    )
    if turn is None:
        let_go, waiting = await _let_go(parts, request), await _waiting(parts, request)
        return type(let_go)(f"{let_go} {waiting}".strip())
    seconds = parts.running.stop_seconds + CLEANUP_SECONDS + GRACE_SECONDS
    ended = await _ends(parts, turn, seconds)
    if not ended:
        await _break_off(parts, turn)
    await parts.gate.withdraw(turn)
    text = "Stopped." if ended else "It did not stop by itself, so I took the turn away from it."
    return f"{text} {await _waiting(parts, request, besides=turn)}".strip()


def _tell(parts: Parts, now: datetime, turn: Turn) -> tuple[Delivery, ...]:
    return parts.last_word(turn, notices.STOPPED, delivery_id=f"{turn.id}-stopped", at=now)


async def _ends(parts: Parts, turn: Turn, seconds: float) -> bool:
    """Whether the turn ends within the time."""
    # Followed before the first look, so that its end is not missed.
    async with parts.following.about(turn.id) as follower:
        try:
            async with asyncio.timeout(seconds):
                while (found := await parts.store.turns.find(turn.id)) and found.state in UNDER_WAY:
                    await follower.wait()
        except TimeoutError:
            return False
    return True


async def _break_off(parts: Parts, turn: Turn) -> None:
    now = parts.clock.now()
    ending = Ending(state=TurnState.INTERRUPTED, deliveries=_tell(parts, now, turn), error=BROKEN_OFF)
    broken = await parts.store.turns.break_off(turn, ending, now)
    if broken:
        log.warning("turn_broken_off", turn=broken.id, session=broken.session_id)


async def _let_go(parts: Parts, request: CommandRequest) -> str:
    """Nothing runs: a session that would be resumed again and again is set aside."""
    entry = await parts.conversations.get_session(request.key)
    if entry is None or not entry.resume_pending or entry.suspended:
        return Refusal("Nothing is running.")
    await parts.conversations.suspend_session(request.key)
    return LET_GO.format(resume=f"/resume {entry.session_id}")


async def _waiting(parts: Parts, request: CommandRequest, besides: Turn | None = None) -> str:
    """What comes after a turn that was stopped. The first of it may have begun by now."""
    found = await parts.store.turns.open_turns(request.key, MOST_TURNS_COUNTED)
    left = [each for each in found if besides and each.state in UNDER_WAY and each.id != besides.id]
    waiting = _queued(found) + len([each for each in left if each.kind in ANSWERED])
    if not waiting:
        return ""
    verb = "waits" if waiting == 1 else "wait"
    return f"{views.plural(waiting, 'message')} {verb} and will be answered next."


def _queued(turns: list[Turn]) -> int:
    return sum(turn.state is TurnState.QUEUED and turn.kind in ANSWERED for turn in turns)


@COMMANDS.add("/status", "Show where this conversation stands.", kind=TurnKind.CONTROL)
async def status(parts: Parts, request: CommandRequest) -> str:
    turns = await parts.store.turns.open_turns(request.key, MOST_TURNS_COUNTED)
    session = await views.own_session(parts, request)
    about = await _about(parts, request, session) if session else [views.NO_SESSION]
    last = await parts.store.turns.last_of_session(session.id) if session else None
    silent = [NOTHING_SAID] if last and last.state is TurnState.SILENT else []
    return "\n".join((*about, *silent, *_work(parts, turns), *_refused(parts, request)))


def _refused(parts: Parts, request: CommandRequest) -> list[str]:
    """What the gateway has refused, for those who run it."""
    refusals = parts.refusals
    if not (request.administrator and refusals.counts and request.turn.source.chat_type is ChatType.DM):
        return []
    told = ", ".join(f"{count:,} {reason}" for reason, count in sorted(refusals.counts.items()))
    return [f"Refused since the gateway started {views.ago(refusals.since, parts.clock.now())}: {told}"]


async def _about(parts: Parts, request: CommandRequest, session: Session) -> list[str]:
    entry = session.entry
    title = f", {views.quoted(session.title)}" if session.title else ""
    lines = [f"Conversation: {session.id}{title}", await _messages(parts, request, session), _tokens(entry)]
    if entry.model_override and "model" in entry.model_override:
        lines.append(f"Model: {views.quoted(entry.model_override['model'])}")
    if await parts.store.background.runs(request.key, parts.clock.now()):
        lines.append("Work goes on in the background: the conversation is not reset meanwhile.")
    return [*lines, *await _outlook(parts, request, entry)]


async def _messages(parts: Parts, request: CommandRequest, session: Session) -> str:
    most = parts.conversations.policy_for(session.entry, request.turn.source).max_messages
    every, counted = await parts.conversations.count_messages(session), session.entry.message_count
    if not most:
        return f"Messages: {every:,}"
    if every == counted:
        return f"Messages: {counted:,} of {most:,}"
    return f"Messages: {every:,}; {counted:,} of {most:,} since you came back"


def _tokens(entry: SessionEntry) -> str:
    return (
        f"Tokens: {entry.input_tokens:,} in, {entry.output_tokens:,} out;"
        f" estimated cost: {amounts.dollars(entry.estimated_cost_usd)}"
    )


async def _outlook(parts: Parts, request: CommandRequest, entry: SessionEntry) -> list[str]:
    """What becomes of the session with the next message."""
    if entry.suspended:
        return ["It is set aside: your next message starts a new conversation."]
    due = await parts.conversations.reset_reason(entry, request.turn.source)
    if due:
        return [f"Your next message starts a new conversation ({due.replace('_', ' ')})."]
    if mark_expired(entry, parts.clock.now(), parts.conversations.config.freshness):
        return [EXPIRED]
    return ["It was interrupted and will be continued."] if entry.resume_pending else []


def _work(parts: Parts, turns: list[Turn]) -> list[str]:
    running = next((each for each in turns if each.state in UNDER_WAY and each.kind not in PROMPT), None)
    held_back = any(each.is_held_back for each in turns)
    now = WAITS if held_back and running is None else _now(parts, running)
    return [now, f"Waiting: {views.plural(_queued(turns), 'message')}"]


def _now(parts: Parts, turn: Turn | None) -> str:
    if turn is None:
        return "Now: nothing is running"
    begun = views.ago(turn.started_at or turn.received_at, parts.clock.now())
    doing = "waiting for an approval" if turn.state is TurnState.WAITING else "working"
    again = f", attempt {turn.attempts}" if turn.attempts > 1 else ""
    stopping = ", stopping" if turn.stop_requested else ""
    return f"Now: {doing}, begun {begun}{again}{stopping}. /stop ends it."


@COMMANDS.add("/usage", "Show what this conversation has used of its limits.")
@views.with_session
async def usage(parts: Parts, request: CommandRequest, session: Session) -> str:
    entry = session.entry
    policy = parts.conversations.policy_for(entry, request.turn.source)
    found = policy.gauges(session.as_limited(), parts.clock.now())
    lines = [
        _tokens(entry),
        f"Cache: {entry.cache_read_tokens:,} tokens read, {entry.cache_write_tokens:,} written",
        f"Last prompt: {entry.last_prompt_tokens:,} tokens",
        *map(str, found),
    ]
    return "\n".join((f"Used in conversation {session.id}:", *lines))
