"""The store of one directory's checkpoints: a bare git store, a lock, and what is known of files."""

import asyncio
import fcntl
import hashlib
import os
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

from frontdesk import errors
from frontdesk.logs import get_logger
from frontdesk.model.checkpoints import Checkpoint, Limits, SkipReason
from frontdesk.snapshots import caches, trees
from frontdesk.snapshots.caches import Cache
from frontdesk.snapshots.captures import Capture
from frontdesk.snapshots.folders import in_thread
from frontdesk.snapshots.git import Git
from frontdesk.snapshots.trees import Entry

log = get_logger(__name__)

REFS = "refs/checkpoints/"
LISTING = "%(objectname)%00%(contents)%00"
NO_OBJECT = "0" * 40
LOCK_POLL_SECONDS = 0.02
FILES_TREE = "files"
CUT = "\n… cut here\n"
MAX_PACKS = 32
STALE = ("*.lock", "refs/checkpoints/*.lock", "fast_import_crash_*", "objects/pack/tmp_*")
"""What a killed git leaves behind. Whoever holds the lock knows that nobody uses it."""

_DECODER = msgspec.json.Decoder(Checkpoint)


class CheckpointPlace:
    """Where the checkpoints of a directory are, by the directory's real path."""

    def __init__(self, root: Path, directory: Path) -> None:
        self.directory = directory
        name = hashlib.sha256(os.fsencode(directory)).hexdigest()
        self.folder = root / name
        self.git = self.folder / "git"
        self.cache = self.folder / "cache"
        self.owner = self.folder / "directory"
        self._lock = self.folder / "lock"
        self._ready = self.folder / "ready"

    @property
    def shown(self) -> str:
        return trees.readable(str(self.directory))

    @property
    def is_ready(self) -> bool:
        return self._ready.exists()

    def prepare(self) -> None:
        """Make the folders, for their owner alone."""
        self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.git.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)

    def mark_ready(self) -> None:
        """Say that the store is complete, and whose it is."""
        self.owner.write_text(self.shown + "\n", encoding="utf-8")
        self._ready.touch(mode=0o600)

    def open_lock(self) -> int:
        return os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def sweep(self) -> None:
        for pattern in STALE:
            for left in self.git.glob(pattern):
                left.unlink(missing_ok=True)

    def has(self, checkpoint_id: str) -> bool:
        return (self.git / REFS / checkpoint_id).exists()


def find_owner(root: Path, checkpoint_id: str) -> str | None:
    """The directory that a checkpoint is of, among all stores."""
    for ref in root.glob(f"*/git/{REFS}{checkpoint_id}"):
        with suppress(OSError):
            return (ref.parents[3] / "directory").read_text(encoding="utf-8").rstrip("\n")
    return None


@asynccontextmanager
async def opened(place: CheckpointPlace, program: str, limits: Limits) -> AsyncIterator["CheckpointStore"]:
    """The store, for one caller among all processes."""
    await in_thread(place.prepare)
    lock = place.open_lock()
    try:
        await _take(lock, place, limits.lock_seconds)
        store = CheckpointStore(place, Git(program, place.git, limits.git_seconds, lock))
        await store.prepare()
        yield store
    finally:
        os.close(lock)


