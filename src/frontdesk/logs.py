"""Log events with fields, through the standard library's logging: silent until somebody listens.

``log.warning("checkpoint_failed", path=path)`` reads ``event=checkpoint_failed path=state.db``.
"""

import json
import logging
import re
from contextvars import ContextVar

PLAIN = re.compile(r"[\w.:@/+-]+", re.ASCII)

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
"""The request that is being served: what is logged meanwhile names it."""


class Log:
    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def info(self, event: str, **fields: object) -> None:
        if self._logger.isEnabledFor(logging.INFO):  # most are not wanted: nothing is done for them
            self._write(logging.INFO, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        self._write(logging.WARNING, event, fields)

    def exception(self, event: str, **fields: object) -> None:
        """An error, with the trace of the exception that is being handled."""
        self._write(logging.ERROR, event, fields, trace=True)

    def _write(self, level: int, event: str, fields: dict[str, object], trace: bool = False) -> None:
        if self._logger.isEnabledFor(level):
            told = {"event": event} | fields | {"request": fields.get("request", request_id.get())}
            self._logger.log(level, "%s", render(told), exc_info=trace, stacklevel=3)


def get_logger(name: str) -> Log:
    return Log(logging.getLogger(name))


def render(fields: dict[str, object]) -> str:
    """One line, whatever the values hold: what is not plain is quoted, so that nobody forges a line."""
    return " ".join(f"{name}={_value(value)}" for name, value in fields.items() if value is not None)


def _value(value: object) -> str:
    text = str(value)
    return text if PLAIN.fullmatch(text) else json.dumps(text)
