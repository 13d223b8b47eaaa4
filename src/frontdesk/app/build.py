"""The gateway that a configuration describes."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from frontdesk import errors, plugins, processes
from frontdesk.app import health
from frontdesk.app.confirmations import prepare_keys
from frontdesk.app.gateway import Gateway
from frontdesk.app.sessions import SessionStore
from frontdesk.config import Config, effective, load
from frontdesk.config import options as records
from frontdesk.config.effective import SettingsInEffect
from frontdesk.config.settings import Origin, Value
from frontdesk.contracts.agents import Agent, Checkable
from frontdesk.contracts.channels import Channel
from frontdesk.files import CommandTranscriber, FileShelf
from frontdesk.formats import links
from frontdesk.formats.http import url_of
from frontdesk.hooks import open_hooks
from frontdesk.logs import get_logger
from frontdesk.model import confirmations, routing
from frontdesk.model.access import Access
from frontdesk.model.running import Running
from frontdesk.snapshots import CheckpointManager

ALWAYS_THERE = (LOCAL, WEB) = ("local", "web")
"""The owner's terminal and the page's own chats, which no settings name."""
HOME = "home"
"""An option of channels that keep something besides the store: frontdesk's own folder, unless it is set."""
APPROVERS = "approvers"
TRIAL_SECONDS = 15.0
FILES = "files"
"""Where the bytes of files are kept, under the home folder."""
SPARED_BYTES = 500 * 1024 * 1024
"""So much of the disk no file takes: the database is there, too."""
PROGRAMS = "programs"
"""Where the record of the programs that run is kept, under the home folder."""
EVERYWHERE = ("0.0.0.0", "::")
"""Addresses to listen on that are no address to call."""

log = get_logger(__name__)


@asynccontextmanager
async def open_gateway(config: Config) -> AsyncIterator[Gateway]:
    """Everything opened, and not yet working: whoever has it starts it. Closed in reverse."""
    running = _running(config)
    agent, own = make_agent(config), make_agents(config)
    channels = make_channels(config)
    _check_routes(config, {routing.DEFAULT: agent, **own}, channels)
    hooks = open_hooks(config.hooks)
    decide = records.missing_secrets(config.confirm.people, only=APPROVERS)
    for missing in (*missing_secrets(config), *decide):
        log.warning("secret_missing", why=missing)
    async with AsyncExitStack() as opened:
        opening = SessionStore.open(
            config.store_url, config.gateway, has_active_processes_fn=hooks.has_active_processes
        )
        sessions = await opened.enter_async_context(await opening)
        programs = config.home / PROGRAMS
        await asyncio.to_thread(processes.end_left, programs)
        opened.enter_context(processes.kept(programs))
        gateway = Gateway(
            sessions,
            agent,
            channels,
            profiles=own,
            running=running,
            hooks=hooks,
            snapshots=workplace(config)[0],
            confirming=_confirming(config),
            files=config.files,
            shelf=FileShelf(config.home / FILES, private=(config.home,), spares_bytes=SPARED_BYTES),
            transcriber=_transcriber(config),
        )
        gateway.warnings = lambda: [str(missing) for missing in missing_secrets(config)]
        gateway.settings = lambda: settings_in_effect(config)
        opened.push_async_callback(gateway.close)
        _offer_links(gateway, config)
        yield gateway


def _confirming(config: Config) -> confirmations.Settings:
    """Its pages are on the gateway's own port, unless they are reached under another address."""
    service = config.confirm
    if service.page_url or not config.port:
        return service
    host = config.names[0] if config.names else config.host
    if host in EVERYWHERE:
        return service  # nobody knows under which name people reach us
    return msgspec.structs.replace(service, page_url=url_of(host, config.port))


def _transcriber(config: Config) -> CommandTranscriber | None:
    files = config.files
    return CommandTranscriber(files.transcribe, files.transcribe_seconds) if files.transcribe else None


def _offer_links(gateway: Gateway, config: Config) -> None:
    """To the approver whose the home channels are, where one is named."""
    name, page_url = config.confirm.link_for, gateway.parts.confirmations.settings.page_url
    if name is None or page_url is None:
        return
    key = prepare_keys(config.home).link_key

    def make(asked: confirmations.Confirmation) -> str:
        link = links.decision(asked.id, asked.digest, f"{confirmations.TOKEN}{name}", asked.expires_at)
        return links.address(page_url, key, link)

    gateway.parts.notifier.offer_links(make)


