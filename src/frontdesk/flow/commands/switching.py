"""Commands about conversations as a whole: new, resume, sessions, search, title, model, branch, forget."""

import re

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.contracts.hooks import HookEvent
from frontdesk.flow import endings, occasions
from frontdesk.flow.commands import Command, CommandRequest, Refusal, views
from frontdesk.flow.commands.views import name_of, quoted, resume_with
from frontdesk.flow.parts import Parts
from frontdesk.formats import quoting
from frontdesk.model import titles
from frontdesk.model.people import Viewer
from frontdesk.model.policies import EndReason
from frontdesk.model.searches import Hit
from frontdesk.model.sessions import Relation, Session, SessionEntry, SessionStatus
from frontdesk.model.turns import TurnState

MOST_NUMBERED = 10
MOST_LISTED = 15
MOST_FOUND = 20
MOST_FOUND_SHOWN = 8
SNIPPET_CHARACTERS = 240
MOST_TURNS_LOOKED_AT = 100
DEFAULT_MODEL = "default"
MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,99}")
CONFIRMATION = "yes"
EVERYBODY = "--all"

UNKNOWN = "You have no conversation {name}. /resume lists those with a title, /sessions all of them."
FORGOTTEN = "That conversation was forgotten and cannot be resumed. /sessions lists the others."
UNKNOWN_HERE = (
    "This chat has no conversation {name}. /resume lists those with a title, /sessions all of them."
)
ELSEWHERE = "That conversation is at work in another chat of yours. Write /stop there first."
NO_TITLES = "None of your conversations has a title. /title TEXT names this one, /sessions lists all of them."
TITLE_UNUSABLE = "The title {name} cannot be used here. Choose another one."
NO_OTHER_MODEL = "The agent here cannot be given another model; nothing was changed."
SEARCH_USAGE = (
    'What shall I look for? /search WORDS finds messages with all of them; "a phrase" and begin* work, too.'
)
NONE_YET = "There are no conversations yet. Say something, and there is one."
ASK_FORGET = (
    "This ends conversation {name} for good: it can never be resumed, loses its title, and no longer shows in"
    " /sessions and /search. Its text stays in the database until whoever runs me erases it."
    " To do this, write: /forget yes"
)
FORGOT = (
    "Forgotten. This conversation can never be resumed, and your next message starts a new one."
    " Its text stays in the database until whoever runs me erases it."
)


async def new(parts: Parts, request: CommandRequest) -> str:
    conversations = parts.conversations
    current = await views.own_session(parts, request)
    if current and current.entry.is_fresh_reset and views.was_done_before(request, current.entry.created_at):
        return _begun(current.entry, None)
    if current and not current.entry.expiry_finalized:
        await occasions.tell(parts, HookEvent.FINALIZE, current.entry, EndReason.NEW)
    # A key that is not known yet must not bring back an older session with the next message.
    fresh = await conversations.reset_session(request.key)
    fresh = fresh or await conversations.get_or_create_session(request.turn.source, force_new=True)
    if current:
        await endings.leave(parts, current.entry, EndReason.NEW)
    return _begun(fresh, current)


def _begun(fresh: SessionEntry, before: Session | None) -> str:
    text = f"This is a new conversation ({fresh.session_id})."
    if before is None or before.is_empty:
        return text
    return f"{text} The one before is kept; to get back to it: {resume_with(before)}"


async def resume(parts: Parts, request: CommandRequest) -> str:
    wanted = views.argument_of(request)
    if not wanted:
        return views.with_offer(request, await _numbered_list(parts, request))
    current = await views.own_session(parts, request)
    number = views.number_in(wanted)
    if number and current and views.was_done_before(request, current.entry.updated_at):
        return await _resumed(parts, current)  # the list has another order by now
    target = await _find(parts, request.viewer, wanted)
    if target is None:
        return _unknown(request, quoted(wanted))
    if views.is_forgotten(target):
        return FORGOTTEN
    return await _go_to(parts, request, current, target)


def _unknown(request: CommandRequest, name: str) -> str:
    """The same where others read along, whether the caller has such a conversation in private or not."""
    if request.others_read:
        return views.with_offer(request, UNKNOWN_HERE.format(name=name))
    return UNKNOWN.format(name=name)


async def _numbered_list(parts: Parts, request: CommandRequest) -> str:
    listed = await _numbered(parts, request.viewer)
    if not listed:
        return NO_TITLES
    here = await parts.conversations.peek_session_id(request.key)
    now = parts.clock.now()
    lines = [
        f"{number}. {name_of(each)}, {views.ago(each.entry.updated_at, now)}"
        f"{' (you are here)' if each.id == here else ''}"
        for number, each in enumerate(listed, 1)
    ]
    return "\n".join(("Your conversations with a title:", *lines, "To go on with one: /resume 1"))


