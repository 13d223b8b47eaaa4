"""One name means one thing: classes over all of the source, modules within a layer."""

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

from tests.architecture import source

FIXED = {"Channel", "Driver", "Options"}
"""What each plug-in's folder calls the same."""
SHARED = {"Decision", "Limits", "Role"}
"""Each of the two is shown to outsiders under this name."""
MOST_SHARED = 0.05


def classes() -> Counter[str]:
    return Counter(
        node.name
        for path, tree in source.files().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and not (source.is_plug_in(path) and node.name in FIXED)
    )


def test_class_names_are_unique() -> None:
    assert {name for name, count in classes().items() if count > 1} == SHARED


def test_few_class_names_are_excepted() -> None:
    found = classes()
    assert sum(found[name] for name in SHARED) <= MOST_SHARED * found.total()


def shared_modules(rooms: list[str]) -> set[str]:
    """The names that several modules of a layer have, beside those in plug-ins' folders."""
    found = defaultdict(list)
    for path in source.files():
        if path.split("/")[0].removesuffix(".py") in rooms and not source.is_plug_in(path):
            found[Path(path).stem].append(path)
    return {name for name, paths in found.items() if len(paths) > 1} - {"__init__"}


def test_module_names_are_unique_within_a_layer() -> None:
    layers = source.PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]
    shared = [shared_modules(re.findall(r"\((\w+)\)", layer)) for layer in layers]
    assert set().union(*shared) == set()
