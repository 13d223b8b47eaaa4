"""Stores as older versions have left them."""

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from frontdesk.stores.sql import load_migrations
from frontdesk.stores.sqlite.schema import APPLICATION_ID
from tests import schemas


async def at_version(store_url: str, version: int, *statements: str) -> None:
    """Put a store in the place of the one that is there: as a version left it, with what it had stored."""
    if store_url.startswith("sqlite"):
        _write_file(Path(store_url.removeprefix("sqlite:///")), version, statements)
        return
    async with schemas.connected(store_url) as connection:
        schema = await connection.fetchval("SHOW search_path")
        await connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE; CREATE SCHEMA "{schema}"')
        for script in (*load_migrations("postgres")[:version], *statements):
            await connection.execute(script)
        await connection.execute(f"UPDATE meta SET version = {version}")


def _write_file(path: Path, version: int, statements: Iterable[str]) -> None:
    path.unlink(missing_ok=True)
    with closing(apsw.Connection(str(path))) as file:
        with file:
            for script in (*load_migrations("sqlite")[:version], *statements):
                file.execute(script)
        file.pragma("application_id", APPLICATION_ID)
        file.pragma("user_version", version)


class OldStore:
    """A store at the version before a step, to be filled as that version would have filled it."""

    def __init__(self, url: str, step: str) -> None:
        self._url = url
        self._statements: list[str] = []
        scripts = load_migrations("sqlite" if self.is_sqlite else "postgres")
        places = [place for place, script in enumerate(scripts) if f"-- step: {step}\n" in script]
        self._version = places[0]

    @property
    def is_sqlite(self) -> bool:
        return self._url.startswith("sqlite")

    def add(self, table: str, **values: Any) -> None:
        columns = ", ".join(values)
        written = ", ".join(map(self._literal, values.values()))
        self._statements.append(f"INSERT INTO {table} ({columns}) VALUES ({written})")

    def _literal(self, value: Any) -> str:
        if value is None:
            return "NULL"
        if isinstance(value, bytes):
            return f"X'{value.hex()}'" if self.is_sqlite else f"'\\x{value.hex()}'::bytea"
        if isinstance(value, str):
            return "'" + value.replace("'", "''") + "'"
        return str(value)

    async def write(self) -> None:
        await at_version(self._url, self._version, *self._statements)
