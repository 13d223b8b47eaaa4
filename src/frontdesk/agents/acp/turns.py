"""A turn with an agent: what it reports goes out, what it is told goes in."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.agents.acp import prompts
from frontdesk.agents.acp.options import AcpOptions
from frontdesk.agents.acp.session import AcpSession
from frontdesk.agents.acp.wire import (
    Item,
    Lost,
    PermissionAsked,
    PromptAnswered,
    UpdateTold,
    fields,
    items,
    result_of,
)
from frontdesk.contracts.agents import Line
from frontdesk.logs import get_logger
from frontdesk.model import background, events
from frontdesk.model.sessions import MAX_COUNT, Usage

log = get_logger(__name__)

CANCELLED = "cancelled"
MAX_ID_CHARACTERS = 100
MAX_RESULT_CHARACTERS = 100_000
MAX_DESCRIPTION_CHARACTERS = 2_000
BREAK = "\n\n"
BACKGROUND = "frontdesk/background"
SEND = "frontdesk/send"
SILENT = "frontdesk/silent"
"""In the `_meta` of an update."""
FILE = "frontdesk/file"
"""There, too: a file of the working directory that the chat is to get."""
CHOICE = "frontdesk/choice"
"""And options for whoever reads the answer."""
FINISHED = {"end_turn": "stop", "max_tokens": "length"}
OVER = {"completed": False, "failed": True}
"""The last states of a call, and whether they are errors."""

Body = dict[str, Any]


class PromptTurn:
    def __init__(self, kept: AcpSession, turn: events.Assignment, line: Line, options: AcpOptions) -> None:
        self._kept = kept
        self._wire = kept.wire
        self._turn = turn
        self._line = line
        self._options = options
        self._scribe = Scribe(turn)
        self._asked: dict[str, PermissionAsked] = {}
        self._deadline: float | None = None
        """Set once the agent was told to stop."""
        self._over = False

    async def run(self, blocks: list[prompts.Block]) -> AsyncGenerator[events.Event]:
        await self._line.confirm()
        await self._wire.prompt(self._kept.agent_session, blocks)
        ear = asyncio.create_task(self._listen())
        try:
            while not self._over:
                for event in await self._handle(await self._next()):
                    yield event
        except Lost:
            if not self._deadline:
                raise
            # The end of one that was told to stop is no failure.
            yield events.Done(finish_reason=CANCELLED)
        finally:
            ear.cancel()
            await asyncio.wait({ear})
            self._wire.finish_turn()

    async def _listen(self) -> None:
        while True:
            await self._wire.inbox.put(await self._line.take())

    async def _next(self) -> Item:
        """What comes next. Lost when nothing comes in time; while a person decides there is time."""
        if self._wire.lost and self._wire.inbox.empty():
            raise self._wire.lost
        loop, seconds = asyncio.get_running_loop(), self._options.silence_seconds
        patient = None if self._asked else loop.time() + seconds
        try:
            async with asyncio.timeout_at(self._deadline or patient):
                return await self._wire.inbox.get()
        except TimeoutError:
            raise Lost(f"hang: it said nothing for {seconds:g} seconds") from None

    async def _handle(self, item: Item) -> Sequence[events.Event]:
        match item:
            case UpdateTold(body=body):
                return [*self._scribe.take(body), *self._costs()]
            case PermissionAsked():
                return await self._ask(item)
            case PromptAnswered(message=message):
                return self._finish(message)
            case Lost():
                raise item
            case events.Decision():
                asked = self._asked.pop(item.id, None)
                if asked:
                    await self._wire.permit(asked.id, option_for(asked.params, item.approved))
            case events.Stop():
                await self._stop()
        return ()

    async def _ask(self, asked: PermissionAsked) -> Sequence[events.Event]:
        if self._deadline:
            await self._wire.permit(asked.id, None)
            return ()
        approval = self._scribe.approval(asked.id, asked.params)
        self._asked[approval.id] = asked
        return [*self._scribe.flush(), approval]

    async def _stop(self) -> None:
        self._deadline = asyncio.get_running_loop().time() + self._options.cancel_seconds
        await self._wire.cancel(self._kept.agent_session)
        while self._asked:
            await self._wire.permit(self._asked.popitem()[1].id, None)

    def _finish(self, message: dict[str, Any]) -> Sequence[events.Event]:
        result = result_of(message, "session/prompt")
        self._over = self._kept.settled = True
        self._kept.seen = prompts.seen_after(self._turn)
        usage = usage_of(result, self._scribe.used, self._spent())
        used = [events.Used(usage=usage)] if usage else []
        silent = fields(result.get("_meta")).get(SILENT) is True
        done = events.Done(finish_reason=finish_of(result), silent=silent)
        return [*self._scribe.flush(), *used, done]

    def _costs(self) -> Sequence[events.Event]:
        """What more the turn has cost, as soon as that is known: it may be more than it is allowed to."""
        spent = self._spent()
        if not spent:
            return ()
        used = Usage(cost_usd=spent, cost_status="reported", last_prompt_tokens=self._scribe.used)
        return [events.Used(usage=used)]

    def _spent(self) -> float | None:
        """What this turn cost: agents tell the sum of their session."""
        before, after = self._kept.cost_usd, self._scribe.cost_usd
        if after is None:
            return None
        self._kept.cost_usd = after
        return None if before is None else max(0.0, after - before)


def option_for(params: dict[str, Any], approved: bool) -> str | None:
    """The option that says yes or no this once. A lasting yes is never given, nor a lasting no."""
    wanted = "allow_once" if approved else "reject_once"
    for option in items(params.get("options")):
        if option.get("kind") == wanted and isinstance(option.get("optionId"), str):
            return str(option["optionId"])
    log.warning("agent_permission_without_option", wanted=wanted)
    return None


class Scribe:
    """Turns reports into events. The ids of a turn's calls are its own: an agent may count from 1 again."""

    def __init__(self, turn: events.Assignment) -> None:
        self._prefix = f"{turn.turn_id}-{turn.attempt}"
        self._calls: dict[str, Body] = {}
        self._answered: set[str] = set()
        self._thoughts: list[str] = []
        self._message: object = None
        self._spoken = False
        self.used: int | None = None
        self.cost_usd: float | None = None

    def take(self, update: Body) -> list[events.Event]:
        return [
            *self._reported(update),
            *_background(update),
            *_send(update),
            *_named_file(update),
            *_choice(update),
        ]

    def _reported(self, update: Body) -> list[events.Event]:
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                return self._say(update)
            case "agent_thought_chunk":
                self._thoughts.append(block_text(update.get("content")))
            case "tool_call" | "tool_call_update":
                return self._call(update)
            case "usage_update":
                self._note_usage(update)
        return []

    def flush(self) -> list[events.Event]:
        """The thoughts so far, which belong to the message that comes next."""
        thoughts, self._thoughts = "".join(self._thoughts), []
        return [events.Details(fields={"reasoning": thoughts})] if thoughts else []

    def approval(self, number: int | str, params: Body) -> events.Approval:
        """The question to a person, with all that is known about the call."""
        known = self._merged(fields(params.get("toolCall")))
        title = text_or(known.get("title"), "A tool")
        details = {name: known[name] for name in ("rawInput", "locations") if known.get(name) is not None}
        shown = content_text(known.get("content"))
        return events.Approval(
            id=f"{self._prefix}-{_short(str(number))}",
            action=text_or(known.get("kind"), "other"),
            description=title[:MAX_DESCRIPTION_CHARACTERS],
            details={"title": title} | details | ({"content": shown} if shown else {}),
        )

    def _say(self, update: Body) -> list[events.Event]:
        if file := file_of(update.get("content")):
            return [file]
        text, message = block_text(update.get("content")), update.get("messageId")
        if not text:
            return []
        another = self._spoken and message is not None and message != self._message
        self._message, self._spoken = message, True
        return [*self.flush(), events.Text(text=BREAK + text if another else text)]

    def _call(self, update: Body) -> list[events.Event]:
        name = update.get("toolCallId")
        if not isinstance(name, str) or name in self._answered:
            return []
        new, known = name not in self._calls, self._merged(update)
        self._calls[name] = known
        found: list[events.Event] = [*self.flush(), self._begun(name, known)] if new else []
        status = known.get("status")
        if isinstance(status, str) and status in OVER:
            self._answered.add(name)
            found.append(self._result(name, known, OVER[status]))
        return found

    def _merged(self, update: Body) -> Body:
        name = update.get("toolCallId")
        known = self._calls.get(name, {}) if isinstance(name, str) else {}
        return known | {field: value for field, value in update.items() if value is not None}

    def _begun(self, name: str, known: Body) -> events.Calls:
        self._spoken = False
        names = {"title": "title", "input": "rawInput", "locations": "locations"}
        given = {ours: known[theirs] for ours, theirs in names.items() if known.get(theirs) is not None}
        call = events.Call(
            id=self._id(name),
            name=text_or(known.get("kind"), "other"),
            arguments=msgspec.json.encode(given).decode(),
        )
        return events.Calls(calls=(call,))

    def _result(self, name: str, known: Body, is_error: bool) -> events.Result:
        text = content_text(known.get("content")) or _raw(known.get("rawOutput"))
        return events.Result(
            id=self._id(name),
            content=text[:MAX_RESULT_CHARACTERS],
            is_error=is_error,
            name=text_or(known.get("kind"), "other"),
        )

    def _id(self, name: str) -> str:
        return f"{self._prefix}-{_short(name)}"

    def _note_usage(self, update: Body) -> None:
        self.used = count(update.get("used")) or self.used
        cost = fields(update.get("cost"))
        amount = cost.get("amount") if cost.get("currency") == "USD" else None
        if isinstance(amount, int | float) and not isinstance(amount, bool) and 0 <= amount < MAX_COUNT:
            self.cost_usd = float(amount)


