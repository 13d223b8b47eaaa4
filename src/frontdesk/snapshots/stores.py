"""The store of one directory's checkpoints: a bare git store, a lock, and what is known of files."""

import asyncio
import fcntl
import hashlib
import os
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager, suppress
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
OWNER = "directory"
"""The file that says whose checkpoints they are."""
CUT = "\n… cut here\n"
MAX_PACKS = 32
STALE = ("*.lock", "refs/checkpoints/*.lock", "fast_import_crash_*", "objects/pack/tmp_*")
"""What a killed git leaves behind. Whoever holds the lock knows that nobody uses it."""

_DECODER = msgspec.json.Decoder(Checkpoint)


class CheckpointStore:
    """The checkpoints of a directory, by its real path. One reference per checkpoint, to a commit without
    parents: each stands alone."""

    git: Git
    """While the store is opened."""

    def __init__(self, root: Path, directory: Path) -> None:
        self.directory = directory
        self.shown = trees.readable(str(directory))
        self.folder = root / hashlib.sha256(os.fsencode(directory)).hexdigest()
        self._git_folder = self.folder / "git"
        self._cache = self.folder / "cache"
        self._ready = self.folder / "ready"

    @property
    def is_ready(self) -> bool:
        return self._ready.exists()

    def has(self, checkpoint_id: str) -> bool:
        return (self._git_folder / REFS / checkpoint_id).exists()

    @asynccontextmanager
    async def opened(self, queue: asyncio.Lock, program: str, limits: Limits) -> AsyncIterator[None]:
        """For one caller among all processes."""
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout(limits.lock_seconds):
                    # Callers of this process queue in their order; the lock is for other processes.
                    await held.enter_async_context(queue)
                    await in_thread(self._make_folders)
                    lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                    held.callback(os.close, lock)
                    while not _try_lock(lock):  # noqa: ASYNC110 - nobody tells us
                        await asyncio.sleep(LOCK_POLL_SECONDS)
            except TimeoutError:
                seconds = f"{limits.lock_seconds:g}"
                raise errors.CheckpointsBusy(directory=self.shown, seconds=seconds) from None
            self.git = Git(program, self._git_folder, limits.git_seconds, lock)
            await in_thread(self._sweep)
            if not self.is_ready:
                await self.git.run("init", "--quiet", "--bare", "--template=", "--object-format=sha1")
                (self.folder / OWNER).write_text(self.shown + "\n", encoding="utf-8")
                self._ready.touch(mode=0o600)
            yield

    def _make_folders(self) -> None:
        """For their owner alone."""
        self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._git_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)

    def _sweep(self) -> None:
        for pattern in STALE:
            for left in self._git_folder.glob(pattern):
                left.unlink(missing_ok=True)

    async def checkpoints(self) -> list[Checkpoint]:
        """All, the oldest first."""
        printed = await self.git.run("for-each-ref", f"--format={LISTING}", REFS)
        fields = printed.split(b"\0")
        found = map(_read_checkpoint, fields[0::2], fields[1::2])
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
        log.warning("checkpoint_store_incomplete", directory=self.shown)
        self._cache.unlink(missing_ok=True)
        return await self._try_to_hold(capture)

    async def _try_to_hold(self, capture: Capture) -> tuple[str, str]:
        await self.git.import_blobs(capture.pieces())
        await in_thread(capture.cache().write, self._cache)
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
            try:
                for oid in oids:
                    async for _ in objects.chunks(oid):
                        pass
            except errors.GitFailed as error:
                raise errors.CheckpointDamaged(checkpoint_id=checkpoint.id, why=error) from error

    def read_cache(self) -> Cache:
        return caches.read_cache(self._cache)

    @property
    def is_crowded(self) -> bool:
        packs = (self._git_folder / "objects" / "pack").glob("*.pack")
        return sum(1 for _ in packs) >= MAX_PACKS

    async def free_room(self) -> None:
        """Drop what no checkpoint holds. What is known of files shrinks to what is still there."""
        cache = await in_thread(self.read_cache)
        self._cache.unlink(missing_ok=True)
        await self.git.run("repack", "-a", "-d", "-q", "--no-write-bitmap-index")
        await self.git.run("prune", "--expire=now")
        held = await self.checkpoints()
        if held:
            entries, _ = await self.read(held[-1])
            await in_thread(cache.of({entry.oid for entry in entries.values()}).write, self._cache)


def find_owner(root: Path, checkpoint_id: str) -> str | None:
    """The directory that a checkpoint is of, among all stores."""
    for ref in root.glob(f"*/git/{REFS}{checkpoint_id}"):
        with suppress(OSError):
            return (ref.parents[3] / OWNER).read_text(encoding="utf-8").rstrip("\n")
    return None


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read_checkpoint(commit: bytes, text: bytes) -> Checkpoint | None:
    """None for one that cannot be read: the others are served."""
    try:
        return _DECODER.decode(text)
    except msgspec.DecodeError as error:
        log.warning("checkpoint_unreadable", commit=commit.decode("ascii").strip(), error=str(error))
        return None
