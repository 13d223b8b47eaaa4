"""Discord: a bot that people write to, in direct messages, servers and threads."""

from typing import TYPE_CHECKING

from frontdesk import plugins

if TYPE_CHECKING:
    from frontdesk.channels.discord.channel import Channel as Channel
    from frontdesk.channels.discord.options import Options as Options

__all__ = ["Channel", "Options"]

__getattr__ = plugins.lazy(__name__, __all__)
