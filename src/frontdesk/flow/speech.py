"""What a running turn says: rows to be written and the answer that comes of them; and a preview for whoever
follows the turn where it runs, which is said a second time in the store."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import Any

import msgspec
from msgspec.structs import asdict

from frontdesk.formats import tokens
from frontdesk.model import events, messages
from frontdesk.model.chats import StoredFile
from frontdesk.model.messages import Message, Plain
from frontdesk.model.sessions import USAGE_COUNTERS, Usage

SUMMARY = "summary"
MAX_EVENTS = 10_000
MAX_CHARACTERS = 4_000_000


class Speech(msgspec.Struct, eq=False):
    """Turns events into transcript rows, each with its place in the turn."""

    _turn_id: str
    _position: int
    _pieces: list[str] = []
    _details: dict[str, Any] = {}
    _last_text: str = ""
    usage: Usage | None = None
    _open_calls: tuple[str, ...] = ()
    _uncounted: list[str] | None = []
    """What the model has said and nobody has counted; None while it is not asked for anything."""
    tools: tuple[str, ...] = ()
    """Those that were called since something was said."""
    has_tools: bool = False
    """Whether there are calls of tools, or results, among the rows."""
    summary: str | None = None
    choice: events.Choice | None = None
    """What the agent offers to choose from, once it is done."""
    is_silent: bool = False
    """The agent has nothing to say."""
    rows: list[Plain] = []
    """What was written, or handed out to be written."""
    _counted: int = 0

    @property
    def answer(self) -> str:
        """What is to be delivered: what was said last."""
        return "".join(self._pieces).strip() or self._last_text

    @property
    def counted(self) -> int:
        """How many rows count as messages, with the results that close tool calls, at the turn's end too."""
        return self._counted + len(self._open_calls)

    def take(self, event: events.Event) -> list[Message]:
        """The rows that are to be written because of an event."""
        match event:
            case events.Text():
                self._pieces.append(event.text)
                self.tools = ()
                self._uncounted = self._uncounted or []
                self._uncounted.append(event.text)
            case events.Details():
                self._details.update(event.fields)
            case events.Calls():
                self._uncounted = None
                self.tools, self.has_tools = tuple(call.name for call in event.calls), True
                return [self._assistant(tool_calls=[call.plain for call in event.calls])]
            case events.Result():
                self.has_tools = True
                row = self.row(_result(event))
                self._uncounted = self._uncounted if self._open_calls else []
                return [row]
            case events.Used():
                self.usage, self._uncounted = added(self.usage, event.usage), None
            case events.Summary():
                self.summary = event.text
            case events.Choice():
                self.choice = event
            case events.Done(silent=True):
                self.is_silent = True
        return []

    def offer(self, choice: events.Choice) -> None:
        """The choice belongs to what was said last, with all its options."""
        self._pieces.append(f"\n\n{choice.numbered}" if any(self._pieces) else choice.numbered)

    def attach(self, file: StoredFile) -> None:
        """The assistant's message that comes next brings a file."""
        facts = {name: fact for name, fact in asdict(file).items() if name != "path"}
        self._details["files"] = [*self._details.get("files", ()), facts]

    def count_rest(self, prompt_tokens: int, *, silence: bool) -> None:
        """Count what a call to the model has used that was cut short: the prompt, and what was said so far.
        ``silence``: also when nothing was."""
        if self._uncounted is None or not (self._uncounted or silence):
            return
        prompt = (self.usage and self.usage.last_prompt_tokens) or prompt_tokens
        said = tokens.likely_tokens("".join(self._uncounted))
        self.usage = added(self.usage, Usage(input_tokens=prompt, output_tokens=said))
        self._uncounted = None

    def summarize(self) -> Message:
        """The row that keeps the agent's summary for the hand-over."""
        return self.row({"role": "session_meta", "kind": SUMMARY, "content": self.summary})

    def close(self, finish_reason: str | None = None) -> list[Message]:
        """The row of what was said since the last one; none when nothing was."""
        if not any(self._pieces) and not self._details:
            return []
        extra = {"finish_reason": finish_reason} if finish_reason else {}
        return [self._assistant(**extra)]

    def _assistant(self, **fields: Any) -> Message:
        text = "".join(self._pieces)
        row: Plain = {"role": "assistant", "content": text or None} | self._details | fields
        if row["content"] is None and "tool_calls" not in row:
            row["content"] = ""
        self._last_text = text.strip() or self._last_text
        self._pieces, self._details = [], {}
        return self.row(row)

    def row(self, message: Plain) -> Message:
        """The next row of the turn, as a message that was steered into it is one."""
        row = messages.pack(message, self._turn_id, self._position)
        self._position += 1
        self.rows.append(message)
        self._counted += row.counts + (len(self._open_calls) if row.closes_calls else 0)
        if self._open_calls or row.calls:
            self._open_calls = messages.open_calls(self._open_calls, row)
        return row


