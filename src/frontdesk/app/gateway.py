"""The gateway: channels, intake, worker and agent around one store."""

import asyncio
import platform as machine
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from msgspec.structs import replace

from frontdesk.agents.bounds import Bounded, Limits
from frontdesk.app.opening import beginning
from frontdesk.app.sessions import SessionStore
from frontdesk.config.effective import SettingsInEffect
from frontdesk.contracts.agents import Agent
from frontdesk.contracts.channels import Channel, Route
from frontdesk.contracts.clock import Clock, SystemClock
from frontdesk.contracts.files import Shelf, Transcriber
from frontdesk.contracts.hooks import Hooks, NoHooks
from frontdesk.contracts.snapshots import Snapshots
from frontdesk.flow.authorization import Authorization, Refusals
from frontdesk.flow.carrying import Carrying
from frontdesk.flow.clockwatch import Elapsed, since_boot
from frontdesk.flow.confirmations.approvals import Gate
from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.flow.confirmations.notifying import Notifier
from frontdesk.flow.files import Filing
from frontdesk.flow.following import follow_feed
from frontdesk.flow.intake import Intake
from frontdesk.flow.pacing import Pacing
from frontdesk.flow.parts import Parts
from frontdesk.flow.receiving import Receiving
from frontdesk.flow.signs import Signs
from frontdesk.flow.speech import Live
from frontdesk.flow.turnstile import Turnstile
from frontdesk.flow.worker import Worker
from frontdesk.hooks import Chain, Guarded
from frontdesk.logs import get_logger
from frontdesk.model import confirmations
from frontdesk.model.files import FileSettings
from frontdesk.model.running import Running

CLOSE_SECONDS = 10.0
"""How long a channel may take to close."""
PREFIX = "/p/{profile}"
"""Before the addresses of a profile's channels."""
HOOKS_SECONDS = 300.0
"""How long all the hooks of one event may take together."""

log = get_logger(__name__)


