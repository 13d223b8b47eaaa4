"""What can be typed in the tour, and what is answered."""

import difflib
import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import NamedTuple

from frontdesk import errors
from frontdesk.cli import explain
from frontdesk.cli.tour.desk import Desk, Said
from frontdesk.flow.context import build_session_context, build_session_context_prompt
from frontdesk.model.messages import text_of
from frontdesk.model.platforms import Platform
from frontdesk.model.sessions import Session, Status
from frontdesk.model.sources import ChatType, SessionSource

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
NOTHING_YET = "There is no conversation here yet: say something first."
PLACES = ("group", "channel", "thread")
LISTED = 20
FOUND = 10

_COMMAND = re.compile(r":([a-z]+)(?:\s+(.*))?", re.DOTALL)
_TIME = re.compile(r"([0-9]{1,7})([smhd])")
_NUMBER = re.compile(r"[0-9]{1,9}")
_SESSION_ID = re.compile(r"[0-9]{8}_[0-9]{6}_[0-9a-f]{8}")


class Guide:
    """Answers one line after the other."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._listed: list[str] = []

    @property
    def prompt(self) -> str:
        return f"{self._desk.source.user_name}@{self._desk.source.platform}> "

    async def answer(self, line: str) -> str:
        """What a line comes to: a command's answer, or the reply to a message."""
        found = _COMMAND.fullmatch(line)
        if not found:
            return await self.say(line)
        command = COMMANDS.get(found[1])
        if command is None:
            near = difflib.get_close_matches(found[1], COMMANDS, n=1)
            raise _unusable(
                f":{found[1]}", f"did you mean :{near[0]}?" if near else ":help lists what there is"
            )
        return await command.run(self, (found[2] or "").strip())

    async def say(self, text: str) -> str:
        said = await self._desk.say(text)
        return "\n".join([*_about_reset(said), said.reply, await self._standing()])

    async def _standing(self) -> str:
        """Where the person is: key, session, allowance."""
        key = await self._desk.key()
        session = await self._desk.current()
        where = f"session {session.id}" if session else "no session yet"
        return f"[{key}] {where}, {await self._allowance(key)}"

    async def _allowance(self, key: str) -> str:
        info = await self._desk.sessions.get_message_limit_info(key)
        count, most = info["message_count"], info["max_messages"]
        if not most:
            return f"{count} messages"
        used = f"{count} of {most} messages"
        if info["at_limit"]:
            return f"{used}: limit reached, the next message starts a new session"
        return f"{used}: {info['remaining']} left" if info["near_limit"] else used

    async def become(self, words: str) -> str:
        self._desk.source = parse_source(words, self._desk.source.platform)
        self._listed = []
        return await self.introduce("")

    async def introduce(self, _: str) -> str:
        source = self._desk.source
        lines = explain.describe(await self._desk.sessions.explain(source))
        return "\n".join([f"You are {source.user_name} on {source.platform} ({source.description}).", *lines])

    async def list_sessions(self, _: str) -> str:
        viewer = await self._desk.viewer()
        found = await self._desk.sessions.list_own_sessions(viewer, limit=LISTED)
        self._listed = [session.id for session in found]
        current = await self._desk.current()
        lines = [f"{number:>2}. {_about(session, current)}" for number, session in enumerate(found, 1)]
        return "\n".join(lines) or NOTHING_YET

    async def show_history(self, _: str) -> str:
        session = await self._here()
        transcript = await self._desk.sessions.load_transcript(session.id)
        return "\n".join(f"{message['role']:>9}: {text_of(message)}" for message in transcript) or "(empty)"

    async def search(self, words: str) -> str:
        hits = await self._desk.sessions.search(words, await self._desk.viewer(), limit=FOUND)
        lines = [f"{hit.session_id} {hit.role}: {hit.snippet}" for hit in hits]
        return "\n".join(lines) or "Nothing found among what you may see."

    async def start_new(self, _: str) -> str:
        ended = await self._here()
        entry = await self._desk.sessions.reset_session(ended.entry.session_key)
        assert entry is not None
        return f"{ended.id} has ended and can be resumed.\n{await self._standing()}"

    async def undo(self, words: str) -> str:
        undone = await self._desk.sessions.rewind_session(
            (await self._here()).id, _number(words or "1", ":undo")
        )
        if undone is None:
            return "There is nothing to undo."
        turns = "turn" if undone["turns_undone"] == 1 else "turns"
        what = f"{undone['turns_undone']} {turns}, back to before: {undone['target_text']}"
        return f"Undone: {what}\n{await self._standing()}"

    async def redo(self, _: str) -> str:
        redone = await self._desk.sessions.redo_session((await self._here()).id)
        if redone is None:
            return "There is nothing to redo."
        return f"Brought back: {redone['rewound_count']} messages\n{await self._standing()}"

    async def resume(self, words: str) -> str:
        if not words:
            return await self.list_sessions("")
        current, wanted = await self._here(), await self._wanted(words)
        if wanted is None:
            raise _unusable(f":resume {words}", "you have no such conversation; :sessions lists yours")
        if wanted.owner != current.owner:
            raise _unusable(f":resume {words}", "it is yours alone, and this chat is shared")
        if wanted.id == current.id:
            return f"You are already there.\n{await self._standing()}"
        await self._desk.sessions.switch_session(current.entry.session_key, wanted.id)
        return f"Back in {wanted.id}, with a fresh message allowance.\n{await self._standing()}"

    async def _wanted(self, words: str) -> Session | None:
        """A session by its number in the last list, its id or its title."""
        viewer = await self._desk.viewer()
        if _NUMBER.fullmatch(words) and 0 < int(words) <= len(self._listed):
            return await self._desk.sessions.find_session(self._listed[int(words) - 1], viewer)
        if _SESSION_ID.fullmatch(words):
            return await self._desk.sessions.find_session(words, viewer)
        return await self._desk.sessions.find_title(words, viewer)

    async def name_session(self, words: str) -> str:
        session = await self._here()
        if words:
            await self._desk.sessions.set_title(session.id, words, await self._desk.viewer())
            session = await self._here()
        return f"Title: {session.title}" if session.title else "It has no title."

    async def show_limit(self, words: str) -> str:
        if words:
            self._desk.limit_chat(_number(words, ":limit"))
        return await self._standing()

    async def wait(self, words: str) -> str:
        found = _TIME.fullmatch(words)
        if not found:
            raise _unusable(f":wait {words}", "use a number with s, m, h or d, such as :wait 25h")
        self._desk.clock.wait(timedelta(**{UNITS[found[2]]: int(found[1])}))
        explanation = await self._desk.sessions.explain(self._desk.source)
        return f"It is {words} later for the tour.\n{explain.describe(explanation)[-1]}"

    async def show_context(self, _: str) -> str:
        session = await self._desk.current()
        context = build_session_context(
            self._desk.source, self._desk.sessions.config, session.entry if session else None
        )
        return build_session_context_prompt(context)

    async def help(self, _: str) -> str:
        return HELP

    async def _here(self) -> Session:
        session = await self._desk.current()
        if session is None:
            raise _unusable("That", NOTHING_YET)
        return session


