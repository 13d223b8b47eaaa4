"""What a caller may see and change where they ask, and how sessions are named to them."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from frontdesk import errors
from frontdesk.flow.commands import CommandRequest, Handler, Rerun
from frontdesk.flow.parts import Parts
from frontdesk.formats import quoting
from frontdesk.model import amounts, routing
from frontdesk.model.people import Viewer
from frontdesk.model.policies import AUTOMATIC
from frontdesk.model.resolution import goes_on
from frontdesk.model.sessions import Relation, Session

MAX_ARGUMENT_CHARACTERS = 1_000
MAX_NAME_CHARACTERS = 120
MAX_NUMBER_DIGITS = 6
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)

ONLY_THIS_CHAT = (
    "Others read this chat, so I show only what belongs to it."
    " For a private conversation of yours, write to me in a direct chat."
)
NO_SESSION = "There is no conversation of yours here yet. Say something, and there is one."

SessionHandler = Callable[[Parts, CommandRequest, Session], Awaitable[str | Rerun]]


async def own_session(parts: Parts, request: CommandRequest) -> Session | None:
    """The conversation's session, when the caller may see it and a message would go on in it."""
    entry = await parts.conversations.get_session(request.key)
    if entry is None:
        return None
    session = await parts.conversations.find_session(entry.session_id, request.viewer)
    return session if session and goes_on(session) else None


async def rotated_from(parts: Parts, request: CommandRequest, session: Session) -> Session | None:
    """The session before this one, when it ended by itself and the caller may see it: to people it is all one
    conversation."""
    before = session.parent_id if session.relation is Relation.RESET else None
    parent = await parts.conversations.find_session(before, request.viewer) if before else None
    return parent if parent and parent.reason in AUTOMATIC and not parent.is_forgotten else None


def with_session(handle: SessionHandler) -> Handler:
    """A command that is about the conversation's session, and says so where there is none."""

    async def find_first(parts: Parts, request: CommandRequest) -> str | Rerun:
        session = await own_session(parts, request)
        return await handle(parts, request, session) if session else (NO_SESSION)

    return find_first


def argument_of(request: CommandRequest) -> str:
    """What follows the command, when it is no longer than anything we ask for."""
    if len(request.argument) > MAX_ARGUMENT_CHARACTERS:
        why = f"it is longer than {MAX_ARGUMENT_CHARACTERS} characters"
        raise errors.InvalidInput(what="What follows the command", why=why)
    return request.argument


def words_of(request: CommandRequest) -> tuple[str, str]:
    """The first word that follows the command, and the rest."""
    first, *rest = argument_of(request).split(maxsplit=1) or [""]
    return first, rest[0] if rest else ""


def number_in(text: str) -> int | None:
    """The text as a number from a list."""
    return int(text) if text.isdecimal() and len(text) <= MAX_NUMBER_DIGITS else None


def was_done_before(request: CommandRequest, at: datetime) -> bool:
    """Whether what happened then was an earlier attempt at this very command, cut short after it.

    Nothing else changes a conversation while one of its commands is under way.
    """
    turn = request.turn
    return turn.attempts > 1 and turn.started_at is not None and at >= turn.started_at


def quoted(text: str) -> str:
    """What somebody typed, shown to them."""
    return quoting.quote_within(text, MAX_NAME_CHARACTERS)


def name_of(session: Session) -> str:
    """What to type after /resume: the title, else the id."""
    return quoted(session.title) if session.title else session.id


def resume_with(session: Session) -> str:
    return f"/resume {session.id}"


def ago(then: datetime, now: datetime) -> str:
    passed = max(now - then, timedelta())
    if passed < MINUTE:
        return "just now"
    return f"{passed // DAY}d ago" if passed >= DAY else f"{amounts.duration(passed // MINUTE)} ago"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def require_administrator(request: CommandRequest, what: str) -> None:
    if not request.administrator:
        raise errors.NotAllowed(who="You", rule=f"only an administrator {what}")


def everybody(request: CommandRequest) -> Viewer:
    """The view of an administrator who asks for everybody's conversations, in private."""
    require_administrator(request, "sees everybody's conversations")
    require_privacy(request, "everybody's conversations are")
    if routing.named(request.turn.source.profile):  # whose administrators are not the owner's
        rule = "conversations of all profiles are shown where the default one answers"
        raise errors.NotAllowed(who="You", rule=rule)
    return Viewer.everything()


def require_privacy(request: CommandRequest, what: str) -> None:
    """Refuse what is nobody's business but the caller's where others read along."""
    if request.others_read:
        raise errors.NotAllowed(who="You", rule=f"{what} shown in private chats alone")


def with_offer(request: CommandRequest, text: str) -> str:
    """What is shown, and where others read along, where to ask for the rest."""
    return f"{text}\n{ONLY_THIS_CHAT}" if request.others_read else text
