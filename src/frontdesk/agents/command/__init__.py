"""An agent that is a program: one JSON object per line over its standard input and output.

The protocol is in `protocol`, one turn with one process in `exchange`, what holds for processes in
`agents.processes`.
"""

from frontdesk.agents.command.driver import Driver
from frontdesk.agents.command.options import Options

__all__ = ["Driver", "Options"]
