"""Commands about what was said: retry, undo, redo, compress, export."""

import re
from collections.abc import Sequence
from typing import Any

from frontdesk import errors
from frontdesk.flow import handover, hook_calls
from frontdesk.flow.commands import CommandRequest, CommandTable, Refusal, Rerun, views
from frontdesk.flow.parts import Parts
from frontdesk.flow.prompts import Content
from frontdesk.model import calls, messages
from frontdesk.model.messages import Plain, Role
from frontdesk.model.policies import EndReason
from frontdesk.model.sessions import Relation, Session
from frontdesk.model.transcripts import Revision, RevisionKind

MOST_UNDONE = 1_000
KEPT_MESSAGES = 12
"""How many of the newest messages a compression keeps at most, as whole turns."""
FEWEST_COMPRESSED = 4
"""A hand-over takes the place of no fewer messages."""
MAX_EXPORT_CHARACTERS = 20_000
MAX_TOOL_CHARACTERS = 500
_SENDER = re.compile(r"\[[^\[\]\n]{1,80}\](?: |\Z)")

NOTHING_SAID = "Nothing has been said here yet."
ROTATED = (
    "Nothing has been said here since the conversation started afresh. What was said before is in {id};"
    " to go on there: {resume}"
)
ASKED_ANEW = (
    "The conversation has started afresh since your last message: I ask it again in the new one."
    " To go on where it was: {resume}"
)
SET_ASIDE = "This conversation was set aside. To take it up again: {resume}"
NOTHING_UNDONE = "There is nothing to bring back: nothing was undone, or something was said since."
TOO_SHORT = "There is nothing to compress yet: the conversation has {count}, and the newest {kept} are kept."
COMPRESSED = (
    "Compressed: a hand-over of {gone} stands at the beginning now, followed by the newest {kept}."
    " Nothing is lost: the whole text is kept, and /search finds it."
)
LEFT_OUT = "(The beginning is left out: a reply holds the newest {most:,} characters.)"

COMMANDS = CommandTable()


@COMMANDS.add("/retry", "Take your last message back and ask again.")
@views.with_session
async def retry(parts: Parts, request: CommandRequest, session: Session) -> str | Rerun:
    begun_in = request.turn.session_id
    if begun_in:  # an attempt before this one has taken the message back and said it again
        content = _last_request(await parts.conversations.load_transcript(begun_in))
    elif session.entry.suspended:
        return SET_ASIDE.format(resume=views.resume_with(session))
    else:
        content = await _take_back(parts, request, session)
        await parts.conversations.clear_resume_pending(request.key)  # it goes on by this, however late
    if content is not None:
        return Rerun(_unsigned(parts, request, content))
    before = await views.rotated_from(parts, request, session)
    content = _last_request(await parts.conversations.load_transcript(before.id)) if before else None
    if before is None or content is None:
        return f"{NOTHING_SAID} There is nothing to retry."
    note = ASKED_ANEW.format(resume=views.resume_with(before))
    return Rerun(_unsigned(parts, request, content), note)


def _unsigned(parts: Parts, request: CommandRequest, content: Content) -> Content:
    """The message without the name that stands before it in a shared conversation."""
    author = request.turn.author
    if not parts.conversations.is_shared(request.turn.source) and not (author and author.is_guest):
        return content
    if isinstance(content, str):
        return _SENDER.sub("", content, count=1) if _SENDER.match(content) else content
    named = bool(content) and _SENDER.fullmatch(str(content[0].get("text")))
    return content[1:] if named else content


async def _nothing_said(parts: Parts, request: CommandRequest, session: Session, what: str) -> str:
    """Nothing can be done here; where what was meant is, when the conversation has rotated."""
    before = await views.rotated_from(parts, request, session)
    if before is None:
        return Refusal(f"{NOTHING_SAID} There is nothing to {what}.")
    told = ROTATED.format(id=before.id, resume=views.resume_with(before))
    return Refusal(f"{told}, then /{what}.")


async def _take_back(parts: Parts, request: CommandRequest, session: Session) -> Content | None:
    """Rewind the last turn; what its message was."""
    before = await _undone_before(parts, request, session)
    if before:
        rows = await parts.conversations.load_transcript(session.id, revision=before.number)
        return next((row["content"] for row in rows if calls.is_request(row)), None)
    content = _last_request(await parts.conversations.load_transcript(session.id))
    rewound = await parts.conversations.rewind_session(session.id)
    return content if rewound else None


async def _undone_before(parts: Parts, request: CommandRequest, session: Session) -> Revision | None:
    """What an earlier attempt at this command has taken back."""
    revisions = await parts.conversations.list_revisions(session.id)
    last = max(revisions, key=lambda revision: revision.number, default=None)
    ours = last and last.kind is RevisionKind.REWIND and views.was_done_before(request, last.created_at)
    return last if ours else None


def _last_request(transcript: Sequence[Plain]) -> Content | None:
    return next((row["content"] for row in reversed(transcript) if calls.is_request(row)), None)


