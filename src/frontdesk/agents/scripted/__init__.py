"""An agent without a model, for tests: it does what the message says, and otherwise echoes it.

A message without directives is answered by the steps of the option `script`, or, without any, with
``echo: `` and its own text. Directives stand in the message, several separated by ``;`` (one inside double
quotes separates nothing). A part that is no directive is echoed at its place. A turn that said nothing at
its end echoes the whole message, so that every finished turn has an answer.

===========================  =================================================================
``!say TEXT``                says the text
``!stream N``                says N pieces: ``1 ``, ``2 ``, …
``!sleep SECONDS``           waits; a stop ends the wait
``!hang [N]``                waits until it is stopped
``!tool NAME [JSON]``        calls a tool, whose result is its arguments
``!toolerror NAME [JSON]``   the same, and the result is an error
``!call NAME [JSON]``        calls a tool that never gives a result
``!approve ACTION [TEXT]``   asks, waits, and says ``approved: ACTION`` or ``denied: ACTION``
``!steer``                   waits for a steering message and says ``steered: `` and its text
``!tokens IN OUT [COST]``    reports usage
``!summary TEXT``            gives a summary
``!background NAME [S]``     says that work goes on, for S seconds at most; with ``ended`` that it has ended
``!show WHAT``               says ``attempt``, ``messages`` (how many), ``session``, ``system`` or ``model``
``!fail [retryable] [N]``    fails
``!raise [N]``               raises an error, which an agent never should
``!exit [N]``                ends the whole process at once, as a crash would
===========================  =================================================================

With N the directive works in the first N attempts only, and is passed over later. A tool whose result is
already among the messages, from an earlier attempt, is not called again.
"""

from frontdesk.agents.scripted.driver import Driver
from frontdesk.agents.scripted.options import Options

__all__ = ["Driver", "Options"]
