"""``frontdesk deliveries``: answers that did not arrive."""

import sys
from pathlib import Path
from typing import Any

import click

from frontdesk.app.office import LIST_LIMIT
from frontdesk.cli import output
from frontdesk.cli.asking import JSON, ask, limit_option


@click.group()
def command() -> None:
    """Show answers that did not arrive, and send them again."""


@command.command("list")
@limit_option(LIST_LIMIT)
@JSON
@click.pass_obj
def list_deliveries(config_file: Path | None, limit: int, as_json: bool) -> None:
    """List answers that were given up (dead) or may not have arrived (unknown), the newest first."""
    found = ask(config_file, lambda office: office.list_deliveries(limit))
    if as_json:
        output.show_json(found)
    elif found:
        output.show_table(("ID", "SINCE", "STATE", "WHERE", "WHY", "TEXT"), list(map(_row, found)))
    else:
        output.show("Every answer has arrived, or is on its way.")


def _row(delivery: dict[str, Any]) -> tuple[object, ...]:
    return (
        delivery["id"],
        output.local_time(delivery["created_at"]),
        delivery["state"],
        output.short(f"{delivery['platform']}, {delivery['where']}", 30),
        output.short(delivery["error"] or "", 40),
        output.short(delivery["text"], 40),
    )


@command.command()
@click.argument("delivery_id")
@JSON
@click.pass_obj
def resend(config_file: Path | None, delivery_id: str, as_json: bool) -> None:
    """Send an answer again. One that may have arrived is seen twice then.

    The exit code is 1 when it is not in trouble. Without a running gateway it is sent when one starts.
    """
    delivery = ask(config_file, lambda office: office.resend_delivery(delivery_id))
    if as_json:
        output.show_json(delivery)
    elif delivery["resent"]:
        output.show(f"{delivery['id']} is sent again.")
    else:
        output.show(f"{delivery['id']} is {delivery['state']}: only a dead or unknown one is sent again.")
    sys.exit(0 if delivery["resent"] else 1)
