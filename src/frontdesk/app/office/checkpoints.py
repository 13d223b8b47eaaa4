"""What is asked about checkpoints of the agents' working directories."""

from frontdesk import errors
from frontdesk.app.office.counters import Counter
from frontdesk.app.office.plain import Plain, plain
from frontdesk.contracts.snapshots import Snapshots
from frontdesk.model import checkpoints, routing
from frontdesk.model.checkpoints import Checkpoint


class CheckpointCounter(Counter):
    async def list_checkpoints(self, profile: str | None = None) -> list[Plain]:
        """The checkpoints of an agent's working directory, newest first."""
        snapshots, directory = self._checkpoints(profile)
        return [plain(each) for each in await snapshots.list_checkpoints(directory)]

    async def show_checkpoint(self, checkpoint: str, profile: str | None = None) -> Plain:
        """The checkpoint with this number or id."""
        return plain(await self._checkpoint(checkpoint, profile))

    async def diff_checkpoint(self, checkpoint: str, profile: str | None = None) -> Plain:
        """What has changed since."""
        snapshots, directory = self._checkpoints(profile)
        return plain(await snapshots.diff(directory, (await self._checkpoint(checkpoint, profile)).id))

    async def restore_checkpoint(
        self, checkpoint: str, path: str | None = None, profile: str | None = None
    ) -> Plain:
        """Make the working directory, or one path in it, what it was."""
        snapshots, directory = self._checkpoints(profile)
        return plain(
            await snapshots.restore(directory, (await self._checkpoint(checkpoint, profile)).id, path)
        )

    async def prune_checkpoints(self, profile: str | None = None) -> int:
        """Drop the oldest past the maximum and free their room; how many were dropped."""
        snapshots, directory = self._checkpoints(profile)
        return await snapshots.prune(directory)

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
