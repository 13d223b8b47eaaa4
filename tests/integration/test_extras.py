"""What the extra of a platform installs is all that its channel needs."""

import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture.source import PROJECT

EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
OURS: list[str] = PROJECT["project"]["dependencies"]
PLATFORMS = sorted(Requirement(EXTRAS["platforms"][0]).extras)
MODULES = metadata.packages_distributions()
HIDE = """
import ast, importlib, pkgutil, sys
from importlib.machinery import PathFinder
from pathlib import Path

from frontdesk import errors, plugins

platforms, hidden = (each.split() for each in sys.argv[1:])


class Partial(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in hidden else super().find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Partial
"""
LOOK = """
package = importlib.import_module(f"frontdesk.channels.{platforms[0]}")
for each in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
    module = importlib.import_module(each.name)
    tree = ast.parse(Path(module.__file__).read_text())
    imports = [name for node in tree.body if isinstance(node, ast.ImportFrom) for name in node.names]
    for name in imports:  # a library that lacks something may say None in its place
        assert getattr(module, name.asname or name.name) is not None, f"{each.name} has no {name.name}"
"""
REFUSE = """
for platform in platforms:
    try:
        plugins.load_part("channel", platform)
    except errors.MissingPackage as error:
        assert f"pip install 'frontdesk[{platform}]'" in str(error)
    else:
        raise AssertionError(f"{platform} was loaded")
"""


def needed(requirements: list[str], seen: set[tuple[str, str]]) -> Iterator[str]:
    """The packages that these install, and those of them in turn."""
    for requirement in map(Requirement, requirements):
        name = canonicalize_name(requirement.name)
        for extra in (*requirement.extras, ""):
            marker = requirement.marker
            if (name, extra) in seen or (marker and not marker.evaluate({"extra": ""})):
                continue
            seen.add((name, extra))
            yield name
            within = [Requirement(each) for each in metadata.requires(name) or ()]
            chosen = [each for each in within if not each.marker or each.marker.evaluate({"extra": extra})]
            for each in chosen:
                each.marker = None
            yield from needed(list(map(str, chosen)), seen)


def run_with(packages: set[str], script: str, *platforms: str) -> None:
    """Run a script as if only these packages were installed."""
    hidden = [
        module for module, names in MODULES.items() if not packages & set(map(canonicalize_name, names))
    ]
    asked = [sys.executable, "-c", HIDE + script, " ".join(platforms), " ".join(hidden)]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("platform", PLATFORMS)
def test_channel_needs_nothing_besides_what_its_extra_installs(platform: str) -> None:
    if platform == "matrix" and sys.version_info >= (3, 13):
        pytest.skip("there is no python-olm for this Python")
    run_with({*needed([*OURS, *EXTRAS[platform]], set()), "frontdesk"}, LOOK, platform)


def test_channel_without_its_extra_is_refused_before_anybody_is_asked_for_anything() -> None:
    run_with({*needed(OURS, set()), "frontdesk"}, REFUSE, *PLATFORMS)
