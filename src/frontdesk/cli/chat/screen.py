"""The screen: what happens in a turn, as people see it."""

from collections.abc import Iterable, Mapping
from typing import Any

import click

from frontdesk import config
from frontdesk.cli import output

MAX_ASIDE_CHARACTERS = 160

Plain = dict[str, Any]


class Screen:
    """The answer as it is written, what goes on beside it in dim lines."""

    def __init__(self, *, asides_to_stderr: bool = False) -> None:
        self._asides_to_stderr = asides_to_stderr
        self._dims = _takes_colours(config.environment())
        self._said = ""
        """What the agent has said since it last called a tool."""
        self._in_line = False
        self._told: set[str] = set()
        """The notices that were shown already."""

    def show(self, happened: Plain) -> None:
        match happened["type"]:
            case "text":
                self._write(happened["text"])
                self._said += happened["text"]
            case "call":
                self._said = ""
                self.aside(f"{happened['name']} {happened['arguments']}")
            case "result" if happened["is_error"]:
                self.aside(f"{happened['name'] or 'tool'} failed: {happened['content']}")
            case "asked":
                self.end_line()
                output.show(happened["text"])
            case "failed" if happened["retryable"]:
                self.aside(f"failed, and is tried again: {happened['message']}")
            case "notice":
                self.tell(happened)
            case "end":
                self._end(happened["deliveries"])

    def _end(self, said: Iterable[Plain]) -> None:
        """What was said and not seen yet: all of it, when the turn ran elsewhere."""
        self.end_line()
        for each in said:
            seen = each["id"] in self._told or self._said.strip().endswith(each["text"].strip())
            if not seen:
                self.tell(each)

    def _write(self, text: str) -> None:
        click.echo(output.printable(text), nl=False)
        self._in_line = not text.endswith("\n") if text else self._in_line

    def tell(self, delivery: Plain) -> None:
        """Show something that was said as a whole."""
        self._told.add(delivery["id"])
        if delivery["kind"] == "notice":
            self.aside(delivery["text"], whole=True)
        else:
            self.end_line()
            output.show(delivery["text"])

    def aside(self, text: str, *, whole: bool = False) -> None:
        self.end_line()
        shown = output.printable(text if whole else _short(text))
        line = f"· {shown}"
        click.echo(click.style(line, dim=True) if self._dims else line, err=self._asides_to_stderr)

    def end_line(self) -> None:
        if self._in_line:
            click.echo()
            self._in_line = False


def _takes_colours(environ: Mapping[str, str]) -> bool:
    return environ.get("TERM", "dumb") != "dumb" and not environ.get("NO_COLOR")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_ASIDE_CHARACTERS else line[: MAX_ASIDE_CHARACTERS - 1] + "…"
