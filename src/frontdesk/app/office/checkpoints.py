"""What is asked about checkpoints of the agents' working directories."""

from typing import TypedDict, cast

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.app.office.counters import LIST_LIMIT, Counter
from frontdesk.app.office.plain import plain
from frontdesk.contracts.snapshots import Snapshots
from frontdesk.flow import restoring
from frontdesk.model import checkpoints, pages, routing
from frontdesk.model.checkpoints import Checkpoint, Restored

LATEST = 10**18
MOST_LEFT_OUT = 10
"""Of what a checkpoint does not hold, in a list of many."""


class Workplace(TypedDict):
    """Where the agent of a profile works; profiles without a directory of their own work in the first."""

    profile: str
    directory: str


class LeftOut(TypedDict):
    path: str
    reason: str


class KeptState(TypedDict):
    """A checkpoint."""

    id: str
    number: int
    directory: str
    label: str
    created_at: str
    session_id: str | None
    turn_id: str | None
    before_restore: str | None
    """The checkpoint that was about to be restored, when this one keeps the state before."""
    files: int
    bytes: int
    skipped: list[LeftOut]
    """The first of them."""
    skipped_count: int
    state: str


class KeptStates(TypedDict):
    items: list[KeptState]
    next: str | None


class PathChange(TypedDict):
    path: str
    kind: str


class CheckpointDiff(TypedDict):
    checkpoint: KeptState
    changes: list[PathChange]
    text: str
    truncated: bool


class RestoreOutcome(TypedDict):
    checkpoint: KeptState
    safety: KeptState
    """The state before: restoring it undoes this."""
    changed: int
    """How many paths were written or removed."""
    written: list[str]
    removed: list[str]


class CheckpointCounter(Counter):
    async def list_workplaces(self) -> list[Workplace]:
        """The working directories that checkpoints are made of, that of the default profile first; none where
        they are switched off."""
        snapshots, usual = self._workplace()
        if snapshots is None:
            return []
        profiles = self._conversations.config.profiles
        found: list[Workplace] = [{"profile": routing.DEFAULT, "directory": usual}] if usual else []
        for name, profile in profiles.items():
            if profile.working_dir and name != routing.DEFAULT:
                found.append({"profile": name, "directory": profile.working_dir})
        return found

    async def list_checkpoints(
        self, profile: str | None = None, after: str | None = None, limit: int = LIST_LIMIT
    ) -> KeptStates:
        """The checkpoints of an agent's working directory, newest first; of what each left out 10 at most."""
        snapshots, directory = self._checkpoints(profile)
        before, _ = pages.read_place(after, LATEST)
        kept = [each for each in await snapshots.list_checkpoints(directory) if each.number < before]
        shown, goes_on = pages.cut(kept, pages.check_items(limit))
        return {
            "items": [_state(replace(each, skipped=each.skipped[:MOST_LEFT_OUT])) for each in shown],
            "next": pages.place(shown[-1].number) if goes_on else None,
        }

    async def show_checkpoint(self, checkpoint: str, profile: str | None = None) -> KeptState:
        """The checkpoint with this number or id."""
        return _state(await self._checkpoint(checkpoint, profile))

    async def diff_checkpoint(self, checkpoint: str, profile: str | None = None) -> CheckpointDiff:
        """What has changed since."""
        snapshots, directory = self._checkpoints(profile)
        found = await snapshots.diff(directory, (await self._checkpoint(checkpoint, profile)).id)
        return cast(CheckpointDiff, plain(found))

    async def restore_checkpoint(
        self, checkpoint: str, path: str | None = None, profile: str | None = None
    ) -> RestoreOutcome:
        """Make the working directory, or one path in it, what it was; the audit log says who did. Of what
        was written, and of what was removed, the first 1,000 paths are named."""
        snapshots, _ = self._checkpoints(profile)
        kept = await self._checkpoint(checkpoint, profile)
        try:
            done = await restoring.restore(
                self._store, snapshots, kept, path, by=self._by.who, clock=self._clock
            )
            return _outcome(done)
        finally:  # whatever it came to, the directory may have changed
            await self._store.feed.tell_checkpoint(self._clock.now())

    async def prune_checkpoints(self, profile: str | None = None) -> int:
        """Drop the oldest past the maximum and free their room; how many were dropped."""
        snapshots, directory = self._checkpoints(profile)
        pruned = await snapshots.prune(directory)
        await self._store.feed.tell_checkpoint(self._clock.now())
        return pruned

    async def _checkpoint(self, name: str, profile: str | None) -> Checkpoint:
        snapshots, directory = self._checkpoints(profile)
        found = checkpoints.find_named(await snapshots.list_checkpoints(directory), name)
        if found is None:
            raise errors.UnknownCheckpoint(checkpoint_id=name, directory=directory)
        return found

    def _checkpoints(self, profile: str | None) -> tuple[Snapshots, str]:
        """Where the agent of a profile works; that of the default one, unless another is named."""
        config = self._conversations.config
        config.check_profile(profile)
        own = config.profiles.get(profile or "", routing.PLAIN).working_dir
        snapshots, usual = self._workplace()
        directory = own or usual
        if snapshots is None or directory is None:
            raise errors.CheckpointsOff()
        return snapshots, directory


def _outcome(done: Restored) -> RestoreOutcome:
    most = checkpoints.MAX_CHANGES_SHOWN
    told = plain(replace(done, written=done.written[:most], removed=done.removed[:most]))
    return cast(RestoreOutcome, told | {"changed": len(done.written) + len(done.removed)})


def _state(kept: Checkpoint) -> KeptState:
    return cast(KeptState, plain(kept))
