"""The options of an agent that is a program."""

from typing import Annotated

import msgspec

from frontdesk.agents.bounds import Count, Seconds

PASSED = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ")
"""The variables that every agent gets. Nothing else of the gateway's environment, where the secrets are."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    command: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    """The program and its arguments; no shell reads them."""
    cwd: str | None = None
    """Where it works, unless the turn names a folder. The gateway's turns do: theirs is made of this."""
    env: tuple[str, ...] = ()
    """The names of further variables that it gets from the gateway's environment."""
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
    stop_seconds: Seconds = 5.0
    """To end by itself after `stop` or the end of its input; then it gets SIGTERM."""
    kill_seconds: Seconds = 2.0
    """To end after SIGTERM; then it gets SIGKILL, with everything it started."""
    max_line_bytes: Count = 1024 * 1024
    max_text_characters: Count = 1_000_000
    """Of one turn."""
    max_events: Count = 100_000
    """Of one turn."""
