"""Named queries from .sql files, and numbered migrations."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from operator import itemgetter
from typing import Any, NamedTuple

from frontdesk.contracts.store import Row
from frontdesk.stores.rows import NAMED, PARTS

HEAD = re.compile(r"^-- (name|part): (\w+)\n((?:-- .*\n)+)", re.MULTILINE)
PART = re.compile(r"\{(?:(\w+)\.)?(\w+)\}")
POSTGRES_ALONE = re.compile(r"/\*pg\s+(.*?)\s*\*/", re.DOTALL)
PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")


class Query(NamedTuple):
    sql: str
    parameters: tuple[str, ...]
    purpose: str
    arguments: Callable[[Mapping[str, Any]], Row]
    """The values of the parameters, in their order."""


def load_queries(dialect: str, folder: str = "queries") -> dict[str, Query]:
    """The queries of both dialects and the dialect's own, by name."""
    found: dict[str, Query] = {}
    for text in _scripts(dialect, folder):
        found |= parse_queries(text, numbered="$" if dialect == "postgres" else "?")
    return found


def _scripts(dialect: str, folder: str) -> list[str]:
    """The SQL files for both dialects and of this one, by name, as the dialect reads them."""
    places = [files("frontdesk.stores") / folder, files(f"frontdesk.stores.{dialect}") / folder]
    found = [file for place in places if place.is_dir() for file in place.iterdir()]
    scripts = sorted((file for file in found if file.name.endswith(".sql")), key=lambda file: file.name)
    texts = [file.read_text(encoding="utf-8") for file in scripts]
    if dialect == "postgres":
        return list(map(as_postgres_reads, texts))
    return [POSTGRES_ALONE.sub("", text) for text in texts]


def as_postgres_reads(script: str) -> str:
    """With what stands in a comment that is for it alone."""
    return POSTGRES_ALONE.sub(r"\1", script)


def parse_queries(text: str, numbered: str) -> dict[str, Query]:
    """Queries by name; ``numbered`` is the mark of a numbered parameter.

    Where a query says ``{name}`` stands the part of that name, which is one of the same file or of
    `rows.PARTS`; ``{t.turn}`` are the columns of a table's record, `rows.NAMED`.
    """
    heads = list(HEAD.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    bodies = [text[head.end() : end].strip().rstrip(";") for head, end in zip(heads, ends, strict=True)]
    found = list(zip(heads, bodies, strict=True))
    parts = PARTS | {head[2]: body for head, body in found if head[1] == "part"}

    def fill(part: re.Match[str]) -> str:
        table, name = part.groups()
        if name in parts:
            return PART.sub(fill, parts[name])
        return ", ".join(f"{table}.{column}" if table else column for column in NAMED[name])

    return {
        head[2]: _query(PART.sub(fill, body), head[3], numbered) for head, body in found if head[1] == "name"
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
    """The migrations in order; the first brings an empty database to version 1."""
    return _scripts(dialect, "migrations")
