"""``frontdesk deliveries``: answers that did not arrive."""

import math
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from frontdesk.app.office import LIST_LIMIT
from frontdesk.cli import output
from frontdesk.cli.asking import ask, limit_option

HEADINGS = ("ID", "SINCE", "STATE", "TRIES", "NEXT", "WHERE", "WHY", "TEXT")
BEHIND = "waits for the one before it"


@click.group()
def command() -> None:
    """Show answers that did not arrive, and send them again."""


@command.command("list")
@limit_option(LIST_LIMIT)
@output.answering
def list_deliveries(config_file: Path | None, limit: int, as_json: bool) -> None:
    """List answers that have not arrived, the newest first.

    Given up (dead), perhaps arrived (unknown), or tried in vain so far (pending, sending) with when they are
    tried again; and those that wait behind them.
    """
    found = ask(config_file, lambda office: office.list_deliveries(limit))
    nothing = "Every answer has arrived, or is on its way for the first time."
    output.show_list(found, as_json, HEADINGS, _row, nothing)


def _next(delivery: dict[str, Any]) -> str:
    """When it is tried again, from now on."""
    if delivery["state"] == "sending":
        return "now"
    if delivery["next_try_at"] is None:
        return "-"
    seconds = (datetime.fromisoformat(delivery["next_try_at"]) - datetime.now(UTC)).total_seconds()
    return f"in {max(math.ceil(seconds), 0)} s"


def _row(delivery: dict[str, Any]) -> tuple[object, ...]:
    return (
        delivery["id"],
        output.local_time(delivery["created_at"]),
        delivery["state"],
        delivery["attempts"],
        _next(delivery),
        output.short(f"{delivery['platform']}, {delivery['where']}", 30),
        output.short(delivery["error"] or BEHIND, 40),
        output.short(delivery["text"], 40),
    )


@command.command()
@click.argument("delivery_id")
@output.answering
def resend(config_file: Path | None, delivery_id: str, as_json: bool) -> None:
    """Send an answer again. One that may have arrived is seen twice then.

    The exit code is 1 when it is not in trouble. Without a running gateway it is sent when one starts.
    """
    delivery = ask(config_file, lambda office: office.resend_delivery(delivery_id))
    refused = f"is {delivery['state']}: only a dead or unknown one is sent again."
    happened = "is sent again." if delivery["resent"] else refused
    output.show_answer(delivery, as_json, f"{delivery['id']} {happened}")
    sys.exit(0 if delivery["resent"] else 1)
