"""``frontdesk turns``: messages that wait, run or were set aside."""

import click

from frontdesk.app.office import Office
from frontdesk.app.office.counters import LIST_LIMIT
from frontdesk.app.office.turns import AsideOutcome, TurnRow
from frontdesk.cli import output
from frontdesk.cli.asking import answering, limit_option
from frontdesk.cli.output import Report
from frontdesk.model.lists import ListedTurns


@click.group()
def command() -> None:
    """Show messages that wait, run or were set aside, and try those again."""


@command.command("list")
@click.option(
    "--show",
    type=click.Choice([str(each) for each in ListedTurns]),
    default=str(ListedTurns.SET_ASIDE),
    show_default=True,
    help="Which; recent are all of them.",
)
@limit_option(LIST_LIMIT)
@answering
async def list_turns(office: Office, show: str, limit: int) -> Report:
    """List turns, the newest first."""
    found = await office.page_turns(show, limit)
    return output.listed(found["items"], _row, "There are none.")


def _row(turn: TurnRow) -> dict[str, object]:
    return {
        "ID": turn["id"],
        "CAME": output.local_time(turn["received_at"]) if turn["received_at"] else "-",
        "STATE": turn["state"],
        "TRIES": turn["attempts"],
        "WHERE": output.short(f"{output.account(turn)}, {turn['where']}", 30),
        "WHY": output.short(turn["error"] or "-", 40),
        "TEXT": output.short(turn["text"], 40),
    }


@command.command()
@click.argument("turn_id")
@answering
async def retry(office: Office, turn_id: str) -> Report:
    """Try a turn once more that was set aside. It takes a running gateway.

    It has one more attempt. The exit code is 1 when it is not set aside.
    """
    return _told(await office.retry_turn(turn_id), "is tried again.")


@command.command("give-up")
@click.argument("turn_id")
@answering
async def give_up(office: Office, turn_id: str) -> Report:
    """Give up a turn that was set aside, and tell whoever wrote. It takes a running gateway.

    The exit code is 1 when it is not set aside.
    """
    return _told(await office.give_up_turn(turn_id), "is given up.")


def _told(outcome: AsideOutcome, happened: str) -> Report:
    said = happened if outcome["done"] else f"is {outcome['state']}: only one that was set aside is."
    return Report(outcome, f"{outcome['id']} {said}", good=outcome["done"])
