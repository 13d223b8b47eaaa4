"""``frontdesk config``: the settings."""

import asyncio
import difflib
from collections.abc import Iterator
from pathlib import Path

import click

from frontdesk import config, plugins
from frontdesk.app import build
from frontdesk.cli import output
from frontdesk.cli.output import Report
from frontdesk.config import reference, settings
from frontdesk.config.effective import SettingInEffect, SettingsInEffect
from frontdesk.config.table import SETTINGS

COMMENT_COLUMN = 56


@click.group()
def command() -> None:
    """Show and check the settings."""


@command.command()
@output.answering
def show(config_file: Path | None) -> Report:
    """Print every effective value and where it came from.

    The output is itself a valid frontdesk.toml, except that passwords are hidden.
    """
    loaded = config.load(config_file)
    known = build.settings_in_effect(loaded)
    if known.gap:
        output.note(f"What the agent and the channels take besides is not shown. {known.gap}")
    lines = [f"# {_about_file(loaded.file)}", *map(_line, known.items)]
    return Report(_as_dict(known), "\n".join(lines), doubts=_warnings(loaded))


@command.command()
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.pass_obj
def check(config_file: Path | None, path: Path | None) -> None:
    """Check the settings: those of PATH, or those that hold."""
    loaded = config.load(path or config_file)
    plugins.load_store(loaded.store_url)
    asyncio.run(build.check(loaded))
    for warning in _warnings(loaded):
        output.tell(warning)
    output.show(f"{_about_file(loaded.file)}: no errors")


@command.command("reference")
def print_reference() -> None:
    """Print the reference of all settings as Markdown."""
    output.show(reference.render().removesuffix("\n"))


def _about_file(file: Path) -> str:
    return str(file) if file.exists() else f"{file} (no such file)"


def _line(value: SettingInEffect) -> str:
    if value.written is None:
        return f"{f'# {value.name} =':<{COMMENT_COLUMN}} # not set"
    origin = f"{value.origin} ({value.where})" if value.where else str(value.origin)
    return f"{f'{value.name} = {value.written}':<{COMMENT_COLUMN}} # {origin}"


def _as_dict(known: SettingsInEffect) -> dict[str, object]:
    return {
        "file": known.file,
        "values": [
            {"name": each.name, "value": each.value, "origin": each.origin, "where": each.where}
            for each in known.items
        ],
        "unknown_variables": known.unknown_variables,
    }


def _warnings(loaded: config.Config) -> Iterator[str]:
    known = [settings.variable_name(path) for setting in SETTINGS for path in setting.paths()]
    for variable in loaded.unknown_variables:
        near = difflib.get_close_matches(variable, known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        yield f"Warning: the variable {variable} sets nothing.{hint}"
