"""WhatsApp identities: one person appears as a phone JID and as a LID."""

import re
from collections.abc import Mapping

from frontdesk import errors
from frontdesk.model.platforms import Platform

PLATFORM = Platform.WHATSAPP

GROUP = "@g.us"

_EDGES = re.compile(r"\A[+\s]+|\s+\Z")


def is_group(chat_id: str) -> bool:
    """Whether a chat is a group, which has one name alone."""
    return chat_id.endswith(GROUP)


def normalize_whatsapp_identifier(value: object) -> str:
    """The bare number of a JID, LID or phone number: ``+49151:7@s.whatsapp.net`` gives ``49151``."""
    user = str(value or "").split("@", 1)[0].split(":", 1)[0]
    return _EDGES.sub("", user)


def canonical_whatsapp_identifier(value: object, aliases: Mapping[str, str] | None = None) -> str:
    """The one identifier of a person. ``aliases`` maps learned identifiers to others of the same person; of a
    circle it is the least."""
    names = [normalize_whatsapp_identifier(value)]
    while aliases and (another := normalize_whatsapp_identifier(aliases.get(names[-1]))):
        if another in names:
            return min(names[names.index(another) :])
        names.append(another)
    return names[-1]


def check_whatsapp_identifier(value: object) -> str:
    """The bare number, when it is one."""
    number = normalize_whatsapp_identifier(value)
    if not (number.isascii() and number.isdigit()):
        raise errors.InvalidInput(
            what=f"WhatsApp identifier {value!r}", why="it must be a number, JID or LID"
        )
    return number