class Gateway:
    """Takes messages in, runs turns and delivers answers from `start` until `close`."""

    receivings: Sequence[Receiving] = ()
    """What is being received, once it runs."""
    settings: Callable[[], SettingsInEffect] = SettingsInEffect
    """Tells what is set, and by what."""

    def __init__(  # noqa: PLR0913 - here the parts are put together
        self,
        sessions: SessionStore,
        agent: Agent,
        channels: Sequence[Channel],
        *,
        profiles: Mapping[str, Agent] | None = None,
        running: Running | None = None,
        hooks: Hooks | None = None,
        snapshots: Snapshots | None = None,
        files: FileSettings | None = None,
        shelf: Shelf | None = None,
        transcriber: Transcriber | None = None,
        confirming: confirmations.Settings | None = None,
        clock: Clock | None = None,
        elapsed: Elapsed = since_boot,
    ) -> None:
        """``profiles`` has the agents of those that have one of their own; the others have ``agent``."""
        clock, running = clock or SystemClock(), running or Running()
        channels_by_name = {(channel.name, channel.account): channel for channel in channels}
        pacing, live, settings = Pacing(elapsed), Live(), confirming or confirmations.Settings()
        notifier = Notifier(channels_by_name, sessions.config, clock, settings.page_url)
        service = ConfirmationService(sessions.store, settings, clock=clock, tell=notifier)
        bounds = Limits(turn_seconds=running.turn_seconds, idle_seconds=running.turn_idle_seconds)
        default = Bounded(agent, bounds)
        own = {name: Bounded(each, bounds) for name, each in (profiles or {}).items()}
        self._agents = (default, *own.values())
        self.parts = Parts(
            store=sessions.store,
            conversations=sessions,
            agent=default,
            agents=dict.fromkeys(sessions.config.profiles, default) | own,
            channels=channels_by_name,
            connected=sessions.config.connected_to(_told_of(channels)),
            authorization=Authorization(sessions.store, sessions.config, clock=clock),
            hooks=Chain([Guarded("all", hooks or NoHooks(), HOOKS_SECONDS)]),
            snapshots=snapshots,
            running=running,
            clock=clock,
            elapsed=elapsed,
            live=live,
            following=follow_feed(sessions.store),
            carrying=Carrying(sessions.store.nodes, live),
            confirmations=service,
            notifier=notifier,
            gate=Gate(service, notifier, sessions.store, clock),
            refusals=Refusals(clock.now()),
            pacing=pacing,
            signs=Signs(channels_by_name, pacing),
            filing=Filing(sessions.store, clock, files or FileSettings(), shelf, transcriber),
            turnstile=Turnstile(sessions.store.turns.accept),
        )
        self.desk = Intake(self.parts)
        """Takes messages for any channel; channels themselves get one for their own."""
        self.warnings: Callable[[], Sequence[str]] = tuple
        """Tells what is set up wrongly, whenever somebody asks."""
        self.node: int | None = None
        self._worker: Worker | None = None
        self._hurried, self._closed = asyncio.Event(), False
        self._tasks: list[asyncio.Task[None]] = []

    def routes(self) -> list[Route]:
        """Where channels are reached over HTTP; behind the prefix of a profile those of its own accounts."""
        config, channels = self.parts.connected, list(self.parts.channels.values())
        found = {(route.method, route.path): route for channel in channels for route in channel.routes}
        if not config.profiles:
            return list(found.values())
        for channel in sorted(channels, key=lambda each: each.account not in config.profiles):
            prefix = PREFIX.format(profile=config.profile_of_account(channel.name, channel.account))
            for route in channel.routes:
                # Of two accounts on one platform, the one that is called like the profile has the address.
                own = f"/channels/{channel.name}"
                path = prefix + (route.short or route.path.replace(f"{own}/{channel.account}", own, 1))
                found.setdefault((route.method, path), replace(route, path=path))
        return list(found.values())

    @property
    def ready(self) -> bool:
        """Whether it runs; what the store and the channels say is not asked here."""
        return self._worker is not None and not any(task.done() for task in self._tasks)

    async def start(self) -> None:
        """Take part; recovery goes on in the background."""
        with beginning():
            self.node = await self.parts.store.nodes.join(machine.node() or "node", self.parts.clock.now())
        self._worker = Worker(self.parts, self.node)
        self._tasks = [asyncio.create_task(self._worker.run(), name="frontdesk-worker")]
        self._tasks.append(asyncio.create_task(self.parts.confirmations.watch()))
        self.receivings = [Receiving(self.parts, each, self.node) for each in self.parts.channels.values()]
        self._tasks += [asyncio.create_task(each.run()) for each in self.receivings]
        log.info("gateway_started", node=self.node, channels=len(self.parts.channels))

    async def close(self) -> None:
        """Take no more messages, let turns finish for a while, put the rest back, close every part."""
        if self._closed:
            return
        self._closed = True
        if self._worker:
            await self._stop(self._worker)
        await self.parts.signs.close()
        await self.parts.carrying.close()
        for channel in self.parts.channels.values():
            await _close(channel)
        await asyncio.gather(*(agent.close() for agent in self._agents))
        log.info("gateway_closed", node=self.node)

    async def _stop(self, worker: Worker) -> None:
        self._worker = None
        for task in self._tasks[1:]:
            task.cancel()
        await worker.close(self._hurried)
        self._tasks[0].cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def broken(self) -> None:
        """Wait until the worker has ended without being told to: nothing more is done then."""
        await asyncio.wait(self._tasks[:1])

    def hurry(self) -> None:
        """Wait no longer for running turns: they go on after the next start."""
        self._hurried.set()

    @asynccontextmanager
    async def started(self) -> AsyncIterator["Gateway"]:
        await self.start()
        try:
            yield self
        finally:
            await self.close()


def _told_of(channels: Sequence[Channel]) -> list[str]:
    """The platforms that agents are told of: the gateway's own page is none."""
    return [channel.name for channel in channels if not channel.capabilities.on_page]


async def _close(channel: Channel) -> None:
    """A channel that cannot be closed keeps nothing else from its end."""
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await channel.close()
    except Exception:
        log.exception("channel_close_failed", channel=channel.name, account=channel.account)
