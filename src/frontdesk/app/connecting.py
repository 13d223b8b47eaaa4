"""Connecting a platform: the channel is tried with what a person gave, and then written into the file."""

import asyncio
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from frontdesk import config, errors, plugins
from frontdesk.app import build, health
from frontdesk.config import Config, editing, settings
from frontdesk.config import options as records
from frontdesk.config.options import TypedSecret
from frontdesk.contracts.channels import Channel
from frontdesk.contracts.clock import SystemClock
from frontdesk.contracts.setups import Examined, Setup
from frontdesk.flow.sending import Outlets
from frontdesk.logs import get_logger
from frontdesk.model import deliveries, findings, keys
from frontdesk.model.access import Access, Strangers
from frontdesk.model.findings import Finding
from frontdesk.model.gateway import GatewayConfig
from frontdesk.model.platforms import HomeChannel, Platform, PlatformConfig

EXAMINE_SECONDS = 30.0
"""Longer than a call of a channel may take: it can say itself what did not answer."""
SECRETS = "secrets"
"""The folder, under the home folder, for secrets that were typed."""
HELLO = "Hello! frontdesk is connected here. Write to me once it runs."
TABLES = ("_env", "_file")

log = get_logger(__name__)


class SecretPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a secret is: in an environment variable, or in a file."""

    option: str
    """The option with ``_env`` or ``_file`` behind it."""
    name: str


class AccountPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to stand in the file about one account of a platform."""

    platform: Platform
    account: str | None = None
    plain: Mapping[str, Any] = {}
    secrets: Mapping[str, TypedSecret | SecretPlace] = {}
    allow: tuple[str, ...] = ()
    administrators: tuple[str, ...] = ()
    home: str | None = None

    @property
    def table(self) -> settings.Path:
        """The table of the account's options."""
        return ("channels", str(self.platform), *([self.account] if self.account else []))

    @property
    def people(self) -> tuple[str, ...]:
        """Who is let in."""
        return (*self.allow, *self.administrators)

    def listed(self, user_id: str) -> str:
        """Somebody as a list of this account names them."""
        if self.account is None:
            return user_id
        return f"{self.platform}@{keys.encode_part(self.account)}:{keys.encode_part(user_id)}"


def check_installed(platform: str) -> None:
    """Refuse a platform whose package is not there, before anybody is asked for anything."""
    plugins.load_part("channel", platform)


def find_closed(loaded: Config) -> Path | None:
    """A folder in which we may not write what has to be written there."""
    for place in (loaded.file.resolve().parent, loaded.home / SECRETS):
        folder = next(each for each in (place, *place.parents) if each.exists())
        if not os.access(folder, os.W_OK | os.X_OK):
            return folder
    return None


def is_there(loaded: Config, plan: AccountPlan) -> bool:
    """Whether the account is connected already."""
    table: Any = loaded.channels.get(str(plan.platform))
    if table is not None and plan.account:
        table = table.get(plan.account)
    return table is not None


def find_setup(platform: str) -> Setup | None:
    """How a platform is connected; None when nothing says so."""
    setup: Setup | None = plugins.load_setup(platform)
    return setup


def setups() -> dict[str, Setup]:
    """The platforms that can be connected, with how; a package that cannot be loaded hides no other."""
    found: dict[str, Setup] = {}
    for name in plugins.installed("channel"):
        try:
            setup = find_setup(name)
        except errors.BrokenPart as error:
            log.warning("setup_unreadable", platform=name, why=str(error))
        else:
            if setup:
                found[name] = setup
    return found


