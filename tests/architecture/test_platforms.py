"""A platform is known to its own folder. Elsewhere it is named only in `Platform`, and where identifiers of
WhatsApp are read; examples in texts for people name whom they like."""

import ast
from collections.abc import Iterator

from frontdesk import Platform
from tests.architecture import source

WORDS = {"email", "local", "signal", "web"}
"""Names that mean other things, too."""
BUILT_IN = {name.lower() for name in vars(Platform) if name.isupper()}
TELLING = BUILT_IN - WORDS
PLACES = {
    "__init__.py",
    "model/platforms.py",
    "model/whatsapp.py",
    "model/sources.py",  # a type of chat had such a name, in entries of older forms
}


def named(tree: ast.Module) -> Iterator[str]:
    """The platforms that code names: `Platform.SLACK`, "slack", SLACK, def _slack."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="Platform"), attr=name) if name.isupper():
                yield name.lower()
            case ast.Constant(value=str() as text) if text in TELLING:
                yield text
            case ast.Name(id=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                words = {name.lower().strip("_"), name.lower().partition("_")[0]}
                yield from words & TELLING if name != "whatsapp" else ()  # the module


def test_platforms_are_named_in_their_folders() -> None:
    outside = {path: set(named(tree)) for path, tree in source.files().items() if path[:9] != "channels/"}
    assert {path for path, names in outside.items() if names} <= PLACES


def test_each_folder_names_its_own_platform() -> None:
    for path, tree in source.files().items():
        if path.startswith("channels/"):
            assert set(named(tree)) <= {path.split("/")[1]}, path


def test_each_platform_has_facts_that_import_nothing_foreign() -> None:
    """What is known of a platform is there without its library, and without its channel."""
    for platform in BUILT_IN:
        for node in ast.walk(source.files()[f"channels/{platform}/facts.py"]):
            assert not isinstance(node, ast.Import)
            if isinstance(node, ast.ImportFrom):
                assert (node.module or "").startswith(("frontdesk.model.", "frontdesk.formats."))
