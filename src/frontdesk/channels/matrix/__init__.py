"""The Matrix channel: rooms and direct chats of one account, encrypted ones included."""

from typing import TYPE_CHECKING

from frontdesk import plugins

if TYPE_CHECKING:
    from frontdesk.channels.matrix.channel import Channel as Channel
    from frontdesk.channels.matrix.options import Options as Options

__all__ = ["Channel", "Options"]

__getattr__ = plugins.lazy(__name__, __all__)
