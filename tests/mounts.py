"""Real file systems that are too small."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def tiny_disk(folder: Path) -> Iterator[Path]:
    """A real file system of six megabytes; the test is skipped where none can be had."""
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"a file system cannot be mounted here: {mounted.stderr}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def enlarge(folder: Path) -> None:
    """Ten times as much room."""
    subprocess.run(["mount", "-o", "remount,size=60m", folder], check=True, capture_output=True)
