"""A platform is known to its own folder. Elsewhere it is named only in `Platform`, and where identifiers of
WhatsApp are read; examples in texts for people name whom they like."""

import ast
from collections.abc import Iterator

from frontdesk import Platform
from tests.architecture import source

WORDS = {"email", "local", "signal", "web"}
"""Names that mean other things, too."""
TELLING = {str(platform) for platform in Platform.known()} - WORDS
PLACES = {"__init__.py", "model/platforms.py", "model/whatsapp.py"}
NOT_YET = {
    "app/terminal.py",
    "flow/authorization.py",
    "flow/confirmations/telling.py",
    "flow/context.py",
    "flow/notes.py",
    "flow/redaction.py",
    "flow/service.py",
    "flow/steadiness.py",
    "model/access.py",
    "model/keys.py",
    "model/people.py",
    "model/policies.py",
    "model/sources.py",
    "stores/aliases.py",
    "stores/upgrades/marks.py",
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
    assert {path for path, names in outside.items() if names} - PLACES == NOT_YET


def test_each_folder_names_its_own_platform() -> None:
    for path, tree in source.files().items():
        if path.startswith("channels/"):
            assert set(named(tree)) <= {path.split("/")[1]}, path
