"""Where confirmations, rules and the audit log are kept. Every change writes its audit row with it."""

from collections.abc import Callable, Sequence

import msgspec

from frontdesk.model.confirmations import Confirmation, Mode, Settings
from frontdesk.model.deliveries import Delivery
from frontdesk.model.people import Person
from frontdesk.model.rules import Rule, Ruling
from frontdesk.model.turns import TurnClaim

Rules = Callable[[Sequence[Rule]], Ruling]
"""What the rules say to a submission."""
RulesAgain = Callable[[Confirmation, Sequence[Rule]], Ruling]
"""What they say to what was asked for before."""
Check = Callable[[Confirmation, Person], None]
"""Raises when that person may not decide about it."""
Persons = Sequence[frozenset[str]]
"""Names that belong to one person each, as the settings say."""
Tell = Callable[[Confirmation, Sequence[Delivery]], Sequence[Delivery]]
"""What people are told of a confirmation, in the same transaction; given the messages that show it so far."""


class Counting(msgspec.Struct, frozen=True, kw_only=True):
    """How votes are counted: who is one person, and who does not count because it is about their own."""

    persons: Persons = ()
    mode: Mode = Mode.SOLO


class Redeemer(msgspec.Struct, frozen=True, kw_only=True):
    """Who wants to carry an action out."""

    by: str
    claim: TurnClaim | None = None
    """Of the turn that asked: only while that goes on."""
    check: Callable[[Confirmation], None] | None = None
    """Raises when it is not theirs to carry out."""


class Renewing(msgspec.Struct, frozen=True, kw_only=True):
    """How a lapsed grant is asked again: as the rules of today say, unless too much is asked already."""

    rules: RulesAgain
    settings: Settings


class Redemption(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a wish to carry out an approved action. What went wrong is written down, too."""

    confirmation: Confirmation
    payload: bytes | None = None
    """The bytes to carry out; None when it was refused."""
    refused: str | None = None
    """Why: ``digest``, ``redeemed``, ``lapsed``, ``pending``, ``denied``, ``expired``, ``erased`` or
    ``stopped``."""
    renewal: Confirmation | None = None
    """The grant had lapsed: this asks again, once."""


class Owed(msgspec.Struct, frozen=True, kw_only=True):
    """A decision that a program is to be told of."""

    confirmation: Confirmation
    url: str
    attempts: int
    """With this one."""


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """Callbacks that were not heard yet."""

    owed: int
    overdue: int
    """So long that nobody seems to call."""
