"""The confirmation service inside another program."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Collection, Generator
from concurrent.futures import Future
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

from frontdesk import config
from frontdesk.app.confirmations import open_confirmations, prepare_keys
from frontdesk.config.confirm import TokenHolders
from frontdesk.logs import get_logger
from frontdesk.model.confirmations import DEFAULT_PROMPTS_PER_HOUR, DEFAULT_RATE_LIMIT, Mode, Settings
from frontdesk.web.confirmations.serving import Addresses, serving_alone

HOST, PORT = "127.0.0.1", 6000
NAME = "frontdesk-confirmation-server"

log = get_logger(__name__)


class _Ending:
    """The end of a server; nobody has to wait for it."""

    def __init__(self, task: asyncio.Task[None] | None) -> None:
        self._task = task

    def __await__(self) -> Generator[Any, None, None]:
        if self._task is not None:
            yield from self._task


class ConfirmationServer:
    """Serves confirmations from `start`, or `start_background`, until `stop`.

    server = ConfirmationServer(port=0, db_path=":memory:")
    url = server.start_background()
    ...
    server.stop()
    """

    def __init__(  # noqa: PLR0913 - all that can be chosen
        self,
        host: str = HOST,
        port: int = PORT,
        db_path: str | PathLike[str] | None = None,
        rate_limit: int = DEFAULT_RATE_LIMIT,
        *,
        home: str | PathLike[str] | None = None,
        mode: Mode = Mode.SOLO,
        people: TokenHolders | None = None,
        page_port: int | None = None,
        names: Collection[str] = (),
    ) -> None:
        """``home`` is where the keys are, and the database unless ``db_path`` is told; not set, it is
        frontdesk's. ``names`` are the host names that it is reached by, besides its address: without any, it
        listens on addresses of this machine alone in the mode ``solo``. In an hour people are asked 60 times
        for one requester, or ``rate_limit`` times if it is more."""
        self._home = Path(home) if home is not None else config.load().home
        self._store = config.sqlite_url(Path(db_path if db_path is not None else self._home / "state.db"))
        prompts = max(rate_limit, DEFAULT_PROMPTS_PER_HOUR)
        self._settings = Settings(mode=mode, rate_limit=rate_limit, prompts_per_hour=prompts)
        self._where: dict[str, Any] = {"host": host, "port": port, "names": names, "page_port": page_port}
        self._people = people or TokenHolders()
        self.keys = prepare_keys(self._home)
        """``keys.token()`` is the approver's token, ``keys.token_file`` where it is kept."""
        self.addresses: Addresses | None = None
        self._end: Callable[[], object] | None = None
        """From whichever thread."""
        self._task: asyncio.Task[None] | None = None
        self._thread: threading.Thread | None = None

    async def start(self) -> str:
        """Serve in this event loop; the address as soon as requests are taken."""
        ready: Future[Addresses] = Future()
        self._task = asyncio.create_task(self._serve(ready), name=NAME)
        # Whoever gives up waiting has a server all the same, and stops it.
        self.addresses = await asyncio.shield(asyncio.wrap_future(ready))
        return self.addresses.url

    def start_background(self) -> str:
        """Serve in a thread of its own; the address as soon as requests are taken."""
        ready: Future[Addresses] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(ready)), name=NAME, daemon=True
        )
        self._thread.start()
        if ready.exception() is not None:
            self._thread.join()
        self.addresses = ready.result()
        return self.addresses.url

    def stop(self) -> Awaitable[None]:
        """Stop serving, if it still does. One in the background has ended when this returns; after `start`,
        await it."""
        if self._end is not None:
            with suppress(RuntimeError):  # its loop has ended by itself
                self._end()
        if self._thread is not None:
            self._thread.join()
        self._end = self._thread = None
        return _Ending(self._task)

    async def _serve(self, ready: "Future[Addresses]") -> None:
        """The outermost door: what fails before it serves is raised where it was started."""
        stopping, loop = asyncio.Event(), asyncio.get_running_loop()
        self._end = lambda: loop.call_soon_threadsafe(stopping.set)
        secret = self._people.callback_secret
        try:
            async with (
                open_confirmations(self._store, self._settings, callback_secret=secret) as service,
                serving_alone(service, self.keys, self._people, **self._where) as addresses,
            ):
                ready.set_result(addresses)
                await stopping.wait()
        except Exception as error:
            if ready.done():
                log.exception("confirmation_server_failed")
                raise
            ready.set_exception(error)