async def _numbered(parts: Parts, viewer: Viewer) -> list[Session]:
    """The conversations as /resume numbers them, each as its newest generation."""
    found = await parts.conversations.list_own_sessions(viewer, limit=MOST_NUMBERED, titled=True)
    numbered: dict[str, Session] = {}
    for each in found:
        compressed = each.reason is EndReason.COMPRESSED
        session = await parts.conversations.follow_lineage(each.id, viewer) if compressed else each
        if session and not views.is_forgotten(session):
            numbered.setdefault(session.id, replace(session, title=session.title or each.title))
    return list(numbered.values())


async def _find(parts: Parts, viewer: Viewer, wanted: str) -> Session | None:
    """The session that a number of the list, an id or a title names."""
    number = views.number_in(wanted)
    listed = await _numbered(parts, viewer) if number else []
    if number and number <= len(listed):
        return listed[number - 1]
    return await _by_id(parts, viewer, wanted) or await _by_title(parts, viewer, wanted)


async def _by_id(parts: Parts, viewer: Viewer, wanted: str) -> Session | None:
    try:
        return await parts.conversations.follow_lineage(wanted, viewer)
    except errors.UnsafeSessionId:
        return None


async def _by_title(parts: Parts, viewer: Viewer, wanted: str) -> Session | None:
    """By a title as it was given, or as lists show it."""
    for title in (wanted, quoting.unquote(wanted)):
        try:
            found = await parts.conversations.find_title(title, viewer)
        except errors.InvalidTitle:
            continue
        if found:
            return found
    return None


async def _go_to(parts: Parts, request: CommandRequest, current: Session | None, target: Session) -> str:
    conversations, key = parts.conversations, request.key
    if current and current.id == target.id and not await _is_over(parts, request, target):
        return f"You are in {name_of(target)} already. Just go on."
    if await _is_busy_elsewhere(parts, request, target):
        return ELSEWHERE
    # A session only gives way to another one: where there is none, or the same one, one is put there first.
    if current and current.id == target.id:
        await conversations.reset_session(key)
    elif await conversations.get_session(key) is None:
        await conversations.get_or_create_session(request.turn.source)
    if await conversations.switch_session(key, target.id, request.viewer) is None:
        return _unknown(request, name_of(target))
    if current and current.id != target.id:
        await endings.leave(parts, current.entry, EndReason.SWITCH)
    return await _resumed(parts, target)


async def _resumed(parts: Parts, session: Session) -> str:
    count = views.plural(await parts.conversations.count_messages(session), "message")
    return f"You are back in {name_of(session)} ({count}). Just go on."


async def _is_over(parts: Parts, request: CommandRequest, session: Session) -> bool:
    """Whether the next message would not go on in it."""
    entry = session.entry
    due = await parts.conversations.reset_reason(entry, request.turn.source)
    return entry.suspended or session.status is SessionStatus.ENDED or due is not None


async def _is_busy_elsewhere(parts: Parts, request: CommandRequest, session: Session) -> bool:
    key = await parts.store.sessions.route_of(session.id)
    if key is None or key == request.key:
        return False
    open_turns = await parts.store.turns.open_turns(key, MOST_TURNS_LOOKED_AT)
    return any(turn.state in (TurnState.RUNNING, TurnState.WAITING) for turn in open_turns)


async def list_sessions(parts: Parts, request: CommandRequest) -> str:
    everybody = views.argument_of(request) == EVERYBODY
    viewer = views.everybody(request) if everybody else request.viewer
    found = await parts.conversations.list_own_sessions(viewer, limit=MOST_LISTED)
    here = await parts.conversations.peek_session_id(request.key)
    shown = [each for each in found if each.reason is not EndReason.COMPRESSED]
    lines = [await _line(parts, each, here) for each in shown if not views.is_forgotten(each)]
    if not lines:
        return views.with_offer(request, NONE_YET)
    listed = "\n".join(("The latest conversations:", *lines, "To go on with one of yours: /resume ID"))
    return views.with_offer(request, listed)


async def _line(parts: Parts, session: Session, here: str | None) -> str:
    facts = [session.id]
    if session.title:
        facts.append(quoted(session.title))
    facts.append(views.plural(await parts.conversations.count_messages(session), "message"))
    facts.append(views.ago(session.entry.updated_at, parts.clock.now()))
    return ", ".join(facts) + (" (you are here)" if session.id == here else "")


async def search(parts: Parts, request: CommandRequest) -> str:
    first, rest = views.words_of(request)
    words, viewer = request.argument, request.viewer
    if first == EVERYBODY:
        words, viewer = rest, views.everybody(request)
    if not words:
        return SEARCH_USAGE
    hits = await parts.conversations.search(words, viewer, limit=MOST_FOUND, around=0)
    found = [(hit, await parts.conversations.follow_lineage(hit.session_id, viewer)) for hit in hits]
    lines = [_found_line(parts, hit, tip) for hit, tip in found if tip and not views.is_forgotten(tip)]
    if not lines:
        nothing = f"I found nothing about {views.quoted(words)}. Try fewer words, or only a beginning: begin*"
        return views.with_offer(request, nothing)
    more = "\n(There is more: add a word.)" if len(lines) > MOST_FOUND_SHOWN else ""
    found_here = "\n".join(lines[:MOST_FOUND_SHOWN]) + f"{more}\nTo go on with one of yours: /resume ID"
    return views.with_offer(request, found_here)


