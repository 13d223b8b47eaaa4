"""What the file and the environment set, checked row by row, and the records made of it."""

import difflib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from frontdesk import errors
from frontdesk.config import confirm, settings
from frontdesk.config.confirm import Confirm
from frontdesk.config.settings import OPTION, Origin, Setting, Value
from frontdesk.config.table import CHAT_ID, SETTINGS
from frontdesk.contracts.hooks import Commands
from frontdesk.model.access import Access
from frontdesk.model.files import FileSettings
from frontdesk.model.gateway import GatewayConfig
from frontdesk.model.platforms import HomeChannel, PlatformConfig
from frontdesk.model.policies import SessionResetPolicy
from frontdesk.model.running import Running

FILE_VARIABLE = "FRONTDESK_CONFIG"
AGENT_CWD = ("agent", "cwd")
ROWS = {row.name: row for row in SETTINGS}
WORKING_DIR = ROWS["checkpoints.working_dir"]


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
        return GatewayConfig(
            platforms={name: self._platform(name) for name in self._names("platforms")},
            access={name: Access(**self._under("channels", name)) for name in self._names("channels")},
            default_reset_policy=SessionResetPolicy(**self._under("session_reset")),
            reset_by_type=self._policies("by_type"),
            reset_by_platform=self._policies("by_platform"),
            reset_by_chat=self._policies("by_chat"),
            instructions={
                name: text for name in self._names("chats") for text in self._under("chats", name).values()
            },
            **self._under(),
        )

    def options(self, *above: str) -> dict[str, Any]:
        """What stands in a table and is no setting of ours: options of the part that it is about."""
        depth = len(above)
        return {path[depth]: found.value for path, found in self._options.items() if path[:depth] == above}

    def channels(self) -> dict[str, dict[str, Any]]:
        """The options of every channel that has a table."""
        return {name: self.options("channels", name) for name in self._names("channels")}

    def settle_working_dir(self) -> None:
        """The agent's `cwd` and the folder that is checkpointed are one: either may be set, or both alike."""
        option, known = self._options.get(AGENT_CWD), self._set.get(WORKING_DIR.parts)
        if option is None or not isinstance(option.value, str):
            return
        if known is None:
            key = settings.dotted(AGENT_CWD)
            self._take(WORKING_DIR, WORKING_DIR.parts, option.value, option.origin, key)
        elif _folder(known.value) != _folder(option.value):
            allowed = (
                f"the same folder as {known.name} ({known.value!r}), since they are one: set one of them"
            )
            raise errors.InvalidSetting(key=option.name, value=option.value, allowed=allowed)

    def running(self) -> Running:
        checkpoints, working_dir = self.get("checkpoints.enabled"), self.get(WORKING_DIR.name)
        return Running(**self._under("gateway"), checkpoints=checkpoints, working_dir=working_dir)

    def confirm(self) -> Confirm:
        fields = {row.parts[1]: self.get(row.name) for row in SETTINGS if row.parts[0] == "confirm"}
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
        parts = setting.parts
        place = next((index for index, part in enumerate(parts) if part in settings.STAND_INS), None)
        if place is None:
            return [parts]
        return [(*parts[:place], name, *parts[place + 1 :]) for name in self._names(*parts[:place])]


def _folder(path: str) -> Path:
    return Path(path).expanduser().resolve()


def _is_option(path: settings.Path) -> bool:
    """Whether a name that is none of ours stands in a table that somebody else reads."""
    if path[0] in ("agent", "confirm"):
        return len(path) == len(("agent", "option"))
    return path[0] == "channels" and len(path) == len(("channels", "platform", "option"))


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
