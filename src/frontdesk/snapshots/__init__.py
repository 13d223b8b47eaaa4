"""Checkpoints of working directories, kept by git in stores of their own."""

from frontdesk.snapshots.checkpoints import CheckpointManager

__all__ = ["CheckpointManager"]