def _found_line(parts: Parts, hit: Hit, session: Session) -> str:
    snippet = quoting.clean_text(hit.snippet, SNIPPET_CHARACTERS).replace("\n", " ")
    title = f" {views.quoted(session.title)}" if session.title else ""
    return f"{session.id}{title}, {views.ago(hit.created_at, parts.clock.now())}, {hit.role}: {snippet}"


async def title(parts: Parts, request: CommandRequest, session: Session) -> str:
    wanted = views.argument_of(request)
    if not wanted:
        named = f"is called {quoted(session.title)}" if session.title else "has no title"
        return f"This conversation {named}. To name it: /title TEXT"
    named = titles.clean_title(wanted)
    try:
        await parts.conversations.set_title(session.id, named, request.viewer)
    except errors.TitleTaken:
        if await parts.conversations.find_title(named, request.viewer):
            raise
        # By a conversation that is not shown here: nothing is said of it.
        return Refusal(TITLE_UNUSABLE.format(name=quoted(named)))
    return f"This conversation is called {quoted(named)} now. /resume finds it by that."


async def model(parts: Parts, request: CommandRequest) -> str:
    wanted = views.argument_of(request)
    if not wanted:
        return await _model_shown(parts, request)
    if not MODEL.fullmatch(wanted):
        raise errors.InvalidInput(what=f"Model {quoted(wanted)}", why="a model's name is one word")
    override = None if wanted.lower() == DEFAULT_MODEL else {"model": wanted}
    if override and not parts.agent.abilities.models:
        return Refusal(NO_OTHER_MODEL)
    # The choice belongs to the session that the next message goes to.
    await parts.conversations.get_or_create_session(request.turn.source)
    await parts.conversations.set_model_override(request.key, override)
    if override is None:
        return "This conversation uses the default model again."
    name = quoted(override["model"])
    return f"This conversation uses the model {name} from now on. To go back: /model default"


async def _model_shown(parts: Parts, request: CommandRequest) -> str:
    session = await views.own_session(parts, request)
    override = session.entry.model_override if session else None
    chosen = override.get("model") if override else None
    name = quoted(chosen) if chosen else "the default model"
    if not parts.agent.abilities.models:
        return "This conversation uses the agent's own model, and no other can be chosen."
    return f"This conversation uses {name}. To choose another: /model NAME"


async def branch(parts: Parts, request: CommandRequest, session: Session) -> str:
    done = session.relation is Relation.BRANCH and views.was_done_before(request, session.entry.created_at)
    if done and session.parent_id:
        return _branched(session.id, session.parent_id)
    copy = await parts.conversations.branch_session(request.key)
    if copy is None:
        return views.NO_SESSION
    await endings.leave(parts, session.entry, EndReason.BRANCH)
    return _branched(copy.session_id, session.id)


def _branched(copy: str, original: str) -> str:
    return f"You go on in a copy ({copy}). The original stays as it is; to get back to it: /resume {original}"


async def forget(parts: Parts, request: CommandRequest) -> str:
    session = await views.own_session(parts, request)
    if session is None:
        known = await parts.store.sessions.current(request.key)
        done = known is not None and views.is_forgotten(known)
        return FORGOT if done and request.turn.attempts > 1 else views.NO_SESSION
    if views.argument_of(request).lower() != CONFIRMATION:
        return ASK_FORGET.format(name=name_of(session))
    conversations = parts.conversations
    if session.status is SessionStatus.ENDED:
        await conversations.switch_session(request.key, session.id)  # only what is open can end
    await conversations.set_title(session.id, None, request.viewer)
    await conversations.end_session(session.id, EndReason.FORGOTTEN)
    await endings.leave(parts, session.entry, EndReason.FORGOTTEN)
    return FORGOT


COMMANDS = (
    Command(name="new", aliases=("reset",), handle=new, stops_turn=True, help="Start a new conversation."),
    Command(
        name="resume",
        usage="[number, title or id]",
        handle=resume,
        stops_turn=True,
        help="List your conversations with a title, or go on with one.",
    ),
    Command(name="sessions", handle=list_sessions, help="List your latest conversations."),
    Command(name="search", usage="words", handle=search, help="Search what was said in your conversations."),
    Command(
        name="title",
        usage="[text]",
        handle=views.with_session(title),
        help="Name this conversation, or show its title.",
    ),
    Command(
        name="model",
        usage="[name or default]",
        handle=model,
        help="Show or choose the model of this conversation.",
    ),
    Command(
        name="branch",
        handle=views.with_session(branch),
        stops_turn=True,
        help="Go on in a copy; the original stays as it is.",
    ),
    Command(
        name="forget",
        usage="yes",
        handle=forget,
        help="End this conversation so that it can never be resumed.",
    ),
)
