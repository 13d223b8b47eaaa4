"""How far a folder of mail was read."""

from typing import Self

import msgspec


class MailboxTrouble(Exception):
    """The mailbox cannot be read."""


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """How far a folder was read: numbers mean something together with their validity alone."""

    validity: int
    uid: int
    at: int
    """When, in seconds since 1970: where to begin when the server numbers its mails anew."""

    def __str__(self) -> str:
        return f"{self.validity}:{self.uid}:{self.at}"

    @classmethod
    def parse(cls, written: str | None) -> Self | None:
        numbers = (written or "").split(":")
        if [number.isascii() and number.isdigit() for number in numbers] != [True] * 3:
            return None
        return cls(validity=int(numbers[0]), uid=int(numbers[1]), at=int(numbers[2]))
