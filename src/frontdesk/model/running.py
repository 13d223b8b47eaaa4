"""How the gateway runs: what is done at once, how long anything may take, what people are told."""

import msgspec

from frontdesk import errors
from frontdesk.model.lanes import LEASE_SECONDS
from frontdesk.model.turns import Busy

DAY_SECONDS = 24 * 3600
SHORTEST_LEASE_SECONDS = 3.0


class Running(msgspec.Struct, frozen=True, kw_only=True):
    busy_mode: Busy = Busy.QUEUE
    """What becomes of a message that comes while a turn runs."""
    busy_notice: bool = True
    """Whether its sender is told so."""
    most_waiting: int = 100
    """How many messages may wait in a conversation; further ones are refused."""
    turns_at_once: int = 32
    commands_at_once: int = 8
    deliveries_at_once: int = 32
    turn_seconds: float = 1800.0
    """The longest a turn may take."""
    turn_idle_seconds: float = 600.0
    """The longest an agent may be silent."""
    stop_seconds: float = 5.0
    """How long an agent may take to stop by itself."""
    drain_seconds: float = 8.0
    """How long running turns may go on after the order to shut down: less than the ten seconds after which
    docker kills."""
    send_seconds: float = 60.0
    """The longest a send may take."""
    delivery_max_age_seconds: float = DAY_SECONDS
    """After so long, what could not be delivered is given up."""
    keep_days: int = 30
    """How long finished turns and deliveries are kept; so long a repeated event is known again."""
    prune_days: int = 0
    """After so many days without a word a conversation is forgotten; 0 means never."""
    lease_seconds: float = LEASE_SECONDS
    """After so long without a sign of life, others take over what a node was working on."""
    expiry_check_seconds: float = 60.0
    """How often sessions are looked for whose time is over."""
    extra_prompt: str | None = None
    """Instructions for the agent in every turn."""
    redact_pii: bool = False
    """Whether ids of people and chats are hidden from the agent where the platform allows it."""
    checkpoints: bool = False
    working_dir: str | None = None
    close_after_answer: tuple[str, ...] = ()
    """Platforms whose session is closed, resumably, once the answer is delivered."""

    def __post_init__(self) -> None:
        for name in ("most_waiting", "keep_days", "turns_at_once", "commands_at_once", "deliveries_at_once"):
            if getattr(self, name) < 1:
                raise errors.InvalidSetting(key=name, value=getattr(self, name), allowed="1 or more")
        if self.lease_seconds < SHORTEST_LEASE_SECONDS:
            allowed = f"{SHORTEST_LEASE_SECONDS:g} or more"
            raise errors.InvalidSetting(key="lease_seconds", value=self.lease_seconds, allowed=allowed)
