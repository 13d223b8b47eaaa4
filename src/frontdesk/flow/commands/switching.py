"""Commands about conversations as a whole: new, resume, sessions, search, title, model, branch, forget."""

import re
from contextlib import suppress

from frontdesk import errors
from frontdesk.contracts.hooks import HookEvent
from frontdesk.flow import forgetting, hook_calls
from frontdesk.flow.commands import CommandRequest, CommandTable, Refusal, views
from frontdesk.flow.commands.views import name_of, quoted, resume_with
from frontdesk.flow.parts import Parts
from frontdesk.formats import quoting
from frontdesk.model import keys, titles
from frontdesk.model.policies import EndReason
from frontdesk.model.resuming import Resuming, Wanted
from frontdesk.model.searches import Hit
from frontdesk.model.sessions import Relation, Session, SessionEntry
from frontdesk.model.turns import Turn

MOST_LISTED = 15
MOST_FOUND = 20
MOST_FOUND_SHOWN = 8
SNIPPET_CHARACTERS = 240
DEFAULT_MODEL = "default"
MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,99}")
CONFIRMATION = "yes"
EVERYBODY = "--all"

UNKNOWN = "You have no conversation {name}. /resume lists those with a title, /sessions all of them."
FORGOTTEN = "That conversation was forgotten and cannot be resumed. /sessions lists the others."
UNKNOWN_HERE = (
    "This chat has no conversation {name}. /resume lists those with a title, /sessions all of them."
)
FOREIGN = "That conversation is with another profile. Go on with it where that profile answers."
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

COMMANDS = CommandTable()


@COMMANDS.add("/new", "Start a new conversation.", aliases=("reset",), stops_turn=True)
async def new(parts: Parts, request: CommandRequest) -> str:
    conversations = parts.conversations
    current = await views.own_session(parts, request)
    if current and current.entry.is_fresh_reset and views.was_done_before(request, current.entry.created_at):
        return _begun(current.entry, None)
    if current and not current.entry.expiry_finalized:
        await hook_calls.tell(parts, HookEvent.FINALIZE, current.entry, EndReason.NEW)
    # A key that is not known yet must not bring back an older session with the next message.
    fresh = await conversations.reset_session(request.key, by=request.turn.sender)
    fresh = fresh or await conversations.get_or_create_session(request.turn.source, force_new=True)
    if current:
        await hook_calls.leave(parts, current.entry, EndReason.NEW)
    return _begun(fresh, current)


def _begun(fresh: SessionEntry, before: Session | None) -> str:
    text = f"This is a new conversation ({fresh.session_id})."
    if before is None or before.is_empty:
        return text
    return f"{text} The one before is kept; to get back to it: {resume_with(before)}"


async def names_another(parts: Parts, turn: Turn, argument: str) -> bool:
    """Whether somebody wants to go on with another conversation than the one here, and can: what runs is not
    stopped for a slip, or for what would be refused. That it begins to work elsewhere after this look, while
    what runs here is being stopped, is found out by the command itself."""
    if not argument or len(argument) > views.MAX_ARGUMENT_CHARACTERS:
        return False
    viewer = await parts.conversations.shown_in(turn.source)
    target = await parts.store.sessions.meant(turn.session_key, _meaning(argument), viewer)
    return target is not None and target.id != await parts.conversations.peek_session_id(turn.session_key)


@COMMANDS.add(
    "/resume [number, title or id]",
    "List your conversations with a title, or go on with one.",
    stops_turn=True,
    stops_when=names_another,
)
async def resume(parts: Parts, request: CommandRequest) -> str:
    wanted = views.argument_of(request)
    if not wanted:
        return views.with_offer(request, await _numbered_list(parts, request))
    if request.turn.attempts > 1 and views.number_in(wanted):
        current = await views.own_session(parts, request)
        if current and views.was_done_before(request, current.entry.updated_at):
            return await _resumed(parts, current)  # the list has another order by now
    resumed = await parts.conversations.resume_session(
        request.turn.source,
        _meaning(wanted),
        request.viewer,
        known_key=request.key,
        by=request.turn.sender,
    )
    target, before = resumed.target, resumed.before
    match resumed.outcome:
        case Resuming.FORGOTTEN:
            return Refusal(FORGOTTEN)
        case Resuming.FOREIGN:
            return Refusal(FOREIGN)
        case Resuming.ELSEWHERE:
            return Refusal(ELSEWHERE)
        case Resuming.HERE if target:
            return f"You are in {name_of(target)} already. Just go on."
        case Resuming.DONE if target:
            if before and before.id != target.id:
                await hook_calls.leave(parts, before.entry, EndReason.SWITCH)
            return await _resumed(parts, target)
    return Refusal(_unknown(request, quoted(wanted)))


