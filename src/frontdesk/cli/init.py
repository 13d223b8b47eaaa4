"""``frontdesk init``: a configuration file to begin with."""

import os
from pathlib import Path

import click

from frontdesk import config
from frontdesk.agents import found
from frontdesk.cli import output
from frontdesk.config import settings

HEAD = """\
# frontdesk's configuration. `frontdesk config show` prints every value that holds, `frontdesk config check`
# finds mistakes, and docs/settings.md explains each setting. Secrets never stand in this file: it names
# the environment variables that hold them.
"""
LOCAL = """\
[agent]
# A small language model on this machine: it needs no key and no network, and it is not clever.
driver = "local"
"""
EXAMPLES = """\
# Any program that reads and writes JSON lines:
# [agent]
# driver = "command"
# command = ["python3", "my_agent.py"]

# Messages over signed HTTP, answers to a callback:
# [channels.webhook.shop]
# secret_env = "SHOP_WEBHOOK_SECRET"
# callback_url = "https://shop.example/frontdesk"

# An OpenAI-compatible endpoint:
# [channels.api_server.tokens_env]
# ann = "ANN_TOKEN"

[session_reset]
max_messages = 200
"""


@click.command()
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.option("--print", "only_print", is_flag=True, help="Print the file instead of writing it.")
@click.pass_obj
def command(config_file: Path | None, force: bool, only_print: bool) -> None:
    """Write a frontdesk.toml to begin with.

    A key or an address of a model that is found in the environment is offered in it.
    """
    environ = config.environment()
    text = "\n".join((HEAD, _agent(found.suggestions(environ)), EXAMPLES))
    if only_print:
        output.show(text.rstrip())
        return
    file = config_file or config.usual_file(environ)
    _write(file, text, force)
    output.show(f"Wrote {file}.\nNext: frontdesk run, and in another terminal: frontdesk chat")


def _agent(suggestions: list[found.Suggestion]) -> str:
    """The agent's table: the first one found, the others behind comment marks."""
    tables = [_table(suggestion) for suggestion in suggestions]
    if not tables:
        return LOCAL
    others = ["".join(f"# {line}\n" for line in table.splitlines()) for table in [*tables[1:], LOCAL]]
    return "\n".join([tables[0], *others])


def _table(suggestion: found.Suggestion) -> str:
    lines = ["[agent]", f"# {suggestion.title}, found in {suggestion.found_in}"]
    lines.append(f"driver = {settings.as_toml(suggestion.driver)}")
    lines += [f"{name} = {settings.as_toml(value)}" for name, value in suggestion.options.items()]
    if suggestion.key_variable:
        lines.append(f"api_key_env = {settings.as_toml(suggestion.key_variable)}")
    return "\n".join(lines) + "\n"


def _write(file: Path, text: str, force: bool) -> None:
    """Write it whole or not at all; nobody else may read it."""
    if file.exists() and not force:
        raise click.ClickException(f"{file} is there already. --force replaces it, --print shows a new one.")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = file.with_name(f".{file.name}.{os.getpid()}")
        fresh.touch(mode=0o600)
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(file)
    except OSError as error:
        raise click.ClickException(f"{file} cannot be written: {error.strerror}") from error
