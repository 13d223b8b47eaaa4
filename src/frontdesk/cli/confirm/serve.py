"""``frontdesk confirm serve``: the confirmation service alone."""

import asyncio
import signal
from pathlib import Path
from typing import Any

import click
import msgspec
import uvloop

from frontdesk import config
from frontdesk.app import confirmations, loglines
from frontdesk.cli import output
from frontdesk.cli.run import LOG_LEVEL, PORT
from frontdesk.config import Config
from frontdesk.model.confirmations import Mode
from frontdesk.web import bounds
from frontdesk.web.bounds import Listeners, PortLimits
from frontdesk.web.confirmations.serving import serving_alone

BOTH = (
    "The service and the page cannot both have port {port}: choose another one with --page-port, or for the"
    " service with --port."
)


@click.command(
    "serve",
    epilog=output.examples(
        "frontdesk confirm serve",
        "frontdesk confirm serve --port 6000 --page-port 6080 --mode team",
        "frontdesk confirm serve --db-path /var/lib/confirm/state.db",
    ),
)
@click.option("--host", help="Listen on this address instead of confirm.host.")
@click.option("--port", type=PORT, help="Listen on this port instead of confirm.port.")
@click.option(
    "--db-path", metavar="FILE", help="Keep requests in this file instead of store.url; :memory: keeps none."
)
@click.option(
    "--rate-limit",
    type=click.IntRange(1),
    help="Take so many requests for an action in an hour, instead of confirm.rate_limit.",
)
@click.option("--page-port", type=PORT, help="Show what waits in browsers, on this port.")
@click.option(
    "--mode",
    type=click.Choice([str(each) for each in Mode]),
    help="Who may ask without a token, and more, instead of confirm.mode.",
)
@LOG_LEVEL
@click.pass_obj
def serve_command(
    config_file: Path | None, /, db_path: str | None, page_port: int | None, log_level: str, **given: Any
) -> None:
    """Run the confirmation service alone, until it is told to stop.

    The variables CONFIRMATION_HOST, CONFIRMATION_PORT and CONFIRMATION_RATE_LIMIT do the same as the options,
    which win. Where a gateway runs with the same database, it serves confirmations itself.
    """
    loaded = config.load(config_file)
    said = {name: value for name, value in given.items() if value not in (None, "")}
    mode = Mode(said.pop("mode", loaded.confirm.mode))
    confirm = msgspec.structs.replace(loaded.confirm, mode=mode, **said)
    if page_port and page_port == confirm.port:
        raise click.UsageError(BOTH.format(port=page_port))
    store_url = config.sqlite_url(Path(db_path)) if db_path else loaded.store_url
    loglines.listen(log_level)
    listeners = Listeners(limits=PortLimits(connections=loaded.connections, proxies=loaded.proxies))
    bounds.raise_files(listeners.limits)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        loaded = msgspec.structs.replace(loaded, confirm=confirm, store_url=store_url)
        runner.run(_serve(loaded, page_port, listeners))


async def _serve(loaded: Config, page_port: int | None, listeners: Listeners) -> None:
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    confirm, secret = loaded.confirm, loaded.confirm.people.callback_secret
    opened = confirmations.open_confirmations(loaded.store_url, confirm, callback_secret=secret)
    async with opened as service:
        keys = confirmations.prepare_keys(loaded.home)
        async with serving_alone(
            service,
            keys,
            confirm.people,
            host=confirm.host,
            port=confirm.port,
            names=loaded.names,
            page_port=page_port,
            listeners=listeners,
        ) as addresses:
            if keys.is_first_look():
                output.show_secret("The approver's token, which decides.", keys.token, keys.token_file)
            where = f"at {addresses.page_url}/approvals, or " if addresses.page_url else ""
            output.show(f"Approvers decide {where}with: frontdesk confirm list")
            asked = f"frontdesk takes requests for confirmation at {addresses.url}"
            output.show(f"{asked}; the mode is {confirm.mode}.")
            await told.wait()
