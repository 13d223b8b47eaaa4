"""Secrets: read when they are needed, so that a changed one counts from the next use on."""

from collections.abc import Callable

Secret = Callable[[], str]
"""Gives the secret as it is now; MissingSecret when there is none. Options keep this, never the value."""
