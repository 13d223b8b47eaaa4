"""The lines between the gateway and an agent that is a program."""

import operator
from functools import reduce
from typing import Annotated, Any

import msgspec

from frontdesk import errors
from frontdesk.formats import quoting
from frontdesk.model import background, events
from frontdesk.model.background import DEFAULT_NAME, DEFAULT_SECONDS
from frontdesk.model.sessions import Usage

UNUSABLE = "the agent wrote a line that cannot be used"

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


class AgentLine(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """A line from the agent. Fields that it does not know are passed over."""


class TextLine(AgentLine, frozen=True, kw_only=True, tag="text"):
    text: str


class CallLine(AgentLine, frozen=True, kw_only=True, tag="tool_call"):
    id: Name
    name: Name
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


class ResultLine(AgentLine, frozen=True, kw_only=True, tag="tool_result"):
    id: Name
    content: str | list[dict[str, Any]]
    is_error: bool = False


class ApprovalLine(AgentLine, frozen=True, kw_only=True, tag="approval"):
    id: Name
    action: Name
    description: str
    details: dict[str, Any] | None = None


class UsageLine(AgentLine, frozen=True, kw_only=True, tag="usage"):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    last_prompt_tokens: int | None = None
    cost_usd: float | None = None


class SummaryLine(AgentLine, frozen=True, kw_only=True, tag="summary"):
    text: str


class BackgroundLine(AgentLine, frozen=True, kw_only=True, tag="background"):
    name: Name = DEFAULT_NAME
    running: bool = True
    seconds: float = DEFAULT_SECONDS


class SendLine(AgentLine, frozen=True, kw_only=True, tag="send"):
    to: Name
    text: str
    id: Annotated[str, msgspec.Meta(max_length=256)] = ""


class FileLine(AgentLine, frozen=True, kw_only=True, tag="file"):
    path: str | None = None
    data: bytes | None = None
    name: str | None = None
    kind: str | None = None


class ChoiceLine(AgentLine, frozen=True, kw_only=True, tag="choice"):
    options: tuple[str, ...]
    text: str = ""


class SteeredLine(AgentLine, frozen=True, kw_only=True, tag="steered"):
    id: Name


class DoneLine(AgentLine, frozen=True, kw_only=True, tag="done"):
    silent: bool = False


class ErrorLine(AgentLine, frozen=True, kw_only=True, tag="error"):
    message: str
    retryable: bool = False
    detail: str | None = None


_LINES: msgspec.json.Decoder[AgentLine] = msgspec.json.Decoder(
    reduce(operator.or_, AgentLine.__subclasses__())
)
EVENTS: dict[type[AgentLine], type[events.Event]] = {
    TextLine: events.Text,
    ResultLine: events.Result,
    ApprovalLine: events.Approval,
    SummaryLine: events.Summary,
    BackgroundLine: events.Background,
    SendLine: events.Send,
    FileLine: events.File,
    ChoiceLine: events.Choice,
    DoneLine: events.Done,
    ErrorLine: events.Failed,
}
"""The lines that are events as they stand."""
TOLD = ("session_id", "session_key", "turn_id", "attempt", "system", "messages", "input", "model")
"""What of a turn the agent is told."""
SIGNALS = {
    events.Decision: "decision",
    events.Handed: "handed",
    events.Steer: "steer",
    events.Stop: "stop",
}


def turn_line(turn: events.Assignment) -> bytes:
    return _encode({"type": "turn"} | {name: getattr(turn, name) for name in TOLD})


def signal_line(signal: events.Signal) -> bytes:
    return _encode({"type": SIGNALS[type(signal)]} | msgspec.structs.asdict(signal))


def _encode(fields: dict[str, Any]) -> bytes:
    return msgspec.json.encode(fields) + b"\n"


def quote(line: bytes) -> str:
    """What the agent wrote: on one line, in quotes, cut."""
    return quoting.quote(line[: 4 * quoting.MAX_CHARACTERS].decode("utf-8", "replace"))


class LineReader:
    """Makes events of the lines of one turn and holds the agent to the protocol."""

    def __init__(self) -> None:
        self._called: set[str] = set()
        self._open: set[str] = set()
        self._asked: set[str] = set()

    def read(self, line: bytes) -> events.Event | SteeredLine:
        """The event of a line; a Failed, with the line in its detail, when it is not in the protocol.

        That the agent heeds a message it was steered with is no event.
        """
        try:
            return self._event(_LINES.decode(line))
        except (ValueError, RecursionError) as error:
            return events.Failed(message=UNUSABLE, detail=f"{UNUSABLE}: {quote(line)} ({error})")

    def _event(self, line: AgentLine) -> events.Event | SteeredLine:
        match line:
            case SteeredLine():
                return line
            case UsageLine():
                told = msgspec.structs.asdict(line) | {"cost_usd": line.cost_usd or 0.0}
                status = None if line.cost_usd is None else "reported"
                return events.Used(usage=Usage(**told, cost_status=status).checked())
            case CallLine():
                _refuse_if(line.id in self._called, "a call with this id was made before in this turn")
                call = events.Call(id=line.id, name=line.name, arguments=_arguments(bytes(line.arguments)))
                self._called.add(line.id)
                self._open.add(line.id)
                return events.Calls(calls=(call,))
            case ResultLine():
                _refuse_if(line.id not in self._called, "no call with this id was made in this turn")
                _refuse_if(line.id not in self._open, "this call has its result already")
                self._open.remove(line.id)
            case ApprovalLine():
                again = "an approval with this id was asked for before in this turn"
                _refuse_if(line.id in self._asked, again)
                self._asked.add(line.id)
            case FileLine():
                both = "use one of path and data"
                _refuse_if((line.path is None) == (line.data is None), both, what="the file")
            case BackgroundLine():
                background.check_name(line.name)
                background.check_seconds(line.seconds)
        said = {name: value for name, value in msgspec.structs.asdict(line).items() if value is not None}
        return EVENTS[type(line)](**said)


def _refuse_if(wrong: bool, why: str, what: str = "the id") -> None:
    if wrong:
        raise errors.InvalidInput(what=what, why=why)


def _arguments(raw: bytes) -> str:
    """The arguments as JSON text: an object as it stands in the line, or the text that a model wrote."""
    if raw[:1] == b"{":
        return raw.decode("utf-8")
    text = msgspec.json.decode(raw)
    if not isinstance(text, str):
        raise errors.InvalidInput(what="arguments", why="use an object, or its JSON as text")
    return text