class Command(NamedTuple):
    run: Callable[[Guide, str], Awaitable[str]]
    usage: str
    meaning: str


COMMANDS = {
    "as": Command(Guide.become, "bob slack group:general thread:7", "speak as somebody else, somewhere else"),
    "whoami": Command(Guide.introduce, "", "who you are, and where your messages go and why"),
    "sessions": Command(Guide.list_sessions, "", "your conversations"),
    "history": Command(Guide.show_history, "", "what was said in this one"),
    "search": Command(Guide.search, 'words "a phrase" begin*', "find messages in what you may see"),
    "new": Command(Guide.start_new, "", "end this conversation and start another"),
    "resume": Command(Guide.resume, "2", "go back to one, by number, id or title"),
    "title": Command(Guide.name_session, "holiday plans", "give this one a title"),
    "undo": Command(Guide.undo, "1", "take back the last turns"),
    "redo": Command(Guide.redo, "", "bring them back"),
    "limit": Command(Guide.show_limit, "6", "allow this chat so many messages; without a number, show it"),
    "wait": Command(Guide.wait, "25h", "move the tour's clock on (s, m, h, d)"),
    "context": Command(Guide.show_context, "", "what an agent would be told about this place"),
    "help": Command(Guide.help, "", "this list"),
}


def _usage(name: str, command: Command) -> str:
    return f"  {f':{name} {command.usage}':<40}{command.meaning}"


HELP = "\n".join(
    [
        "A line is a message, unless it is one of these:",
        *(_usage(name, command) for name, command in COMMANDS.items()),
        f"  {':quit':<40}leave (or Ctrl-D)",
    ]
)
WELCOME = f"""\
frontdesk tour. There is no agent yet: every message is answered with its own words.
You are alice on telegram. Say something, become somebody else, wait a day, search.

{HELP}"""


def parse_source(words: str, platform: Platform) -> SessionSource:
    """Somebody somewhere: ``bob slack group:general thread:7``. Alone, a name means a direct chat."""
    name, *rest = words.split() or [""]
    if not name:
        raise _unusable(":as", "say who, such as :as bob slack group:general thread:7")
    if rest and rest[0] != ChatType.DM and ":" not in rest[0]:
        platform = Platform(rest.pop(0))
    place = dict(map(_place, rest))
    thread = place.pop("thread", None)
    if len(place) > 1:
        raise _unusable(f":as {words}", "one chat at a time")
    chat_type, chat = next(iter(place.items()), (ChatType.DM, ""))
    return SessionSource(
        platform=platform,
        chat_type=ChatType(chat_type),
        chat_id=chat or name,
        chat_name=chat or None,
        user_id=name,
        user_name=name,
        thread_id=thread,
    )


def _place(word: str) -> tuple[str, str]:
    kind, _, name = word.partition(":")
    if word != ChatType.DM and not (kind in PLACES and name):
        raise _unusable(
            f":as … {word}", "a place is dm, group:name or channel:name, and thread:name if need be"
        )
    return kind, name


def _number(words: str, what: str) -> int:
    if not _NUMBER.fullmatch(words):
        raise _unusable(f"{what} {words}", "use a whole number")
    return int(words)


def _unusable(what: str, why: str) -> errors.InvalidInput:
    return errors.InvalidInput(what=what, why=why)


def _about_reset(said: Said) -> list[str]:
    if said.reset is None:
        return []
    return [f"A new session began ({said.reset}); the one before it is kept: :sessions"]


def _about(session: Session, current: Session | None) -> str:
    """A session in one line."""
    state = "ended" if session.status is Status.ENDED else "open"
    state = f"{state}: {session.end_reason}" if session.end_reason else state
    here = ", you are here" if current and current.id == session.id else ""
    place = session.entry.origin.description if session.entry.origin else session.entry.session_key
    title = f" “{session.title}”" if session.title else ""
    return f"{session.id}{title} in {place}, {session.entry.message_count} messages ({state}{here})"