def missing_secrets(config: Config) -> list[errors.MissingSecret]:
    """What the agents, the channels and who asks for confirmations need, and what is not usable where the
    settings say. Who decides is another question: one approver is enough."""
    agents = (agent_options(config, profile) for profile in (None, *profiles_with_agents(config)))
    read = (*agents, *(options for _, _, options in _read_channels(config)))
    found = [missing for options in read for missing in records.missing_secrets(options)]
    return [*found, *records.missing_secrets(config.confirm.people, besides=APPROVERS)]


def settings_in_effect(loaded: Config) -> SettingsInEffect:
    """What holds in a process that was started with this, also what nothing sets."""
    unset: list[Value] = []
    missing: set[str] = set()
    gap = None
    try:
        unset = list(unset_options(loaded))
        missing = {str(vars(each)["setting"]) for each in missing_secrets(loaded)}
    except errors.FrontdeskError as error:  # what a part takes is not known where it cannot be loaded
        gap = str(error)
    changed, unreadable = _changed_since(loaded)
    return SettingsInEffect(
        file=str(loaded.file),
        file_exists=loaded.file.exists(),
        items=tuple(effective.in_effect([*loaded.values, *unset], missing)),
        unknown_variables=loaded.unknown_variables,
        changed=changed,
        gap=gap or unreadable,
    )


def _changed_since(loaded: Config) -> tuple[tuple[str, ...], str | None]:
    """The names of what would hold otherwise after another start, or why that cannot be told."""
    try:
        fresh = load(loaded.file if loaded.file.exists() else None)
    except errors.FrontdeskError as error:
        return (), str(error)
    before, now = (
        {each.name: each.value for each in known.values if each.origin is not Origin.OPTION}
        for known in (loaded, fresh)
    )
    given = {each.name for each in loaded.values} - before.keys()
    names = sorted((before.keys() | now.keys()) - given)
    return tuple(name for name in names if before.get(name) != now.get(name)), None


def _running(config: Config) -> Running:
    working_dir = str(Path(config.running.working_dir or ".").expanduser().resolve())
    return msgspec.structs.replace(config.running, working_dir=working_dir)


async def check(config: Config) -> None:
    """Refuse what no gateway could be made of."""
    agents = {routing.DEFAULT: make_agent(config), **make_agents(config)}
    for agent in agents.values():
        await agent.close()
    _check_routes(config, agents, await try_channels(config))


async def try_channels(config: Config) -> list[Channel]:
    """The channels that a gateway would have, closed again."""
    channels = make_channels(config)
    for channel in channels:
        await channel.close()
    return channels


async def try_agent(config: Config, profile: str | None = None) -> str | None:
    """Make an agent and try what its turns will need; what is doubtful. Errors say what is wrong."""
    agent = make_agent(config, profile)
    try:
        if not isinstance(agent, Checkable):
            return None
        async with asyncio.timeout(TRIAL_SECONDS):
            return await agent.check(working_dir(config, profile))
    except TimeoutError:
        raise errors.AgentFailed(why=f"it could not be tried within {TRIAL_SECONDS:.0f} seconds") from None
    finally:
        await agent.close()


def make_agent(config: Config, profile: str | None = None) -> Agent:
    """The agent of a profile, which has one of its own; of the default one, unless another is named."""
    _find_modules(config)
    driver = plugins.load_part("agent", driver_of(config, profile))
    agent: Agent = driver(agent_options(config, profile))
    return agent


def make_agents(config: Config) -> dict[str, Agent]:
    """The agents of those profiles that have one of their own."""
    return {name: make_agent(config, name) for name in profiles_with_agents(config)}


def profiles_with_agents(config: Config) -> list[str]:
    return [name for name, parts in config.profiles.items() if parts.driver]


def driver_of(config: Config, profile: str | None = None) -> str:
    return (config.profiles[profile].driver if profile else None) or config.driver


def working_dir(config: Config, profile: str | None = None) -> str:
    """Where the agent of a profile works."""
    own = config.gateway.profiles[profile].working_dir if profile else None
    return own or str(_running(config).working_dir)


def _check_routes(config: Config, agents: Mapping[str, Agent], channels: Sequence[Channel]) -> None:
    """Refuse rows that could not do what they say: of accounts that are not there, of people where anybody
    can claim to be them, of models where none can be chosen."""
    accounts = {(str(channel.name), channel.account): channel for channel in channels}
    platforms = {platform for platform, _ in accounts}
    for number, row in enumerate(config.gateway.routes, 1):
        key, channel = f"routes (row {number})", accounts.get((row.platform, row.account))
        if row.platform in platforms and channel is None:
            known = ", ".join(health.name_of(each) for each in channels if each.name == row.platform)
            raise errors.InvalidSetting(key=f"{key}.account", value=row.account, allowed=f"one of {known}")
        if row.person and channel and not channel.capabilities.reliable_sender_ids:
            allowed = "nobody: on this channel anybody can claim another's id"
            raise errors.InvalidSetting(key=f"{key}.person", value=row.person, allowed=allowed)
        profile = row.profile or config.gateway.profile_of_account(row.platform, row.account)
        agent = agents.get(profile, agents[routing.DEFAULT])
        if row.model and not agent.abilities.models:
            allowed = f"nothing: the agent of the profile {profile} has a model of its own"
            raise errors.InvalidSetting(key=f"{key}.model", value=row.model, allowed=allowed)


