"""The machine's time zone, with its rules."""

import io
import os
import re
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from frontdesk.logs import get_logger

log = get_logger(__name__)

LOCAL_TIME = Path("/etc/localtime")
NOT_A_ZONE = (OSError, ValueError, ZoneInfoNotFoundError, struct.error)

# Abbreviation and offset are what every rule begins with; a misspelt name does not.
_RULE = re.compile(r"([A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)[+-]?[0-9].*", re.ASCII)
_USUAL_CHANGES = ",M3.2.0,M11.1.0"


def machine_zone(environ: Mapping[str, str] = os.environ, local_time: Path = LOCAL_TIME) -> tzinfo:
    """The zone that ``TZ`` names, else the one of the machine; UTC when it has none."""
    if name := environ.get("TZ", "").removeprefix(":"):
        return find_zone(name)
    return _understood(str(local_time), _in_file) if local_time.exists() else UTC


def find_zone(name: str) -> tzinfo:
    """The zone of a name, of a file, or of a rule such as ``CET-1CEST,M3.5.0,M10.5.0/3``; else UTC."""
    return _understood(name, _in_file if name.startswith("/") else _called)


def _understood(name: str, read: Callable[[str], ZoneInfo]) -> tzinfo:
    try:
        return read(name)
    except NOT_A_ZONE as error:
        log.warning("time_zone_unknown", zone=name, why=error, used="UTC")
        return UTC


def _called(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except NOT_A_ZONE:
        if not _RULE.fullmatch(name):
            raise
    try:
        return _by_rule(name, name)
    except NOT_A_ZONE:  # summer time without its days, which has usual ones
        return _by_rule(name, name + _USUAL_CHANGES)


def _in_file(path: str) -> ZoneInfo:
    with open(path, "rb") as file:
        return ZoneInfo.from_file(file, key=_key_of(path))


def _key_of(path: str) -> str:
    """The zone's name, as far as the place of its file tells."""
    return str(Path(path).resolve()).partition("zoneinfo/")[2] or path


def _by_rule(name: str, rule: str) -> ZoneInfo:
    """The zone of a file without any changes of its own, where the rule at its end holds for all time."""
    file = io.BytesIO(_header() + _header(types=1) + bytes(7) + f"\n{rule}\n".encode("ascii"))
    return ZoneInfo.from_file(file, key=name)


def _header(types: int = 0) -> bytes:
    """A header of TZif, version 2; its last two counts are of types and of characters in their names."""
    return struct.pack(">4s1s15x6l", b"TZif", b"2", 0, 0, 0, 0, types, types)
