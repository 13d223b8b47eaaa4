"""The gateway that a configuration describes."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from frontdesk import plugins
from frontdesk.app.gateway import Gateway
from frontdesk.app.sessions import SessionStore
from frontdesk.config import Config
from frontdesk.config.options import read_options
from frontdesk.config.table import ACCESS_FIELDS
from frontdesk.contracts.agents import Agent
from frontdesk.contracts.channels import Channel
from frontdesk.hooks import open_hooks
from frontdesk.model.running import Running
from frontdesk.snapshots import CheckpointManager

LOCAL = "local"


@asynccontextmanager
async def open_gateway(config: Config) -> AsyncIterator[Gateway]:
    """Everything opened and working; closed in reverse."""
    running = _running(config)
    agent = make_agent(config)
    channels = make_channels(config)
    async with AsyncExitStack() as opened:
        sessions = await opened.enter_async_context(await SessionStore.open(config.store_url, config.gateway))
        gateway = Gateway(
            sessions,
            agent,
            channels,
            running=running,
            hooks=open_hooks(config.hooks),
            snapshots=_snapshots(config),
        )
        yield await opened.enter_async_context(gateway.started())


def _running(config: Config) -> Running:
    working_dir = str(Path(config.running.working_dir or ".").expanduser().resolve())
    return msgspec.structs.replace(config.running, working_dir=working_dir)


async def check(config: Config) -> None:
    """Refuse what no gateway could be made of."""
    await make_agent(config).close()
    for channel in make_channels(config):
        await channel.close()


def make_agent(config: Config) -> Agent:
    driver = plugins.load_part("agent", config.driver)
    agent: Agent = driver(read_options(driver.Options, config.agent, ("agent",)))
    return agent


def make_channels(config: Config) -> list[Channel]:
    """The configured channels, and the terminal."""
    channels: list[Channel] = []
    for platform, table in config.channels.items():
        if platform != LOCAL and table:
            channels += _channels_of(platform, table)
    terminal = plugins.load_part("channel", LOCAL)
    return [*channels, terminal(terminal.Options(), None)]


def _channels_of(platform: str, table: Mapping[str, Any]) -> list[Channel]:
    """One for the platform's own table, one for each table in it that is no option."""
    made = plugins.load_part("channel", platform)
    options = {field.encode_name for field in msgspec.structs.fields(made.Options)}
    above = ("channels", platform)
    accounts = {
        name: value
        for name, value in table.items()
        if isinstance(value, Mapping) and not _is_option(name, options)
    }
    own = {name: value for name, value in table.items() if name not in accounts}
    found = [made(read_options(made.Options, own, above, ACCESS_FIELDS), None)] if own else []
    for name, value in accounts.items():
        found.append(made(read_options(made.Options, value, (*above, name)), name))
    return found


def _is_option(name: str, options: set[str]) -> bool:
    stem = name.removesuffix("_env").removesuffix("_file")
    return not options.isdisjoint({name, stem, f"{stem}s"})


def _snapshots(config: Config) -> CheckpointManager | None:
    if not config.running.checkpoints:
        return None
    return CheckpointManager(config.max_checkpoints, config.home / "checkpoints", private=[config.home])
