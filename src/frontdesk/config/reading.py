"""What the file and the environment set, checked row by row, and the records made of it."""

import difflib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from frontdesk import errors
from frontdesk.config import confirm, routes, settings
from frontdesk.config.confirm import Confirm
from frontdesk.config.routes import ProfileParts
from frontdesk.config.settings import OPTION, Origin, Setting, Value
from frontdesk.config.table import CHAT_ID, SETTINGS
from frontdesk.contracts.hooks import Commands
from frontdesk.model import keys
from frontdesk.model.access import Access
from frontdesk.model.files import FileSettings
from frontdesk.model.gateway import GatewayConfig
from frontdesk.model.listening import Listening
from frontdesk.model.platforms import HomeChannel, PlatformConfig
from frontdesk.model.policies import SessionResetPolicy
from frontdesk.model.routing import Profile
from frontdesk.model.running import Running

FILE_VARIABLE = "FRONTDESK_CONFIG"
AGENT_CWD = ("agent", "cwd")
ROWS = {row.name: row for row in SETTINGS}
WORKING_DIR = ROWS["checkpoints.working_dir"]
PROFILE_DIR = ROWS["profiles.<profile>.working_dir"]

R = TypeVar("R", bound=msgspec.Struct)


class SettingsReader:
    """What has been set so far."""

    def __init__(self) -> None:
        self._set: dict[settings.Path, Value] = {}
        self._tables: dict[settings.Path, None] = {}
        self._options: dict[settings.Path, Value] = {}
        self.unknown_variables: list[str] = []

    def read_file(self, file: Path, table: Mapping[str, Any]) -> None:
        with _set_in(str(file)):
            for setting, path, value in self._walk(table):
                self._take(setting, path, value, Origin.FILE, str(file))

    def read_environment(self, environ: Mapping[str, str]) -> None:
        """Take what variables set; an empty one sets nothing."""
        aliases = {row.alias: (row, row.parts) for row in SETTINGS if row.alias}
        known = aliases | {
            settings.variable_name(path): (row, path) for row in SETTINGS for path in row.paths()
        }
        for variable, text in sorted(environ.items(), key=lambda each: each[0] not in aliases):
            if variable in known and text.strip():
                with _set_in(variable):
                    setting, path = known[variable]
                    self._take(setting, path, setting.kind.parse(text.strip()), Origin.ENVIRONMENT, variable)
            elif variable.startswith(settings.VARIABLE_PREFIX) and variable not in {*known, FILE_VARIABLE}:
                self.unknown_variables.append(variable)

    def _walk(
        self, table: Mapping[str, Any], above: settings.Path = ()
    ) -> Iterator[tuple[Setting, settings.Path, Any]]:
        for name, value in table.items():
            path = (*above, name)
            found = [setting for setting in SETTINGS if setting.begins_with(path)]
            if not found and _is_option(path):
                self._options[path] = Value(setting=OPTION, path=path, value=value, origin=Origin.FILE)
                continue
            if not found:
                raise errors.UnknownSetting(key=settings.dotted(path), hint=nearest(path))
            if len(found[0].parts) == len(path):
                yield found[0], path, value
            elif isinstance(value, Mapping):
                self._tables[path] = None
                yield from self._walk(value, path)
            else:
                raise errors.InvalidSetting(key=settings.dotted(path), value=value, allowed="a table")

    def _take(self, setting: Setting, path: settings.Path, raw: Any, origin: Origin, where: str) -> None:
        value = setting.read(path, raw)
        self._tables.update((path[:length], None) for length in range(1, len(path)))
        self._set[path] = Value(setting=setting, path=path, value=value, origin=origin, where=where)

    def get(self, name: str) -> Any:
        """The value of a setting."""
        row = ROWS[name]
        return self._set[row.parts].value if row.parts in self._set else row.default

    def _under(self, *above: str) -> dict[str, Any]:
        """What is set right in a table, for a record that knows the defaults."""
        return {path[-1]: found.value for path, found in self._set.items() if path[:-1] == above}

    def gateway(self) -> GatewayConfig:
        """The part that the session layer works with."""
        profiles = {name: self._profile(name) for name in self._names("profiles")}
        general = {name: value for name, value in self._under().items() if name != "routes"}
        return GatewayConfig(
            platforms={name: self._platform(name) for name in self._names("platforms")},
            access=self._access(),
            listening=self._listening(),
            default_reset_policy=SessionResetPolicy(**self._under("session_reset")),
            reset_by_type=self._policies("by_type"),
            reset_by_platform=self._policies("by_platform"),
            reset_by_chat=self._policies("by_chat"),
            instructions={
                name: text for name in self._names("chats") for text in self._under("chats", name).values()
            },
            profiles=profiles,
            routes=routes.read_rows(self.get("routes")),
            **{"multiplex_profiles": bool(profiles), **general},
        )

    def _access(self) -> dict[str, Access]:
        """By platform; who may use an account of a profile stands in the profile."""
        found = {name: self._of_channel(Access, "channels", name) for name in self._names("channels")}
        own = {}
        for profile in self._names("profiles"):
            for platform in self._names("profiles", profile, "channels"):
                allowed = self._of_channel(Access, "profiles", profile, "channels", platform)
                place = keys.account_place(platform, profile)
                own[place] = allowed.of_account(platform, profile, found.get(platform))
        return found | own

    def _listening(self) -> dict[str, Listening]:
        """By platform, and for the account of a profile by that."""
        found = {name: self._of_channel(Listening, "channels", name) for name in self._names("channels")}
        for profile in self._names("profiles"):
            for platform in self._names("profiles", profile, "channels"):
                place = keys.account_place(platform, profile)
                found[place] = self._of_channel(Listening, "profiles", profile, "channels", platform)
        return found

    def _of_channel(self, kind: type[R], *above: str) -> R:
        """A record of what stands in a channel's table, where others have settings, too."""
        told = self._under(*above)
        return kind(**{name: told[name] for name in kind.__struct_fields__ if name in told})

    def _profile(self, name: str) -> Profile:
        above = ("profiles", name)
        policy = None
        if (*above, "session_reset") in self._tables:
            policy = SessionResetPolicy(**self._under(*above, "session_reset"))
        told = self._under(*above)
        if "working_dir" in told:
            told["working_dir"] = str(_folder(told["working_dir"]))
        platforms = self._names(*above, "channels")
        for platform in platforms:
            if isinstance(self.options("channels", platform).get(name), Mapping):
                key = settings.dotted((*above, "channels", platform))
                allowed = f"one account of that name: there is [channels.{platform}.{name}], too"
                raise errors.InvalidSetting(key=key, value=name, allowed=allowed)
        accounts = tuple(keys.account_place(platform, name) for platform in platforms)
        return Profile(**told, accounts=accounts, reset_policy=policy)

    def profiles(self) -> dict[str, ProfileParts]:
        """What the agents and channels of profiles are made of."""
        return {name: self._parts_of(name) for name in self._names("profiles")}

    def _parts_of(self, name: str) -> ProfileParts:
        above = ("profiles", name)
        agent = self.options(*above, "agent")
        driver = self._under(*above, "agent").get("driver")
        if driver is None and agent:
            key = settings.dotted((*above, "agent", "driver"))
            raise errors.MissingSetting(key=key, why="a profile's agent takes nothing over from another one.")
        platforms = self._names(*above, "channels")
        channels = {platform: self.options(*above, "channels", platform) for platform in platforms}
        return ProfileParts(driver=driver, agent=agent, channels=channels)

    def options(self, *above: str) -> dict[str, Any]:
        """What stands in a table and is no setting of ours: options of the part that it is about."""
        depth = len(above)
        return {path[depth]: found.value for path, found in self._options.items() if path[:depth] == above}

    def channels(self) -> dict[str, dict[str, Any]]:
        """The options of every channel that has a table."""
        return {name: self.options("channels", name) for name in self._names("channels")}

    def settle_working_dir(self) -> None:
        """The agent's `cwd` and the folder that is checkpointed are one: either may be set, or both alike."""
        self._settle_folder(WORKING_DIR, WORKING_DIR.parts, AGENT_CWD)
        for name in self._names("profiles"):
            above = ("profiles", name)
            self._settle_folder(PROFILE_DIR, (*above, "working_dir"), (*above, *AGENT_CWD))

    def _settle_folder(self, row: Setting, path: settings.Path, cwd: settings.Path) -> None:
        option, known = self._options.get(cwd), self._set.get(path)
        if option is None or not isinstance(option.value, str):
            return
        if known is None:
            self._take(row, path, option.value, option.origin, settings.dotted(cwd))
        elif _folder(known.value) != _folder(option.value):
            allowed = (
                f"the same folder as {known.name} ({known.value!r}), since they are one: set one of them"
            )
            raise errors.InvalidSetting(key=option.name, value=option.value, allowed=allowed)

    def running(self) -> Running:
        checkpoints, working_dir = self.get("checkpoints.enabled"), self.get(WORKING_DIR.name)
        set_here = self._under("gateway") | self._under("turns")
        return Running(**set_here, checkpoints=checkpoints, working_dir=working_dir)

    def confirm(self) -> Confirm:
        fields = {row.parts[1]: self.get(row.name) for row in SETTINGS if row.parts[0] == "confirm"}
        fields["page_url"] = fields["page_url"] or self.get("server.url")
        return confirm.read(fields, self.options("confirm"))

    def hooks(self) -> Commands:
        return Commands(**self._under("hooks"))

    def files(self) -> FileSettings:
        return FileSettings(**self._under("files"))

    def _names(self, *above: str) -> list[str]:
        """The tables right under another one."""
        depth = len(above)
        return [path[depth] for path in self._tables if path[:depth] == above and len(path) == depth + 1]

    def _policies(self, kind: str) -> dict[str, SessionResetPolicy]:
        names = self._names("session_reset", kind)
        return {name: SessionResetPolicy(**self._under("session_reset", kind, name)) for name in names}

    def _platform(self, name: str) -> PlatformConfig:
        return PlatformConfig(**self._under("platforms", name), home_channel=self._home_channel(name))

    def _home_channel(self, platform: str) -> HomeChannel | None:
        above = ("platforms", platform, "home_channel")
        if above not in self._tables:
            return None
        told = self._under(*above)
        if "chat_id" not in told:
            key = settings.dotted((*above, "chat_id"))
            raise errors.InvalidSetting(key=key, value=None, allowed=CHAT_ID.allowed)
        return HomeChannel.from_dict({"platform": platform, **told})

    def effective(self, defaults: Mapping[str, Any]) -> Iterator[Value]:
        """Every setting with its value; ``defaults`` holds those that had to be worked out."""
        for setting in SETTINGS:
            default = defaults.get(setting.name, setting.default)
            for path in self._present(setting):
                yield self._set.get(path) or Value(setting=setting, path=path, value=default)
        yield from self._options.values()

    def _present(self, setting: Setting) -> list[settings.Path]:
        """The setting's name; one for each table there is when it stands for several."""
        found: list[settings.Path] = [()]
        several = False
        for part in setting.parts[:-1]:
            stands = part in settings.STAND_INS
            several = several or stands
            found = [(*path, name) for path in found for name in (self._names(*path) if stands else [part])]
            if several:
                found = [path for path in found if path in self._tables]
        return [(*path, setting.parts[-1]) for path in found]


