"""The local channel: the terminal of whoever runs the gateway."""

from frontdesk.channels.local.channel import Channel as Channel
from frontdesk.channels.local.options import Options as Options
