"""``frontdesk checkpoints``: states of the agent's working directory, seen, compared and restored."""

from functools import partial
from pathlib import Path

import click
import msgspec

from frontdesk import config
from frontdesk.app.office import Office, Plain
from frontdesk.app.office.checkpoints import KeptState
from frontdesk.cli import output
from frontdesk.cli.asking import all_items, answering, ask
from frontdesk.cli.output import Report
from frontdesk.model.checkpoints import ChangeKind, FileChange, changes_within

COLUMN = 12
LABEL_CHARACTERS = 50
MOST_PREVIEWED = 50
UNDOING = {
    ChangeKind.ADDED: "is removed",
    ChangeKind.REMOVED: "comes back",
    ChangeKind.CHANGED: "gets its contents back",
    ChangeKind.PERMISSIONS: "gets its permissions back",
}
"""What a restore does about each change."""


PROFILE = click.option(
    "--profile", help="The working directory of a profile; of the default one, unless given."
)


@click.group()
def command() -> None:
    """List, compare and restore states of the agent's working directory."""


@command.command("list")
@PROFILE
@answering
async def list_checkpoints(office: Office, profile: str | None) -> Report:
    """List the checkpoints, the newest first."""
    nothing = "There are no checkpoints yet: rotations make them, and /checkpoint."
    kept = await all_items(partial(office.list_checkpoints, profile))
    return output.listed(kept, _row, nothing)


def _row(kept: Plain) -> Plain:
    return {
        "NUMBER": kept["number"],
        "ID": kept["id"],
        "MADE": output.local_time(kept["created_at"]),
        "FILES": kept["files"],
        "SESSION": kept["session_id"] or "-",
        "LABEL": output.short(kept["label"], LABEL_CHARACTERS),
    }


@command.command()
@click.argument("checkpoint")
@PROFILE
@answering
async def show(office: Office, checkpoint: str, profile: str | None) -> Report:
    """Show a checkpoint, by its number or id, and what it leaves out."""
    found = await office.show_checkpoint(checkpoint, profile)
    skipped = [f"  left out  {skip['path']} ({skip['reason']})" for skip in found["skipped"]]
    return Report(found, "\n".join([output.in_lines(_facts(found), COLUMN), *skipped]))


def _facts(kept: KeptState) -> dict[str, str]:
    return {
        "checkpoint": f"{kept['number']}, {kept['id']}",
        "label": kept["label"],
        "directory": kept["directory"],
        "made": output.local_time(kept["created_at"]),
        "session": kept["session_id"] or "-",
        "turn": kept["turn_id"] or "-",
        "files": f"{kept['files']}, {kept['bytes']} bytes",
        "left out": str(kept["skipped_count"]),
    }


@command.command()
@click.argument("checkpoint")
@PROFILE
@answering
async def diff(office: Office, checkpoint: str, profile: str | None) -> Report:
    """Show what has changed since a checkpoint. The exit code is 1 when something has."""
    found = await office.diff_checkpoint(checkpoint, profile)
    lines = [f"{change['kind']:<{COLUMN}}{change['path']}" for change in found["changes"]]
    lines += [f"\n{found['text']}"] if found["text"] else []
    if not found["changes"]:
        lines.append(f"Nothing has changed since checkpoint {found['checkpoint']['number']}.")
    doubts = ["Note: There is more than is shown."] if found["truncated"] else []
    return Report(found, "\n".join(lines), good=not found["changes"], doubts=doubts)


@command.command()
@click.argument("checkpoint")
@click.argument("path", required=False)
@click.option("--yes", is_flag=True, help="Do not ask.")
@PROFILE
@output.JSON
@click.pass_obj
def restore(
    config_file: Path | None, checkpoint: str, path: str | None, yes: bool, profile: str | None, as_json: bool
) -> None:
    """Make the working directory, or PATH in it, what it was at a checkpoint.

    What that changes is shown first. The present state is kept in a checkpoint of its own, which undoes it.
    """
    loaded = config.load(config_file)
    before = ask(loaded, lambda office: office.diff_checkpoint(checkpoint, profile))
    if not as_json:
        changes = changes_within([msgspec.convert(each, type=FileChange) for each in before["changes"]], path)
        for change in changes[:MOST_PREVIEWED]:
            output.show(f"{change.path} {UNDOING[change.kind]}")
        if len(changes) > MOST_PREVIEWED or before["truncated"]:
            output.show("… and more")
        if not changes:
            output.show("It is as it was then: nothing changes.")
    if not yes:
        output.agree("Restore it?", "Nobody can be asked here: see what changes, and give --yes.")
    done = ask(loaded, lambda office: office.restore_checkpoint(before["checkpoint"]["id"], path, profile))
    where = f" --profile {profile}" if profile else ""
    text = (
        f"Checkpoint {done['checkpoint']['number']} is restored; paths changed: {done['changed']}."
        f" To undo this: frontdesk checkpoints restore {done['safety']['number']}{where}"
    )
    output.show_report(Report(done, text), as_json)


@command.command()
@PROFILE
@answering
async def prune(office: Office, profile: str | None) -> Report:
    """Drop the oldest past checkpoints.max_checkpoints, and free their room."""
    dropped = await office.prune_checkpoints(profile)
    return Report({"dropped": dropped}, f"Checkpoints dropped: {dropped}.")
