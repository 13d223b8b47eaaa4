"""What can be set for an agent that speaks ACP."""

from typing import ClassVar

from frontdesk import errors
from frontdesk.agents.bounds import Count, Seconds
from frontdesk.agents.programs import ProgramOptions


class AcpOptions(ProgramOptions, frozen=True, kw_only=True):
    max_processes: Count = 8
    """At most so many at once; the one that rested longest makes room for another."""
    idle_seconds: Seconds = 900.0
    """How long a process may rest between two turns of its session."""
    slot_seconds: Seconds = 60.0
    """How long a turn waits while all processes work."""
    start_seconds: Seconds = 60.0
    """For each answer until the session stands."""
    silence_seconds: Seconds = 600.0
    """Between two messages in a turn. While a person decides nothing is expected."""
    cancel_seconds: Seconds = 10.0
    """To end the turn after a stop; then the process is ended."""
    stop_seconds: Seconds = 2.0
    max_line_bytes: Count = 8 * 1024 * 1024
    max_turn_bytes: Count = 64 * 1024 * 1024
    preamble_characters: Count = 24_000
    """How much of an earlier conversation a new process is told."""

    passed: ClassVar = (*ProgramOptions.passed, "USER", "LOGNAME", "SHELL")
    """Agents may have to find their sign-in."""

    def checked(self) -> "AcpOptions":
        if not self.command or not all(isinstance(word, str) and word for word in self.command):
            raise errors.InvalidInput(what="The agent's command", why="name a program and its arguments")
        if self.max_processes < 1:
            raise errors.InvalidInput(what=f"max_processes = {self.max_processes}", why="use 1 or more")
        return self
