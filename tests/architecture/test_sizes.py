"""Files and functions that can be read in one go."""

import ast

from tests.architecture import source

MOST_LINES = 400
MOST_LINES_OF_A_FUNCTION = 60
MAY_BE_LONG = {"errors.py", "config/table.py"}
"""The tree of errors, and tables."""


def test_files_are_short() -> None:
    assert {path for path in source.files() if source.length_of(path) > MOST_LINES} <= MAY_BE_LONG


def test_functions_are_short() -> None:
    functions = {
        f"{path}:{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path, tree in source.files().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert [name for name, lines in functions.items() if lines > MOST_LINES_OF_A_FUNCTION] == []
