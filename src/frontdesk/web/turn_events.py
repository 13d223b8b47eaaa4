"""What happens in one turn, as server-sent events."""

import asyncio
import math
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

import msgspec

from frontdesk.app.office import Office, Plain
from frontdesk.contracts.ticks import ticker
from frontdesk.web.streams import MayLook

OPENING = b": here\nretry: 2000\n\n"
RESET = b"event: reset\ndata: {}\n\n"
STILL_HERE = b": still here\n\n"
ASKED_SECONDS = 1.0
"""How long somebody who may look is told of a turn without being asked again."""


async def turn_events(
    office: Office, turn_id: str, *, again: bool, may_look: MayLook
) -> AsyncGenerator[bytes, None]:
    """A turn is told from its beginning on: whoever comes back starts over, and is told so. It ends before
    its end when they may look no more."""
    await office.show_turn(turn_id)  # whoever may not see it hears so before anything else
    quiet, ticks, number = asyncio.Event(), ticker(), 0
    now, asked_at = asyncio.get_running_loop().time, -math.inf
    steps, coming = office.follow_turn(turn_id), None
    ticks.add(quiet.set)
    try:
        yield OPENING + (RESET if again else b"")
        while True:
            coming = coming or asyncio.ensure_future(anext(steps))
            await _either(coming, quiet)
            if now() >= asked_at + ASKED_SECONDS:
                asked_at = now()
                if not await may_look():
                    return
            if not coming.done():
                yield STILL_HERE
                continue
            step, coming = coming.result(), None
            number += 1
            yield _written(turn_id, number, step)
    except StopAsyncIteration:
        return
    finally:
        ticks.remove(quiet.set)
        if coming is not None:
            coming.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration):
                await coming
        await steps.aclose()


async def _either(coming: "asyncio.Future[Plain]", quiet: asyncio.Event) -> None:
    ticked = asyncio.ensure_future(quiet.wait())
    either: set[asyncio.Future[Any]] = {coming, ticked}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    finally:
        ticked.cancel()
        quiet.clear()


def _written(turn_id: str, number: int, step: Plain) -> bytes:
    kind, data = str(step.pop("type")), msgspec.json.encode(step)
    return b"event: %s\nid: %s-%d\ndata: %s\n\n" % (kind.encode(), turn_id.encode(), number, data)
