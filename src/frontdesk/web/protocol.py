"""HTTP with bounds on what a connection may send before anybody answers for it, and on its time."""

import asyncio
import math
import sys
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import httptools
from starlette.types import Message, Send
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from frontdesk.web import bounds, problems
from frontdesk.web.answers import AnswerRoom

HEADER_BYTES = 32 * 1024
"""Of the first line and all the fields; what is read at once is no longer either."""
HEADER_FIELDS = 100
KEEP_ALIVE_SECONDS = 30
MOST_UNREAD_BYTES = 1024 * 1024
"""Of an answer that is pushed; whoever does not read it is cut off, and may come back."""
UNREAD_SECONDS = 30.0
"""For taking anything of what lies ready."""
LINGER_SECONDS = 2.0
LINGER_BYTES = 64 * 1024
"""What else a refused sender may send: if we closed at once, it might not get the answer."""
MOST_LATE_BYTES = 2 * 1024 * 1024
"""Of a body that is said to be no longer, and comes after its answer has begun: its sender goes on with the
connection once it is read."""
LATE_BYTES = 256 * 1024
"""Of any other body that comes after its answer has begun."""
PIPELINED_REQUESTS = 16
NO_PIECES = "1.0"
"""The version in which an answer of unknown length ends with its connection."""
FRAMING_BYTES_OF_ONE = 8
"""How much may stand around each byte of a body: in pieces of one byte, six."""

TOO_LONG = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
REFUSALS = {
    "malformed": (HTTPStatus.BAD_REQUEST, "This is not HTTP."),
    "header_too_long": (TOO_LONG, f"The header is longer than {HEADER_BYTES} bytes."),
    "too_many_fields": (TOO_LONG, f"The header has more than {HEADER_FIELDS} fields."),
    "body_badly_framed": (HTTPStatus.BAD_REQUEST, "There is more around the body than in it."),
    "body_too_late": (HTTPStatus.BAD_REQUEST, "This body is answered already."),
    "too_many_requests": (HTTPStatus.TOO_MANY_REQUESTS, "Wait for answers before you send more requests."),
}
"""The answer to each."""

NONE_UNDER_WAY: deque[Any] = deque(maxlen=0)
"""Shared by all who have none and will have none."""


class PortState(ServerState):
    """What the connections of a port share."""

    def __init__(self, connections: bounds.PortConnections) -> None:
        super().__init__()
        self.port = connections
        self.answers = AnswerRoom()


