"""``frontdesk status``: whether a gateway runs, and how much waits."""

from collections.abc import Iterator

import click

from frontdesk.app.office import Office
from frontdesk.app.office.work import GatewayStatus, RefusedMessages, ServedPort
from frontdesk.cli import output
from frontdesk.cli.asking import answering
from frontdesk.cli.output import Report
from frontdesk.model.turns import HELD_BACK

COLUMN = 12


@click.command()
@answering
async def command(office: Office) -> Report:
    """Show whether a gateway runs, and how much waits.

    The exit code is 0 when a gateway runs and is ready, else 1.
    """
    status = await office.status()
    text = "\n".join(f"{name:<{COLUMN}}{fact}" for name, fact in _facts(status))
    return Report(status, text, good=status["ready"])


def _facts(status: GatewayStatus) -> Iterator[tuple[str, str]]:
    number = status["held_back"]
    held_back = f"; {number} held back: {HELD_BACK}" if number else ""
    yield "gateway", _gateway(status)
    yield from (("trouble", trouble) for trouble in status["troubles"])
    yield from (("warning", warning) for warning in status["warnings"])
    yield "version", status["version"]
    yield "channels", ", ".join(map(output.account, status["channels"])) or "-"
    if status["profiles"]:
        yield "profiles", ", ".join(status["profiles"])
    yield "turns", _counts(status["turns"], "nothing under way") + held_back
    yield "deliveries", _counts(status["deliveries"], "nothing waiting")
    yield "refused", _refused(status["refused"])
    yield from (("port", _port(port)) for port in status["ports"])


def _gateway(status: GatewayStatus) -> str:
    if not status["running"]:
        return "not running"
    state = "ready" if status["ready"] else "not ready"
    return f"{state}, process {status['process']}, node {status['node']}"


def _refused(refused: RefusedMessages | None) -> str:
    if refused is None:
        return "-"
    since = output.local_time(refused["since"])
    return f"{_counts(refused['counts'], 'no message')} since {since}, when the gateway started"


def _port(port: ServedPort) -> str:
    cut = _counts(port["refused"], "none")
    return f"{port['name']}, {port['connections']} of {port['most']} connections; cut off: {cut}"


def _counts(counts: dict[str, int], nothing: str) -> str:
    return ", ".join(f"{number} {state}" for state, number in sorted(counts.items()) if number) or nothing
