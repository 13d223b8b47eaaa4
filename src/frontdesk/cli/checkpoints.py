"""``frontdesk checkpoints``: states of the agent's working directory, seen, compared and restored."""

import sys
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from frontdesk.cli import output
from frontdesk.cli.asking import ask
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

T = TypeVar("T")
Plain = dict[str, Any]


@click.group()
def command() -> None:
    """List, compare and restore states of the agent's working directory."""


@command.command("list")
@output.answering
def list_checkpoints(config_file: Path | None, as_json: bool) -> None:
    """List the checkpoints, the newest first."""
    found = ask(config_file, lambda office: office.list_checkpoints())
    headings = ("NUMBER", "ID", "MADE", "FILES", "SESSION", "LABEL")
    nothing = "There are no checkpoints yet: rotations make them, and /checkpoint."
    output.show_list(found, as_json, headings, _row, nothing)


def _row(kept: Plain) -> tuple[object, ...]:
    made = output.local_time(kept["created_at"])
    label = output.short(kept["label"], LABEL_CHARACTERS)
    return kept["number"], kept["id"], made, kept["files"], kept["session_id"] or "-", label


@command.command()
@click.argument("checkpoint")
@output.answering
def show(config_file: Path | None, checkpoint: str, as_json: bool) -> None:
    """Show a checkpoint, by its number or id, and what it leaves out."""
    found = ask(config_file, lambda office: office.show_checkpoint(checkpoint))
    if as_json:
        output.show_json(found)
        return
    output.show_facts(_facts(found), COLUMN)
    for skip in found["skipped"]:
        output.show(f"  left out  {skip['path']} ({skip['reason']})")


def _facts(kept: Plain) -> dict[str, str]:
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
@output.answering
def diff(config_file: Path | None, checkpoint: str, as_json: bool) -> None:
    """Show what has changed since a checkpoint. The exit code is 1 when something has."""
    found = ask(config_file, lambda office: office.diff_checkpoint(checkpoint))
    if as_json:
        output.show_json(found)
    else:
        for change in found["changes"]:
            output.show(f"{change['kind']:<{COLUMN}}{change['path']}")
        if found["text"]:
            output.show(f"\n{found['text']}")
        if found["truncated"]:
            output.note("There is more than is shown.")
        if not found["changes"]:
            output.show(f"Nothing has changed since checkpoint {found['checkpoint']['number']}.")
    sys.exit(1 if found["changes"] else 0)


@command.command()
@click.argument("checkpoint")
@click.argument("path", required=False)
@click.option("--yes", is_flag=True, help="Do not ask.")
@output.answering
def restore(config_file: Path | None, checkpoint: str, path: str | None, yes: bool, as_json: bool) -> None:
    """Make the working directory, or PATH in it, what it was at a checkpoint.

    What that changes is shown first. The present state is kept in a checkpoint of its own, which undoes it.
    """
    before = ask(config_file, lambda office: office.diff_checkpoint(checkpoint))
    if not as_json:
        changes = changes_within([msgspec.convert(each, type=FileChange) for each in before["changes"]], path)
        for change in changes[:MOST_PREVIEWED]:
            output.show(f"{change.path} {UNDOING[change.kind]}")
        if len(changes) > MOST_PREVIEWED or before["truncated"]:
            output.show("… and more")
        if not changes:
            output.show("It is as it was then: nothing changes.")
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("Nobody can be asked here: see what changes, and give --yes.")
        click.confirm("Restore it?", abort=True)
    done = ask(config_file, lambda office: office.restore_checkpoint(before["checkpoint"]["id"], path))
    changed = len(done["written"]) + len(done["removed"])
    text = (
        f"Checkpoint {done['checkpoint']['number']} is restored; paths changed: {changed}. To undo this:"
        f" frontdesk checkpoints restore {done['safety']['number']}"
    )
    output.show_answer(done, as_json, text)


@command.command()
@output.answering
def prune(config_file: Path | None, as_json: bool) -> None:
    """Drop the oldest past checkpoints.max_checkpoints, and free their room."""
    dropped = ask(config_file, lambda office: office.prune_checkpoints())
    output.show_answer({"dropped": dropped}, as_json, f"Checkpoints dropped: {dropped}.")