class AnswerTransport:
    """Where answers are written. What comes when the connection has ended is dropped: nobody is to blame, and
    whoever answers is told in a moment."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.close = transport.close
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)


class StoppableFlow(FlowControl):
    """One that nobody but who stopped it lets go on."""

    is_stopped = False

    def stop_reading(self) -> None:
        self.is_stopped = True
        self.pause_reading()

    def go_on_reading(self) -> None:
        self.is_stopped = False
        self.resume_reading()

    def resume_reading(self) -> None:
        if not self.is_stopped:
            super().resume_reading()


class SendingToTheEnd:
    """Sends an answer without pieces: where it does not say how long it is, it ends with the connection."""

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle
        self._send: Send = cycle.send  # type: ignore[assignment]
        self._is_endless = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._is_endless = all(name.lower() != b"content-length" for name, _ in message["headers"])
            if self._is_endless:
                self._cycle.chunked_encoding, self._cycle.expected_content_length = False, sys.maxsize
        elif self._is_endless and not message.get("more_body", False):
            self._cycle.expected_content_length = len(message.get("body", b""))
        await self._send(message)


class BoundedProtocol(HttpToolsProtocol):
    """A connection is in the head of a request, from the end of the one before on, or in its body."""

    server_state: PortState
    flow: StoppableFlow

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.port = self.server_state.port
        self._under_way: deque[RequestResponseCycle] = deque()
        """Requests that are not answered yet, the oldest first."""
        self._in_head = True
        self._has_begun = False
        self._is_idle = False
        self._fed = 0
        """Bytes of the head, or bytes around the body, so far."""
        self._heads = 0
        self._body_bytes = 0
        self._late_bytes = 0
        self._most_late = LATE_BYTES
        self._due = math.inf
        """When whatever the other side is to do must be done."""
        self._refused = False
        self._ignored = 0
        self._why = "malformed"
        self._left: Callable[[], None] | None = None
        """Is told when nobody reads any more what is pushed."""
        self._in_pieces = True
        self._pushed = 0
        self._unsent = 0
        self._taken = 0
        self._taken_at = 0.0

    @property
    def can_be_taken_over(self) -> bool:
        return len(self._under_way) == 1 and self._in_head and not self._fed and not self.pipeline

    def take_over(self, left: Callable[[], None]) -> bool:
        """Whoever answers the one request is done with that, and pushes the rest of the answer."""
        if self.transport.is_closing() or not self.can_be_taken_over:
            return False
        self._left = left
        self._in_pieces = bool(self.cycle.chunked_encoding)
        self.cycle.response_complete = True
        self.port.stay(self)
        # What the request was is kept by nobody here, however long its answer is.
        self.cycle = self.scope = self.parser = None  # type: ignore[assignment]
        self.pipeline = self._under_way = NONE_UNDER_WAY
        return True

    def push(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        piece = b"%x\r\n%b\r\n" % (len(data), data) if self._in_pieces else data
        self.transport.write(piece)
        self._pushed += len(piece)
        if self.transport.get_write_buffer_size() > MOST_UNREAD_BYTES:
            self.cut()

    def end(self) -> None:
        if not self.transport.is_closing():
            if self._in_pieces:
                self.transport.write(b"0\r\n\r\n")
            self.transport.close()

    @property
    def address(self) -> str | None:
        return self.client[0] if self.client else None

    @property
    def answers(self) -> AnswerRoom:
        return self.server_state.answers

    @property
    def waits(self) -> bool:
        return self._due < math.inf or not self._in_head or self.flow.write_paused

    def overdue(self, now: float) -> str | None:
        unsent = self.transport.get_write_buffer_size()
        taken = self._pushed - unsent
        if taken != self._taken or not self._unsent:
            self._taken_at = now
        self._unsent, self._taken = unsent, taken
        if self._refused:
            return bounds.LINGERING if now > self._due else None
        if unsent:
            return "unread" if now > self._taken_at + UNREAD_SECONDS else None
        if now <= self._due:
            return None
        return "too_slow" if self._fed or not self._in_head else bounds.SILENT

    def cut(self) -> None:
        self.transport.abort()

    def stop_reading(self) -> None:
        self._due = self.loop.time() + self.port.header_seconds
        self.flow.stop_reading()

    def go_on_reading(self) -> None:
        self._due = math.inf
        self.flow.go_on_reading()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._answers: Any = AnswerTransport(transport)
        self.flow = StoppableFlow(transport)
        if why := self.why_not(transport):
            self.port.note(why, self.address)
            self.cut()
            return
        self._due = self.loop.time() + self.port.header_seconds
        self.port.enter(self)

    def why_not(self, _: asyncio.Transport) -> str | None:
        """Why nobody on the other side is heard; who is heard takes a place, and others may have to go."""
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self.port.leave(self)
        if self._left:
            self._left()
            self._left = None
        for each in self._under_way:
            each.disconnected = True
            each.message_event.set()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._left:
            self._ignore(len(data))
            return
        self._unset_keepalive_if_required()
        if self._is_idle:
            self._is_idle = False
            self._due = self.loop.time() + self.port.header_seconds
        if len(data) <= HEADER_BYTES:
            self._feed(data)
            return
        for start in range(0, len(data), HEADER_BYTES):
            self._feed(data[start : start + HEADER_BYTES])

    def _feed(self, data: bytes) -> None:
        if self._refused:
            self._ignore(len(data))
            return
        if self.transport.is_closing():
            return
        in_head, heads = self._in_head, self._heads
        self._fed += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # the request is answered as any other
        except httptools.HttpParserError:
            self._refuse(self._why)
            return
        if not self._in_head:
            if self._fed > HEADER_BYTES + FRAMING_BYTES_OF_ONE * self._body_bytes:
                self._refuse("body_badly_framed")
        elif not in_head or heads != self._heads:
            self._fed = int(self._has_begun)  # where in these bytes is not known; they are few
        elif self._fed > HEADER_BYTES:
            self._refuse("header_too_long")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._has_begun = True
        self.scope[bounds.CONNECTION] = self  # type: ignore[literal-required]

    def on_headers_complete(self) -> None:
        if len(self.headers) > HEADER_FIELDS:
            self._stop("too_many_fields")
        if self._fed > HEADER_BYTES and self._head_bytes() > HEADER_BYTES:
            self._stop("header_too_long")
        if len(self.pipeline) >= PIPELINED_REQUESTS:
            self._stop("too_many_requests")
        super().on_headers_complete()
        self.cycle.transport = self._answers
        if self.cycle.scope["http_version"] == NO_PIECES:
            self.cycle.send = SendingToTheEnd(self.cycle)  # type: ignore[method-assign, assignment]
        self._under_way.append(self.cycle)
        self._in_head = self._has_begun = False
        self._heads += 1
        self._fed = self._body_bytes = self._late_bytes = 0
        self._most_late = MOST_LATE_BYTES if self._body_is_said() else LATE_BYTES
        self._due = math.inf
        self.port.asked_at = self.loop.time()
        # Fields that follow the body are no part of the header that others have looked at.
        self.headers = []

    def on_body(self, body: bytes) -> None:
        self._fed -= len(body)
        self._body_bytes += len(body)
        if self.cycle.response_started:
            self._late_bytes += len(body)
            if self._late_bytes > self._most_late:
                self._stop("body_too_late")
        else:
            self.port.hold(self, len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_head = True
        self._fed = 0
        if self.cycle.response_complete:
            self._rest()

    def on_response_complete(self) -> None:
        self._under_way.popleft()
        self.port.asked_at = -math.inf
        super().on_response_complete()
        self.port.release(self)
        if self.cycle.response_complete:
            self._rest()

    def _rest(self) -> None:
        """All is answered, and the other side's turn."""
        self._is_idle = self._in_head and not self._fed
        self._due = self.loop.time() + self.port.header_seconds
        if self._is_idle:
            self._due += KEEP_ALIVE_SECONDS  # which the server looks after itself

    def _body_is_said(self) -> bool:
        """Whether the header says how long the body is, and that is not very long."""
        said = [value for name, value in self.headers if name == b"content-length"]
        return len(said) == 1 and said[0].isdigit() and int(said[0]) <= MOST_LATE_BYTES

    def _head_bytes(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _stop(self, why: str) -> None:
        """Told to the parser, which ends."""
        self._why = why
        raise ValueError(why)

    def _refuse(self, why: str) -> None:
        self._refused = True
        self.port.note(why, self.address)
        if not self._in_head or (self.cycle is not None and not self.cycle.response_complete):
            self.cut()  # in the middle of an answer there is nothing to be said, and after it neither
            return
        status, detail = REFUSALS[why]
        answer = problems.respond(status, detail, {"connection": "close"})
        fields = [b"%b: %b\r\n" % field for field in answer.raw_headers]
        self.transport.write(b"".join([STATUS_LINE[status], *fields, b"\r\n", bytes(answer.body)]))
        self.transport.write_eof()
        self._due = self.loop.time() + LINGER_SECONDS

    def _ignore(self, size: int) -> None:
        self._ignored += size
        if self._ignored > LINGER_BYTES:
            self.cut()
