"""``frontdesk people``: who may talk to the agent."""

import sys
from pathlib import Path
from typing import Any

import click

from frontdesk.cli import output
from frontdesk.cli.asking import ask
from frontdesk.model.access import Role


@click.group()
def command() -> None:
    """Show who was let in, let people in, take that back."""


@command.command("list")
@output.answering
def list_people(config_file: Path | None, as_json: bool) -> None:
    """List everybody who was let in with a code or by an administrator; the settings may let in others."""
    found = ask(config_file, lambda office: office.list_people())
    headings = ("WHO", "ROLE", "SINCE", "BY", "NAME")
    output.show_list(found, as_json, headings, _granted, "Nobody was let in yet.")


def _granted(grant: dict[str, Any]) -> tuple[object, ...]:
    since = output.local_time(grant["granted_at"])
    return grant["principal"], grant["role"], since, grant["granted_by"], grant["name"]


@command.command()
@output.answering
def pending(config_file: Path | None, as_json: bool) -> None:
    """List who waits to be let in. Their codes are known to them alone."""
    found = ask(config_file, lambda office: office.pending_people())
    output.show_list(found, as_json, ("WHO", "UNTIL", "NAME"), _waiting, "Nobody waits.")


def _waiting(person: dict[str, Any]) -> tuple[object, ...]:
    return person["principal"], output.local_time(person["expires_at"]), person["name"]


@command.command()
@click.argument("code")
@click.option("--role", type=click.Choice([str(each) for each in Role]), default="user", show_default=True)
@output.answering
def approve(config_file: Path | None, code: str, role: str, as_json: bool) -> None:
    """Let in whom CODE was shown to."""
    grant = ask(config_file, lambda office: office.approve_person(code, role))
    output.show_answer(grant, as_json, f"{grant['principal']} is let in as {grant['role']}.")


@command.command()
@click.argument("principal")
@click.pass_obj
def revoke(config_file: Path | None, principal: str) -> None:
    """Take back what somebody was granted. The exit code is 1 when there was nothing."""
    if ask(config_file, lambda office: office.revoke_person(principal)):
        output.show(f"{principal} is a stranger again.")
    else:
        output.show(f"{principal} was not let in by anybody. `frontdesk people list` shows who was.")
        sys.exit(1)
