"""Named queries from .sql files, and numbered migrations."""

import re
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any

from frontdesk.stores.rows import NAMED, PARTS

HERE = Path(__file__).parent
HEAD = re.compile(r"^-- (name|part): (\w+)\n(?:-- .*\n)+", re.MULTILINE)
PART = re.compile(r"\{(?:(\w+)\.)?(\w+)\}")
POSTGRES_ALONE = re.compile(r"/\*pg\s+(.*?)\s*\*/", re.DOTALL)
PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")


SIGNS = {"postgres": "$", "sqlite": "?"}
"""Before the number of a parameter. Values are handed over in order, which is much faster than by name."""
COUNTED = "RETURNING 1"
"""Ends a query of which only matters whether it has changed something."""


class Query:
    """A query as its file has it. What a database reads is made when it is first run: no program runs all."""

    def __init__(self, body: str, parts: Mapping[str, str], sign: str) -> None:
        self._body = body
        self._parts = parts
        self._sign = sign

    @cached_property
    def sql(self) -> str:
        """With its parts, and with numbered parameters; SQLite takes a single one by its name."""
        whole = self._whole.removesuffix(COUNTED) if self.counts else self._whole
        return whole if self._is_named else PARAMETER.sub(self._number, whole)

    @cached_property
    def counts(self) -> bool:
        """Whether it is the connection that says if something was changed: SQLite keeps the rows of an answer
        in a table of their own, which takes longer than many a change."""
        return self._sign == SIGNS["sqlite"] and self._whole.endswith(COUNTED)

    @cached_property
    def arguments(self) -> Callable[[Mapping[str, Any]], Any]:
        """The values of its parameters, in their order; no function of ours is called for them on SQLite."""
        if self._is_named:
            return dict
        match self._names:
            case []:
                return lambda _: ()
            case [name]:
                return lambda values: (values[name],)
            case names:
                return itemgetter(*names)

    @property
    def _is_named(self) -> bool:
        return self._sign == SIGNS["sqlite"] and len(self._names) <= 1

    @cached_property
    def _names(self) -> list[str]:
        return list(dict.fromkeys(PARAMETER.findall(self._whole)))

    @cached_property
    def _whole(self) -> str:
        return PART.sub(self._fill, self._body)

    def _fill(self, part: re.Match[str]) -> str:
        table, name = part.groups()
        if name in self._parts:
            return PART.sub(self._fill, self._parts[name])
        return ", ".join(f"{table}.{column}" if table else column for column in NAMED[name])

    def _number(self, parameter: re.Match[str]) -> str:
        return f"{self._sign}{self._names.index(parameter[1]) + 1}"


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
    texts = [file.read_text(encoding="utf-8") for file in _files(dialect, folder)]
    if dialect == "postgres":
        return list(map(as_postgres_reads, texts))
    return [POSTGRES_ALONE.sub("", text) for text in texts]


def _files(dialect: str, folder: str) -> list[Path]:
    found = [file for place in (HERE, HERE / dialect) for file in (place / folder).glob("*.sql")]
    return sorted(found, key=lambda file: file.name)


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
    return {name: Query(body, parts, sign) for kind, name, body in found if kind == "name"}


def count_migrations(dialect: str) -> int:
    """The version of the present schema."""
    return len(_files(dialect, "migrations"))


def load_migrations(dialect: str) -> list[str]:
    """The migrations in order; the first brings an empty database to version 1."""
    return _scripts(dialect, "migrations")
