"""How the page's own chats are set up."""

import msgspec


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """There is nothing to choose."""
