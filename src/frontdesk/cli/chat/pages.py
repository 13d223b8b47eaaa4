"""What is written on: plain text for programs and for terminals that can do no more."""

from typing import Protocol

import click

from frontdesk.cli import output


class Page(Protocol):
    """All who write at the same time share it."""

    def write(self, text: str) -> None:
        """A piece of an answer: the next one goes on where it ends."""
        ...

    def end(self) -> None:
        """The answer is complete, or goes on elsewhere."""
        ...

    def answer(self, text: str) -> None:
        """An answer of an agent as a whole."""
        ...

    def show(self, text: str, *, refused: bool = False) -> None:
        """Something of our own, exactly as it is."""
        ...

    def aside(self, text: str) -> None:
        """What goes on beside the answer."""
        ...


class PlainPage:
    """Each piece as it comes, without any styles."""

    def __init__(self, *, asides_to_stderr: bool = False) -> None:
        self._begun = False
        self._asides_to_stderr = asides_to_stderr

    def write(self, text: str) -> None:
        if text:
            self._put(output.printable(text))
            self._begun = not text.endswith("\n")

    def end(self) -> None:
        if self._begun:
            self._put("\n")
        self._begun = False

    def answer(self, text: str) -> None:
        self.show(text)

    def show(self, text: str, *, refused: bool = False) -> None:
        self.end()
        self._put(f"{output.printable(text)}\n", err=refused and self._asides_to_stderr)

    def aside(self, text: str) -> None:
        self.end()
        self._put(f"· {output.printable(text)}\n", err=self._asides_to_stderr)

    def _put(self, text: str, *, err: bool = False) -> None:
        click.echo(text, nl=False, err=err)
