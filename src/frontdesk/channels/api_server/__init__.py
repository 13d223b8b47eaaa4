"""The api_server channel: frontdesk as a chat-completions endpoint."""

from frontdesk.channels.api_server.channel import Channel
from frontdesk.channels.api_server.options import Options

__all__ = ["Channel", "Options"]
