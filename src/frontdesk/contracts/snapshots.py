"""Snapshots of a working directory: taking them, looking at them, going back."""

from pathlib import Path
from typing import Protocol

from frontdesk.model.checkpoints import Checkpoint, Diff, Restored

Directory = str | Path


class Snapshots(Protocol):
    """Checkpoints of directories. Calls for the same directory happen one after the other."""

    async def create_checkpoint(
        self, directory: Directory, label: str, session_id: str | None = None, turn_id: str | None = None
    ) -> Checkpoint | None:
        """Keep the present state; None when it is the state of the last checkpoint."""

    async def list_checkpoints(self, directory: Directory) -> list[Checkpoint]:
        """The kept ones, the newest first."""

    async def find(self, directory: Directory, checkpoint_id: str) -> Checkpoint | None: ...

    async def diff(self, directory: Directory, checkpoint_id: str) -> Diff:
        """What has changed since the checkpoint."""

    async def restore(
        self,
        directory: Directory,
        checkpoint_id: str,
        path: str | None = None,
        *,
        session_id: str | None = None,
        turn_id: str | None = None,
    ) -> Restored:
        """Make the directory, or one path in it, what it was, after a checkpoint of what it is, which belongs
        to the session and the turn."""

    async def prune(self, directory: Directory) -> int:
        """Drop the oldest past the maximum and free their room; how many were dropped."""
