"""Programs that frontdesk starts: their group, their pipes, and nothing of them that outlives their end.

The pipes and the wait for the exit are ours, not the event loop's: uvloop leaves copies of its pipes in the
program, whose closed output would never be seen to end.
"""

from frontdesk.processes.groups import Group
from frontdesk.processes.keeping import end_left, kept

__all__ = ["Group", "end_left", "kept"]
