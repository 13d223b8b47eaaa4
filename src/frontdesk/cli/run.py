"""``frontdesk run``: the gateway, until it is told to stop."""

from pathlib import Path

import click

LEVELS = click.Choice(("debug", "info", "warning", "error"))
LOG_LEVEL = click.option("--log-level", type=LEVELS, default="info", show_default=True)
PORT = click.IntRange(0, 65_535)


@click.command()
@click.option("--host", help="Listen on this address instead of server.host.")
@click.option("--port", type=PORT, help="Listen on this port instead of server.port.")
@click.option("--chat", is_flag=True, help="Also open a chat in this terminal; the log goes to a file then.")
@LOG_LEVEL
@click.pass_obj
def command(config_file: Path | None, host: str | None, port: int | None, chat: bool, log_level: str) -> None:
    """Run the gateway: channels, agent and HTTP on one port.

    SIGTERM, Ctrl-C or closing the terminal lets running turns finish for gateway.drain_seconds; a second
    order does not wait.
    """
    from frontdesk.cli import running  # noqa: PLC0415 - what runs is loaded only where it does

    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    running.run(config_file, given, chat=chat, log_level=log_level)
