"""Named queries from .sql files, and numbered migrations."""

import json
import re
from collections.abc import Callable
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple

from frontdesk.stores.work import Row

NAME = re.compile(r"^-- name: (\w+)\n((?:-- .*\n)+)", re.MULTILINE)
PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")


class Query(NamedTuple):
    sql: str
    parameters: tuple[str, ...]
    purpose: str
    lists_as_json: bool = False

    def arguments(self, values: dict[str, Any]) -> Row:
        arguments = tuple([values[name] for name in self.parameters])
        if not self.lists_as_json:
            return arguments
        return tuple([json.dumps(value) if isinstance(value, list) else value for value in arguments])


def load_queries(dialect: str, adapt: Callable[[str], str]) -> dict[str, Query]:
    """The queries of both dialects and the dialect's own, by name."""
    found: dict[str, Query] = {}
    for folder in (files("frontdesk.stores") / "queries", files(f"frontdesk.stores.{dialect}") / "queries"):
        for file in sorted(folder.iterdir(), key=lambda file: file.name):
            found |= parse_queries(adapt(file.read_text(encoding="utf-8")), numbered=_numbered(dialect))
    return found


def _numbered(dialect: str) -> str:
    return "$" if dialect == "postgres" else "?"


def parse_queries(text: str, numbered: str) -> dict[str, Query]:
    """Queries by name; ``numbered`` is the mark of a numbered parameter."""
    heads = list(NAME.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return {
        head[1]: _query(text[head.end() : end], head[2], numbered)
        for head, end in zip(heads, ends, strict=True)
    }


def _query(body: str, comment: str, numbered: str) -> Query:
    parameters: list[str] = []

    def number(found: re.Match[str]) -> str:
        if found[1] not in parameters:
            parameters.append(found[1])
        return f"{numbered}{parameters.index(found[1]) + 1}"

    sql = PARAMETER.sub(number, body.strip().rstrip(";"))
    return Query(sql, tuple(parameters), comment.replace("-- ", "").strip(), "json_each(" in sql)


def load_migrations(dialect: str) -> list[str]:
    """The dialect's migrations in order; the first brings an empty database to version 1."""
    folder: Traversable = files(f"frontdesk.stores.{dialect}") / "migrations"
    found = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda f: f.name)
    return [file.read_text(encoding="utf-8") for file in found]
