"""What people are called. The platform tells of a message only who wrote it, by their id."""

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.channels.slack import inbound
from frontdesk.channels.slack.faults import SlackError, SlackRefusal
from frontdesk.contracts.channels import Happening
from frontdesk.logs import get_logger

if TYPE_CHECKING:
    from frontdesk.channels.slack.calls import SlackLine

MOST_NAMES = 5000
KEPT_SECONDS = 3600.0
LOOK_SECONDS = 1.5
"""The longest that a message waits for the name of its sender."""
PAUSE_SECONDS = 60.0
"""So long nobody is asked for after that did not work."""
REFUSED_SECONDS = 3600.0

Told = TypeVar("Told", bound=Happening)

log = get_logger(__name__)


class NameBook:
    """Names by id, looked up when somebody is first heard of, and kept for an hour. Whose name cannot be
    learnt now is known by their id: a name never holds up a message for long, nor loses it."""

    def __init__(
        self, line: "SlackLine", account: str | None, elapsed: Callable[[], float] = time.monotonic
    ) -> None:
        self._line = line
        self._account = account
        self._elapsed = elapsed
        self._names: dict[str, str] = {}
        self._until: dict[str, float] = {}
        self._bearers: dict[str, set[str]] = {}
        self._asks_again_at = 0.0

    async def named(self, happening: Told) -> Told:
        """What somebody did, with their name."""
        user = happening.source.user_id
        now = self._elapsed()
        due = user is not None and self._until.get(user, 0.0) <= now and self._asks_again_at <= now
        if user is not None and due and not happening.source.is_bot:
            await self._look_up(user)
        return self.known(happening)

    def known(self, happening: Told) -> Told:
        """The same, without asking anybody. Those who have one name in common have their ids beside it."""
        source = happening.source
        name = self._names.get(source.user_id or "")
        if not name or source.is_bot:
            return happening
        shown = name if len(self._bearers[name.casefold()]) == 1 else f"{name} ({source.user_id})"
        return replace(happening, source=replace(source, user_name=shown))

    async def _look_up(self, user: str) -> None:
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                told = await self._line.call("users.info", user=user)
        except SlackRefusal as error:
            if error.code in ("user_not_found", "user_not_visible"):
                self._keep(user, "")
            else:
                self._leave(error, error.wait or REFUSED_SECONDS)
        except (SlackError, errors.MissingSecret, TimeoutError) as error:
            self._leave(error, PAUSE_SECONDS)
        else:
            self._keep(user, _name(inbound.table(told.get("user"))))

    def _leave(self, error: Exception, seconds: float) -> None:
        self._asks_again_at = self._elapsed() + seconds
        log.warning("names_not_known", account=self._account, why=str(error) or "no answer in time")

    def _keep(self, user: str, name: str) -> None:
        if len(self._until) >= MOST_NAMES:
            for kept in (self._names, self._until, self._bearers):
                kept.clear()
        if before := self._names.pop(user, None):
            self._bearers[before.casefold()].discard(user)
        self._until[user] = self._elapsed() + KEPT_SECONDS
        if name:
            self._names[user] = name
            self._bearers.setdefault(name.casefold(), set()).add(user)


def _name(user: inbound.Table) -> str:
    """What others see of them: the name that they have chosen, else their own."""
    profile = inbound.table(user.get("profile"))
    given = (profile.get("display_name"), profile.get("real_name"), user.get("real_name"), user.get("name"))
    return next((name for name in map(inbound.cleaned_name, given) if name), "")
