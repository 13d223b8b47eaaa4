"""Real servers of platforms, for tests: `make peers` installs each into a folder of its own."""

from pathlib import Path

import pytest

PEERS = Path(__file__).parents[2] / ".peers"


def require(name: str) -> Path:
    """The folder with the programs of a peer; where it is not installed, the test is skipped and says why."""
    folder = PEERS / name
    if not (folder / "installed").exists():
        pytest.skip(f"there is no {name}: `make peers` installs it, where PyPI can be reached")
    return folder / "bin"
