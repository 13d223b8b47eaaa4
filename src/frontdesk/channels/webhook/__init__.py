"""The webhook channel: signed messages from another service, answers by signed callbacks."""

from frontdesk.channels.webhook.channel import Channel
from frontdesk.channels.webhook.options import Options

__all__ = ["Channel", "Options"]
