"""Any agent built with pydantic-ai: every model provider it knows, tools, MCP servers, approvals."""

from frontdesk.agents.pydantic_ai.driver import Driver
from frontdesk.agents.pydantic_ai.options import Options

__all__ = ["Driver", "Options"]
