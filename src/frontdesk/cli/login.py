"""``frontdesk login``: a link that signs one browser in."""

import click

from frontdesk.app.reception import Reception
from frontdesk.cli import output
from frontdesk.cli.asking import receiving
from frontdesk.cli.output import Report
from frontdesk.model import passes
from frontdesk.model.access import Role

PERSON = click.option(
    "--person", metavar="NAME", help="Whose it is, by their name in a chat, like telegram:42."
)
ROLES = click.Choice([str(each) for each in Role])


@click.command(
    epilog=output.examples(
        "frontdesk login",
        "frontdesk login --role viewer --name wall-screen",
        "frontdesk login --role approver --person matrix:@ann:example.org --minutes 60",
    )
)
@click.option(
    "--role", type=ROLES, default=str(Role.ADMINISTRATOR), show_default=True, help="What they may do."
)
@PERSON
@click.option("--name", help="What it is listed as, instead of the person or the role.")
@click.option(
    "--minutes",
    type=click.IntRange(1, passes.MOST_MINUTES),
    default=passes.LINK_MINUTES,
    show_default=True,
    help="How long the link can be used.",
)
@(lambda question: receiving(question, needs_pages=True))
async def command(
    reception: Reception, role: str, person: str | None, name: str | None, minutes: int
) -> Report:
    """Show a link that signs the browser in which it is opened first in to the pages.

    The gateway, or the confirmation service with a page, must run. Whoever has the link can use it: show it
    to nobody else.
    """
    link = await reception.make_link(role, person, name, minutes)
    until = output.local_time(link["expires_at"])
    told = f"It signs one browser in, once, until {until}: as {link['person']} with the role {role}."
    return Report(link, link["url"], doubts=(told,))
