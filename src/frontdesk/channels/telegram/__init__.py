"""Telegram: a bot that people write to, in direct chats and groups."""

from typing import TYPE_CHECKING

from frontdesk import plugins

if TYPE_CHECKING:
    from frontdesk.channels.telegram.channel import Channel as Channel
    from frontdesk.channels.telegram.options import Options as Options

__all__ = ["Channel", "Options"]

__getattr__ = plugins.lazy(__name__, __all__)
