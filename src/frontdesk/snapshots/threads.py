"""Work on files, done in a thread so that the loop goes on."""

import asyncio
import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do it in a thread. A caller that is cancelled leaves only when the thread has ended."""
    loop = asyncio.get_running_loop()
    future = loop.run_in_executor(None, functools.partial(work, *args, **kwargs))
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait([future])
        if not future.cancelled():
            future.exception()
        raise
