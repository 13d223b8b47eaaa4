"""The options of an agent that is a program."""

from frontdesk.agents.bounds import Count, Seconds
from frontdesk.agents.programs import ProgramOptions


class Options(ProgramOptions, frozen=True, kw_only=True):
    steers: bool = False
    """The agent heeds `steer` and answers with `steered`. Otherwise a message waits for its own turn."""
    models: bool = False
    """The agent heeds the `model` of a turn. Otherwise nobody can choose one with /model."""
    keep: bool = False
    """Keep the process of a session from turn to turn. Otherwise each turn has a process of its own."""
    keep_seconds: Seconds = 900.0
    """How long a kept process may rest."""
    max_kept: Count = 50
    """How many may rest; beyond that the one that rested longest is ended."""
    start_seconds: Seconds = 60.0
    """Until its first line."""
    idle_seconds: Seconds = 600.0
    """Between two lines. While a person decides nothing is expected."""
    max_text_characters: Count = 1_000_000
    """Of one turn."""
    max_events: Count = 100_000
    """Of one turn."""
