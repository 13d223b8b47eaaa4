"""Secrets: read when they are needed, so that a changed one counts from the next use on."""

from collections.abc import Callable, Mapping

Secret = Callable[[], str]
"""Gives the secret as it is now; MissingSecret when there is none. Options keep this, never the value."""

Checks = Mapping[str, Callable[[str], object]]
"""A record of options may say, as ``secret_checks``, what tries the secrets of a field: InvalidInput for one
that cannot be used."""
