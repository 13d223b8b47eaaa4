"""Settings as they hold: every value with where it came from, without what is secret in it."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from frontdesk.config.options import SUFFIXES
from frontdesk.config.settings import HIDDEN, OPTION, Origin, Value, as_toml
from frontdesk.formats import masking

_ADDRESS = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?:(?P<user>[^\s/?#\"']*)@)?"
    r"(?P<place>[^\s?#\"']*)(?:\?(?P<query>[^\s#\"']*))?"
)


class SecretStanding(StrEnum):
    """Whether a secret is in the place that a setting names."""

    SET = "set"
    MISSING = "missing"


class SettingInEffect(msgspec.Struct, frozen=True, kw_only=True):
    """A setting for people to see."""

    name: str
    value: Any
    written: str | None
    """The value as TOML writes it; None when nothing is set."""
    origin: Origin
    where: str | None
    """The file, the environment variable or the option that it was set by."""
    help: str
    secret: SecretStanding | None = None
    """Of a setting that names where a secret is: whether it is there. The secret itself is nowhere here."""


class SettingsInEffect(msgspec.Struct, frozen=True, kw_only=True):
    """All that holds in a process."""

    file: str = ""
    file_exists: bool = False
    items: tuple[SettingInEffect, ...] = ()
    unknown_variables: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """What is set otherwise by now: it counts from the next start on."""
    gap: str | None = None
    """Why not all is known."""


def in_effect(values: Sequence[Value], missing: Collection[str] = ()) -> list[SettingInEffect]:
    """All of them, a table as what stands in it where something else stands in it, too; ``missing`` are the
    names of those whose secret is not there."""
    return [_shown(each, missing) for each in _expanded(values)]


def _expanded(values: Sequence[Value]) -> Iterator[Value]:
    tables = {value.path[:-1] for value in values}
    for value in values:
        if value.path in tables:
            for name, each in value.value.items():
                yield msgspec.structs.replace(value, path=(*value.path, name), value=each)
        else:
            yield value


def _shown(value: Value, missing: Collection[str]) -> SettingInEffect:
    named = value.path[-1] if value.setting is OPTION else ""
    shown = value.shown if value.setting.secret else _without_secrets(named, value.shown)
    return SettingInEffect(
        name=value.name,
        value=shown,
        written=None if shown is None else as_toml(shown),
        origin=value.origin,
        where=value.where,
        help=value.setting.help,
        secret=_standing(value, missing) if value.setting is OPTION and shown is not None else None,
    )


def _standing(value: Value, missing: Collection[str]) -> SecretStanding | None:
    if value.name in missing:
        return SecretStanding.MISSING
    return SecretStanding.SET if value.path[-1].endswith("_env") else None


def _without_secrets(name: str, value: Any) -> Any:
    """The value without what looks like a secret, or goes by the name of one; where a secret is, is none."""
    if name.endswith(SUFFIXES):
        return value
    if isinstance(value, Mapping):
        return {str(each): _without_secrets(str(each), inner) for each, inner in value.items()}
    if isinstance(value, str) and value and masking.is_secret(name):
        return HIDDEN
    if isinstance(value, str | list | tuple):
        return _texts(masking.covered(value, wide=True))
    return value


def _texts(covered: Any) -> Any:
    if isinstance(covered, list | tuple):
        return [_texts(each) for each in covered]
    if isinstance(covered, masking.Partly):
        covered = "".join(HIDDEN if isinstance(part, masking.Hidden) else part for part in covered.parts)
    return _ADDRESS.sub(_bare_address, covered) if isinstance(covered, str) else covered


def _bare_address(found: re.Match[str]) -> str:
    """Where it leads; who says so, and what they ask for, may be all that it takes to be let in there."""
    user, query = (HIDDEN if found[part] else "" for part in ("user", "query"))
    return f"{found['scheme']}{user}{'@' if user else ''}{found['place']}{'?' if query else ''}{query}"
