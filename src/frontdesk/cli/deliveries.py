"""``frontdesk deliveries``: answers that did not arrive."""

import math
from datetime import UTC, datetime

import click

from frontdesk.app.office import Office, Plain
from frontdesk.app.office.counters import LIST_LIMIT
from frontdesk.cli import output
from frontdesk.cli.asking import answering, limit_option
from frontdesk.cli.output import Report

BEHIND = "waits for the one before it"


@click.group()
def command() -> None:
    """Show answers that did not arrive, send them again or give them up."""


@command.command("list")
@limit_option(LIST_LIMIT)
@answering
async def list_deliveries(office: Office, limit: int) -> Report:
    """List answers that have not arrived, the newest first.

    Given up (dead), perhaps arrived (unknown), or tried in vain so far (pending, sending) with when they are
    tried again; and those that wait behind them.
    """
    nothing = "Every answer has arrived, or is on its way for the first time."
    return output.listed(await office.list_deliveries(limit), _row, nothing)


def _next(delivery: Plain) -> str:
    """When it is tried again, from now on."""
    if delivery["state"] == "sending":
        return "now"
    if delivery["next_try_at"] is None:
        return "-"
    seconds = (datetime.fromisoformat(delivery["next_try_at"]) - datetime.now(UTC)).total_seconds()
    return f"in {max(math.ceil(seconds), 0)} s"


def _row(delivery: Plain) -> Plain:
    return {
        "ID": delivery["id"],
        "SINCE": output.local_time(delivery["created_at"]),
        "STATE": delivery["state"],
        "TRIES": delivery["attempts"],
        "NEXT": _next(delivery),
        "WHERE": output.short(f"{output.account(delivery)}, {delivery['where']}", 30),
        "WHY": output.short(delivery["error"] or BEHIND, 40),
        "TEXT": output.short(delivery["text"], 40),
    }


@command.command()
@click.argument("delivery_id")
@answering
async def resend(office: Office, delivery_id: str) -> Report:
    """Send an answer again. One that may have arrived is seen twice then.

    The exit code is 1 when it is not in trouble. Without a running gateway it is sent when one starts.
    """
    delivery = await office.resend_delivery(delivery_id)
    refused = f"is {delivery['state']}: only a dead or unknown one is sent again."
    happened = "is sent again." if delivery["resent"] else refused
    return Report(delivery, f"{delivery['id']} {happened}", good=delivery["resent"])


@command.command()
@click.argument("delivery_id")
@answering
async def discard(office: Office, delivery_id: str) -> Report:
    """Give up an answer that is in trouble: it is neither sent nor counted any more.

    The exit code is 1 when it is not in trouble. What the agent said stays in the transcript.
    """
    delivery = await office.discard_delivery(delivery_id)
    refused = f"is {delivery['state']}: only a dead or unknown one is discarded."
    happened = "is discarded." if delivery["discarded"] else refused
    return Report(delivery, f"{delivery['id']} {happened}", good=delivery["discarded"])
