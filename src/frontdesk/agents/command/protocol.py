"""The lines between the gateway and an agent that is a program."""

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


class SteeredLine(AgentLine, frozen=True, kw_only=True, tag="steered"):
    id: Name


class DoneLine(AgentLine, frozen=True, kw_only=True, tag="done"):
    pass


class ErrorLine(AgentLine, frozen=True, kw_only=True, tag="error"):
    message: str
    retryable: bool = False
    detail: str | None = None


_LINES = msgspec.json.Decoder(
    TextLine
    | CallLine
    | ResultLine
    | ApprovalLine
    | UsageLine
    | SummaryLine
    | BackgroundLine
    | SteeredLine
    | DoneLine
    | ErrorLine
)


def turn_line(turn: events.Assignment) -> bytes:
    return _encode(
        {
            "type": "turn",
            "session_id": turn.session_id,
            "session_key": turn.session_key,
            "turn_id": turn.turn_id,
            "attempt": turn.attempt,
            "system": turn.system,
            "messages": turn.messages,
            "input": turn.input,
            "model": turn.model,
        }
    )


def signal_line(signal: events.Signal) -> bytes:
    match signal:
        case events.Decision(id=decided, approved=approved, reason=reason):
            return _encode({"type": "decision", "id": decided, "approved": approved, "reason": reason})
        case events.Steer(text=text, id=steer_id):
            return _encode({"type": "steer", "text": text, "id": steer_id})
        case events.Stop():
            return _encode({"type": "stop"})
    raise errors.InvalidInput(what=type(signal).__name__, why="no line of the protocol says that")


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
            case TextLine(text=text):
                return events.Text(text=text)
            case SummaryLine(text=text):
                return events.Summary(text=text)
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
                return events.Result(id=line.id, content=line.content, is_error=line.is_error)
            case ApprovalLine():
                again = "an approval with this id was asked for before in this turn"
                _refuse_if(line.id in self._asked, again)
                self._asked.add(line.id)
                return events.Approval(
                    id=line.id, action=line.action, description=line.description, details=line.details or {}
                )
            case UsageLine():
                told = msgspec.structs.asdict(line) | {"cost_usd": line.cost_usd or 0.0}
                status = None if line.cost_usd is None else "reported"
                return events.Used(usage=Usage(**told, cost_status=status).checked())
            case SteeredLine():
                return line
        return _end(line)


def _end(line: AgentLine) -> events.Event:
    """What is neither said nor asked for."""
    if isinstance(line, BackgroundLine):
        name, seconds = background.check_name(line.name), background.check_seconds(line.seconds)
        return events.Background(name=name, running=line.running, seconds=seconds)
    if isinstance(line, ErrorLine):
        return events.Failed(message=line.message, retryable=line.retryable, detail=line.detail)
    return events.Done()


def _refuse_if(wrong: bool, why: str) -> None:
    if wrong:
        raise errors.InvalidInput(what="the id", why=why)


def _arguments(raw: bytes) -> str:
    """The arguments as JSON text: an object as it stands in the line, or the text that a model wrote."""
    if raw[:1] == b"{":
        return raw.decode("utf-8")
    text = msgspec.json.decode(raw)
    if not isinstance(text, str):
        raise errors.InvalidInput(what="arguments", why="use an object, or its JSON as text")
    return text