async def _take(lock: int, place: CheckpointPlace, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not _try_lock(lock):
        if loop.time() > deadline:
            raise errors.CheckpointsBusy(directory=place.shown, seconds=f"{seconds:g}")
        await asyncio.sleep(LOCK_POLL_SECONDS)


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class CheckpointStore:
    """An opened store. One reference per checkpoint, to a commit without parents: each stands alone."""

    def __init__(self, place: CheckpointPlace, git: Git) -> None:
        self.place = place
        self.git = git

    async def prepare(self) -> None:
        await in_thread(self.place.sweep)
        if not self.place.is_ready:
            await self.git.run("init", "--quiet", "--bare", "--template=", "--object-format=sha1")
            self.place.mark_ready()

    async def checkpoints(self) -> list[Checkpoint]:
        """All, the oldest first."""
        printed = await self.git.run("for-each-ref", f"--format={LISTING}", REFS)
        found = (_read_checkpoint(name, text) for name, text in _pairs(printed))
        return sorted((each for each in found if each), key=lambda each: each.number)

    async def add(self, checkpoint: Checkpoint, tree: str) -> None:
        """Keep it: from here on it is there, whatever happens."""
        message = msgspec.json.encode(checkpoint)
        commit = (await self.git.run("commit-tree", tree, data=message)).decode("ascii").strip()
        await self.git.run("update-ref", REFS + checkpoint.id, commit, NO_OBJECT)

    async def drop(self, checkpoints: Collection[Checkpoint]) -> None:
        if checkpoints:
            orders = "".join(f"delete {REFS}{each.id}\n" for each in checkpoints)
            await self.git.run("update-ref", "--stdin", data=orders.encode("ascii"))

    async def read(self, checkpoint: Checkpoint) -> tuple[dict[str, Entry], dict[str, SkipReason]]:
        """What it holds, and what was left out of it."""
        name = REFS + checkpoint.id
        try:
            async with self.git.objects() as objects:
                entries = await in_thread(trees.decode_manifest, await objects.read(f"{name}:manifest"))
                skipped = await in_thread(trees.decode_skipped, await objects.read(f"{name}:skipped"))
        except (errors.GitFailed, ValueError) as error:
            raise errors.CheckpointDamaged(checkpoint_id=checkpoint.id, why=error) from error
        return entries, skipped

    async def hold(self, capture: Capture) -> tuple[str, str]:
        """Put in what is captured: the tree that holds it, and the name of the state. A store that lacks what
        it should hold gets everything again."""
        try:
            return await self._try_to_hold(capture)
        except errors.GitFailed:
            if not await in_thread(capture.look_again):
                raise
        log.warning("checkpoint_store_incomplete", directory=self.place.shown)
        self.drop_cache()
        return await self._try_to_hold(capture)

    async def _try_to_hold(self, capture: Capture) -> tuple[str, str]:
        await self.git.import_blobs(capture.pieces())
        await in_thread(capture.cache().write, self.place.cache)
        # Git checks that all of it is there.
        orders, root, state = await in_thread(capture.trees)
        await self.git.run("mktree", "-z", "--batch", data=orders)
        return root, state

    async def diff_text(self, checkpoint: Checkpoint, root: str, most_bytes: int) -> tuple[str, bool]:
        """What differs between a checkpoint and a tree, and whether there is more than that."""
        sides = f"{REFS}{checkpoint.id}:{FILES_TREE}", f"{root}:{FILES_TREE}"
        options = ("-r", "-p", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")
        data, more = await self.git.read_up_to(most_bytes, "diff-tree", *options, *sides, "--")
        return data.decode("utf-8", "replace") + (CUT if more else ""), more

    async def check_contents(self, checkpoint: Checkpoint, oids: Collection[str]) -> None:
        """See that all that will be written can be read, before anything is changed."""
        async with self.git.objects() as objects:
            missing = await objects.missing(oids)
        if missing:
            raise errors.CheckpointDamaged(checkpoint_id=checkpoint.id, why=f"the store lacks {missing}")

    def read_cache(self) -> Cache:
        return caches.read_cache(self.place.cache)

    def drop_cache(self) -> None:
        self.place.cache.unlink(missing_ok=True)

    @property
    def is_crowded(self) -> bool:
        packs = (self.place.git / "objects" / "pack").glob("*.pack")
        return sum(1 for _ in packs) >= MAX_PACKS

    async def free_room(self) -> None:
        """Drop what no checkpoint holds. What is known of files shrinks to what is still there."""
        cache = await in_thread(self.read_cache)
        self.drop_cache()
        await self.git.run("repack", "-a", "-d", "-q", "--no-write-bitmap-index")
        await self.git.run("prune", "--expire=now")
        held = await self.checkpoints()
        if held:
            entries, _ = await self.read(held[-1])
            await in_thread(cache.of({entry.oid for entry in entries.values()}).write, self.place.cache)


def _pairs(printed: bytes) -> Iterator[tuple[str, bytes]]:
    """Names and messages from a listing; a line end stands before each name."""
    fields = printed.split(b"\0")
    for name, text in zip(fields[0::2], fields[1::2], strict=False):
        yield name.decode("ascii").strip(), text


def _read_checkpoint(commit: str, text: bytes) -> Checkpoint | None:
    """None for one that cannot be read: the others are served."""
    try:
        return _DECODER.decode(text)
    except msgspec.DecodeError as error:
        log.warning("checkpoint_unreadable", commit=commit, error=str(error))
        return None