def _background(update: Body) -> list[events.Event]:
    """The protocol has no word for background work, but a place for what goes beyond it."""
    told = fields(update.get("_meta")).get(BACKGROUND)
    if not isinstance(told, dict):
        return []
    seconds = told.get("seconds")
    return [
        events.Background(
            name=text_or(told.get("name"), background.DEFAULT_NAME),
            running=told.get("running") is not False,
            seconds=float(seconds) if isinstance(seconds, int | float) else background.DEFAULT_SECONDS,
        )
    ]


def _send(update: Body) -> list[events.Event]:
    """A message besides the answer, in the same place."""
    told = fields(fields(update.get("_meta")).get(SEND))
    to, text = told.get("to"), told.get("text")
    return [events.Send(to=to, text=text)] if isinstance(to, str) and isinstance(text, str) else []


def _named_file(update: Body) -> list[events.Event]:
    told = fields(fields(update.get("_meta")).get(FILE))
    path, name, kind = (told.get(field) for field in ("path", "name", "kind"))
    if not isinstance(path, str) or not path:
        return []
    return [events.File(path=path, name=text_or(name, "") or None, kind=text_or(kind, "") or None)]


def _choice(update: Body) -> list[events.Event]:
    told = fields(update.get("_meta")).get(CHOICE)
    if told is None:
        return []
    try:
        return [msgspec.convert(told, events.Choice)]
    except (msgspec.ValidationError, errors.InvalidInput) as error:
        log.warning("agent_choice_refused", why=str(error))
        return []


