"""What the pages import, or name with its module, is there."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import frontdesk
from frontdesk import confirm
from tests.docs import pages

DOTTED = re.compile(r"`(frontdesk(?:\.\w+)+)`")
ROOMS = {path.stem for path in Path(frontdesk.__file__).parent.iterdir()} | set(frontdesk.__all__)
EXAMPLES = sorted((pages.ROOT / "examples").glob("*.py"))


def find(dotted: str) -> Any:
    """The module, or what it has under that name."""
    try:
        return import_module(dotted)
    except ModuleNotFoundError:
        module, _, name = dotted.rpartition(".")
        return getattr(find(module), name)


def imported(text: str) -> Iterator[str]:
    """The dotted names that a script imports, and those it asks an imported module for."""
    tree = ast.parse(text)
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "frontdesk":
            known |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
        elif isinstance(node, ast.Import):
            known |= {each.name: each.name for each in node.names if each.name == "frontdesk"}
    yield from known.values()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in known:
                yield f"{known[name]}.{attribute}"


@pytest.mark.parametrize("page", [*pages.all_pages(), *EXAMPLES], ids=pages.name_of)
def test_what_a_page_imports_is_there(page: Path) -> None:
    names = set(imported(pages.read(page) if page in EXAMPLES else pages.script_of(page)))
    named = {dotted for dotted in DOTTED.findall(pages.prose(page)) if dotted.split(".")[1] in ROOMS}
    for dotted in sorted(names | named):
        find(dotted)


@pytest.mark.parametrize("module", [frontdesk, confirm], ids=lambda module: module.__name__)
def test_every_public_name_is_there(module: Any) -> None:
    assert [name for name in module.__all__ if getattr(module, name, None) is None] == []


def test_pages_import_something() -> None:
    names = {name for page in pages.all_pages() for name in imported(pages.script_of(page))}
    assert {"frontdesk.SessionStore", "frontdesk.model.events.Text"} <= names
