"""What the agent writes just now, as it grows: made by the server like everything else on the page, and told
again when there is more. Once it is in the transcript, the page has it from there."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from frontdesk import errors
from frontdesk.app.office import Office
from frontdesk.app.office.transcripts import TurnPiece
from frontdesk.logs import get_logger
from frontdesk.model.visitors import Need
from frontdesk.web.endpoints import HttpCall
from frontdesk.web.operations import Form, Table, Who
from frontdesk.web.pages import rendering
from frontdesk.web.site import prose
from frontdesk.web.site.base import Site
from frontdesk.web.site.threads import steps_of

GROWING = Table(who=Who.VISITOR, need=Need.LOOK, form=Form.EVENTS)

GATHER_SECONDS = 0.15
"""What comes within that time is shown together."""
REST_FACTOR = 9
"""A long text takes a while to be made: nine times as long nothing is."""
ALIVE_SECONDS = 20.0
"""After so long without a word it is said that we are still here."""


log = get_logger(__name__)


class GrownText(msgspec.Struct, frozen=True, kw_only=True):
    """The text so far."""

    step: int
    """How often tools were called before it: what was said before them is in the transcript."""
    markup: str


class Growth:
    """What a turn has said since it last called a tool."""

    def __init__(self) -> None:
        self.step = 0
        self.calling = ""
        self.missed = False
        self.is_over = False
        self._text: list[str] = []
        self._length = 0
        self._changed = asyncio.Event()

    async def changes(self, seconds: float) -> bool:
        """Whether there is something new, within that time; also when there will be no more."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return False
        self._changed.clear()
        return not self.is_over

    def end(self) -> None:
        self.is_over = True
        self._changed.set()

    async def take(self, piece: TurnPiece, office: Office, session_id: str) -> None:
        match piece["type"]:
            case "text":
                self._add(piece["text"])
            case "call":
                self.step += 1
                self._clear()
                self.calling = piece["text"]
            case "result":
                self._clear()
            case "again":
                self._clear()
                rows = (await office.transcript(session_id))["items"]
                self.step = steps_of(rows, piece["turn_id"])
            case "missed":
                self.missed = True
        self._changed.set()

    def _add(self, text: str) -> None:
        self.calling = ""
        if self._length <= prose.MOST_CHARACTERS:
            self._text.append(text)
        self._length += len(text)

    def _clear(self) -> None:
        self._text, self._length, self.calling = [], 0, ""

    def shown(self) -> GrownText:
        text = "" if self.missed else "".join(self._text)
        left = max(0, self._length - prose.MOST_CHARACTERS)
        made = prose.render_growing(text) if text else ""
        values = (made, self.calling, self.missed, left)
        markup = rendering.render_piece(__package__, "transcript.html", "grown", *values)
        return GrownText(step=self.step, markup=str(markup))


@GROWING.add("GET", "/sessions/{session_id}/growing")
async def follow_growth(site: Site, call: HttpCall) -> AsyncGenerator[bytes, None]:
    """What the agent of a session writes just now, as it grows, until it has ended."""
    return _follow(site, call, site.office_for(call), call.params["session_id"])


async def _follow(site: Site, call: HttpCall, office: Office, session_id: str) -> AsyncGenerator[bytes, None]:
    """Nothing is lost when it is cut: whoever comes back is told the whole text."""
    await office.describe_session(session_id)
    yield b": here\n\n"
    growth = Growth()
    reading = asyncio.create_task(_read(growth, office, session_id))
    try:
        while not growth.is_over:
            changed = await growth.changes(ALIVE_SECONDS)
            if not await site.may_look(call):
                break
            if changed:
                begun = time.monotonic()
                shown = await asyncio.to_thread(growth.shown)
                yield b"event: grown\ndata: %s\n\n" % msgspec.json.encode(shown)
                await asyncio.sleep(max(GATHER_SECONDS, REST_FACTOR * (time.monotonic() - begun)))
            else:
                yield b": here\n\n"
        yield b"event: over\ndata: {}\n\n"
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def _read(growth: Growth, office: Office, session_id: str) -> None:
    try:
        async with aclosing(office.follow_session(session_id)) as pieces:
            async for piece in pieces:
                await growth.take(piece, office, session_id)
    except (errors.StoreError, errors.UnknownTurn) as error:
        log.warning("events_cut", why=str(error))
    finally:
        growth.end()