def _find_modules(config: Config) -> None:
    """Modules that the settings name are also looked for in the folder that frontdesk was started in, and in
    that of the configuration file. Behind everything that is installed: no file there takes its place."""
    for folder in (".", config.file.parent):
        place = os.path.abspath(folder)
        if place not in sys.path:
            sys.path.append(place)


def agent_options(config: Config, profile: str | None = None) -> msgspec.Struct:
    """What is set for an agent, as its driver's record."""
    driver = plugins.load_part("agent", driver_of(config, profile))
    options: msgspec.Struct = records.read_options(driver.Options, *_agent_table(config, profile))
    return options


def _agent_table(config: Config, profile: str | None) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The options of an agent, and where they stand."""
    if profile is None:
        return config.agent, ("agent",)
    return config.profiles[profile].agent, ("profiles", profile, "agent")


def make_channels(config: Config) -> list[Channel]:
    """The configured channels, the terminal and the page."""
    channels: list[Channel] = [made(options, account) for made, account, options in _read_channels(config)]
    own = [plugins.load_part("channel", name) for name in ALWAYS_THERE]
    return [*channels, *(made(made.Options(), None) for made in own)]


def _read_channels(config: Config) -> Iterator[tuple[Any, str | None, msgspec.Struct]]:
    """The class, the account and the options of each configured channel."""
    for made, account, above, own in _channel_tables(config):
        others = () if above[0] == "channels" and account else Access.__struct_fields__
        options = records.read_options(made.Options, own, above, others)
        if HOME in options.__struct_fields__ and HOME not in own:  # it keeps something there
            options = msgspec.structs.replace(options, **{HOME: str(config.home)})
        yield made, account, options


def _channel_tables(
    config: Config,
) -> Iterator[tuple[Any, str | None, tuple[str, ...], Mapping[str, Any]]]:
    """One for each platform's own table, one for each table in it that is no option."""
    for platform, table in config.channels.items():
        if platform in ALWAYS_THERE:
            continue
        above: tuple[str, ...] = ("channels", platform)
        made = _load_channel(platform, above)
        options = {field.encode_name for field in msgspec.structs.fields(made.Options)}
        accounts = {
            name: value
            for name, value in table.items()
            if isinstance(value, Mapping) and not _is_option(name, options)
        }
        own = {name: value for name, value in table.items() if name not in accounts}
        if own or not accounts:
            yield made, None, above, own
        for name, value in accounts.items():
            yield made, name, (*above, name), value
    for profile, parts in config.profiles.items():  # whose accounts are called like it
        for platform, table in parts.channels.items():
            above = ("profiles", profile, "channels", platform)
            if platform in ALWAYS_THERE:
                why = "it has no accounts: send chats of it here with [[routes]]"
                raise errors.InvalidSetting(key=".".join(above), value="a table", allowed=f"nothing: {why}")
            yield _load_channel(platform, above), profile, above, table


def unset_options(config: Config) -> Iterator[Value]:
    """The options of the agents and the channels that nothing sets, with what holds then."""
    for profile in (None, *profiles_with_agents(config)):
        driver = plugins.load_part("agent", driver_of(config, profile))
        yield from records.unset(driver.Options, *_agent_table(config, profile))
    for made, _, above, own in _channel_tables(config):
        yield from records.unset(made.Options, own, above)


def _load_channel(platform: str, above: tuple[str, ...]) -> Any:
    try:
        return plugins.load_part("channel", platform)
    except errors.UnknownPart as error:
        error.add_note(f"Until there is one, remove the table {'.'.join(above)}: it has no effect.")
        raise


def _is_option(name: str, options: set[str]) -> bool:
    stem = name.removesuffix("_env").removesuffix("_file")
    return not options.isdisjoint({name, stem, f"{stem}s"})


def workplace(config: Config) -> tuple[CheckpointManager | None, str | None]:
    """The checkpoints that a gateway of this configuration would have, and of which directory."""
    directory = _running(config).working_dir
    if not config.running.checkpoints:
        return None, directory
    kept = config.home / "checkpoints"
    return CheckpointManager(config.max_checkpoints, kept, private=[config.home]), directory
