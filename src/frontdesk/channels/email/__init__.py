"""The e-mail channel: mail from a mailbox, answers as mail."""

from typing import TYPE_CHECKING

from frontdesk import plugins

if TYPE_CHECKING:
    from frontdesk.channels.email.channel import Channel as Channel
    from frontdesk.channels.email.options import Options as Options

__all__ = ["Channel", "Options"]

__getattr__ = plugins.lazy(__name__, __all__)
