"""The screen: what happens in a turn, as people see it."""

from collections.abc import Mapping
from typing import Any

import click

from frontdesk import config
from frontdesk.cli import output

MAX_ASIDE_CHARACTERS = 160

Plain = dict[str, Any]


class Line:
    """The line that the terminal writes in; all who write to it at the same time share it."""

    def __init__(self) -> None:
        self._begun = False
        self._asked = False

    def write(self, text: str) -> None:
        """Go on in the line, but not behind a question."""
        if self._asked:
            self.end()
        click.echo(output.printable(text), nl=False)
        self._begun = not text.endswith("\n") if text else self._begun

    def ask(self, text: str) -> None:
        """Write what somebody is to answer behind."""
        self.end()
        click.echo(text, nl=False)
        self._begun = self._asked = True

    def answered(self) -> None:
        """Whoever was asked has ended the line."""
        self._begun = self._asked = False

    def end(self) -> None:
        """Whatever comes now begins a line."""
        if self._begun:
            click.echo()
        self._begun = self._asked = False


class Screen:
    """One turn: the answer as it is written, what goes on beside it in dim lines."""

    def __init__(self, line: Line | None = None, *, asides_to_stderr: bool = False) -> None:
        self._line = line or Line()
        self._asides_to_stderr = asides_to_stderr
        self._dims = _takes_colours(config.environment())
        self._said = ""
        """What the agent has said since it last called a tool."""
        self._told: set[str] = set()
        """The notices, and the questions, that were shown already."""

    def show(self, happened: Plain) -> None:
        match happened["type"]:
            case "text":
                self._line.write(happened["text"])
                self._said += happened["text"]
            case "call":
                self._said = ""
                self.aside(f"{happened['name']} {happened['arguments']}")
            case "result" if happened["is_error"]:
                self.aside(f"{happened['name'] or 'tool'} failed: {happened['content']}")
            case "asked":
                self._told.add(happened["id"])
                self._line.end()
                output.show(happened["text"])
            case "failed" if happened["retryable"]:
                self.aside(f"failed, and is tried again: {happened['message']}")
            case "notice":
                self.tell(happened)
            case "end":
                self._end(happened)

    def _end(self, ending: Plain) -> None:
        """What was said and not seen yet: all of it, when the turn ran elsewhere."""
        self._line.end()
        for each in ending["deliveries"]:
            if not self._has_shown(each):
                self.tell(each, refused=bool(ending["error"]))

    def _has_shown(self, delivery: Plain) -> bool:
        if self._told & {delivery["id"], delivery["confirmation_id"]}:
            return True
        return self._said.strip().endswith(delivery["text"].strip())

    def tell(self, delivery: Plain, *, refused: bool = False) -> None:
        """Show something that was said as a whole; why something was refused is no answer."""
        self._told.add(delivery["id"])
        if delivery["kind"] == "notice":
            self.aside(delivery["text"], whole=True)
        else:
            self._line.end()
            click.echo(output.printable(delivery["text"]), err=refused and self._asides_to_stderr)

    def aside(self, text: str, *, whole: bool = False) -> None:
        self._line.end()
        shown = output.printable(text if whole else _short(text))
        line = f"· {shown}"
        click.echo(click.style(line, dim=True) if self._dims else line, err=self._asides_to_stderr)


def _takes_colours(environ: Mapping[str, str]) -> bool:
    return environ.get("TERM", "dumb") != "dumb" and not environ.get("NO_COLOR")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_ASIDE_CHARACTERS else line[: MAX_ASIDE_CHARACTERS - 1] + "…"
