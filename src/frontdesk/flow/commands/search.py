"""The command that searches what was said."""

from frontdesk.flow.commands import Command, CommandReply, CommandRequest, views
from frontdesk.flow.parts import Parts
from frontdesk.formats import quoting
from frontdesk.model.people import Viewer
from frontdesk.model.searches import Hit
from frontdesk.model.sessions import Session

MOST_FOUND = 20
MOST_SHOWN = 8
SNIPPET_CHARACTERS = 240
EVERYBODY = "--all"

USAGE = (
    'What shall I look for? /search WORDS finds messages with all of them; "a phrase" and begin* work, too.'
)


async def search(parts: Parts, request: CommandRequest) -> CommandReply:
    words, viewer = _asked(request)
    if not words:
        return CommandReply(USAGE)
    hits = await parts.conversations.search(words, viewer, limit=MOST_FOUND, around=0)
    found = [(hit, await parts.conversations.follow_lineage(hit.session_id, viewer)) for hit in hits]
    lines = [_line(parts, hit, tip) for hit, tip in found if tip and not views.is_forgotten(tip)]
    if not lines:
        nothing = f"I found nothing about {views.quoted(words)}. Try fewer words, or only a beginning: begin*"
        return CommandReply(views.with_offer(request, nothing))
    more = "\n(There is more: add a word.)" if len(lines) > MOST_SHOWN else ""
    found_here = "\n".join(lines[:MOST_SHOWN]) + f"{more}\nTo go on with one of yours: /resume ID"
    return CommandReply(views.with_offer(request, found_here))


def _asked(request: CommandRequest) -> tuple[str, Viewer]:
    """The words, and where they are looked for."""
    first, rest = views.words_of(request)
    if first == EVERYBODY:
        return rest, views.everybody(request)
    return request.argument, request.viewer


def _line(parts: Parts, hit: Hit, session: Session) -> str:
    snippet = quoting.clean_text(hit.snippet, SNIPPET_CHARACTERS).replace("\n", " ")
    title = f" {views.quoted(session.title)}" if session.title else ""
    return f"{session.id}{title}, {views.ago(hit.created_at, parts.clock.now())}, {hit.role}: {snippet}"


COMMANDS = (
    Command(name="search", usage="words", handle=search, help="Search what was said in your conversations."),
)
