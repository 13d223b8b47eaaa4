"""The responses API: a response is a turn, and a conversation is kept here."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, suppress
from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from frontdesk import errors
from frontdesk.channels.api_server import inbound, items, options, outbound, responses
from frontdesk.channels.called import read_json
from frontdesk.contracts import channels
from frontdesk.model import deliveries, turns
from frontdesk.model.messages import Plain

CANCEL_SECONDS = 30.0
"""How long a turn that is to stop is waited for."""
FRESH = "conv_"
YES, NO = "true", "false"

_TURN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FRESH_NAME = re.compile(FRESH + r"([0-9a-f]{32})")

Metadata = Annotated[
    dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=512)]], Meta(max_length=16)
]


class TextSettings(msgspec.Struct, frozen=True, kw_only=True):
    format: dict[str, Any] | None = None


class ResponsesRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a request for a response that matter here; the agent decides about the others."""

    input: Annotated[str | list[dict[str, Any]], Meta(examples=["Hello"])]
    instructions: str | None = None
    previous_response_id: str | None = None
    conversation: str | responses.ConversationName | None = None
    stream: bool | None = None
    background: bool | None = None
    store: bool | None = None
    metadata: Metadata | None = None
    user: str | None = None
    tools: list[Any] | None = None
    tool_choice: str | dict[str, Any] | None = None
    text: TextSettings | None = None
    prompt: dict[str, Any] | None = None
    max_tool_calls: int | None = None
    top_logprobs: int | None = None
    context_management: list[Any] | None = None
    moderation: dict[str, Any] | None = None


def read_ask(body: bytes) -> ResponsesRequest:
    """The request in a body. Total: InvalidInput for what is none, UnsupportedField for what is not done."""
    ask = read_json(ResponsesRequest, body)
    kind = (ask.text.format or {}).get("type", "text") if ask.text else "text"
    refused = {
        "tools": (ask.tools, "tools are the agent's own, and are set up with it"),
        "tool_choice": (ask.tool_choice not in (None, "auto", "none"), "the agent chooses its tools"),
        "text.format": (kind != "text", "the agent answers in its own words"),
        "prompt": (ask.prompt, "there are no stored prompts here"),
        "max_tool_calls": (ask.max_tool_calls is not None, "the agent has limits of its own"),
        "top_logprobs": (ask.top_logprobs, "nothing is known of tokens here"),
        "context_management": (ask.context_management, "conversations are kept here, by their policy"),
        "moderation": (ask.moderation, "nothing is moderated here"),
    }
    for field, (given, why) in refused.items():
        if given:
            raise errors.UnsupportedField(what="The body", why=f"{why} - at `$.{field}`")
    if ask.previous_response_id is not None and ask.conversation is not None:
        raise inbound.invalid("previous_response_id", "name the response or the conversation, not both")
    return ask


class Whereabouts(msgspec.Struct, frozen=True, kw_only=True):
    """Where a request goes on, or begins."""

    chat_id: str
    follows: turns.Turn | None = None
    passes_over: bool = False
    """Whether the client brings everything along each time: only the last message is new."""
    is_fresh: bool = False
    history: tuple[Plain, ...] = ()
    """What was said before, where it is a branch."""


