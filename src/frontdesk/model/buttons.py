"""Buttons: what pressing one does, until when, and what stands for it where a chat has none."""

import secrets
from datetime import datetime

import msgspec

from frontdesk.model import keys
from frontdesk.model.chats import Button
from frontdesk.model.sources import SessionSource

TOKEN_BYTES = 16
"""22 characters in a token: nobody guesses one, and it fits everywhere."""
APPROVE_SIGN, DENY_SIGN = "\N{WHITE HEAVY CHECK MARK}", "\N{CROSS MARK}"
MOST_SIGNS = 9
"""Of choices: the digits that are signs, too."""
KEYCAP = "\ufe0f\u20e3"
_TRIMMINGS = dict.fromkeys([0xFE0E, 0xFE0F, 0x20E3, *range(0x1F3FB, 0x1F400)])


class Decides(msgspec.Struct, frozen=True, kw_only=True, tag="decide"):
    """A decision about an action that people were shown whole; a no, about any."""

    confirmation_id: str
    digest: str
    approves: bool


class Chooses(msgspec.Struct, frozen=True, kw_only=True, tag="choose"):
    """The text of an option that an agent offered becomes a message of whoever presses."""

    text: str


ButtonAction = Decides | Chooses


class LiveButton(Button, frozen=True, kw_only=True):
    """A button as it is handed to the store with its message: channels get only what they show."""

    does: ButtonAction
    until: datetime

    @property
    def shown(self) -> Button:
        return Button(label=self.label, token=self.token, sign=self.sign)


class KeptButton(msgspec.Struct, frozen=True, kw_only=True):
    """A button as the store has it."""

    token: str
    delivery_id: str
    chat: str
    sign: str | None
    does: ButtonAction
    until: datetime
    used_at: datetime | None = None
    used_by: str | None = None
    """The press that used it up, or another button of its message."""

    def is_open(self, now: datetime) -> bool:
        return self.used_at is None and now < self.until


class Press(msgspec.Struct, frozen=True, kw_only=True):
    """The press of a button, as it was taken in."""

    token: str
    turn_id: str


def new_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


def chat_of(source: SessionSource) -> str:
    """The chat that a button is in; of its thread, not every platform tells when somebody reacts."""
    ids = (source.account, source.chat_id or source.user_id)
    return ":".join([source.platform, *[keys.encode_part(each) if each else "" for each in ids]])


def plain_sign(text: str) -> str:
    """A sign without what only changes its looks: a colour of skin, a keycap."""
    return text.strip().translate(_TRIMMINGS)
