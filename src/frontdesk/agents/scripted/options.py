"""The options of the scripted agent."""

import msgspec


class Options(msgspec.Struct, frozen=True, kw_only=True):
    script: tuple[str, ...] = ()
    """Steps that answer a message without directives: directives, or texts that are said."""
    stops: bool = True
    """It ends after a stop. Otherwise it is deaf to it."""
    steers: bool = False
    """It takes steering messages: those nobody waited for are said at the end."""
