"""For tests of what is built on frontdesk: a settable clock and a throw-away PostgreSQL."""

from frontdesk.testing.clock import SettableClock

__all__ = ["SettableClock"]
