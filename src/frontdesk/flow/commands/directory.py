"""Commands about the working directory: checkpoint, rollback."""

from collections.abc import Mapping

from frontdesk import errors
from frontdesk.contracts.snapshots import Snapshots
from frontdesk.flow import restoring
from frontdesk.flow.commands import CommandRequest, CommandTable, Refusal, views
from frontdesk.flow.parts import Parts
from frontdesk.flow.service import aliases_of
from frontdesk.model import checkpoints, people
from frontdesk.model.checkpoints import Checkpoint

MOST_LISTED = 20
LABEL = "by hand"
DIFF = "diff"
MAX_DIFF_CHARACTERS = 8_000
FENCE = "~~~"
MORE = "(There is more: frontdesk checkpoints diff shows all of it.)"

OFF = "Checkpoints are switched off here. Whoever runs me can switch them on: checkpoints.enabled"
UNCHANGED = "Nothing has changed since the last checkpoint, so that one stands."
OF_ANOTHER_CHAT = "made elsewhere"
NONE_YET = "There are no checkpoints yet. /checkpoint makes one."
UNKNOWN = "There is no checkpoint {name}. /rollback lists them."

COMMANDS = CommandTable()


def _place(parts: Parts, request: CommandRequest) -> tuple[Snapshots, str] | None:
    """The checkpoints and their directory. Everybody's turns share it, so it is the administrators'."""
    views.require_administrator(request, "looks after the working directory, which all conversations share")
    directory = parts.working_dir_of(request.turn.source)
    if not (parts.running.checkpoints and parts.snapshots and directory):
        return None
    return parts.snapshots, directory


@COMMANDS.add(
    "/checkpoint [label, or diff and a number]",
    "Keep the state of the working directory, or show what has changed since (administrators).",
)
async def checkpoint(parts: Parts, request: CommandRequest) -> str:
    place = _place(parts, request)
    if place is None:
        return Refusal(OFF)
    snapshots, directory = place
    first, name = views.words_of(request)
    if first.lower() == DIFF:
        return await _compared(request, snapshots, directory, name)
    session = await views.own_session(parts, request)
    label = views.argument_of(request) or LABEL
    made = await snapshots.create_checkpoint(
        directory, label, session.id if session else None, request.turn.id
    )
    if made is None:
        return Refusal(UNCHANGED)
    await _tell(parts, request)
    skipped = f", {views.plural(made.skipped_count, 'path')} left out" if made.skipped_count else ""
    files = views.plural(made.files, "file")
    return f"Checkpoint {made.number} made ({files}{skipped}). To go back to it: /rollback {made.number}"


async def _compared(request: CommandRequest, snapshots: Snapshots, directory: str, name: str) -> str:
    """What has changed since a checkpoint, the last one unless one is named."""
    if request.others_read:
        raise errors.NotAllowed(who="You", rule="what is in the files is shown in private chats alone")
    kept = await snapshots.list_checkpoints(directory)
    target = checkpoints.find_named(kept, name) if name else next(iter(kept), None)
    if target is None:
        return UNKNOWN.format(name=views.quoted(name)) if name else NONE_YET
    diff = await snapshots.diff(directory, target.id)
    if not diff.changes:
        return f"Nothing has changed since checkpoint {target.number}."
    lines = [f"{each.kind}: {views.quoted(each.path)}" for each in diff.changes[:MOST_LISTED]]
    more = [MORE] if len(diff.changes) > MOST_LISTED or diff.truncated else []
    head = f"Changed since checkpoint {target.number} ({views.plural(len(diff.changes), 'path')}):"
    return "\n".join((head, *lines, *more, "", *_shortened(diff.text)))


def _shortened(text: str) -> list[str]:
    """As many whole lines as a reply has room for, in a block of their own."""
    room, kept = MAX_DIFF_CHARACTERS, list[str]()
    for line in text.splitlines():
        room -= len(line) + 1
        if room < 0:
            return [FENCE, *kept, FENCE, MORE]
        kept.append(line)
    return [FENCE, *kept, FENCE] if kept else []


@COMMANDS.add("/rollback [number or id] [path]", "List the checkpoints, or go back to one (administrators).")
async def rollback(parts: Parts, request: CommandRequest) -> str:
    place = _place(parts, request)
    if place is None:
        return Refusal(OFF)
    snapshots, directory = place
    kept = await snapshots.list_checkpoints(directory)
    wanted, path = views.words_of(request)
    if not wanted:
        return await _listed(parts, request, kept)
    target = checkpoints.find_named(kept, wanted)
    if target is None:
        return UNKNOWN.format(name=views.quoted(wanted))
    session = await views.own_session(parts, request)
    links = {"session_id": session.id if session else None, "turn_id": request.turn.id}
    try:
        return await _restore(parts, request, snapshots, target, path or None, links)
    finally:  # whatever it came to, the directory may have changed
        await _tell(parts, request)


async def _tell(parts: Parts, request: CommandRequest) -> None:
    """There are other checkpoints, or the directory is another."""
    named = {"session_key": request.turn.session_key, "turn_id": request.turn.id}
    await parts.store.feed.tell_checkpoint(parts.clock.now(), **named)


async def _listed(parts: Parts, request: CommandRequest, kept: list[Checkpoint]) -> str:
    if not kept:
        return NONE_YET
    lines = []
    for each in kept[:MOST_LISTED]:
        label = views.quoted(each.label) if await _shows_label(parts, request, each) else OF_ANOTHER_CHAT
        made = views.ago(each.created_at, parts.clock.now())
        lines.append(f"{each.number}. {label}, {made}, {views.plural(each.files, 'file')}")
    example = (
        f"To go back to one: /rollback {kept[0].number}, or one file of it: /rollback {kept[0].number} PATH;"
        f" what that would change: /checkpoint diff {kept[0].number}"
    )
    return "\n".join(("The checkpoints, the newest first:", *lines, example))


async def _shows_label(parts: Parts, request: CommandRequest, kept: Checkpoint) -> bool:
    """Whether the label may be read by everybody here: it was given in some conversation."""
    if not request.others_read:
        return True
    session = kept.session_id and await parts.conversations.find_session(kept.session_id, request.viewer)
    return bool(session)


async def _restore(
    parts: Parts,
    request: CommandRequest,
    snapshots: Snapshots,
    target: Checkpoint,
    path: str | None,
    links: Mapping[str, str | None],
) -> str:
    source = request.turn.source
    by = people.name_of(source, await aliases_of(parts.store, source))
    try:
        restored = await restoring.restore(
            parts.store, snapshots, target, path, by=by, clock=parts.clock, **links
        )
    except errors.PathNotKept:
        return f"Checkpoint {target.number} does not hold {views.quoted(path or '')}; nothing was changed."
    what = views.quoted(path) if path else "The working directory"
    changed = views.plural(len(restored.written) + len(restored.removed), "path")
    return (
        f"{what} is as it was at checkpoint {target.number} ({changed} changed)."
        f" To undo this: /rollback {restored.safety.number}"
    )
