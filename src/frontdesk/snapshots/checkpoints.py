"""Checkpoints of working directories, each directory's in a store of its own."""

import asyncio
import os
import secrets
import weakref
from collections.abc import AsyncIterator, Collection, Container, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import NamedTuple

from frontdesk import errors
from frontdesk.contracts.clock import Clock, SystemClock
from frontdesk.contracts.snapshots import Directory
from frontdesk.formats import quoting
from frontdesk.logs import get_logger
from frontdesk.model import checkpoints as model
from frontdesk.model.checkpoints import Checkpoint, Diff, Limits, Restored, Skip
from frontdesk.snapshots import plans, stores, trees
from frontdesk.snapshots.captures import Capture
from frontdesk.snapshots.folders import Folder
from frontdesk.snapshots.plans import Plan, Situation
from frontdesk.snapshots.restores import ChangedMeanwhile, Restorer
from frontdesk.snapshots.stores import Place, Store
from frontdesk.snapshots.threads import in_thread
from frontdesk.snapshots.trees import Kind
from frontdesk.snapshots.walks import Walk

log = get_logger(__name__)

DEFAULT_ROOT = Path("~/.frontdesk/checkpoints")
FILES_TREE = "files"
CUT = "\n… cut here\n"


class Facts(NamedTuple):
    """What a checkpoint is told about itself."""

    label: str
    session_id: str | None = None
    turn_id: str | None = None
    before_restore: str | None = None


class Stored(NamedTuple):
    """A captured state in the store: the tree that holds it, and its name."""

    root: str
    state: str


