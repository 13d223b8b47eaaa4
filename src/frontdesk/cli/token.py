"""``frontdesk token``: what lets programs and browsers in over HTTP."""

import click

from frontdesk.app.office import Plain
from frontdesk.app.reception import Reception
from frontdesk.cli import output
from frontdesk.cli.asking import limit_option, receiving
from frontdesk.cli.login import PERSON, ROLES
from frontdesk.cli.output import Report
from frontdesk.model import passes
from frontdesk.model.pages import MOST_ITEMS


@click.group()
def command() -> None:
    """Make, list and revoke what lets programs and browsers in."""


@command.command(
    epilog=output.examples(
        "frontdesk token add grafana --role viewer --days 365",
        "frontdesk token add ann-laptop --role approver --person telegram:42",
    )
)
@click.argument("name")
@click.option("--role", type=ROLES, required=True, help="What it lets somebody do.")
@PERSON
@click.option(
    "--days",
    type=click.IntRange(1, passes.MOST_DAYS),
    default=passes.TOKEN_DAYS,
    show_default=True,
    help="How long it can be used.",
)
@receiving
async def add(reception: Reception, name: str, role: str, person: str | None, days: int) -> Report:
    """Make a token for the HTTP API, and show it this once.

    The roles user and approver take a person: what the token sees and does is theirs. A viewer sees
    everything, and changes nothing; an administrator without a person is you.
    """
    made = await reception.make_token(name, role, person, days)
    until = output.local_time(made["expires_at"])
    told = f"{name} is {made['person']} with the role {role}, until {until}. It is shown this once."
    return Report(made, made["token"], doubts=(told,))


@command.command("list")
@click.option("--all", "over", is_flag=True, help="Those that are over, too.")
@limit_option(MOST_ITEMS)
@receiving
async def list_tokens(reception: Reception, over: bool, limit: int) -> Report:
    """List tokens, links that wait, and browsers in which somebody signed in, the latest first."""
    found: list[Plain] = []
    cursor = None
    while len(found) < limit:
        page = await reception.list_passes(cursor, min(limit - len(found), MOST_ITEMS), over)
        found += [dict(each) for each in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    return output.listed(found, _row, "Nobody has a token, and nobody is signed in.")


def _row(given: Plain) -> Plain:
    state = "revoked" if given["revoked_at"] else output.local_time(given["expires_at"])
    return {
        "ID": given["id"],
        "KIND": given["kind"],
        "NAME": given["name"],
        "ROLE": given["role"],
        "WHO": given["person"],
        "UNTIL": state,
        "LAST USED": output.local_time(given["used_at"]) if given["used_at"] else "",
    }


@command.command()
@click.argument("name")
@receiving
async def revoke(reception: Reception, name: str) -> Report:
    """End a token by its name, or anything in the list by its id. The exit code is 1 when there is nothing.

    Browsers that were signed in with the token are signed out.
    """
    revoked = await reception.revoke_pass(name)
    nothing = f"Nothing called {name} lets anybody in. `frontdesk token list` shows what does."
    text = f"{name} lets nobody in any more." if revoked else nothing
    return Report({"name": name, "revoked": revoked}, text, good=revoked)
