"""What a running turn has said: rows to be written, and the answer that comes of them."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict

from frontdesk.formats import tokens
from frontdesk.model import events, messages
from frontdesk.model.messages import Message, Plain
from frontdesk.model.sessions import USAGE_COUNTERS, Usage

SUMMARY = "summary"


class Speech:
    """Turns events into transcript rows, each with its place in the turn."""

    def __init__(self, turn_id: str, position: int) -> None:
        self._turn_id = turn_id
        self._position = position
        self._pieces: list[str] = []
        self._details: dict[str, Any] = {}
        self._last_text = ""
        self.usage: Usage | None = None
        self._open_calls: tuple[str, ...] = ()
        self._uncounted: list[str] | None = []
        """What the model has said and nobody has counted; None while it is not asked for anything."""
        self.summary: str | None = None
        self.rows: list[Plain] = []
        """What was written, or handed out to be written."""
        self._counted = 0

    @property
    def answer(self) -> str:
        """What is to be delivered: what was said last."""
        return self._text.strip() or self._last_text

    @property
    def counted(self) -> int:
        """How many rows count as messages, with the results that close tool calls, at the turn's end too."""
        return self._counted + len(self._open_calls)

    @property
    def _text(self) -> str:
        return "".join(self._pieces)

    def take(self, event: events.Event) -> list[Message]:
        """The rows that are to be written because of an event."""
        match event:
            case events.Text():
                self._pieces.append(event.text)
                self._uncounted = self._uncounted or []
                self._uncounted.append(event.text)
            case events.Details():
                self._details.update(event.fields)
            case events.Calls():
                self._uncounted = None
                return [self._assistant(tool_calls=[call.plain for call in event.calls])]
            case events.Result():
                row = self._row(_result(event))
                self._uncounted = self._uncounted if self._open_calls else []
                return [row]
            case events.Used():
                self.usage, self._uncounted = added(self.usage, event.usage), None
            case events.Summary():
                self.summary = event.text
        return []

    def count_rest(self, prompt_tokens: int, *, silence: bool) -> None:
        """Count what a call to the model has used that was cut short: the prompt, and what was said so far.
        ``silence``: also when nothing was."""
        if self._uncounted is None or not (self._uncounted or silence):
            return
        prompt = (self.usage and self.usage.last_prompt_tokens) or prompt_tokens
        said = tokens.likely_tokens("".join(self._uncounted))
        self.usage = added(self.usage, Usage(input_tokens=prompt, output_tokens=said))
        self._uncounted = None

    def heard(self, message: Plain) -> Message:
        """The row of a message that was steered into the turn."""
        return self._row(message)

    def summarize(self) -> list[Message]:
        """The row that keeps the agent's summary for the hand-over."""
        if self.summary is None:
            return []
        return [self._row({"role": "session_meta", "kind": SUMMARY, "content": self.summary})]

    def close(self, finish_reason: str | None = None) -> list[Message]:
        """The row of what was said since the last one; none when nothing was."""
        if not self._text and not self._details:
            return []
        extra = {"finish_reason": finish_reason} if finish_reason else {}
        return [self._assistant(**extra)]

    def _assistant(self, **fields: Any) -> Message:
        text = self._text
        row: Plain = {"role": "assistant", "content": text or None} | self._details | fields
        if row["content"] is None and "tool_calls" not in row:
            row["content"] = ""
        self._last_text = text.strip() or self._last_text
        self._pieces, self._details = [], {}
        return self._row(row)

    def _row(self, message: Plain) -> Message:
        row = messages.pack(message, self._turn_id, self._position)
        self._position += 1
        self.rows.append(message)
        self._counted += row.counts + (len(self._open_calls) if row.closes_calls else 0)
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
