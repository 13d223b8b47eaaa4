"""``frontdesk confirm mcp``: confirmations as tools for an agent that speaks MCP."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import click

from frontdesk import config
from frontdesk.app import lines
from frontdesk.cli import output
from frontdesk.cli.confirm import reaching
from frontdesk.cli.confirm.protocol import Server
from frontdesk.cli.confirm.tools import INSTRUCTIONS, Toolbox
from frontdesk.confirm.client import Client

MAX_LINE_BYTES = 8 * 1024 * 1024
MOST_WAITING = 100
PATIENCE_SECONDS = 5.0


@click.command(
    "mcp", epilog=output.examples("CONFIRMATION_TOKEN=… frontdesk confirm mcp --url http://127.0.0.1:6000")
)
@reaching.URL
@click.pass_obj
def mcp_command(config_file: Path | None, url: str | None) -> None:
    """Offer the tools request_confirmation and redeem_confirmation to an agent.

    It is an MCP server on standard input and output, for the agent to start. The agent's token is in the
    variable that confirm.token_env names, which is CONFIRMATION_TOKEN unless set otherwise.
    """
    loaded = config.load(config_file)
    lines.listen("warning")
    client = Client(
        reaching.address(loaded, url), reaching.given_token(loaded), patience_seconds=PATIENCE_SECONDS
    )
    with suppress(BrokenPipeError, KeyboardInterrupt):
        asyncio.run(Server(Toolbox(client).tools, INSTRUCTIONS, _write).serve(_lines()))


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


async def _lines() -> AsyncIterator[bytes]:
    """The lines of the standard input. They are read in a thread that nobody waits for at the end."""
    loop = asyncio.get_running_loop()
    coming: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(MOST_WAITING)

    def read() -> None:
        while True:
            room.acquire()
            line = sys.stdin.buffer.readline(MAX_LINE_BYTES)
            with suppress(RuntimeError):  # the loop has ended before the input
                loop.call_soon_threadsafe(coming.put_nowait, line)
            if not line:
                return

    threading.Thread(target=read, name="frontdesk-mcp-input", daemon=True).start()
    while line := await coming.get():
        room.release()
        yield line
