"""``frontdesk init``: a configuration file to begin with."""

import asyncio
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import click
import msgspec

from frontdesk import config, errors
from frontdesk.agents import found, models
from frontdesk.app import build
from frontdesk.cli import one_line, output
from frontdesk.config import editing, settings

HEAD = """\
# frontdesk's configuration. `frontdesk config show` prints every value that holds, `frontdesk config check`
# finds mistakes, and `frontdesk config reference` explains each setting. Secrets never stand in this file: it
# names the environment variables that hold them.
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


LOCAL_TITLE = "the local model"
FIRST = "It cannot work yet: first do what is said above, then frontdesk doctor tries it again."
NEXT = "Next: frontdesk run, and in another terminal: frontdesk chat"
LATER = (
    "When it answers, frontdesk doctor says so. Then: frontdesk run, and in another terminal: frontdesk chat"
)


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that could stand in the file, and what came of trying it."""

    title: str
    table: str
    fault: str | None = None
    usable: bool = True
    """It is complete: once whatever does not answer does, it works."""


@click.command()
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.option("--print", "only_print", is_flag=True, help="Print the file instead of writing it.")
@click.option("--offline", is_flag=True, help="Ask no endpoint and try nothing.")
@click.pass_obj
def command(config_file: Path | None, force: bool, only_print: bool, offline: bool) -> None:
    """Write a frontdesk.toml to begin with.

    A key or an address of a model that is found in the environment is offered in it. Its endpoint is asked
    for its models, and what is written is tried. The exit code is 1 when nothing that was found can work.
    """
    environ = config.environment()
    file = config_file or config.usual_file(environ)
    if file.exists() and not (force or only_print):
        raise click.ClickException(f"{file} is there already. --force replaces it, --print shows a new one.")
    found_here = [_offer(each, environ, offline) for each in found.suggestions(environ)]
    local = Offer(title=LOCAL_TITLE, table=LOCAL)
    offers = [*found_here, local if offline else _tried(local)]
    # What works comes first, then what may once its endpoint answers.
    best = min(offers, key=lambda offer: (offer.fault is not None) + (not offer.usable))
    others = [_commented(offer) for offer in offers if offer is not best]
    text = "\n".join((HEAD, best.table, *others, EXAMPLES))
    if only_print:
        output.show(text.rstrip())
        return
    _write(file, text)
    output.show(f"Wrote {file}; the agent is {best.title}.")
    for offer in offers:
        if offer.fault and (offer is best or offer.title != LOCAL_TITLE):
            output.note(f"{offer.title}: {offer.fault}")
    output.show(NEXT if best.fault is None else LATER if best.usable else FIRST)
    if not best.usable:
        sys.exit(1)


def _offer(suggestion: found.Suggestion, environ: Mapping[str, str], offline: bool) -> Offer:
    title = f"{suggestion.title} ({suggestion.found_in})"
    if "model" not in suggestion.options:
        try:
            suggestion = _with_model(suggestion, environ, offline)
        except errors.FrontdeskError as error:
            return Offer(title=title, table=_table(suggestion), fault=one_line(error), usable=False)
    offer = Offer(title=title, table=_table(suggestion))
    return offer if offline else _tried(offer)


def _with_model(suggestion: found.Suggestion, environ: Mapping[str, str], offline: bool) -> found.Suggestion:
    """The suggestion with the first model that its endpoint has."""
    base_url, key = suggestion.options["base_url"], environ.get(suggestion.key_variable or "", "").strip()
    listed = None if offline else asyncio.run(models.list_models(base_url, key or None))
    names = models.for_chat(listed or [])
    if not names:
        raise errors.MissingSetting(key="agent.model", why="name one that the endpoint has.")
    return msgspec.structs.replace(suggestion, options={**suggestion.options, "model": names[0]})


def _tried(offer: Offer) -> Offer:
    """The offer with what came of trying it, as ``frontdesk run`` would use it."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / config.FILE_NAME
            file.write_text(offer.table, encoding="utf-8")
            doubt = asyncio.run(build.try_agent(config.load(file)))
    except errors.EndpointUnavailable as error:
        return msgspec.structs.replace(offer, fault=one_line(error))
    except errors.FrontdeskError as error:
        return msgspec.structs.replace(offer, fault=one_line(error), usable=False)
    return msgspec.structs.replace(offer, fault=doubt)


def _commented(offer: Offer) -> str:
    """The agent's table behind comment marks, with what it lacks."""
    lines = offer.table.splitlines()
    if offer.fault:
        lines.insert(1, f"# {offer.fault}")
    return "".join(f"# {line}\n" for line in lines)


def _table(suggestion: found.Suggestion) -> str:
    lines = ["[agent]", f"# {suggestion.title}, found in {suggestion.found_in}"]
    lines.append(f"driver = {settings.as_toml(suggestion.driver)}")
    lines += [f"{name} = {settings.as_toml(value)}" for name, value in suggestion.options.items()]
    if suggestion.key_variable:
        lines.append(f"api_key_env = {settings.as_toml(suggestion.key_variable)}")
    return "\n".join(lines) + "\n"


def _write(file: Path, text: str) -> None:
    """Write it whole or not at all; nobody else may read it."""
    try:
        editing.write_beside(file, text).replace(file)
    except OSError as error:
        raise click.ClickException(f"{file} cannot be written: {error.strerror}") from error