def _folder(path: str) -> Path:
    return Path(path).expanduser().resolve()


def _is_option(path: settings.Path) -> bool:
    """Whether a name that is none of ours stands in a table that somebody else reads."""
    table = path[2:] if path[0] == "profiles" and len(path) > len(("profiles", "name")) else path
    if table[0] == "agent" or path[0] == "confirm":
        return len(table) == len(("agent", "option"))
    return table[0] == "channels" and len(table) == len(("channels", "platform", "option"))


@contextmanager
def _set_in(where: str) -> Iterator[None]:
    """Errors say where the setting stands."""
    try:
        yield
    except errors.InvalidSetting as error:
        error.add_note(f"(in {where})")
        raise


def nearest(path: settings.Path) -> str:
    """The name that was probably meant, as the end of a message."""
    *above, last = path
    here = _names_under(tuple(above))
    if "<chat>" in here:
        return ' A chat is written "platform:chat_id", with a known platform.'
    if near := difflib.get_close_matches(last, here, n=1):
        return f" Did you mean {settings.dotted((*above, *near))}?"
    if elsewhere := [setting.name for setting in SETTINGS if setting.parts[-1] == last]:
        return f" Did you mean {elsewhere[0]}?"
    return f" Known here: {', '.join(here)}."


def _names_under(above: settings.Path) -> list[str]:
    """What can follow in a setting's name."""
    names: dict[str, None] = {}
    for setting in SETTINGS:
        if setting.begins_with(above):
            part = setting.parts[len(above)]
            names.update(dict.fromkeys(settings.STAND_INS[part]() if part in settings.STAND_INS else (part,)))
    return list(names)
