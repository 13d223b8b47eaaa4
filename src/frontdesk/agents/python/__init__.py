"""An agent that is a Python function, named as ``package.module:name`` and called with the turn and the line.

An async generator function gives texts and events; an async function gives the answer. A plain function
gives the answer, too, and runs in a thread of its own: it may block, but nobody can end it from outside, so
it should look at ``line.stopping`` now and then, and touch nothing else of the line. That is true after a
stop, and also once nobody waits for the answer any more.
"""

from frontdesk.agents.python.driver import Driver
from frontdesk.agents.python.options import Options

__all__ = ["Driver", "Options"]
