"""Profiles and routes as the file has them."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.model.routing import RoutingRow

NAMES = [field.name for field in msgspec.structs.fields(RoutingRow)]


class ProfileParts(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent and the channels of a profile are made of."""

    driver: str | None = None
    """None when it has no agent of its own."""
    agent: Mapping[str, Any] = {}
    channels: Mapping[str, Mapping[str, Any]] = {}


def read_rows(tables: Sequence[Mapping[str, Any]]) -> tuple[RoutingRow, ...]:
    """The rows of the table of routes; an error names the row."""
    return tuple(_read_row(f"routes (row {number})", table) for number, table in enumerate(tables, 1))


def _read_row(where: str, table: Mapping[str, Any]) -> RoutingRow:
    for name in table:
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, n=1)
            hint = f" Did you mean {near[0]}?" if near else f" Known here: {', '.join(NAMES)}."
            raise errors.UnknownSetting(key=f"{where}.{name}", hint=hint)
    if "platform" not in table:
        raise errors.MissingSetting(key=f"{where}.platform", why="a row is about one account of a platform.")
    try:
        return RoutingRow(**table)
    except errors.InvalidSetting as error:
        error.add_note(f"(in {where})")
        raise
