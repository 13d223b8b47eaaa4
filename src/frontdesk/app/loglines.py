"""Where log events go: one line each, to standard error or a file."""

import json
import logging
from datetime import UTC, datetime
from pathlib import Path

from frontdesk.logs import render


def listen(level: str, file: Path | None = None) -> None:
    """Write events of that level and above, one line each, to the file or to standard error."""
    handler: logging.Handler = logging.StreamHandler()
    if file:
        file.touch(mode=0o600)
        handler = logging.FileHandler(file, encoding="utf-8")
    handler.setFormatter(_Lines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("frontdesk").setLevel(level.upper())


class _Lines(logging.Formatter):
    """Time and level before the event; other libraries' messages are events without fields of their own."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        if not record.name.startswith("frontdesk"):
            message = render({"event": "message", "logger": record.name, "text": message})
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = f"time={moment} level={record.levelname.lower()} {message}"
        if not record.exc_info:
            return line
        return f"{line} trace={json.dumps(self.formatException(record.exc_info))}"
