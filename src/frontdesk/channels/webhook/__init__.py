"""The webhook channel: signed messages from another service, answers by signed callbacks."""

from typing import TYPE_CHECKING

from frontdesk import plugins

if TYPE_CHECKING:
    from frontdesk.channels.webhook.channel import Channel as Channel
    from frontdesk.channels.webhook.options import Options as Options

__all__ = ["Channel", "Options"]

__getattr__ = plugins.lazy(__name__, __all__)
