"""Checkpoints of working directories, each directory's in a store of its own."""

import asyncio
import os
import secrets
import weakref
from collections.abc import AsyncIterator, Collection, Container, Iterable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from frontdesk import errors
from frontdesk.contracts.clock import Clock, SystemClock
from frontdesk.contracts.snapshots import Directory
from frontdesk.formats import quoting
from frontdesk.logs import get_logger
from frontdesk.model import checkpoints as model
from frontdesk.model.checkpoints import Checkpoint, Diff, Limits, Restored, Skip
from frontdesk.snapshots import plans, stores, trees
from frontdesk.snapshots.captures import Capture, Walk
from frontdesk.snapshots.folders import Folder, in_thread
from frontdesk.snapshots.plans import RestoreSituation
from frontdesk.snapshots.restores import ChangedMeanwhile, Restorer
from frontdesk.snapshots.stores import CheckpointStore
from frontdesk.snapshots.trees import Kind

log = get_logger(__name__)

DEFAULT_ROOT = Path("~/.frontdesk/checkpoints")


Facts = dict[str, Any]
"""What a checkpoint is told about itself."""


class CheckpointManager:
    """Takes checkpoints of directories and goes back to them. The directories' own repositories stay as they
    are. Calls for the same directory happen one after the other, in whichever process."""

    def __init__(
        self,
        max_checkpoints: int = 20,
        root: Path | None = None,
        *,
        private: Iterable[Path] = (),
        limits: Limits | None = None,
        clock: Clock | None = None,
        git: str = "git",
    ) -> None:
        """Checkpoints are kept below ``root``. Folders that are ``private`` are part of none, wherever they
        lie: the store itself and, unless another root is given, all of frontdesk's home are."""
        self._max = model.check_maximum(max_checkpoints)
        self._root = Path(root).resolve() if root else _default_root()
        own = self._root if root else self._root.parent
        self._private = {own, self._root, *(Path(path).resolve() for path in private)}
        self._limits = limits or Limits()
        self._clock = clock or SystemClock()
        self._git = git
        self._queues: weakref.WeakValueDictionary[Path, asyncio.Lock] = weakref.WeakValueDictionary()

    async def create_checkpoint(
        self, directory: Directory, label: str, session_id: str | None = None, turn_id: str | None = None
    ) -> Checkpoint | None:
        """Keep the present state; None when it is the state of the last checkpoint."""
        facts = _facts(label, session_id, turn_id)
        store = self._existing(directory)
        async with self._opened(store):
            held = await store.checkpoints()
            with closing(Folder(store.directory)) as folder:
                capture = await self._capture(store, folder)
                made = await self._keep(store, capture, held, facts)
            if made:
                await self._drop_oldest(store, [*held, made])
            return made

    async def list_checkpoints(self, directory: Directory) -> list[Checkpoint]:
        """The kept ones, the newest first."""
        store = self._store(directory)
        if not store.is_ready:
            return []
        async with self._opened(store):
            return list(reversed(await store.checkpoints()))

    async def find(self, directory: Directory, checkpoint_id: str) -> Checkpoint | None:
        """The checkpoint of this directory with this id, or None."""
        held = await self.list_checkpoints(directory)
        return next((each for each in held if each.id == checkpoint_id), None)

    async def diff(self, directory: Directory, checkpoint_id: str) -> Diff:
        """What has changed since the checkpoint, as changes and as text, both up to the limits."""
        store = self._existing(directory)
        await self._check_held(store, checkpoint_id)
        async with self._opened(store):
            checkpoint = await self._pick(store, checkpoint_id)
            before, _ = await store.read(checkpoint)
            with closing(Folder(store.directory)) as folder:
                capture = await self._capture(store, folder, keep=before)
                root, _ = await store.hold(capture)
            changes = tuple(trees.compare(before, capture.entries))
            text, more = await store.diff_text(checkpoint, root, self._limits.max_diff_bytes)
            return Diff(
                checkpoint=checkpoint,
                changes=changes[: model.MAX_CHANGES_SHOWN],
                text=text,
                truncated=more or len(changes) > model.MAX_CHANGES_SHOWN,
            )

    async def restore(
        self,
        directory: Directory,
        checkpoint_id: str,
        path: str | None = None,
        *,
        session_id: str | None = None,
        turn_id: str | None = None,
    ) -> Restored:
        """Make the directory, or one path in it, what it was, after a checkpoint of what it is."""
        facts = _facts(f"before restoring {checkpoint_id}", session_id, turn_id, checkpoint_id)
        within = None if path is None else _checked_path(path)
        store = self._store(directory)
        await self._check_held(store, checkpoint_id)
        async with self._opened(store):
            checkpoint = await self._pick(store, checkpoint_id)
            # The directory itself may have been deleted since.
            await in_thread(store.directory.mkdir, exist_ok=True)
            with closing(Folder(store.directory)) as folder:
                return await self._restore(store, folder, checkpoint, within, facts)

    async def prune(self, directory: Directory) -> int:
        """Drop the oldest past the maximum and free the room of all dropped ones; how many were dropped."""
        store = self._store(directory)
        if not store.is_ready:
            return 0
        async with self._opened(store):
            held = await store.checkpoints()
            dropped = held[: -self._max]
            await store.drop(dropped)
            await store.free_room()
            return len(dropped)

    # Finding the way

    def _store(self, directory: Directory) -> CheckpointStore:
        try:
            path = Path(directory).resolve()
        except (OSError, RuntimeError, TypeError, ValueError) as error:
            raise errors.UnusableDirectory(directory=repr(directory), why=error) from error
        if path == Path(path.anchor):
            raise errors.UnusableDirectory(directory=path, why="it is the root of all directories")
        if path in self._private or path.is_relative_to(self._root):
            raise errors.UnusableDirectory(directory=path, why="frontdesk keeps its own files there")
        return CheckpointStore(self._root, path)

    def _existing(self, directory: Directory) -> CheckpointStore:
        store = self._store(directory)
        path = store.directory
        if not path.is_dir():
            why = "it is not a folder" if path.exists() else "there is no such folder"
            raise errors.UnusableDirectory(directory=path, why=why)
        return store

    @asynccontextmanager
    async def _opened(self, store: CheckpointStore) -> AsyncIterator[None]:
        """For one caller at a time."""
        queue = self._queues.setdefault(store.folder, asyncio.Lock())
        try:
            async with store.opened(queue, self._git, self._limits):
                yield
        except OSError as error:
            file = f" ({error.filename})" if error.filename else ""
            why = f"{error.strerror or error}{file}"
            raise errors.UnusableDirectory(directory=store.directory, why=why) from error

    async def _check_held(self, store: CheckpointStore, checkpoint_id: str) -> None:
        """Refuse an id that is none, unknown or of another directory, before anything is made."""
        owner = None
        if model.is_checkpoint_id(checkpoint_id):
            if store.has(checkpoint_id):
                return
            owner = await in_thread(stores.find_owner, self._root, checkpoint_id)
        raise _not_held(store, checkpoint_id, owner)

    async def _pick(self, store: CheckpointStore, checkpoint_id: str) -> Checkpoint:
        for each in await store.checkpoints():
            if each.id == checkpoint_id:
                if each.directory != store.shown:
                    raise _not_held(store, checkpoint_id, each.directory)
                return each
        raise _not_held(store, checkpoint_id)

    # Taking in

    async def _capture(self, store: CheckpointStore, folder: Folder, keep: Container[str] = ()) -> Capture:
        walk = Walk(store.directory, self._limits, self._private, keep)
        await in_thread(walk.run, folder)
        capture = Capture(folder, walk, await in_thread(store.read_cache))
        await in_thread(capture.look)
        return capture

    async def _keep(
        self, store: CheckpointStore, capture: Capture, held: list[Checkpoint], facts: Facts
    ) -> Checkpoint | None:
        """Make a checkpoint of what is captured; None when the last one holds just that."""
        last = held[-1].state if held else None
        if capture.is_known and await in_thread(capture.state) == last:
            return None
        root, state = await store.hold(capture)
        if state == last:
            return None
        skipped = sorted(capture.skipped.items())
        kept = [entry for entry in capture.entries.values() if entry.kind is not Kind.FOLDER]
        checkpoint = Checkpoint(
            id=secrets.token_hex(6),
            number=held[-1].number + 1 if held else 1,
            directory=store.shown,
            created_at=self._clock.now(),
            files=len(kept),
            bytes=sum(entry.size for entry in kept),
            skipped=tuple(Skip(trees.readable(p), why) for p, why in skipped[: model.MAX_SKIPPED_SHOWN]),
            skipped_count=len(skipped),
            state=state,
            **facts,
        )
        await store.add(checkpoint, root)
        log.info("checkpoint_made", id=checkpoint.id, directory=checkpoint.directory, files=checkpoint.files)
        return checkpoint

    async def _drop_oldest(
        self, store: CheckpointStore, held: list[Checkpoint], spared: Collection[Checkpoint] = ()
    ) -> None:
        """Keep to the maximum, and tidy up now and then."""
        excess = len(held) - self._max
        droppable = [each for each in held[:-1] if each not in spared or self._max == 1]
        await store.drop(droppable[: max(0, excess)])
        if not store.is_crowded:
            return
        try:
            await store.free_room()
        except errors.CheckpointError as error:
            log.warning("checkpoint_store_not_tidied", directory=store.shown, error=str(error))

    # Going back

    async def _restore(
        self, store: CheckpointStore, folder: Folder, checkpoint: Checkpoint, within: str | None, facts: Facts
    ) -> Restored:
        wanted, skipped_then = await store.read(checkpoint)
        if within is not None and within not in wanted:
            raise errors.PathNotKept(checkpoint_id=checkpoint.id, path=within)
        capture = await self._capture(store, folder, keep=wanted)
        held = await store.checkpoints()
        situation = RestoreSituation(wanted, capture.entries, skipped_then, capture.skipped)
        await in_thread(plans.make_plan, situation, within)
        made = await self._keep(store, capture, held, facts)
        safety = made or held[-1]
        # What is captured is complete only now.
        plan = await in_thread(plans.make_plan, situation, within)
        await store.check_contents(checkpoint, {wanted[path].oid for path in plan.writes})
        restorer = Restorer(capture.folder, wanted, capture.found)
        try:
            async with store.git.objects() as objects:
                await restorer.carry_out(plan, capture.leftovers, objects)
        except (OSError, errors.GitFailed, ChangedMeanwhile) as error:
            why = "it changed meanwhile" if isinstance(error, ChangedMeanwhile) else error
            at = trees.readable(restorer.at)
            raise errors.RestoreStopped(path=at, why=why, safety=safety.id) from error
        log.info("checkpoint_restored", id=checkpoint.id, directory=checkpoint.directory, safety=safety.id)
        await self._drop_oldest(store, [*held, made] if made else held, spared=(checkpoint, safety))
        return Restored(
            checkpoint=checkpoint,
            safety=safety,
            written=tuple(map(trees.readable, plan.writes)),
            removed=tuple(map(trees.readable, reversed(plan.removals))),
        )


