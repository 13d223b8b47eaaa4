"""``frontdesk people``: who may talk to the agent."""

import click

from frontdesk.app.office import Office, Plain
from frontdesk.cli import output
from frontdesk.cli.asking import all_items, answering
from frontdesk.cli.output import Report
from frontdesk.model.access import CHAT_ROLES

ROLES = click.Choice([str(each) for each in CHAT_ROLES])


@click.group()
def command() -> None:
    """Show who was let in, let people in, take that back."""


@command.command("list")
@answering
async def list_people(office: Office) -> Report:
    """List everybody who was let in with a code or by an administrator; the settings may let in others."""
    return output.listed(await all_items(office.list_people), _granted, "Nobody was let in yet.")


def _granted(grant: Plain) -> Plain:
    return {
        "WHO": grant["principal"],
        "ROLE": grant["role"],
        "SINCE": output.local_time(grant["granted_at"]),
        "BY": grant["granted_by"],
        "NAME": grant["name"],
    }


@command.command()
@answering
async def pending(office: Office) -> Report:
    """List who waits to be let in. Their codes are known to them alone."""
    return output.listed(await office.pending_people(), _waiting, "Nobody waits.")


def _waiting(person: Plain) -> Plain:
    until = output.local_time(person["expires_at"])
    return {"WHO": person["principal"], "UNTIL": until, "NAME": person["name"]}


@command.command()
@click.argument("code")
@click.option("--role", type=ROLES, default="user", show_default=True, help="What they may do.")
@answering
async def approve(office: Office, code: str, role: str) -> Report:
    """Let in whom CODE was shown to."""
    grant = await office.approve_person(code, role)
    return Report(grant, f"{grant['principal']} is let in as {grant['role']}.")


@command.command()
@click.argument("principal")
@answering
async def revoke(office: Office, principal: str) -> Report:
    """Take back what somebody was granted. The exit code is 1 when there was nothing."""
    revoked = await office.revoke_person(principal)
    nobody = f"{principal} was not let in by anybody. `frontdesk people list` shows who was."
    text = f"{principal} is a stranger again." if revoked else nobody
    return Report({"principal": principal, "revoked": revoked}, text, good=revoked)
