"""Log events with fields, through the standard library's logging: silent until somebody listens."""

import logging
from typing import Any

import structlog


def get_logger(name: str) -> Any:
    """A logger for ``log.info("event_name", field=value)``."""
    return structlog.wrap_logger(
        logging.getLogger(name),
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.processors.format_exc_info,
            structlog.processors.LogfmtRenderer(key_order=["event"], bool_as_flag=False),
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
    )