class Connecting:
    """A connection that is being made: nothing of it counts before `commit`; without that nothing stays."""

    def __init__(self, loaded: Config, plan: AccountPlan, opened: ExitStack) -> None:
        self._loaded = loaded
        self.plan = plan
        self.file = loaded.file.resolve()
        self._text = editing.read_text(self.file)
        self._moves: list[tuple[Path, Path]] = []
        self._opened = opened
        made = plugins.load_part("channel", str(plan.platform))
        others = () if plan.account else Access.__struct_fields__
        table = {**plan.plain, **dict(self._named_secrets()), **self._typed_secrets()}
        options = records.read_options(made.Options, table, plan.table, others)
        self.channel: Channel = made(options, plan.account)

    def _named_secrets(self) -> Iterator[tuple[str, str]]:
        for secret in self.plan.secrets.values():
            if isinstance(secret, SecretPlace):
                yield secret.option, secret.name

    def _typed_secrets(self) -> dict[str, TypedSecret]:
        return {name: each for name, each in self.plan.secrets.items() if isinstance(each, TypedSecret)}

    def _secret_file(self, name: str) -> Path:
        parts = (self.plan.platform, self.plan.account, name)
        return self._loaded.home / SECRETS / "-".join(keys.encode_part(part) for part in parts if part)

    def _write(self, place: Path, text: str) -> Path:
        mode = None if place == self.file else editing.OWNER_ONLY
        fresh = editing.write_beside(place, text, mode)
        self._opened.callback(fresh.unlink, missing_ok=True)
        self._moves.append((fresh, place))
        return fresh

    @property
    def lets_somebody_in(self) -> bool:
        """Whether the settings let somebody in already, or give strangers a way."""
        access = self._loaded.gateway.get_access(str(self.plan.platform))
        open_to = access.strangers is Strangers.PAIR or self.channel.capabilities.authenticates
        return bool(access.allow or access.administrators or open_to)

    async def examine(self) -> list[Finding]:
        """What the platform says."""
        return await examine(self.channel, in_use=False, home=self.plan.home)

    def change(self, **fields: Any) -> None:
        """Who may talk, and where home is, are known later than the credentials."""
        self.plan = msgspec.structs.replace(self.plan, **fields)

    def commit(self) -> Path:
        """Write it into the file, together with the secrets; which file."""
        for name, typed in self._typed_secrets().items():
            self._write(self._secret_file(name), f"{typed.secret}\n")
        made = editing.edited(self.file, self._text, self._changes())
        fresh = self._write(self.file, made)
        config.load(fresh)  # refuses what no gateway would start with
        if editing.read_text(self.file) != self._text:
            raise errors.UnreadableConfigFile(path=self.file, why="somebody else has changed it meanwhile")
        with _undisturbed():
            for beside, place in self._moves:
                beside.replace(place)
        log.info("channel_connected", channel=str(self.plan.platform), account=self.plan.account)
        return self.file

    def _changes(self) -> dict[settings.Path, Any]:
        made, table = self.plan, self.plan.table
        changes: dict[settings.Path, Any] = {}
        for name in made.secrets:
            changes |= {(*table, f"{name}{suffix}"): None for suffix in TABLES}
        places = dict(self._named_secrets())
        places |= {f"{name}_file": str(self._secret_file(name)) for name in self._typed_secrets()}
        changes |= {(*table, name): value for name, value in {**made.plain, **places}.items()}
        known = self._loaded.gateway.get_access(str(made.platform))
        for name in ("allow", "administrators"):
            added = map(made.listed, getattr(made, name))
            people = list(dict.fromkeys([*getattr(known, name), *added]))
            if people:
                changes["channels", str(made.platform), name] = people
        if made.home:
            changes["platforms", str(made.platform), "home_channel", "chat_id"] = made.home
        if not changes:
            changes[(*table, "allow")] = []
        return changes

    async def greet(self) -> deliveries.Outcome:
        """Say hello in the home channel."""
        made, name = self.plan, str(self.plan.platform)
        home = HomeChannel(platform=made.platform, chat_id=made.home or "", name="Home")
        known = GatewayConfig(platforms={name: PlatformConfig(home_channel=home)})
        outlets = Outlets({(name, made.account): self.channel}, known, SystemClock())
        (hello,) = outlets.write(outlets.find(name), HELLO, "hello")
        return await self.channel.send(hello)


@contextmanager
def begun(loaded: Config, plan: AccountPlan) -> Iterator[Connecting]:
    """A connection to be tried; what was not committed is taken away at the end."""
    with ExitStack() as opened:
        yield Connecting(loaded, plan, opened)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Whoever interrupts is heard a moment later."""
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


async def examine_all(loaded: Config, *, in_use: bool) -> list[Finding]:
    """What the platforms of all configured channels say, side by side."""
    channels = build.make_channels(loaded)
    homes = [loaded.gateway.get_home_channel(channel.name) for channel in channels]
    looks = [
        _examine_and_close(channel, in_use, home.chat_id if home else None)
        for channel, home in zip(channels, homes, strict=True)
    ]
    found = await asyncio.gather(*looks)
    return [finding for each in found for finding in each]


async def _examine_and_close(channel: Channel, in_use: bool, home: str | None) -> list[Finding]:
    try:
        told = await examine(channel, in_use=in_use, home=home)
    finally:
        await channel.close()
    name = health.name_of(channel)
    return [msgspec.structs.replace(each, text=f"{name}: {each.text}") for each in told]


async def examine(channel: Channel, *, in_use: bool, home: str | None) -> list[Finding]:
    """What is wrong with a channel that can tell; nothing for one that cannot."""
    if not isinstance(channel, Examined):
        return []
    try:
        async with asyncio.timeout(EXAMINE_SECONDS):
            return list(await channel.examine(in_use=in_use, home=home))
    except TimeoutError:
        return [findings.failed(f"the platform did not answer within {EXAMINE_SECONDS:.0f} seconds")]
    except errors.FrontdeskError as error:
        return [findings.failed(str(error))]


def is_usable(found: Sequence[Finding]) -> bool:
    return not any(each.verdict is findings.Severity.FAILED for each in found)
