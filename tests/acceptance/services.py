"""The confirmation service as a user starts it."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from tests.acceptance import program
from tests.approvers import Approver

READY = "; the mode is "


class Service:
    """A running service."""

    def __init__(self, home: Path, process: subprocess.Popen[bytes], greeting: str) -> None:
        found = re.search(r"confirmation at (http://[\w.:]+);", greeting)
        assert found, greeting
        self.home = home
        self.process = process
        self.greeting = greeting
        self.url = found[1]
        self.token = token_of(home)

    def approver(self) -> Approver:
        return Approver(self.url, self.token)

    def run(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return program.run(self.home, *arguments, "--url", self.url, **more)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def token_of(home: Path) -> str:
    return (home / ".frontdesk" / "confirm" / "approver.token").read_text().strip()


@contextmanager
def serving(home: Path, *arguments: str, port: int = 0, **more: str) -> Iterator[Service]:
    options = ("--port", str(port), "--log-level", "error", *arguments)
    with program.start(home, "confirm", "serve", *options, terminal=False, **more) as process:
        greeting = program.read_until(process, READY)
        yield Service(home, process, greeting)


def tamper(file: Path, statement: str) -> None:
    """Change the log as somebody would who has the file, knows its guard, and leaves no trace of it."""
    connection = apsw.Connection(str(file))
    triggers = list(connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"))
    for name, _ in triggers:
        connection.execute(f'DROP TRIGGER "{name}"')
    connection.execute(statement)
    assert connection.changes() == 1
    for _, sql in triggers:
        connection.execute(sql)
    connection.close()
