"""The api_server channel: frontdesk as a chat-completions endpoint."""

from typing import TYPE_CHECKING

from frontdesk import plugins

if TYPE_CHECKING:
    from frontdesk.channels.api_server.channel import Channel as Channel
    from frontdesk.channels.api_server.options import Options as Options

__all__ = ["Channel", "Options"]

__getattr__ = plugins.lazy(__name__, __all__)
