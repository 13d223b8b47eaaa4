"""The database's clock, as a function in SQL."""

import time

import apsw


def add_clock(db: apsw.Connection) -> None:
    """``micros()``: microseconds since 1970."""
    db.create_scalar_function("micros", _micros, 0)


def _micros(*_arguments: object) -> int:
    return time.time_ns() // 1000
