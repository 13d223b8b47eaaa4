"""The web: chats that people have on the gateway's own page, or through its HTTP API."""

from typing import TYPE_CHECKING

from frontdesk import plugins

if TYPE_CHECKING:
    from frontdesk.channels.web.channel import Channel as Channel
    from frontdesk.channels.web.options import Options as Options

__all__ = ["Channel", "Options"]

__getattr__ = plugins.lazy(__name__, __all__)
