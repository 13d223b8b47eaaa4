"""The webhook channel: signed messages from another service, answers by signed callbacks."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frontdesk.channels.webhook.channel import Channel as Channel
    from frontdesk.channels.webhook.options import Options as Options

__all__ = ["Channel", "Options"]


def __getattr__(name: str) -> Any:
    """The channel is loaded when it is used: whoever asks for the platform's facts does not need it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{name.lower()}"), name)