class Job(NamedTuple):
    """A directory and its store, for one caller at a time."""

    directory: Path
    store: Store
    folder: Folder


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
        async with self._job(self._existing(directory)) as job:
            held = await job.store.checkpoints()
            capture = await self._capture(job)
            made = await self._keep(job, capture, held, facts)
            if made:
                await self._drop_oldest(job, [*held, made])
            return made

    async def list_checkpoints(self, directory: Directory) -> list[Checkpoint]:
        """The kept ones, the newest first."""
        place = Place(self._root, self._resolved(directory))
        if not place.is_ready:
            return []
        async with self._store(place) as store:
            return list(reversed(await store.checkpoints()))

    async def find(self, directory: Directory, checkpoint_id: str) -> Checkpoint | None:
        """The checkpoint of this directory with this id, or None."""
        if not model.is_checkpoint_id(checkpoint_id):
            return None
        held = await self.list_checkpoints(directory)
        return next((each for each in held if each.id == checkpoint_id), None)

    async def diff(self, directory: Directory, checkpoint_id: str) -> Diff:
        """What has changed since the checkpoint, as changes and as text, both up to the limits."""
        path = self._existing(directory)
        await self._check_held(path, checkpoint_id)
        async with self._job(path) as job:
            checkpoint = await self._pick(job, checkpoint_id)
            before, _ = await job.store.read(checkpoint)
            capture = await self._capture(job, keep=before)
            stored = await self._store_contents(job, capture)
            changes = tuple(trees.compare(before, capture.entries))
            text, more = await self._diff_text(job, checkpoint, stored.root)
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
        resolved = self._resolved(directory)
        await self._check_held(resolved, checkpoint_id)
        await in_thread(_make_again, resolved)
        async with self._job(resolved) as job:
            checkpoint = await self._pick(job, checkpoint_id)
            return await self._restore(job, checkpoint, within, facts)

    async def prune(self, directory: Directory) -> int:
        """Drop the oldest past the maximum and free the room of all dropped ones; how many were dropped."""
        place = Place(self._root, self._resolved(directory))
        if not place.is_ready:
            return 0
        async with self._store(place) as store:
            held = await store.checkpoints()
            dropped = held[: -self._max]
            await store.drop(dropped)
            await store.free_room()
            return len(dropped)

    # Finding the way

    def _resolved(self, directory: Directory) -> Path:
        try:
            path = Path(directory).resolve()
        except (OSError, RuntimeError, TypeError, ValueError) as error:
            raise errors.UnusableDirectory(directory=repr(directory), why=error) from error
        if path == Path(path.anchor):
            raise errors.UnusableDirectory(directory=path, why="it is the root of all directories")
        if path in self._private or path.is_relative_to(self._root):
            raise errors.UnusableDirectory(directory=path, why="frontdesk keeps its own files there")
        return path

    def _existing(self, directory: Directory) -> Path:
        path = self._resolved(directory)
        if not path.is_dir():
            why = "it is not a folder" if path.exists() else "there is no such folder"
            raise errors.UnusableDirectory(directory=path, why=why)
        return path

    @asynccontextmanager
    async def _store(self, place: Place) -> AsyncIterator[Store]:
        queue = self._queues.setdefault(place.folder, asyncio.Lock())
        async with _queued(queue, place, self._limits.lock_seconds):
            with _translated(place.directory):
                async with stores.opened(place, self._git, self._limits) as store:
                    yield store

    @asynccontextmanager
    async def _job(self, directory: Path) -> AsyncIterator[Job]:
        async with self._store(Place(self._root, directory)) as store:
            with Folder(directory) as folder:
                yield Job(directory, store, folder)

    async def _check_held(self, directory: Path, checkpoint_id: str) -> None:
        """Refuse an id that is none, unknown or of another directory, before anything is made."""
        shown = trees.readable(str(directory))
        if not model.is_checkpoint_id(checkpoint_id):
            raise errors.UnknownCheckpoint(checkpoint_id=checkpoint_id, directory=shown)
        if Place(self._root, directory).has(checkpoint_id):
            return
        owner = await in_thread(stores.find_owner, self._root, checkpoint_id)
        if owner is None:
            raise errors.UnknownCheckpoint(checkpoint_id=checkpoint_id, directory=shown)
        raise errors.ForeignCheckpoint(checkpoint_id=checkpoint_id, owner=owner, directory=shown)

    async def _pick(self, job: Job, checkpoint_id: str) -> Checkpoint:
        shown = job.store.place.shown
        for each in await job.store.checkpoints():
            if each.id == checkpoint_id:
                if each.directory != shown:
                    raise errors.ForeignCheckpoint(
                        checkpoint_id=checkpoint_id, owner=each.directory, directory=shown
                    )
                return each
        raise errors.UnknownCheckpoint(checkpoint_id=checkpoint_id, directory=shown)

    # Taking in

    async def _capture(self, job: Job, keep: Container[str] = ()) -> Capture:
        walk = Walk(job.directory, self._limits, self._private, keep)
        await in_thread(walk.run, job.folder)
        capture = Capture(job.folder, walk, await in_thread(job.store.read_cache))
        await in_thread(capture.look)
        return capture

    async def _store_contents(self, job: Job, capture: Capture) -> Stored:
        """Put what is captured into the store. One that lacks what it should hold gets everything again."""
        try:
            return await self._try_to_store(job, capture)
        except errors.GitFailed:
            if not await in_thread(capture.look_again):
                raise
        log.warning("checkpoint_store_incomplete", directory=job.store.place.shown)
        job.store.drop_cache()
        return await self._try_to_store(job, capture)

    async def _try_to_store(self, job: Job, capture: Capture) -> Stored:
        await job.store.git.import_blobs(capture.pieces())
        await in_thread(capture.cache().write, job.store.place.cache)
        # Git checks that all of it is there.
        orders, stored = await in_thread(_git_trees, capture)
        await job.store.git.run("mktree", "-z", "--batch", data=orders)
        return stored

    async def _keep(
        self, job: Job, capture: Capture, held: list[Checkpoint], facts: Facts
    ) -> Checkpoint | None:
        """Make a checkpoint of what is captured; None when the last one holds just that."""
        last = held[-1].state if held else None
        if capture.is_known and await in_thread(capture.state) == last:
            return None
        stored = await self._store_contents(job, capture)
        if stored.state == last:
            return None
        checkpoint = self._describe(job, capture, stored.state, facts, held)
        await job.store.add(checkpoint, stored.root)
        log.info("checkpoint_made", id=checkpoint.id, directory=checkpoint.directory, files=checkpoint.files)
        return checkpoint

    def _describe(
        self, job: Job, capture: Capture, state: str, facts: Facts, held: list[Checkpoint]
    ) -> Checkpoint:
        skipped = sorted(capture.skipped.items())
        kept = [entry for entry in capture.entries.values() if entry.kind is not Kind.FOLDER]
        return Checkpoint(
            id=secrets.token_hex(6),
            number=held[-1].number + 1 if held else 1,
            directory=job.store.place.shown,
            created_at=self._clock.now(),
            files=len(kept),
            bytes=sum(entry.size for entry in kept),
            skipped=tuple(Skip(trees.readable(p), why) for p, why in skipped[: model.MAX_SKIPPED_SHOWN]),
            skipped_count=len(skipped),
            state=state,
            **facts._asdict(),
        )

    async def _drop_oldest(
        self, job: Job, held: list[Checkpoint], spared: Collection[Checkpoint] = ()
    ) -> None:
        """Keep to the maximum, and tidy up now and then."""
        excess = len(held) - self._max
        droppable = [each for each in held[:-1] if each not in spared or self._max == 1]
        await job.store.drop(droppable[: max(0, excess)])
        if not job.store.is_crowded:
            return
        try:
            await job.store.free_room()
        except errors.CheckpointError as error:
            log.warning("checkpoint_store_not_tidied", directory=job.store.place.shown, error=str(error))

    # Looking

    async def _diff_text(self, job: Job, checkpoint: Checkpoint, root: str) -> tuple[str, bool]:
        sides = f"{stores.REFS}{checkpoint.id}:{FILES_TREE}", f"{root}:{FILES_TREE}"
        options = ("-r", "-p", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")
        data, more = await job.store.git.read_up_to(
            self._limits.max_diff_bytes, "diff-tree", *options, *sides, "--"
        )
        return data.decode("utf-8", "replace") + (CUT if more else ""), more

    # Going back

    async def _restore(self, job: Job, checkpoint: Checkpoint, within: str | None, facts: Facts) -> Restored:
        wanted, skipped_then = await job.store.read(checkpoint)
        if within is not None and within not in wanted:
            raise errors.PathNotKept(checkpoint_id=checkpoint.id, path=within)
        capture = await self._capture(job, keep=wanted)
        held = await job.store.checkpoints()
        situation = Situation(wanted, capture.entries, skipped_then, capture.skipped)
        await in_thread(plans.make_plan, situation, within)
        made = await self._keep(job, capture, held, facts)
        safety = made or held[-1]
        # What is captured is complete only now.
        plan = await in_thread(plans.make_plan, situation, within)
        await self._carry_out(job, capture, checkpoint, safety, situation, plan)
        await self._drop_oldest(job, [*held, made] if made else held, spared=(checkpoint, safety))
        return Restored(
            checkpoint=checkpoint,
            safety=safety,
            written=tuple(map(trees.readable, plan.writes)),
            removed=tuple(map(trees.readable, reversed(plan.removals))),
        )

    async def _carry_out(
        self,
        job: Job,
        capture: Capture,
        checkpoint: Checkpoint,
        safety: Checkpoint,
        situation: Situation,
        plan: Plan,
    ) -> None:
        wanted = situation.wanted
        await _check_contents(job, checkpoint, {wanted[path].oid for path in plan.writes})
        restorer = Restorer(job.folder, wanted, capture.found)
        try:
            async with job.store.git.objects() as objects:
                await restorer.carry_out(plan, capture.leftovers, objects)
        except (OSError, errors.GitFailed, ChangedMeanwhile) as error:
            why = "it changed meanwhile" if isinstance(error, ChangedMeanwhile) else error
            at = trees.readable(restorer.at)
            raise errors.RestoreStopped(path=at, why=why, safety=safety.id) from error
        log.info("checkpoint_restored", id=checkpoint.id, directory=checkpoint.directory, safety=safety.id)


def _git_trees(capture: Capture) -> tuple[bytes, Stored]:
    """What ``git mktree`` is to make of a capture, and what that will be."""
    state = capture.state()
    skipped = trees.blob_id(trees.encode_skipped(capture.skipped))
    texts, root = trees.git_trees(capture.entries, state, skipped)
    return b"".join(texts), Stored(root, state)


async def _check_contents(job: Job, checkpoint: Checkpoint, oids: Collection[str]) -> None:
    """See that all that will be written can be read, before anything is changed."""
    async with job.store.git.objects() as objects:
        missing = await objects.missing(oids)
    if missing:
        raise errors.CheckpointDamaged(checkpoint_id=checkpoint.id, why=f"the store lacks {missing}")


@asynccontextmanager
async def _queued(queue: asyncio.Lock, place: Place, seconds: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            await queue.acquire()
    except TimeoutError:
        raise errors.CheckpointsBusy(directory=place.shown, seconds=f"{seconds:g}") from None
    try:
        yield
    finally:
        queue.release()


@contextmanager
def _translated(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = f"{error.strerror or error} ({error.filename})" if error.filename else error.strerror or error
        raise errors.UnusableDirectory(directory=directory, why=why) from error


def _facts(
    label: str, session_id: str | None, turn_id: str | None, before_restore: str | None = None
) -> Facts:
    if not isinstance(label, str):
        raise errors.InvalidInput(what=f"label = {type(label).__name__}", why="use a text")
    return Facts(
        " ".join(quoting.clean_text(label).split("\n")),
        model.check_link("session_id", session_id),
        model.check_link("turn_id", turn_id),
        before_restore,
    )


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


def _make_again(directory: Path) -> None:
    """The directory itself may have been deleted since."""
    with _translated(directory):
        directory.mkdir(exist_ok=True)
