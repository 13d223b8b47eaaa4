"""Slack: an app that people write to, in direct messages, channels and threads."""

from typing import TYPE_CHECKING

from frontdesk import plugins

if TYPE_CHECKING:
    from frontdesk.channels.slack.channel import Channel as Channel
    from frontdesk.channels.slack.options import Options as Options

__all__ = ["Channel", "Options"]

__getattr__ = plugins.lazy(__name__, __all__)