def _result(event: events.Result) -> Plain:
    row: Plain = {"role": "tool", "tool_call_id": event.id, "content": event.content}
    if event.name:
        row["tool_name"] = event.name
    if event.is_error:
        row["is_error"] = True
    return row


def added(before: Usage | None, more: Usage) -> Usage:
    """Both together; of the prompt size and the cost's status the later one counts."""
    if before is None:
        return more
    old, new = asdict(before), asdict(more)
    sums: Mapping[str, Any] = {name: old[name] + new[name] for name in (*USAGE_COUNTERS, "cost_usd")}
    later = {
        name: old[name] if new[name] is None else new[name] for name in ("cost_status", "last_prompt_tokens")
    }
    return Usage(**sums, **later)


class Pile(msgspec.Struct, eq=False):
    """What happened, in order, with texts that follow each other as one.

    When it is too much there is nothing in it but Missed, whatever may still come: never a hole.
    """

    _events: list[events.Event] = []
    _text: StringIO = msgspec.field(default_factory=StringIO)
    _characters: int = 0
    _full: bool = False

    def put(self, event: events.Event) -> None:
        if self._full:
            return
        if isinstance(event, events.Text):
            self._characters += len(event.text)
            self._text.write(event.text)
        elif isinstance(event, events.Missed):
            self._give_up()
        else:
            self._characters += _size(event)
            self._close_text()
            self._events.append(event)
        if self._characters > MAX_CHARACTERS or len(self._events) > MAX_EVENTS:
            self._give_up()

    def look(self) -> Sequence[events.Event]:
        """All that is there."""
        self._close_text()
        return tuple(self._events)

    def take(self) -> Sequence[events.Event]:
        """All that is there, once."""
        taken = self.look()
        self._events, self._characters = [], 0
        return taken

    def _close_text(self) -> None:
        if text := self._text.getvalue():
            self._events.append(events.Text(text=text))
            self._text = StringIO()

    def _give_up(self) -> None:
        self._full = True
        self._events, self._text = [events.Missed()], StringIO()


class Heard:
    """What somebody who follows has not read yet. Whoever does not keep up is told so by Missed."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._unread = Pile()
        self._over = False

    def put(self, event: events.Event | None) -> None:
        if event is None:
            self._over = True
        else:
            self._unread.put(event)
        self._ring()

    def is_over(self) -> bool:
        """Whether the turn was over here since this was asked the last time. It may begin again, here too."""
        over, self._over = self._over, False
        return over

    def drain(self) -> Iterator[events.Event]:
        while unread := self._unread.take():
            yield from unread


class Live:
    def __init__(self) -> None:
        self._followers: dict[str, set[Heard]] = {}
        self._told: dict[str, Pile] = {}
        """What has happened so far in the turns that run here, for who joins later."""

    def begin(self, turn_id: str, attempt: int = 1) -> None:
        """A turn begins to run here; who follows it is told when it did before."""
        self._told[turn_id] = Pile()
        for heard in self._followers.get(turn_id, ()) if attempt > 1 else ():
            heard.put(events.Restarted())

    def has(self, turn_id: str) -> bool:
        """Whether somebody tells here what happens in a turn."""
        return turn_id in self._told

    @contextmanager
    def listening(self, turn_id: str, ring: Callable[[], None]) -> Iterator[Heard]:
        """What happens in a turn, from its beginning; ``ring`` is called when there is something."""
        heard = Heard(ring)
        for event in self._told[turn_id].look() if turn_id in self._told else ():
            heard.put(event)
        self._followers.setdefault(turn_id, set()).add(heard)
        try:
            yield heard
        finally:
            followers = self._followers[turn_id]
            followers.discard(heard)
            if not followers:
                del self._followers[turn_id]

    def tell(self, turn_id: str, event: events.Event | None) -> None:
        """Something happened, or (None) the turn has ended here."""
        if event is None:
            self._told.pop(turn_id, None)
        else:
            if turn_id not in self._told:
                self._told[turn_id] = Pile()
            self._told[turn_id].put(event)
        for heard in self._followers.get(turn_id, ()):
            heard.put(event)


def _size(event: events.Event) -> int:
    """About how many characters it holds besides a text that is said."""
    match event:
        case events.Summary(text=text):
            return len(text)
        case events.Calls(calls=calls):
            return sum(len(call.arguments) for call in calls)
        case events.Result(content=str() as content):
            return len(content)
        case events.Result(content=parts):
            return sum(len(str(part)) for part in parts)
    return 0
