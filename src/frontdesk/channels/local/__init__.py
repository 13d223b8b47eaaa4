"""The local channel: the terminal of whoever runs the gateway."""

from typing import TYPE_CHECKING

from frontdesk import plugins

if TYPE_CHECKING:
    from frontdesk.channels.local.channel import Channel as Channel
    from frontdesk.channels.local.options import Options as Options

__all__ = ["Channel", "Options"]

__getattr__ = plugins.lazy(__name__, __all__)
