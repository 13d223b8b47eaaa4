"""Stores as older versions have left them."""

from contextlib import closing
from typing import Any

import apsw

from frontdesk.stores.sql import load_migrations
from frontdesk.stores.sqlite.schema import APPLICATION_ID
from tests import schemas


class OldStore:
    """A store at the version before a step, to be filled as that version would have filled it."""

    def __init__(self, url: str, step: str) -> None:
        self._url = url
        self._statements: list[str] = []
        self._scripts = load_migrations("sqlite" if self.is_sqlite else "postgres")
        places = [place for place, script in enumerate(self._scripts) if f"-- step: {step}\n" in script]
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
        statements = (*self._scripts[: self._version], *self._statements)
        if self.is_sqlite:
            with closing(apsw.Connection(self._url.removeprefix("sqlite:///"))) as file:
                with file:
                    for statement in statements:
                        file.execute(statement)
                file.pragma("application_id", APPLICATION_ID)
                file.pragma("user_version", self._version)
            return
        async with schemas.connected(self._url) as connection:
            schema = await connection.fetchval("SHOW search_path")
            await connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE; CREATE SCHEMA "{schema}"')
            for statement in statements:
                await connection.execute(statement)
            await connection.execute(f"UPDATE meta SET version = {self._version}")
