"""Socket Mode: what happens comes over a socket, and is acknowledged once it is stored."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from frontdesk import errors
from frontdesk.channels import streams
from frontdesk.channels.slack import inbound
from frontdesk.channels.slack.faults import SlackError, SlackRefusal, SlackUnclear
from frontdesk.channels.slack.reading import ChatReader
from frontdesk.logs import get_logger

if TYPE_CHECKING:
    from frontdesk.channels.slack.calls import SlackLine

MOST_WAITING = 100
"""How many events are read ahead of the store."""
LEAVING_SECONDS = 5.0
"""How long what was read is still stored after the connection has ended."""
GREETING_SECONDS = 20.0
LINK_DISABLED = "link_disabled"
DISABLED = "Socket Mode is off: turn it on in the app's settings"

Hear = Callable[[str, object], Awaitable[None]]
Note = Callable[[SlackError | errors.MissingSecret | None], None]

log = get_logger(__name__)


class SocketListener:
    """Stays connected, and hands over one event after the other. Presses do not wait behind messages."""

    def __init__(self, line: "SlackLine", reader: ChatReader, hear: Hear, note: Note) -> None:
        self._line = line
        self._reader = reader
        self._hear = hear
        self._note = note

    async def listen(self) -> None:
        pauses = streams.GrowingPauses()
        while True:
            wait: float | None = None
            try:
                if await self._connect():
                    pauses.forget()
            except (SlackError, errors.MissingSecret) as error:
                self._note(error)
                wait = error.wait if isinstance(error, SlackRefusal) else None
            except streams.LATER as error:
                log.warning("update_not_stored", why=str(error))
            await pauses.wait(wait)

    async def _connect(self) -> bool:
        """Listen for as long as one connection holds; whether anything came over it."""
        await self._reader.begin()
        async with self._line.socket() as socket:
            return await self._listen_to(socket)

    async def _listen_to(self, socket: Any) -> bool:
        envelopes: asyncio.Queue[inbound.Table] = asyncio.Queue(MOST_WAITING)
        async with asyncio.TaskGroup() as tasks:
            beside = [tasks.create_task(self._in_order(socket, envelopes))]
            try:
                if not await self._greet(socket):
                    return False
                beside.append(tasks.create_task(self._reader.catch_up()))
                heard = await self._read(socket, envelopes, tasks)
                await asyncio.wait({asyncio.ensure_future(envelopes.join())}, timeout=LEAVING_SECONDS)
                return heard
            finally:
                for task in beside:
                    task.cancel()

    async def _greet(self, socket: Any) -> bool:
        """Whether we are greeted: from then on what happens is brought over this connection."""
        try:
            first = read_envelope((await socket.receive(timeout=GREETING_SECONDS)).data)
        except TimeoutError:
            first = {}
        if first.get("type") == "hello":
            self._note(None)
            if (others := connections(first) - 1) > 0:
                log.warning("others_listen", others=others)
            return True
        disabled = first.get("reason") == LINK_DISABLED
        self._note(SlackRefusal(DISABLED) if disabled else SlackUnclear("the connection was not greeted"))
        return False

    async def _read(
        self, socket: Any, envelopes: "asyncio.Queue[inbound.Table]", tasks: asyncio.TaskGroup
    ) -> bool:
        heard = False
        async for message in socket:
            envelope = read_envelope(message.data)
            match envelope.get("type"):
                case "disconnect":
                    disabled = envelope.get("reason") == LINK_DISABLED
                    if disabled:
                        self._note(SlackRefusal(DISABLED))
                    return not disabled
                case "interactive":
                    heard = True
                    tasks.create_task(self._take(socket, envelope))
                case str():
                    heard = True
                    await envelopes.put(envelope)
        if not heard:
            self._note(SlackUnclear("the connection was closed"))
        return heard

    async def _in_order(self, socket: Any, envelopes: "asyncio.Queue[inbound.Table]") -> None:
        while True:
            await self._take(socket, await envelopes.get())
            envelopes.task_done()

    async def _take(self, socket: Any, envelope: inbound.Table) -> None:
        """Store what an envelope holds, then tell the platform that we have it."""
        name = envelope.get("envelope_id")
        try:
            await self._hear(str(envelope.get("type")), envelope.get("payload"))
        except streams.LATER as error:
            log.warning("update_not_stored", why=str(error))
            return
        if not isinstance(name, str):
            return
        try:
            await socket.send_str(json.dumps({"envelope_id": name}))
        except (ConnectionError, RuntimeError) as error:  # it is closed: the platform brings it again
            log.info("event_not_acknowledged", why=str(error))


def connections(hello: inbound.Table) -> int:
    """How many programs listen for the app, as we are greeted: each event goes to one of them."""
    number = hello.get("num_connections")
    return number if isinstance(number, int) else 1


def read_envelope(data: object) -> inbound.Table:
    try:
        return inbound.table(json.loads(data)) if isinstance(data, str | bytes) else {}
    except (ValueError, RecursionError):
        log.warning("update_unreadable", why="it is not valid JSON")
        return {}
