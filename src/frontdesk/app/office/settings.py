"""What is asked about the settings: what holds, and where that came from."""

import asyncio
from typing import Any, TypedDict, cast

import msgspec

from frontdesk.app.office.counters import Counter


class SettingLine(TypedDict):
    """A setting as it holds, without what is secret in it."""

    name: str
    value: Any
    written: str | None
    origin: str
    where: str | None
    help: str
    secret: str | None


class SettingsView(TypedDict):
    file: str
    file_exists: bool
    items: list[SettingLine]
    next: None
    unknown_variables: list[str]
    """Environment variables with our prefix that set nothing."""
    changed: list[str]
    """What the file, or the environment, says otherwise by now: it counts from the next start on."""
    gap: str | None
    """Why not all is known."""


class SettingsCounter(Counter):
    async def show_settings(self, search: str | None = None) -> SettingsView:
        """Every setting as it holds, with its origin, or those with a text in their name, value or help."""
        found = await asyncio.to_thread(self._settings)
        view = cast(SettingsView, msgspec.to_builtins(found, enc_hook=str) | {"next": None})
        if search and (wanted := search.strip().casefold()):
            view["items"] = [each for each in view["items"] if wanted in _searched(each)]
        return view


def _searched(line: SettingLine) -> str:
    told = (line["name"], line["written"], line["origin"], line["where"], line["help"])
    return " ".join(filter(None, told)).casefold()
