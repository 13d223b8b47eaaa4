"""Options of agents and channels: what their tables in the file say, as the records that each part declares.

A secret is never written into the file: an option that holds one is set by naming where it is, with ``_env``
(an environment variable) or ``_file`` behind the option's name.
"""

import difflib
import enum
import os
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import FieldInfo

from frontdesk import errors
from frontdesk.config import settings
from frontdesk.config.settings import OPTION, Value
from frontdesk.contracts.secrets import Checks, Secret

T = TypeVar("T", bound=msgspec.Struct)

SUFFIXES = ("_env", "_file")


class TypedSecret(msgspec.Struct, frozen=True):
    """A secret that somebody has just typed, and that is in no place yet. No file can say so."""

    secret: str


def read_options(
    kind: type[T], table: Mapping[str, Any], above: settings.Path, others: Collection[str] = ()
) -> T:
    """The record; an error names the setting and what is allowed. ``others`` may stand in the table, too."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    values: dict[str, Any] = {}
    for name, raw in table.items():
        path = (*above, name)
        field = _named(fields, name)
        if field is None:
            known = [*map(_written, fields.values()), *others]
            raise errors.UnknownSetting(key=settings.dotted(path), hint=_hint(path, known))
        read = _secrets(kind, field, path, raw) if _is_secret(field.type) else _plain(field, path, raw)
        values[field.name] = _together(path, values[field.name], read) if field.name in values else read
    missing = [field for field in fields.values() if field.required and field.name not in values]
    if missing:
        key = settings.dotted((*above, _written(missing[0])))
        raise errors.MissingSetting(key=key, why="it must be set.")
    return kind(**values)


def unset(kind: type[msgspec.Struct], table: Mapping[str, Any], above: settings.Path) -> Iterator[Value]:
    """What the table does not set, with what holds then; None for secrets and what has no default."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    found = {field.name for name in table if (field := _named(fields, name))}
    for field in fields.values():
        if field.name not in found:
            default = None if _is_secret(field.type) else _default(field)
            yield Value(setting=OPTION, path=(*above, _written(field)), value=default)


def _default(field: FieldInfo) -> Any:
    made = field.default_factory() if field.default_factory is not msgspec.NODEFAULT else field.default
    return None if made is msgspec.NODEFAULT else msgspec.to_builtins(made, enc_hook=str)


def _together(path: settings.Path, known: Any, more: Any) -> Any:
    """What ``_env`` and ``_file`` name for one option: several secrets add up, a single one is set once."""
    if isinstance(known, tuple):
        return known + more
    if isinstance(known, Mapping) and not known.keys() & more.keys():
        return {**known, **more}
    raise errors.InvalidSetting(key=settings.dotted(path), value=settings.HIDDEN, allowed="each of them once")


def missing_secrets(
    options: msgspec.Struct, *, only: str = "", besides: str = ""
) -> Iterator[errors.MissingSecret]:
    """Each secret that the record names and that is not there now, or cannot be used."""
    fields = (field for field in msgspec.structs.fields(type(options)) if _is_secret(field.type))
    fields = (field for field in fields if field.name != besides and only in ("", field.name))
    for secret in (each for field in fields for each in _held(getattr(options, field.name))):
        try:
            secret()
        except errors.MissingSecret as error:
            yield error


def _held(value: Any) -> Collection[Secret]:
    """The secrets in a field: one, several, one for each name, or none."""
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, tuple):
        return value
    return () if value is None else (value,)


def _hint(path: settings.Path, known: list[str]) -> str:
    if near := difflib.get_close_matches(path[-1], known, n=1):
        return f" Did you mean {settings.dotted((*path[:-1], *near))}?"
    return f" Known here: {', '.join(known)}."


def _named(fields: Mapping[str, FieldInfo], name: str) -> FieldInfo | None:
    """The field that a name in the file sets; one that holds a list may be named in the singular."""
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            stem = name.removesuffix(suffix)
            found = fields.get(stem) or fields.get(f"{stem}s")
            return found if found and _is_secret(found.type) else fields.get(name)
    return fields.get(name)


def _written(field: FieldInfo) -> str:
    if not _is_secret(field.type):
        return field.encode_name
    return f"{field.encode_name.removesuffix('s') if _holds(field.type, tuple) else field.encode_name}_env"


def _is_secret(kind: Any) -> bool:
    """Whether secrets are in a field of this type."""
    if typing.get_origin(kind) is typing.get_origin(Secret):
        return True
    return any(_is_secret(each) for each in typing.get_args(kind) if not isinstance(each, list))


def _holds(kind: Any, container: type) -> bool:
    """Whether the type is a container, or is one when it is not None."""
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return any(_holds(each, container) for each in typing.get_args(kind))
    return isinstance(origin, type) and issubclass(origin, container)


def _plain(field: FieldInfo, path: settings.Path, raw: Any) -> Any:
    try:
        return msgspec.convert(raw, type=field.type)
    except msgspec.ValidationError as error:
        known = field.type if isinstance(field.type, type) and issubclass(field.type, enum.Enum) else ()
        allowed = ", ".join(str(each.value) for each in known) or str(error)
        raise errors.InvalidSetting(key=settings.dotted(path), value=raw, allowed=allowed) from None


def _secrets(kind: type[msgspec.Struct], field: FieldInfo, path: settings.Path, raw: Any) -> Any:
    """Functions that read the secrets, as the field holds them: one, several, or one for each name."""
    checks: Checks = getattr(kind, "secret_checks", {})
    check = checks.get(field.name, str)
    if isinstance(raw, TypedSecret):
        return partial(_typed, raw.secret, check)
    if path[-1] == field.encode_name:
        allowed = f"nothing: name an environment variable in {_written(field)}"
        raise errors.InvalidSetting(key=settings.dotted(path), value=settings.HIDDEN, allowed=allowed)
    reader = partial(_reader, path, check)
    if _holds(field.type, Mapping):
        if not isinstance(raw, Mapping):
            raise errors.InvalidSetting(key=settings.dotted(path), value=raw, allowed="a table")
        return {str(name): reader(place) for name, place in raw.items()}
    if _holds(field.type, tuple):
        return tuple(map(reader, raw if isinstance(raw, list) else [raw]))
    return reader(raw)


def _reader(path: settings.Path, check: Callable[[str], object], place: Any) -> Secret:
    if not isinstance(place, str) or not place.strip():
        raise errors.InvalidSetting(
            key=settings.dotted(path), value=place, allowed="a variable's or a file's name"
        )
    read: Callable[[str], str | None] = _from_file if path[-1].endswith("_file") else os.environ.get
    return partial(_read, read, place, settings.dotted(path), check)


def _read(read: Callable[[str], str | None], place: str, setting: str, check: Callable[[str], object]) -> str:
    secret = (read(place) or "").strip()
    if not secret:
        raise errors.MissingSecret(where=place, setting=setting)
    if why := _why_unusable(secret, check):
        raise errors.UnusableSecret(where=place, setting=setting, why=why)
    return secret


def _typed(secret: str, check: Callable[[str], object]) -> str:
    if why := _why_unusable(secret, check):
        raise errors.MistypedSecret(why=why)
    return secret


def _why_unusable(secret: str, check: Callable[[str], object]) -> str | None:
    if not secret.isprintable():
        return "there are control characters in it"
    try:
        check(secret)
    except errors.InvalidInput as error:
        return str(vars(error)["why"])
    return None


def _from_file(place: str) -> str | None:
    try:
        return Path(place).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