def file_of(block: object) -> events.File | None:
    """A block of the agent's message that brings the bytes of an image, a recording or a file."""
    given = fields(block)
    kind, body = given.get("type"), given
    if kind == "resource":
        body = fields(given.get("resource"))
    data = body.get("blob" if kind == "resource" else "data")
    if kind not in ("image", "audio", "resource") or not isinstance(data, str):
        return None
    try:
        content = base64.b64decode(data, validate=True)
    except ValueError:
        return None
    name = text_or(body.get("uri"), "").rpartition("/")[2]
    media_type = text_or(body.get("mimeType"), "")
    return events.File(data=content, name=name[:MAX_ID_CHARACTERS] or None, kind=media_type or None)


def usage_of(result: Body, used: int | None, cost_usd: float | None) -> Usage | None:
    """What the turn used, as far as the agent says."""
    told = fields(result.get("usage"))
    if not told and used is None and cost_usd is None:
        return None
    return Usage(
        input_tokens=count(told.get("inputTokens")),
        output_tokens=count(told.get("outputTokens")),
        cache_read_tokens=count(told.get("cachedReadTokens")),
        cache_write_tokens=count(told.get("cachedWriteTokens")),
        cost_usd=cost_usd or 0.0,
        cost_status=None if cost_usd is None else "reported",
        last_prompt_tokens=used,
    )


def finish_of(result: Body) -> str | None:
    reason = result.get("stopReason")
    return FINISHED.get(reason, reason[:MAX_ID_CHARACTERS]) if isinstance(reason, str) else None


def count(value: object) -> int:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT
    return int(str(value)) if is_count else 0


def text_or(value: object, otherwise: str) -> str:
    return value if isinstance(value, str) and value else otherwise


def block_text(block: object) -> str:
    """A content block as text; a link as its address, what is no text by its kind."""
    if not isinstance(block, dict):
        return ""
    for text in (block.get("text"), fields(block.get("resource")).get("text"), block.get("uri")):
        if isinstance(text, str):
            return text
    return f"[{text_or(block.get('type'), 'unknown')}]"


def content_text(content: object) -> str:
    """What a call shows: texts, and changes of files in full."""
    return "\n".join(filter(None, map(_shown, items(content))))


def _shown(item: Body) -> str:
    if item.get("type") == "diff":
        old, new = text_or(item.get("oldText"), ""), text_or(item.get("newText"), "")
        return f"{item.get('path')}\n--- before\n{old}\n--- after\n{new}"
    return block_text(item.get("content")) if item.get("type") == "content" else ""


def _raw(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _short(name: str) -> str:
    return (
        name
        if len(name) <= MAX_ID_CHARACTERS
        else hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()
    )