class Responder:
    """Answers what one user asks of the responses API."""

    def __init__(
        self, desk: channels.Desk, user: str, account: str | None, settings: options.Options
    ) -> None:
        self._desk = desk
        self._user = user
        self._account = account
        self._settings = settings

    async def create(self, request: channels.Request) -> channels.Response:
        ask = read_ask(request.body)
        incoming, receipt = await self._take_in(ask, request.headers)
        form = self._form(receipt, incoming)
        waits = ask.stream or not ask.background
        if receipt.repeated:
            turn = await self._own(receipt.turn_id) or _unknown("response", "response_id")
            inbound.check_repeated(incoming, turn)
            if not waits:
                return await self._as_it_stands(turn)
            form = self._form_of(turn)
        if not waits:
            return outbound.respond_json(form.waiting())
        reply = outbound.Reply(self._desk, incoming.source, receipt, form, self._settings.wait_seconds)
        return reply.stream() if ask.stream else await reply.whole()

    async def _take_in(
        self, ask: ResponsesRequest, headers: Mapping[str, str]
    ) -> tuple[channels.Incoming, channels.Receipt]:
        said = items.read_items(ask.input)
        place = await self._find_place(ask, headers)
        repeat = inbound.named(headers, inbound.REPEAT_HEADER)
        incoming = self._build(ask, place, said, repeat)
        try:
            return incoming, await self._desk.accept(incoming)
        except errors.GoneOn:
            if place.follows is None:
                raise
            incoming = self._build(ask, await self._branch(place.follows, repeat), said, repeat)
        return incoming, await self._desk.accept(incoming)

    async def show(self, request: channels.Request) -> channels.Response:
        streams = _reads_flag(request.query, "stream")
        if "starting_after" in request.query:
            raise errors.UnsupportedField(
                what="The address", why="a stream begins at its beginning - at `$.starting_after`"
            )
        turn = await self._kept(request.params["response_id"]) or _unknown("response", "response_id")
        if streams:
            receipt = channels.Receipt(turn_id=turn.id, session_key=turn.session_key, repeated=True)
            waits = self._settings.wait_seconds
            return outbound.Reply(self._desk, turn.source, receipt, self._form_of(turn), waits).stream()
        return await self._as_it_stands(turn)

    async def list_input(self, request: channels.Request) -> channels.Response:
        turn = await self._kept(request.params["response_id"]) or _unknown("response", "response_id")
        return outbound.respond_json(responses.input_of(turn))

    async def cancel(self, request: channels.Request) -> channels.Response:
        turn = await self._kept(request.params["response_id"]) or _unknown("response", "response_id")
        if turn.state is turns.TurnState.QUEUED:
            return outbound.respond_failure(
                outbound.Failure(
                    status=HTTPStatus.CONFLICT,
                    message="It has not begun: others are before it in its conversation.",
                    code="response_queued",
                    type="invalid_request_error",
                )
            )
        if turn.state not in turns.FINISHED:
            await self._desk.interrupt(turn.id)
            turn = await self._ended(turn)
        return await self._as_it_stands(turn)

    async def _ended(self, turn: turns.Turn) -> turns.Turn:
        """The turn at its end, or as it was when that does not come."""
        async with aclosing(outbound.watch(self._desk.follow(turn.id), CANCEL_SECONDS)) as steps:
            with suppress(TimeoutError):
                async for step in steps:
                    if isinstance(step, turns.Turn):
                        return step
        return turn

    async def _as_it_stands(self, turn: turns.Turn) -> channels.Response:
        found = await self._desk.answers(turn.id)
        body = msgspec.json.encode(self._form_of(turn).standing(turn, found))
        headers = {"content-type": "application/json", "content-length": str(len(body))}
        headers |= outbound.turn_header(turn.id)
        waiting = [each.id for each in found if each.state is not deliveries.DeliveryState.SENT]
        handed = self._handed(body, waiting if turn.state in turns.FINISHED else [])
        return channels.Response(status=int(HTTPStatus.OK), body=handed, headers=headers)

    async def _handed(self, body: bytes, waiting: list[str]) -> AsyncIterator[bytes]:
        yield body
        await outbound.mark_collected(self._desk, waiting)

    async def _find_place(self, ask: ResponsesRequest, headers: Mapping[str, str]) -> Whereabouts:
        name = inbound.named(headers, inbound.SESSION_HEADER)
        repeat = inbound.named(headers, inbound.REPEAT_HEADER)
        if name is not None:
            if ask.previous_response_id is not None or ask.conversation is not None:
                raise inbound.invalid(
                    "conversation" if ask.conversation is not None else "previous_response_id",
                    "the header X-Frontdesk-Session names the conversation already",
                )
            return Whereabouts(chat_id=f"{self._user}/{name}", passes_over=True)
        if ask.previous_response_id is not None:
            previous = await self._kept(ask.previous_response_id) or _unknown(
                "response", "previous_response_id"
            )
            return Whereabouts(chat_id=str(previous.source.chat_id), follows=previous)
        if ask.conversation is not None:
            wanted = ask.conversation if isinstance(ask.conversation, str) else ask.conversation.id
            return Whereabouts(chat_id=await self._conversation(wanted))
        return Whereabouts(chat_id=f"/{self._user}/{inbound.made_once(repeat, self._user)}", is_fresh=True)

    async def _conversation(self, wanted: str) -> str:
        if not inbound.is_name(wanted):
            _unknown("conversation", "conversation")
        fresh = _FRESH_NAME.fullmatch(wanted)
        chat_id = f"/{self._user}/{fresh[1]}" if fresh else f"{self._user}/{wanted}"
        if not await self._desk.has_begun(inbound.source_of(self._user, self._account, chat_id)):
            _unknown("conversation", "conversation")
        return chat_id

    async def _branch(self, turn: turns.Turn, repeat: str | None) -> Whereabouts:
        """A conversation that begins with all that was said until then."""
        # Since it was looked at it may have ended.
        turn = await self._own(turn.id) or turn
        history = await self._desk.said_until(turn) if turn.state in turns.FINISHED else []
        if not history:
            raise errors.GoneOn(turn_id=turn.id)
        chat_id = f"/{self._user}/{inbound.made_once(repeat, self._user, 'branch', turn.id)}"
        return Whereabouts(chat_id=chat_id, history=tuple(history))

    def _build(
        self, ask: ResponsesRequest, place: Whereabouts, said: list[Plain], repeat: str | None
    ) -> channels.Incoming:
        history = list(place.history)
        instructions = [ask.instructions] if ask.instructions else []
        if not said or said[-1]["role"] != "user":
            raise inbound.invalid("input", "the last item must be the user's")
        content = said[-1]["content"]
        if place.is_fresh:
            history = said[:-1]
        elif not place.passes_over:
            if any(each["role"] not in ("user", "system") for each in said):
                raise inbound.invalid(
                    "input", "in a conversation that goes on, only the user's words are new"
                )
            instructions += [inbound.text_of("input", e["content"]) for e in said if e["role"] == "system"]
            content = items.merged([each for each in said if each["role"] == "user"])
        asked = ask.previous_response_id, *instructions
        noted: dict[str, Any] = {
            **inbound.noted_of(repeat, said[:-1] if place.is_fresh else [], content, *asked),
            "background": ask.background or None,
            "metadata": ask.metadata or None,
            "previous_response_id": ask.previous_response_id,
            "store": False if ask.store is False else None,
            "user": ask.user,
        }
        return channels.Incoming(
            source=inbound.source_of(self._user, self._account, place.chat_id),
            text=inbound.text_of("input", content),
            content=content if isinstance(content, list) else None,
            event_id=inbound.made_once(repeat, self._user, place.chat_id),
            history=history,
            instructions="\n\n".join(instructions) or None,
            follows=place.follows.id if place.follows else None,
            noted={name: value for name, value in noted.items() if value is not None},
        )

    async def _kept(self, response_id: str) -> turns.Turn | None:
        """The turn of a response of this user's, unless they wanted it not to be kept."""
        turn_id = response_id.removeprefix(responses.PREFIX)
        if turn_id == response_id or not _TURN_ID.fullmatch(turn_id):
            return None
        turn = await self._own(turn_id)
        return turn if turn and turn.noted.get("store") is not False else None

    async def _own(self, turn_id: str) -> turns.Turn | None:
        turn = await self._desk.find(turn_id)
        return turn if turn and turn.source.user_id == self._user else None

    def _form(self, receipt: channels.Receipt, incoming: channels.Incoming) -> responses.ResponseForm:
        assert receipt.received_at
        return responses.ResponseForm(
            receipt.turn_id,
            self._settings.model,
            self._name_of(incoming.source.chat_id),
            receipt.received_at,
            instructions=incoming.instructions,
            noted=incoming.noted,
        )

    def _form_of(self, turn: turns.Turn) -> responses.ResponseForm:
        return responses.ResponseForm(
            turn.id,
            self._settings.model,
            self._name_of(turn.source.chat_id),
            turn.received_at,
            instructions=turn.instructions,
            noted=turn.noted,
        )

    def _name_of(self, chat_id: str | None) -> str:
        """How a conversation is named to who has it."""
        name = (chat_id or "").removeprefix(f"/{self._user}/")
        return f"{FRESH}{name}" if name != chat_id else name.removeprefix(f"{self._user}/")


def _unknown(what: str, field: str) -> Any:
    raise errors.UnknownName(what=what, field=field)


def _reads_flag(query: Mapping[str, str], name: str) -> bool:
    given = query.get(name, NO)
    if given not in (YES, NO):
        raise errors.InvalidInput(what="The address", why=f"use true or false - at `$.{name}`")
    return given == YES
