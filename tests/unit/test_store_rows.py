"""A column is described once, and stands in every query about its table."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from frontdesk.stores import columns, confirmation_rows, rows, sql

READING = {
    "session": rows.SESSION.names,
    "session_locked": rows.SESSION.names,
    "newest_of_peer": rows.SESSION.names,
    "turn": rows.TURN.names,
    "claim_first": rows.TURN.names,
    "begin_send": rows.DELIVERY.names,
    "confirmation": confirmation_rows.CONFIRMATION.names,
}


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
@pytest.mark.parametrize(("query", "names"), READING.items())
def test_every_column_is_read(dialect: str, query: str, names: tuple[str, ...]) -> None:
    found = sql.load_queries(dialect)[query].sql
    assert [name for name in names if name not in found] == []


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_every_fact_of_a_session_is_written(dialect: str) -> None:
    queries = sql.load_queries(dialect)
    inserted, updated = (_parameters(queries[name]) for name in ("insert_session", "update_session"))
    assert inserted == {*rows.SESSION.written, "details", "active_minute"}
    assert inserted - updated == {"owner", "created_at", "parent_id", "relation"}


def _parameters(query: sql.Query) -> set[str]:
    return set(query.arguments(Named()))


class Named(dict[str, str]):
    """Has its own name under every name."""

    def __missing__(self, name: str) -> str:
        return name


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_every_query_has_all_its_parts(dialect: str) -> None:
    assert [name for name, query in sql.load_queries(dialect).items() if "{" in query.sql] == []


def test_script_for_both_databases_has_parts_for_one_of_them() -> None:
    script = "ALTER TABLE sessions ADD COLUMN seen_at /*pg BIG*/INT /*pg NULL */;"
    assert sql.as_postgres_reads(script) == "ALTER TABLE sessions ADD COLUMN seen_at BIGINT NULL;"


def test_two_moments_in_an_hour_that_a_zone_has_twice_stay_two() -> None:
    earlier = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    later = earlier.replace(fold=1)
    assert earlier == later
    assert columns.to_micros(later) - columns.to_micros(earlier) == 60 * columns.MICROS_A_MINUTE
