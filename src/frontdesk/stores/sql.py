"""Named queries from .sql files, and numbered migrations."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from operator import itemgetter
from typing import Any, NamedTuple

from frontdesk.contracts.store import Row

HEAD = re.compile(r"^-- (name|part): (\w+)\n((?:-- .*\n)+)", re.MULTILINE)
PART = re.compile(r"\{(\w+)\}")
PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")


class Query(NamedTuple):
    sql: str
    parameters: tuple[str, ...]
    purpose: str
    arguments: Callable[[Mapping[str, Any]], Row]
    """The values of the parameters, in their order."""


def load_queries(dialect: str, adapt: Callable[[str], str], folder: str = "queries") -> dict[str, Query]:
    """The queries of both dialects and the dialect's own, by name."""
    found: dict[str, Query] = {}
    for place in (files("frontdesk.stores") / folder, files(f"frontdesk.stores.{dialect}") / folder):
        for text in _scripts(place):
            found |= parse_queries(adapt(text), numbered=_numbered(dialect))
    return found


def _scripts(folder: Traversable) -> list[str]:
    """The folder's SQL files, by name."""
    found = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda f: f.name)
    return [file.read_text(encoding="utf-8") for file in found]


def _numbered(dialect: str) -> str:
    return "$" if dialect == "postgres" else "?"


def parse_queries(text: str, numbered: str) -> dict[str, Query]:
    """Queries by name; ``numbered`` is the mark of a numbered parameter.

    Where a query says ``{name}`` stands the part of that name, which is one of the same file.
    """
    heads = list(HEAD.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    bodies = [text[head.end() : end].strip().rstrip(";") for head, end in zip(heads, ends, strict=True)]
    found = list(zip(heads, bodies, strict=True))
    parts = {head[2]: body for head, body in found if head[1] == "part"}
    return {
        head[2]: _query(PART.sub(lambda part: parts[part[1]], body), head[3], numbered)
        for head, body in found
        if head[1] == "name"
    }


def _query(body: str, comment: str, numbered: str) -> Query:
    parameters: list[str] = []

    def number(found: re.Match[str]) -> str:
        if found[1] not in parameters:
            parameters.append(found[1])
        return f"{numbered}{parameters.index(found[1]) + 1}"

    sql = PARAMETER.sub(number, body)
    purpose = comment.replace("-- ", "").strip()
    return Query(sql, tuple(parameters), purpose, _picking(parameters, lists_as_json="json_each(" in sql))


def _picking(parameters: Sequence[str], lists_as_json: bool) -> Callable[[Mapping[str, Any]], Row]:
    if len(parameters) > 1 and not lists_as_json:
        return itemgetter(*parameters)

    def pick(values: Mapping[str, Any]) -> Row:
        arguments = tuple([values[name] for name in parameters])
        if not lists_as_json:
            return arguments
        return tuple([json.dumps(value) if isinstance(value, list) else value for value in arguments])

    return pick


def load_migrations(dialect: str) -> list[str]:
    """The dialect's migrations in order; the first brings an empty database to version 1."""
    return _scripts(files(f"frontdesk.stores.{dialect}") / "migrations")