def _not_held(
    store: CheckpointStore, checkpoint_id: str, owner: str | None = None
) -> errors.UnknownCheckpoint:
    if owner is None:
        return errors.UnknownCheckpoint(checkpoint_id=checkpoint_id, directory=store.shown)
    return errors.ForeignCheckpoint(checkpoint_id=checkpoint_id, owner=owner, directory=store.shown)


def _facts(
    label: str, session_id: str | None, turn_id: str | None, before_restore: str | None = None
) -> Facts:
    if not isinstance(label, str):
        raise errors.InvalidInput(what=f"label = {type(label).__name__}", why="use a text")
    return {
        "label": " ".join(quoting.clean_text(label).split("\n")),
        "session_id": model.check_link("session_id", session_id),
        "turn_id": model.check_link("turn_id", turn_id),
        "before_restore": before_restore,
    }


def _checked_path(path: str) -> str:
    """A path below the directory, in the form of the manifest."""
    if not isinstance(path, str) or not path or "\0" in path:
        raise errors.UnsafePath(path=path, why="use a path relative to the directory")
    if os.path.isabs(path):
        raise errors.UnsafePath(path=path, why="it is absolute; use a path relative to the directory")
    names = [name for name in path.split("/") if name not in ("", ".")]
    if not names or ".." in names:
        raise errors.UnsafePath(path=path, why="it leads out of the directory")
    return "/".join(names)


def _default_root() -> Path:
    try:
        return DEFAULT_ROOT.expanduser().resolve()
    except RuntimeError as error:
        raise errors.InvalidInput(what="root = None", why=f"{error} Name a folder.") from error
