"""Errors: one tree, drawn at the top of its module; a class's docstring is its message."""

import ast
import inspect
import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import frontdesk
from frontdesk import errors

SOURCE = Path(frontdesk.__file__).parent
ROOT = "FrontdeskError"
BRANCH = re.compile(r"^([│ ]*)[├└]── (\w+)", re.MULTILINE)
INDENT = 4
CLASSES: dict[str, Any] = {
    name: value
    for name, value in vars(errors).items()
    if inspect.isclass(value) and value.__module__ == errors.__name__
}


def drawn_tree() -> dict[str, str | None]:
    """Each name of the drawing with the one it hangs on."""
    parents: dict[str, str | None] = {ROOT: None}
    path = [ROOT]
    for indent, name in BRANCH.findall(errors.__doc__ or ""):
        path = [*path[: len(indent) // INDENT + 1], name]
        parents[name] = path[-2]
    return parents


def fields_of(error: type[errors.FrontdeskError]) -> set[str]:
    """The words in braces of the message."""
    return {name for _, name, _, _ in string.Formatter().parse(error.__doc__ or "") if name is not None}


def made_errors() -> Iterator[tuple[str, str, set[str]]]:
    """Place, class and fields of every error that the source makes."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="errors"), attr=name), keywords=keywords):
                    place = f"{path.relative_to(SOURCE)}:{node.lineno}"
                    yield place, name, {keyword.arg for keyword in keywords if keyword.arg}


def test_drawing_is_the_tree_of_classes() -> None:
    assert (errors.__doc__ or "").count("── ") == len(drawn_tree()) - 1
    assert drawn_tree() == {
        name: None if name == ROOT else error.__bases__[0].__name__ for name, error in CLASSES.items()
    }


@pytest.mark.parametrize("name", CLASSES)
def test_message_is_one_line(name: str) -> None:
    error = CLASSES[name]
    assert "\n" not in str(error(**dict.fromkeys(fields_of(error), "x")))


@pytest.mark.parametrize("name", CLASSES)
def test_docstring_is_a_message_that_formats(name: str) -> None:
    error = CLASSES[name]
    assert vars(error).get("__doc__"), "a class without a docstring has no message"
    fields = {field: f"<{field} of {{it}}>" for field in fields_of(error)}
    made = error(**fields)
    assert all(fields[field] in str(made) or repr(fields[field]) in str(made) for field in fields)
    assert {field: getattr(made, field) for field in fields} == fields
    assert all(line == line.strip() for line in str(made).splitlines())


@pytest.mark.parametrize("name", CLASSES)
def test_fields_of_a_message_are_plain_names(name: str) -> None:
    assert all(field.isidentifier() for field in fields_of(CLASSES[name]))


def test_every_error_that_is_made_exists_and_has_the_fields_of_its_message() -> None:
    made = list(made_errors())
    assert made
    unknown = [(place, name) for place, name, _ in made if name not in CLASSES]
    assert not unknown
    lacking = [(place, name, fields_of(CLASSES[name]) - given) for place, name, given in made]
    assert not [each for each in lacking if each[2]]


def test_input_that_cannot_be_used_is_also_a_value_error() -> None:
    assert issubclass(errors.InvalidInput, ValueError)
    assert not issubclass(errors.StoreError, ValueError)
