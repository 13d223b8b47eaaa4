"""Agents that speak the Agent Client Protocol over their standard input and output."""

from frontdesk.agents.acp.driver import Driver
from frontdesk.agents.acp.options import Options

__all__ = ["Driver", "Options"]
