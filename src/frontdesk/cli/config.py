"""``frontdesk config``: the settings."""

import asyncio
import difflib
from pathlib import Path

import click

from frontdesk import config, plugins
from frontdesk.app import build
from frontdesk.cli import output
from frontdesk.config import reference, settings
from frontdesk.config.settings import Value
from frontdesk.config.table import SETTINGS

COMMENT_COLUMN = 56


@click.group()
def command() -> None:
    """Show and check the settings."""


@command.command()
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
@click.pass_obj
def show(config_file: Path | None, as_json: bool) -> None:
    """Print every effective value and where it came from.

    The output is itself a valid frontdesk.toml, except that passwords are hidden.
    """
    loaded = config.load(config_file)
    if as_json:
        output.show_json(_as_dict(loaded))
        return
    output.show(f"# {_about_file(loaded.file)}")
    for value in loaded.values:
        output.show(_line(value))
    _warn(loaded)


@command.command()
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.pass_obj
def check(config_file: Path | None, path: Path | None) -> None:
    """Check the settings: those of PATH, or those that hold."""
    loaded = config.load(path or config_file)
    plugins.load_store(loaded.store_url)
    asyncio.run(build.check(loaded))
    _warn(loaded)
    output.show(f"{_about_file(loaded.file)}: no errors")


@command.command("reference")
def print_reference() -> None:
    """Print the reference of all settings as Markdown."""
    output.show(reference.render().removesuffix("\n"))


def _about_file(file: Path) -> str:
    return str(file) if file.exists() else f"{file} (no such file)"


def _line(value: Value) -> str:
    if value.shown is None:
        return f"{f'# {value.name} =':<{COMMENT_COLUMN}} # not set"
    return f"{f'{value.name} = {settings.as_toml(value.shown)}':<{COMMENT_COLUMN}} # {_origin(value)}"


def _origin(value: Value) -> str:
    return f"{value.origin} ({value.where})" if value.where else str(value.origin)


def _as_dict(loaded: config.Config) -> dict[str, object]:
    return {
        "file": str(loaded.file),
        "values": [
            {"name": value.name, "value": value.shown, "origin": value.origin, "where": value.where}
            for value in loaded.values
        ],
        "unknown_variables": loaded.unknown_variables,
    }


def _warn(loaded: config.Config) -> None:
    known = [settings.variable_name(path) for setting in SETTINGS for path in setting.paths()]
    for variable in loaded.unknown_variables:
        near = difflib.get_close_matches(variable, known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        click.echo(output.printable(f"Warning: the variable {variable} sets nothing.{hint}"), err=True)
