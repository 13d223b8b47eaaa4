"""The locks: what running needs, and what tests need besides."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def locked(name: str) -> dict[str, str]:
    """The packages of a lock with their versions."""
    return dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / name).read_text(), re.MULTILINE))


def named(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w-]", each)[0] for each in requirements}


def test_lock_of_running_has_what_the_program_depends_on() -> None:
    assert named(PROJECT["project"]["dependencies"]) <= set(locked("requirements.lock"))


def test_lock_of_running_has_nothing_that_only_tests_need() -> None:
    assert not named(PROJECT["dependency-groups"]["dev"]) & set(locked("requirements.lock"))


def test_tests_run_with_the_versions_that_running_has() -> None:
    assert locked("requirements.lock").items() <= locked("requirements-dev.lock").items()
