"""Somebody whom permissions stop: nobody, where the tests run as root."""

import contextlib
import os
import pwd
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1].resolve()


@contextlib.contextmanager
def powerless() -> Iterator[None]:
    """As nobody for root, as oneself for others.

    The code may be where nobody can read it. So none of it can be imported here, wherever it is: what a test
    needs, it has imported before.
    """
    found = list(sys.path)
    sys.path[:] = [each for each in found if not Path(each).resolve().is_relative_to(ROOT)]
    try:
        with _as_nobody() if os.geteuid() == 0 else contextlib.nullcontext():
            yield
    finally:
        sys.path[:] = found


@contextlib.contextmanager
def _as_nobody() -> Iterator[None]:
    os.seteuid(pwd.getpwnam("nobody").pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that everybody can reach, wherever temporary files are."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o777)
        yield Path(name)
