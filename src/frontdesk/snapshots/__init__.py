"""Checkpoints of working directories, kept by git in stores of their own."""

from frontdesk.snapshots.manager import CheckpointManager

__all__ = ["CheckpointManager"]
