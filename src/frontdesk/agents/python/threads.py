"""Plain functions, each in a thread of its own that holds nobody up, not even the end of the program."""

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any

from frontdesk import errors


class Threads:
    def __init__(self, most: int) -> None:
        self._most = most
        self._free = threading.BoundedSemaphore(most)

    def calling(self, function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
        """The function as an async one. Cancelled, it runs on unheard."""

        async def call(*arguments: Any) -> Any:
            if not self._free.acquire(blocking=False):
                raise errors.AgentFailed(why=f"{self._most} threads are at work already")
            future: Future[Any] = Future()
            future.set_running_or_notify_cancel()
            context = contextvars.copy_context()
            work = (context, future, function, arguments)
            threading.Thread(target=self._work, args=work, name="agent", daemon=True).start()
            return await asyncio.wrap_future(future)

        return call

    def _work(
        self,
        context: contextvars.Context,
        future: Future[Any],
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
    ) -> None:
        try:
            result = context.run(function, *arguments)
        except StopIteration:
            future.set_exception(RuntimeError("the function raised StopIteration"))
        except BaseException as error:  # noqa: BLE001  # whoever waits for the function gets it
            future.set_exception(error)
        else:
            future.set_result(result)
        finally:
            self._free.release()