def _meaning(text: str) -> Wanted:
    """What somebody may mean: a number of the list, an id, or a title as it was given or as lists show it."""
    meant: dict[str, None] = {}
    for title in (text, quoting.unquote(text)):
        with suppress(errors.InvalidTitle):
            meant[titles.clean_title(title)] = None
    session_id = text if keys.is_safe_session_id(text) else None
    return Wanted(number=views.number_in(text), session_id=session_id, titles=tuple(meant))


def _unknown(request: CommandRequest, name: str) -> str:
    """The same where others read along, whether the caller has such a conversation in private or not."""
    if request.others_read:
        return views.with_offer(request, UNKNOWN_HERE.format(name=name))
    return UNKNOWN.format(name=name)


async def _numbered_list(parts: Parts, request: CommandRequest) -> str:
    listed = await parts.store.sessions.numbered(request.viewer)
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


async def _resumed(parts: Parts, session: Session) -> str:
    count = views.plural(await parts.conversations.count_messages(session), "message")
    return f"You are back in {name_of(session)} ({count}). Just go on."


@COMMANDS.add("/sessions", "List your latest conversations.")
async def list_sessions(parts: Parts, request: CommandRequest) -> str:
    everybody = views.argument_of(request) == EVERYBODY
    viewer = views.everybody(request) if everybody else request.viewer
    found = await parts.conversations.list_own_sessions(viewer, limit=MOST_LISTED)
    here = await parts.conversations.peek_session_id(request.key)
    shown = [each for each in found if each.reason is not EndReason.COMPRESSED]
    lines = [await _line(parts, each, here) for each in shown if not each.is_forgotten]
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


@COMMANDS.add("/search words", "Search what was said in your conversations.")
async def search(parts: Parts, request: CommandRequest) -> str:
    first, rest = views.words_of(request)
    words, viewer = request.argument, request.viewer
    if first == EVERYBODY:
        words, viewer = rest, views.everybody(request)
    if not words:
        return SEARCH_USAGE
    hits = await parts.conversations.find_messages(words, viewer, limit=MOST_FOUND, around=0)
    found = [(hit, await parts.conversations.follow_lineage(hit.session_id, viewer)) for hit in hits]
    lines = [_found_line(parts, hit, tip) for hit, tip in found if tip and not tip.is_forgotten]
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


@COMMANDS.add("/title [text]", "Name this conversation, or show its title.")
@views.with_session
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


@COMMANDS.add("/model [name or default]", "Show or choose the model of this conversation.")
async def model(parts: Parts, request: CommandRequest) -> str:
    wanted = views.argument_of(request)
    if not wanted:
        return await _model_shown(parts, request)
    if not MODEL.fullmatch(wanted):
        raise errors.InvalidInput(what=f"Model {quoted(wanted)}", why="a model's name is one word")
    override = None if wanted.lower() == DEFAULT_MODEL else {"model": wanted}
    if override and not parts.abilities_of(request.turn.source).models:
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
    chosen = (override or {}).get("model") or parts.conversations.config.directions(request.turn.source).model
    name = quoted(chosen) if chosen else "the default model"
    if not parts.abilities_of(request.turn.source).models:
        return "This conversation uses the agent's own model, and no other can be chosen."
    return f"This conversation uses {name}. To choose another: /model NAME"


@COMMANDS.add("/branch", "Go on in a copy; the original stays as it is.", stops_turn=True)
@views.with_session
async def branch(parts: Parts, request: CommandRequest, session: Session) -> str:
    done = session.relation is Relation.BRANCH and views.was_done_before(request, session.entry.created_at)
    if done and session.parent_id:
        return _branched(session.id, session.parent_id)
    copy = await parts.conversations.branch_session(request.key, by=request.turn.sender)
    if copy is None:
        return views.NO_SESSION
    await hook_calls.leave(parts, session.entry, EndReason.BRANCH)
    return _branched(copy.session_id, session.id)


def _branched(copy: str, original: str) -> str:
    return f"You go on in a copy ({copy}). The original stays as it is; to get back to it: /resume {original}"


@COMMANDS.add("/forget yes", "End this conversation so that it can never be resumed.")
async def forget(parts: Parts, request: CommandRequest) -> str:
    session = await views.own_session(parts, request)
    if session is None:
        known = await parts.store.sessions.current(request.key)
        done = known is not None and known.is_forgotten
        return FORGOT if done and request.turn.attempts > 1 else views.NO_SESSION
    if views.argument_of(request).lower() != CONFIRMATION:
        return ASK_FORGET.format(name=name_of(session))
    await forgetting.forget(parts, session, request.viewer)
    return FORGOT
