"""Bringing the schema up to date, or refusing it."""

from functools import partial

import asyncpg

from frontdesk import errors
from frontdesk.contracts.store import Row, Statement, Upgrade
from frontdesk.logs import get_logger
from frontdesk.stores.postgres.address import DatabaseAddress
from frontdesk.stores.postgres.connections import ServerConnection, connect, disconnect
from frontdesk.stores.postgres.faults import translated
from frontdesk.stores.postgres.transactions import drive
from frontdesk.stores.sql import Query, load_migrations
from frontdesk.stores.upgrades import load_step_queries, steps_after

APPLICATION = "frontdesk"
OLDEST_SERVER = 13
MIGRATION_SECONDS = 600.0
ATTEMPTS = 3

log = get_logger(__name__)


async def prepare(
    address: DatabaseAddress, queries: dict[str, Query], *, upgrade: bool = True
) -> Upgrade | None:
    """Create the schema or bring it up to date; refuse one that is not ours, newer than this program, or
    older where it is to be left as it is.

    Whoever is cut off meanwhile, because it stood still for too long, begins again.
    """
    left = ATTEMPTS
    while True:
        left -= 1
        link = await connect(address, MIGRATION_SECONDS)
        try:
            with translated(address.name):
                return await _Preparation(link, address, queries).run(upgrade)
        except errors.StoreUnavailable:
            if not left:
                raise
        finally:
            await disconnect(link)


class _Preparation:
    def __init__(self, link: ServerConnection, address: DatabaseAddress, queries: dict[str, Query]) -> None:
        self._link = link
        self._name = address.name
        self._schema = address.schema
        self._queries = queries
        self._migrations = load_migrations("postgres")

    async def run(self, upgrade: bool) -> Upgrade | None:
        # Nodes that still run hold locks for as long as their work takes; the whole has a bound of its own.
        await self._link.execute("SET lock_timeout TO 0")
        await self._check_server()
        version, known = await self._version(), len(self._migrations)
        if version == known:
            return None
        if version and not upgrade:
            raise errors.OlderDatabase(path=self._name, found=version, known=known)
        async with self._link.transaction(isolation="read_committed"):
            await self._migrate()
        if not version:
            return None
        log.warning("database_upgraded", path=self._name, found=version, known=known)
        return Upgrade(found=version, known=known)

    async def _check_server(self) -> None:
        (server,) = await self._ask("server")
        if server["version"] // 10_000 < OLDEST_SERVER:
            raise self._unsuitable(f"it needs PostgreSQL {OLDEST_SERVER} or newer")
        if server["encoding"] != "UTF8":
            raise self._unsuitable(f"its encoding is {server['encoding']}; create one with UTF8")
        if server["standby"] or server["read_only"]:
            why = "it is a standby" if server["standby"] else "it is set to read-only"
            raise errors.ReadOnlyServer(path=self._name, why=why)

    async def _version(self) -> int:
        """The schema's version, 0 when there is nothing yet."""
        tables = {name for (name,) in await self._ask("tables", self._schema)}
        if not tables:
            return 0
        if "meta" not in tables:
            raise self._foreign()
        try:
            found = await self._ask("meta")
        except asyncpg.UndefinedColumnError:
            raise self._foreign() from None
        if [application for application, _ in found] != [APPLICATION]:
            raise self._foreign()
        version = int(found[0]["version"])
        if version > len(self._migrations):
            raise errors.NewerDatabase(path=self._name, found=version, known=len(self._migrations))
        return version

    async def _migrate(self) -> None:
        await self._ask("lock_schema", self._schema)
        if not await self._link.fetchval(self._queries["has_schema"].sql, self._schema):
            await self._link.execute(f'CREATE SCHEMA "{self._schema}"')
        for script in self._migrations[await self._version() :]:
            await self._link.execute(script)
            for step in steps_after(script):
                await drive(step(), partial(self._answer, load_step_queries("postgres")))
        await self._ask("set_version", len(self._migrations))

    async def _answer(self, queries: dict[str, Query], statement: Statement) -> list[Row]:
        name, values = statement
        query = queries[name]
        return [tuple(row) for row in await self._link.fetch(query.sql, *query.arguments(values))]

    async def _ask(self, name: str, *arguments: object) -> list[asyncpg.Record]:
        return await self._link.fetch(self._queries[name].sql, *arguments)

    def _unsuitable(self, why: str) -> errors.UnsuitableServer:
        return errors.UnsuitableServer(path=self._name, why=why)

    def _foreign(self) -> errors.ForeignDatabase:
        why = f"its schema {self._schema} belongs to another program; choose one with ?schema="
        return errors.ForeignDatabase(path=self._name, why=why)
