"""For tests of what is built on frontdesk: a settable clock and a throw-away PostgreSQL."""

import sys

if "pytest" in sys.modules:  # an assertion that fails in a suite of ours shows what it compared
    sys.modules["pytest"].register_assert_rewrite("frontdesk.testing.agents", "frontdesk.testing.channels")

from frontdesk.testing.clock import SettableClock

__all__ = ["SettableClock"]
