"""Messages of which only the beginning was read: as much of their text as is in it."""

import re
from contextlib import suppress

import msgspec

from frontdesk.model.messages import Plain
from frontdesk.stores.columns import UNREADABLE

SHORT_BYTES = 4 * 1024
"""Of a message are looked at for its first words."""
WRITTEN = tuple(re.compile(rb'"%s":"((?:[^"\\]|\\.)*)' % name) for name in (b"content", b"text"))
"""A text in the beginning of a long message: all of it, or that of a part."""
LONGEST_ESCAPE = 12
"""Bytes of a character that may have been cut."""


def beginning(body: bytes) -> Plain | None:
    """A message of which only the beginning is at hand, with as much of its text."""
    found = [match[1] for match in (written.search(body) for written in WRITTEN) if match]
    for cut in range(LONGEST_ESCAPE if found else 0):
        with suppress(*UNREADABLE):
            return {"content": msgspec.json.decode(b'"%s"' % found[0][: len(found[0]) - cut])}
    return None
