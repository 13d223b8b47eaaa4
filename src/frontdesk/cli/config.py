"""``frontdesk config``: the settings."""

import asyncio
import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import msgspec

from frontdesk import config, errors, plugins
from frontdesk.app import build
from frontdesk.cli import one_line, output
from frontdesk.cli.output import Report
from frontdesk.config import reference, settings
from frontdesk.config.settings import Value
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
    values = list(_expanded([*loaded.values, *_unset_options(loaded)]))
    lines = [f"# {_about_file(loaded.file)}", *map(_line, values)]
    return Report(_as_dict(loaded, values), "\n".join(lines), doubts=_warnings(loaded))


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


def _unset_options(loaded: config.Config) -> list[Value]:
    """None where a part cannot be loaded: what it takes is not known then."""
    try:
        return list(build.unset_options(loaded))
    except errors.FrontdeskError as error:
        output.note(f"What the agent and the channels take besides is not shown. {one_line(error)}")
        return []


def _expanded(values: Sequence[Value]) -> Iterator[Value]:
    """The values, a table as what stands in it where something else stands in it, too."""
    tables = {value.path[:-1] for value in values}
    for value in values:
        if value.path in tables:
            for name, each in value.value.items():
                yield msgspec.structs.replace(value, path=(*value.path, name), value=each)
        else:
            yield value


def _about_file(file: Path) -> str:
    return str(file) if file.exists() else f"{file} (no such file)"


def _line(value: Value) -> str:
    if value.shown is None:
        return f"{f'# {value.name} =':<{COMMENT_COLUMN}} # not set"
    origin = f"{value.origin} ({value.where})" if value.where else str(value.origin)
    return f"{f'{value.name} = {settings.as_toml(value.shown)}':<{COMMENT_COLUMN}} # {origin}"


def _as_dict(loaded: config.Config, values: Sequence[Value]) -> dict[str, object]:
    return {
        "file": str(loaded.file),
        "values": [
            {"name": value.name, "value": value.shown, "origin": value.origin, "where": value.where}
            for value in values
        ],
        "unknown_variables": loaded.unknown_variables,
    }


def _warnings(loaded: config.Config) -> Iterator[str]:
    known = [settings.variable_name(path) for setting in SETTINGS for path in setting.paths()]
    for variable in loaded.unknown_variables:
        near = difflib.get_close_matches(variable, known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        yield f"Warning: the variable {variable} sets nothing.{hint}"