@COMMANDS.add("/undo [number of turns]", "Take back the last turn, or several.")
@views.with_session
async def undo(parts: Parts, request: CommandRequest, session: Session) -> str:
    wanted = _count(views.argument_of(request))
    before = await _undone_before(parts, request, session)
    if before:
        rows = await parts.conversations.load_transcript(session.id, revision=before.number)
        requests = [row for row in rows if calls.is_request(row)]
        text = messages.text_of(requests[0]) if requests else ""
        return _undone(len(requests), len(rows), text)
    rewound = await parts.conversations.rewind_session(session.id, wanted)
    if rewound is None:
        return await _nothing_said(parts, request, session, "undo")
    return _undone(rewound["turns_undone"], rewound["rewound_count"], rewound["target_text"])


def _count(argument: str) -> int:
    number = views.number_in(argument) if argument else 1
    if number is None or not 1 <= number <= MOST_UNDONE:
        why = f"use a whole number from 1 to {MOST_UNDONE:,}, as in /undo 2"
        raise errors.InvalidInput(what=f"/undo {views.quoted(argument)}", why=why)
    return number


def _undone(turns: int, rows: int, text: str) -> str:
    taken = f"Took back {views.plural(turns, 'turn')} ({views.plural(rows, 'message')})"
    return f"{taken}, from {views.quoted(text)} on. To bring it back: /redo"


@COMMANDS.add("/redo", "Bring back what /undo took, until something is said.")
@views.with_session
async def redo(parts: Parts, request: CommandRequest, session: Session) -> str:
    if views.was_done_before(request, session.entry.updated_at):
        return "It is back."
    brought = await parts.conversations.redo_session(session.id)
    if brought is None:
        return Refusal(NOTHING_UNDONE)
    return f"Brought back {views.plural(brought['rewound_count'], 'message')}. Just go on."


@COMMANDS.add("/compress", "Go on with a short hand-over in place of the older messages.")
@views.with_session
async def compress(parts: Parts, request: CommandRequest, session: Session) -> str:
    done = session.relation is Relation.COMPRESSED
    if done and views.was_done_before(request, session.entry.created_at):
        return "Compressed. Just go on."
    transcript = await parts.conversations.load_transcript(session.id)
    old, kept = _divided(transcript)
    if len(old) < FEWEST_COMPRESSED:
        count = views.plural(len(transcript), "message")
        return Refusal(TOO_SHORT.format(count=count, kept=KEPT_MESSAGES))
    shorter = [await handover.told_beside(old), *kept]
    after = await parts.conversations.compress_session(request.key, shorter, by=request.turn.sender)
    if after is None:
        return views.NO_SESSION
    if session.title:
        await parts.conversations.set_title(after.session_id, session.title, request.viewer)
    await hook_calls.leave(parts, session.entry, EndReason.COMPRESSED)
    gone, rest = views.plural(len(old), "message"), views.plural(len(kept), "message")
    return COMPRESSED.format(gone=gone, kept=rest)


def _divided(transcript: list[Plain]) -> tuple[list[Plain], list[Plain]]:
    """The messages that a hand-over replaces, and the newest ones, which begin with somebody's request."""
    first = max(0, len(transcript) - KEPT_MESSAGES)
    begins = (place for place in range(first, len(transcript)) if calls.is_request(transcript[place]))
    place = next(begins, len(transcript))
    return transcript[:place], transcript[place:]


@COMMANDS.add("/export", "Show this conversation as Markdown.")
@views.with_session
async def export(parts: Parts, request: CommandRequest, session: Session) -> str:
    transcript = await _with_ancestors(parts, request, session)
    blocks = [_block(row) for row in transcript if row["role"] != Role.SESSION_META]
    if not blocks:
        return await _nothing_said(parts, request, session, "export")
    begun = f"Session {session.id}, begun {session.entry.created_at:%Y-%m-%d}"
    return "\n\n".join((f"# {session.title or 'Conversation'}", begun, *_newest(blocks)))


async def _with_ancestors(parts: Parts, request: CommandRequest, session: Session) -> list[Plain]:
    """What was said in it and in those that were compressed into it, as far as that is shown here."""
    if not request.others_read:
        return await parts.conversations.load_transcript(session.id, include_ancestors=True)
    said: list[Plain] = []
    each: Session | None = session
    while each:
        said = await parts.conversations.load_transcript(each.id) + said
        before = each.parent_id if each.relation is Relation.COMPRESSED else None
        each = await parts.conversations.find_session(before, request.viewer) if before else None
    return said


def _newest(blocks: list[str]) -> list[str]:
    """As many of the newest blocks as fit, with a note when there are more."""
    room, fitting = MAX_EXPORT_CHARACTERS, list[str]()
    for block in reversed(blocks):
        if room <= 0:
            break
        fitting.append(block[-room:])
        room -= len(block)
    complete = room >= 0 and len(fitting) == len(blocks)
    return fitting[::-1] if complete else [LEFT_OUT.format(most=MAX_EXPORT_CHARACTERS), *fitting[::-1]]


def _block(row: Plain) -> str:
    lines = [f"**{row['role']}:** {_text(row)}"]
    lines += [f"(calls {call.name})" for call in calls.calls_of(row)]
    return "\n".join(lines)


def _text(row: dict[str, Any]) -> str:
    text = messages.text_of(row)
    if row["role"] == Role.TOOL and len(text) > MAX_TOOL_CHARACTERS:
        return f"{text[:MAX_TOOL_CHARACTERS]}… ({len(text):,} characters)"
    return text or ("(no text)" if not row.get("tool_calls") else "")
