"""Where something can be sent that answers nobody: back to its origin, to a home channel, to any chat."""

import re

import msgspec

from frontdesk import errors
from frontdesk.model import keys
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import SessionSource

ORIGIN = "origin"
EVERY_CHAT = "*"
MOST_CHARACTERS = 1_000
SHOWN_CHARACTERS = 50
FORMS = "use origin, a platform for its home channel, or platform:chat_id[:thread_id]"

_FORM = re.compile(r"(?P<platform>[^@:]+)(?:@(?P<account>[^:]+))?(?::(?P<rest>.+))?", re.DOTALL)


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wrote; which chat it is depends on who wrote it, and on the settings."""

    text: str
    platform: Platform | None = None
    """None for where the question came from."""
    account: str | None = None
    chat_id: str | None = None
    """None for the home channel."""
    thread_id: str | None = None

    @property
    def is_origin(self) -> bool:
        return self.platform is None

    def covers(self, place: SessionSource) -> bool:
        """Whether the place is this chat, one of its threads, or any chat where that is said."""
        chats, threads = (EVERY_CHAT, place.chat_id), (None, place.thread_id)
        here = self.platform is place.platform and self.account == place.account
        return here and self.chat_id in chats and self.thread_id in threads


def parse(text: str) -> Destination:
    """What is written as ``origin``, ``platform`` or ``platform:chat_id[:thread_id]``, with ``@account``
    behind the platform where there are several. In ids, what would be read as something else is
    percent-encoded; where a platform's chat ids have colons, it knows them."""
    if text == ORIGIN:
        return Destination(text=text)
    if len(text) > MOST_CHARACTERS:
        raise errors.UnknownDestination(to=f"{text[:SHOWN_CHARACTERS]}…", why="it is too long")
    found = _FORM.fullmatch(text)
    platform = Platform.parse(found["platform"]) if found else None
    if found is None or platform is None:
        raise errors.UnknownDestination(to=text, why=f"there is no such platform; {FORMS}")
    account = _id(text, found["account"])
    if found["rest"] is None:
        return Destination(text=text, platform=platform, account=account)
    parts = re.fullmatch(rf"({platform.facts.chat_id_form})(?::(.+))?", found["rest"], re.DOTALL)
    if parts is None:
        raise errors.UnknownDestination(to=text, why=f"that is no chat id of {platform}; {FORMS}")
    chat_id, thread_id = _id(text, parts[1]), _id(text, parts[2])
    return Destination(text=text, platform=platform, account=account, chat_id=chat_id, thread_id=thread_id)


def _id(whole: str, text: str | None) -> str | None:
    try:
        return keys.decode_part(text) if text else None
    except UnicodeDecodeError:
        raise errors.UnknownDestination(to=whole, why="an id in it is no text") from None
