"""The configuration: one table of settings, read from ``frontdesk.toml`` and the environment.

Nothing else reads the environment, except the machine's time zone.
"""

import ast
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from frontdesk import errors, plugins
from frontdesk.config import settings
from frontdesk.config.confirm import Confirm
from frontdesk.config.reading import FILE_VARIABLE, ROWS, SettingsReader
from frontdesk.config.routes import ProfileParts
from frontdesk.config.settings import Value
from frontdesk.contracts.hooks import Commands
from frontdesk.model.files import FileSettings
from frontdesk.model.gateway import GatewayConfig
from frontdesk.model.platforms import NAME, Platform
from frontdesk.model.running import Running

FILE_NAME = "frontdesk.toml"
HOME = ROWS["home"]
HOME_VARIABLE = HOME.variable or ""
STORE = "store.url"
MULTIPLEX = "multiplex_profiles"

_TOML_PLACE = re.compile(r" \(at (?:line (?P<line>[0-9]+), column [0-9]+|end of document)\)$")
_TOML_NAME = re.compile(r"(?<=[a-z] )\(['\"].*['\"],?\)")


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The effective configuration."""

    gateway: GatewayConfig
    store_url: str
    home: Path
    file: Path
    """Where the file is, or would be."""
    host: str
    port: int
    names: tuple[str, ...] = ()
    url: str | None = None
    """Where browsers reach the server, when that is not its own address."""
    connections: int
    proxies: tuple[str, ...] = ()
    driver: str
    """The kind of agent."""
    agent: Mapping[str, Any]
    """The agent's options, as the file has them."""
    channels: Mapping[str, Mapping[str, Any]]
    """The channels' options, by platform."""
    profiles: Mapping[str, ProfileParts] = {}
    """What the agents and channels of profiles are made of, by the profile's name."""
    running: Running
    max_checkpoints: int
    hooks: Commands = Commands()
    files: FileSettings = FileSettings()
    confirm: Confirm
    values: tuple[Value, ...]
    """Every effective value with where it came from."""
    unknown_variables: tuple[str, ...] = ()
    """Environment variables with our prefix that set nothing."""


def load(path: str | os.PathLike[str] | None = None, environ: Mapping[str, str] = os.environ) -> Config:
    """Read the file, then the environment, which wins. A file that nobody named may be missing."""
    # Installed channels are platforms, too: a file may speak of one before its package is loaded.
    for name in filter(NAME.fullmatch, plugins.installed("channel")):
        Platform.register(name)
    named = path or environ.get(FILE_VARIABLE)
    file = Path(named) if named else usual_file(environ)
    reading = SettingsReader()
    reading.read_file(file, _parse_file(file, must_exist=bool(named)))
    reading.read_environment(environ)
    reading.settle_working_dir()
    home = _expanded(reading.get("home"), environ)
    default_store = sqlite_url(home / "state.db")
    profiles = reading.profiles()
    values = tuple(reading.effective({STORE: default_store, MULTIPLEX: bool(profiles)}))
    return Config(
        gateway=reading.gateway(),
        store_url=next(each.value for each in values if each.name == STORE),
        home=home,
        file=file,
        host=reading.get("server.host"),
        port=reading.get("server.port"),
        names=reading.get("server.names"),
        url=reading.get("server.url"),
        connections=reading.get("server.connections"),
        proxies=reading.get("server.proxies"),
        driver=reading.get("agent.driver"),
        agent=reading.options("agent"),
        channels=reading.channels(),
        profiles=profiles,
        running=reading.running(),
        max_checkpoints=reading.get("checkpoints.max_checkpoints"),
        hooks=reading.hooks(),
        files=reading.files(),
        confirm=reading.confirm(),
        values=values,
        unknown_variables=tuple(sorted(reading.unknown_variables)),
    )


def with_options(loaded: Config, given: Mapping[str, Any]) -> Config:
    """The same with what options of the command say, by the names of the server's settings."""

    def overridden(each: Value) -> Value:
        above, name = each.path[:-1], each.path[-1]
        if above != ("server",) or name not in given:
            return each
        return msgspec.structs.replace(
            each, value=given[name], origin=settings.Origin.OPTION, where=f"--{name}"
        )

    return msgspec.structs.replace(loaded, **given, values=tuple(map(overridden, loaded.values)))


def environment() -> Mapping[str, str]:
    """The variables of this process."""
    return os.environ


def usual_file(environ: Mapping[str, str]) -> Path:
    """Where the file is unless another one is named."""
    home = environ.get(HOME_VARIABLE, "").strip() or HOME.default
    return _expanded(home, environ) / FILE_NAME


def _expanded(path: str, environ: Mapping[str, str]) -> Path:
    if not path.startswith("~/"):
        return Path(path)
    try:
        return Path(environ.get("HOME") or Path.home()) / path.removeprefix("~/")
    except RuntimeError:
        allowed = "an absolute path: this account has no home folder that ~ could mean"
        raise errors.InvalidSetting(key=HOME.name, value=path, allowed=allowed) from None


def sqlite_url(file: Path) -> str:
    """The URL of a store in this file."""
    return f"sqlite:///{str(file).replace('%', '%25').replace('?', '%3F')}"


def _parse_file(file: Path, *, must_exist: bool) -> dict[str, Any]:
    try:
        content = file.read_bytes()
    except FileNotFoundError as error:
        if must_exist:
            raise errors.UnreadableConfigFile(path=file, why="there is no such file") from error
        return {}
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise errors.UnreadableConfigFile(path=file, why=why) from error
    return _parse_toml(file, content)


def _parse_toml(file: Path, content: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise errors.InvalidConfigFile(path=file, line=line, why="this is not UTF-8 text") from error
    except ValueError as error:
        place = _TOML_PLACE.search(str(error))
        line = int(place["line"] or 0) if place else 0
        line = line or max(1, len(content.splitlines()))
        why = _TOML_NAME.sub(_named, _TOML_PLACE.sub("", str(error)))
        raise errors.InvalidConfigFile(path=file, line=line, why=why) from error


def _named(found: re.Match[str]) -> str:
    """A table's name as the file writes it, where the parser gives a tuple."""
    return f"[{settings.dotted(ast.literal_eval(found[0]))}]"
