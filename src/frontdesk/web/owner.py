"""What the owner can ask a running gateway: each question is a row, made of the method that answers it. From
another process it is asked as if it were answered there."""

import codecs
import inspect
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from functools import wraps
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from frontdesk.app.office import Office
from frontdesk.app.reception import Reception
from frontdesk.app.sockets import SocketClient
from frontdesk.app.terminal import Terminal
from frontdesk.web.bounds import Listeners, PortStatus
from frontdesk.web.operations import BrowserOrigin, Form, Operation, Table, Who
from frontdesk.web.questions import add_question, questions_of

if TYPE_CHECKING:
    from frontdesk.web.confirmations import ServedConfirmations
    from frontdesk.web.endpoints import HttpCall

ABOUT = ("frontdesk, for its owner", "What the owner can ask this process, through its socket.")
COLUMNS = {"who": Who.OWNER, "origin": BrowserOrigin.ANYWHERE, "max_body_bytes": 8 * 1024 * 1024}
GREETING, TERMINAL, OFFICE, RECEPTION = (Table(**COLUMNS) for _ in range(4))

Near = TypeVar("Near")


class Greeting(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who answers on the socket."""

    program: str
    confirmations: str | None = None
    """Where others reach the confirmation service of this process, so that another program on its port is not
    taken for it."""


class Greeter(msgspec.Struct, frozen=True):
    """Who greets on the socket."""

    confirmations: "ServedConfirmations | None"
    listeners: Listeners


@GREETING.add("GET", "/", Greeting)
async def greet(greeter: Greeter, _: "HttpCall") -> Greeting:
    """Say who answers here."""
    confirming = greeter.confirmations
    url = confirming.url if confirming else None
    return Greeting(program="frontdesk", confirmations=url)


@GREETING.add("GET", "/ports", list[PortStatus])
async def show_ports(greeter: Greeter, _: "HttpCall") -> list[PortStatus]:
    """How many connections each port has and may have, and how many were cut off, by the reason."""
    return greeter.listeners.status()


add_question(TERMINAL, "POST", "/messages", Terminal.say)
add_question(TERMINAL, "GET", "/turns/{turn_id}/events", Terminal.follow)
add_question(TERMINAL, "GET", "/uncollected", Terminal.uncollected)
add_question(TERMINAL, "POST", "/collected", Terminal.collected)
add_question(TERMINAL, "GET", "/titles", Terminal.titles)
add_question(TERMINAL, "POST", "/questions/{confirmation_id}", Terminal.question)
add_question(TERMINAL, "POST", "/questions/{confirmation_id}/decision", Terminal.decide)
for _method in questions_of(Office):
    add_question(OFFICE, "POST", f"/office/{_method.__name__}", _method)
for _method in questions_of(Reception):
    add_question(RECEPTION, "POST", f"/reception/{_method.__name__}", _method)


def far(near: type[Near], table: Table, client: SocketClient) -> Near:
    """One whose questions the process on the other side of the socket answers. Whatever is no row is
    inherited: it may ask questions, and must use nothing else."""
    asking = {row.name: _asking(row, getattr(near, row.name), client) for row in table}
    made: Near = type(f"Far{near.__name__}", (near,), asking | {"__init__": lambda _: None})()
    return made


def _asking(row: Operation, method: Callable[..., Any], client: SocketClient) -> Callable[..., Any]:
    bind = inspect.signature(method).bind

    @wraps(method)
    async def ask(*given: Any, **named: Any) -> Any:
        answer = await client.call(row.method, *_sent(row, bind(*given, **named).arguments))
        return answer if (NoneType,) not in row.answers.values() else None

    @wraps(method)
    async def follow(*given: Any, **named: Any) -> AsyncGenerator[Any, None]:
        pieces = client.stream(row.method, *_sent(row, bind(*given, **named).arguments))
        read = _texts(pieces) if row.form is Form.TEXT else _lines(pieces, client)
        async with aclosing(pieces), aclosing(read) as happening:
            async for happened in happening:
                yield happened

    return ask if row.form is Form.JSON else follow


def _sent(row: Operation, given: Mapping[str, Any]) -> tuple[str, Any]:
    """The address and the body that ask with these arguments; the first of them is who would answer."""
    _, *named = given
    path = row.path.format_map({name: quote(given[name], safe="") for name in row.params})
    arguments = {name: given[name] for name in named if name not in row.params}
    return (path, arguments) if row.method == "POST" else (f"{path}?{urlencode(arguments)}", None)


async def _lines(pieces: AsyncGenerator[bytes, None], client: SocketClient) -> AsyncGenerator[Any, None]:
    unread = b""
    async for piece in pieces:
        *lines, unread = (unread + piece).split(b"\n")
        for line in lines:
            yield client.read(line)


async def _texts(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[str, None]:
    decoder = codecs.getincrementaldecoder("utf-8")()
    async for piece in pieces:
        yield decoder.decode(piece)
