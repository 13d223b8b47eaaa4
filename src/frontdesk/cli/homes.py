"""The home folder, for commands that run a gateway."""

from pathlib import Path

import click

LOG = "frontdesk.log"


def make_home(home: Path) -> None:
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        why = error.strerror or error
        raise click.ClickException(
            f"The home folder {home} cannot be made: {why}. Set another one."
        ) from error
