"""``frontdesk confirm pauses`` and ``lift``: whom people denied too often in a row, and how they go on."""

from typing import Any

import click

from frontdesk import errors
from frontdesk.cli import output
from frontdesk.cli.confirm import reaching
from frontdesk.cli.confirm.reaching import ServiceDesk
from frontdesk.cli.output import Report
from frontdesk.formats import quoting

NOBODY = "Nobody is paused."
LIFTED = "People are asked for {who} again."

Plain = dict[str, Any]


@click.command("pauses", epilog=output.examples("frontdesk confirm pauses"))
@reaching.answering
def pauses_command(service: ServiceDesk) -> Report:
    """Show whose requests are not asked any more: people denied too many of them in a row."""
    return output.listed(service.say("GET", "/pauses")["pauses"], _row, NOBODY)


def _row(pause: Plain) -> Plain:
    return {
        "WHO": quoting.one_line(pause["requester"]),
        "DENIALS": pause["denials"],
        "SINCE": output.local_time(pause["paused_at"]),
    }


@click.command("lift", epilog=output.examples("frontdesk confirm lift token:deployer"))
@click.argument("requester", metavar="WHO")
@reaching.answering
def lift_command(service: ServiceDesk, requester: str) -> Report:
    """Have people asked for somebody again: token:NAME, the key of a conversation, or anybody, who are all
    without a token."""
    if not requester.strip():
        raise errors.InvalidInput(what="The name", why="it is empty")
    service.say("POST", "/pauses/lift", {"requester": requester.strip()})
    who = quoting.one_line(requester.strip())
    return Report({"requester": requester.strip(), "lifted": True}, LIFTED.format(who=who))
