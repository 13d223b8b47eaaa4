"""Named queries from .sql files, and numbered migrations."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from operator import itemgetter
from typing import Any, NamedTuple

from frontdesk.stores.rows import NAMED, PARTS

HEAD = re.compile(r"^-- (name|part): (\w+)\n(?:-- .*\n)+", re.MULTILINE)
PART = re.compile(r"\{(?:(\w+)\.)?(\w+)\}")
POSTGRES_ALONE = re.compile(r"/\*pg\s+(.*?)\s*\*/", re.DOTALL)
PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")


SIGNS = {"postgres": "$", "sqlite": "?"}
"""Before the number of a parameter. Values are handed over in order, which is much faster than by name."""


class Query(NamedTuple):
    sql: str
    arguments: Callable[[Mapping[str, Any]], tuple[Any, ...]]
    """The values of its parameters, in their order."""


@cache
def load_queries(dialect: str, folder: str = "queries") -> dict[str, Query]:
    """The queries of both dialects and the dialect's own, by name."""
    found: dict[str, Query] = {}
    for text in _scripts(dialect, folder):
        queries = _parse_queries(text, SIGNS[dialect])
        if twice := found.keys() & queries.keys():
            raise ValueError(f"there are two queries called {', '.join(sorted(twice))}")
        found |= queries
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


def _parse_queries(text: str, sign: str) -> dict[str, Query]:
    """Queries by name, whose parameters have numbers.

    Where a query says ``{name}`` stands the part of that name, which is one of the same file or of
    `rows.PARTS`; ``{t.turn}`` are the columns of a table's record, `rows.NAMED`.
    """
    _, *pieces = HEAD.split(text)
    found = [
        (kind, name, body.strip().rstrip(";"))
        for kind, name, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True)
    ]
    parts = PARTS | {name: body for kind, name, body in found if kind == "part"}

    def fill(part: re.Match[str]) -> str:
        table, name = part.groups()
        if name in parts:
            return PART.sub(fill, parts[name])
        return ", ".join(f"{table}.{column}" if table else column for column in NAMED[name])

    return {name: _query(PART.sub(fill, body), sign) for kind, name, body in found if kind == "name"}


def _query(body: str, sign: str) -> Query:
    names = list(dict.fromkeys(PARAMETER.findall(body)))
    sql = PARAMETER.sub(lambda found: f"{sign}{names.index(found[1]) + 1}", body)
    match names:
        case []:
            return Query(sql, lambda _: ())
        case [name]:
            return Query(sql, lambda values: (values[name],))
        case _:
            return Query(sql, itemgetter(*names))


def load_migrations(dialect: str) -> list[str]:
    """The migrations in order; the first brings an empty database to version 1."""
    return _scripts(dialect, "migrations")
