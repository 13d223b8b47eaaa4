"""The agent's working directory and its checkpoints, as plain data."""

from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.contracts.snapshots import Snapshots
from frontdesk.model import checkpoints
from frontdesk.model.checkpoints import Checkpoint

Plain = dict[str, Any]


class Workplace:
    def __init__(self, snapshots: Snapshots, directory: str) -> None:
        self._snapshots = snapshots
        self._directory = directory

    async def list(self) -> list[Plain]:
        """The checkpoints, the newest first."""
        return [_plain(each) for each in await self._snapshots.list_checkpoints(self._directory)]

    async def show(self, name: str) -> Plain:
        return _plain(await self._find(name))

    async def diff(self, name: str) -> Plain:
        """What has changed since the checkpoint."""
        found = await self._find(name)
        return _plain(await self._snapshots.diff(self._directory, found.id))

    async def restore(self, name: str, path: str | None) -> Plain:
        found = await self._find(name)
        return _plain(await self._snapshots.restore(self._directory, found.id, path))

    async def prune(self) -> int:
        return await self._snapshots.prune(self._directory)

    async def _find(self, name: str) -> Checkpoint:
        found = checkpoints.find_named(await self._snapshots.list_checkpoints(self._directory), name)
        if found is None:
            raise errors.UnknownCheckpoint(checkpoint_id=name, directory=self._directory)
        return found


def _plain(record: msgspec.Struct) -> Plain:
    data: Plain = msgspec.to_builtins(record)
    return data
